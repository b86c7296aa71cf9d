"""The emitted Verilog: names that stay, and those that are hidden."""

import re

from tests.verilog.switches import SMALLEST
from verilog.emit import rtlil_to_verilog, to_verilog

from .components import Chain, Port


def test_net_names_stay_readable_and_no_source_paths_leak():
    text = to_verilog(Chain([Port()]), "switch")
    assert re.search(r"reg \[7:0\] total\b", text)
    assert "src" not in text
    assert not re.search(r"^module \\", text, re.M)


def test_nets_that_nobody_named_are_left_out_of_verilators_waves(netlist):
    text = rtlil_to_verilog(netlist(SMALLEST))
    assert "module ironband_switch(" in text
    assert not re.search(r"\\\$\d", text)
