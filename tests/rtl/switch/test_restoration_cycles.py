"""How long a switch's reset lasts."""

import re

import pytest

from rtl.switch.switch import Switch, restoration_cycles
from verilog.emit import merged_rtlil
from wire.parameters import SwitchParameters


@pytest.mark.parametrize(
    ("parameters", "cycles"),
    [
        (SwitchParameters(ports=2, mtu=256, buffer_blocks=8, lft_size=700), 1024 + 256),
        (SwitchParameters(ports=2, vls=2, mtu=256, buffer_blocks=300, lft_size=8), 2 * 301 + 31),
        (SwitchParameters(ports=2, mtu=256, buffer_blocks=8, lft_size=8), 437),
        (SwitchParameters(ports=2, mtu=256, buffer_blocks=8, lft_size=8, mft_size=2048), 8 + 2048),
    ],
    ids=["forwarding tables", "buffer", "attributes", "more multicast"],
)
def test_a_reset_lasts_as_many_cycles_as_the_deepest_memory_has_words(
    parameters: SwitchParameters, cycles: int
) -> None:
    assert restoration_cycles(parameters) == cycles
    modules = re.split(r"^module ", merged_rtlil(Switch(parameters, alone=True), "switch"), flags=re.M)
    depths = []
    for module in modules:
        for bits in re.findall(r"^  wire width (\d+) \\restored$", module, re.M):
            memories = map(int, re.findall(r"^  memory .*size (\d+) ", module, re.M))
            depths += [depth for depth in memories if (depth - 1).bit_length() == int(bits)]
    assert len(depths) >= 5
    assert max(depths) == cycles
