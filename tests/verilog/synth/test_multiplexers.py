"""A wide multiplexer takes the LUTs of a tile and what joins them, and chooses as it did."""

import json
from collections import Counter
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.rotation import at_number
from verilog import tools
from verilog.emit import merged_rtlil
from verilog.synth import multiplexers
from verilog.synth.netlist import NETLIST, TOP, make_netlist


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 16])
def test_what_the_cells_choose(tmp_path: Path, size: int) -> None:
    """Yosys proves it, with its own description of the cells."""
    (tmp_path / "cells.v").write_text(multiplexers.CELLS)
    bits = (size - 1).bit_length()
    (tmp_path / "gold.v").write_text(
        f"module gold(input [{size - 1}:0] I, input [{bits - 1}:0] S, output Y); assign Y = I[S]; endmodule\n"
    )
    script = (
        f"read_verilog -icells gold.v cells.v; read_verilog -lib +/ecp5/cells_sim.v; proc; flatten -wb; "
        f"miter -equiv -flatten gold MUX{size} both; sat -verify -prove trigger 0 both"
    )
    tools.run(tools.YOSYS, ["-p", script], tmp_path, lambda line: None)
    assert "SAT proof finished - no model found: SUCCESS!" in (tmp_path / f"{tools.YOSYS}.log").read_text()


class Chosen(wiring.Component):
    """One of sixteen registers, a cycle later."""

    def __init__(self) -> None:
        super().__init__({"values": In(16), "place": In(4), "value": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        values, place = Signal(16), Signal(4)
        m.d.sync += [values.eq(self.values), place.eq(self.place), self.value.eq(at_number(place, values))]
        return m


@pytest.mark.slow
def test_sixteen_values_are_eight_luts(tmp_path: Path) -> None:
    make_netlist(merged_rtlil(Chosen(), TOP), tmp_path, lambda line: None)
    found = json.loads((tmp_path / NETLIST).read_text())["modules"][TOP]["cells"].values()
    cells = Counter(cell["type"] for cell in found)
    assert (cells["LUT4"], cells["PFUMX"], cells["L6MUX21"]) == (8, 4, 3)
