"""What a switch's memories are, as Amaranth writes them: a tool finds block RAM only for what block RAM can do."""

import re
from collections.abc import Callable

from tests.verilog.switches import SMALL
from verilog.export.rtlil import Module, parse
from verilog.export.switch_name import TOP
from wire.parameters import SwitchParameters

LUT_RAM_BITS = 1_024
LUT_RAM_WORDS = 16
"""More bits than these, in more words than a cell of LUT RAM has, are not for LUTs."""


def is_large(declared: str) -> bool:
    width, words = map(int, re.findall(r"memory width (\d+) size (\d+)", declared)[0])
    return width * words > LUT_RAM_BITS and words > LUT_RAM_WORDS


def ports(module: Module, memory: str, kind: str) -> list[str]:
    """Parameters of the memory's ports of a kind, as lines."""
    return [cell.parameters for cell in module.cells if cell.type == kind and memory in cell.memory()]


def test_each_large_memory_is_written_at_one_place_and_read_at_a_clock_edge(
    netlist: Callable[[SwitchParameters], str],
) -> None:
    modules = parse(netlist(SMALL))
    large = {
        (module.name, memory): module
        for module in modules.values()
        for memory, declared in module.memories.items()
        if is_large(declared)
    }
    rows, lft = (rf"\{TOP}_store_buffer", r"\rows_0"), (rf"\{TOP}_route_tables", r"\memory")
    assert {rows, lft, (rf"\{TOP}_tables", r"\third")} <= large.keys()
    for (name, memory), module in large.items():
        reads = ports(module, memory, "$memrd_v2")
        assert len(ports(module, memory, "$memwr_v2")) <= 1, name
        assert len(reads) <= 2, name
        assert all(re.search(r"\\CLK_ENABLE 1$", read, re.M) for read in reads), name
