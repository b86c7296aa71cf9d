"""What tests of netlists share."""

from tests.verilog.netlists import known, known_netlists, netlist

__all__ = ["known", "known_netlists", "netlist"]
