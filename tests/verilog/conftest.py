"""What tests of netlists share."""

from tests.verilog.netlists import known_netlists, netlist, once

__all__ = ["known_netlists", "netlist", "once"]
