"""The emitted Verilog: names that stay, and those that are hidden."""

import re

from rtl.switch.switch import Switch
from verilog.emit import to_verilog
from wire.parameters import SwitchParameters

from .components import Chain, Port


def test_net_names_stay_readable_and_no_source_paths_leak():
    text = to_verilog(Chain([Port()]), "switch")
    assert re.search(r"reg \[7:0\] total\b", text)
    assert "src" not in text
    assert not re.search(r"^module \\", text, re.M)


def test_nets_that_nobody_named_are_left_out_of_verilators_waves():
    text = to_verilog(Switch(SwitchParameters(ports=2, mtu=256, buffer_blocks=8)), "switch")
    assert not re.search(r"\\\$\d", text)
