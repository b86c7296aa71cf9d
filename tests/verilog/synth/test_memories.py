"""What a switch's memories are, as Amaranth writes them: a tool finds block RAM only for what block RAM can do."""

import re

from rtl.switch.switch import Switch
from verilog.emit import merged_rtlil
from verilog.export.rtlil import Module, parse
from wire.parameters import SwitchParameters

PARAMETERS = SwitchParameters(ports=2, vls=1, mtu=256, buffer_blocks=20)
LUT_RAM_BITS = 1_024
"""More than these are not for LUTs."""
SEARCHED = "departing"
"""But P_Key tables are: what a search looks at is needed in the same cycle."""


def bits(declared: str) -> int:
    width, size = re.findall(r"memory width (\d+) size (\d+)", declared)[0]
    return int(width) * int(size)


def ports(module: Module, memory: str, kind: str) -> list[str]:
    """Parameters of the memory's ports of a kind, as lines."""
    return [cell.parameters for cell in module.cells if cell.type == kind and memory in cell.memory()]


def test_each_large_memory_is_written_at_one_place_and_read_at_a_clock_edge() -> None:
    modules = parse(merged_rtlil(Switch(PARAMETERS), "top"))
    large = {
        (module.name, memory): module
        for module in modules.values()
        for memory, declared in module.memories.items()
        if bits(declared) > LUT_RAM_BITS and not module.name.endswith(SEARCHED)
    }
    assert {(r"\top_store_buffer", r"\rows_0"), (r"\top_route_forwarding", r"\memory")} <= large.keys()
    for (name, memory), module in large.items():
        reads = ports(module, memory, "$memrd_v2")
        assert len(ports(module, memory, "$memwr_v2")) <= 1, name
        assert len(reads) <= 2, name
        assert all(re.search(r"\\CLK_ENABLE 1$", read, re.M) for read in reads), name
