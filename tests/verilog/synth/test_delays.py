"""ABC9 knows when memories answer, and the netlist has nothing left of how it was told."""

import itertools
import json

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from verilog.emit import merged_rtlil
from verilog.synth.delays import Box, with_boxes
from verilog.synth.netlist import NETLIST, TOP, make_netlist


class Decision(wiring.Component):
    """Parity of eight registers and a bit that a block RAM answers, a cycle later."""

    def __init__(self):
        super().__init__({"address": In(10), "bits": In(8), "write": In(1), "given": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=18, depth=1024, init=[])
        write, read = memory.write_port(), memory.read_port()
        bits = Signal(8)
        m.d.comb += [write.addr.eq(self.address), write.en.eq(self.write), write.data.eq(self.bits)]
        m.d.comb += [read.addr.eq(self.address), read.en.eq(1)]
        m.d.sync += [bits.eq(self.bits), self.given.eq(Cat(read.data[0], bits).xor())]
        return m


def test_each_answer_goes_through_a_box_and_nothing_else_does():
    before = """module \\top
  attribute \\src "there"
  cell \\DP16KD \\rows.0
    parameter \\INIT 1'0
    connect \\CLKA \\clk
    connect \\DOA0 \\rows [3]
    connect \\DIA0 \\given
  end
  cell \\LUT4 \\other
    connect \\D \\rows [3]
  end
  cell \\top_acceptance \\acceptance
    connect \\offers \\offers
    connect \\accepted { \\b \\a }
  end
end
module \\top_acceptance
  wire width 2 input 1 \\offers
  wire width 2 output 2 \\accepted
end
"""
    after = """module \\top
  wire width 1 $answer$1
  attribute \\src "there"
  cell \\DP16KD \\rows.0
    parameter \\INIT 1'0
    connect \\CLKA \\clk
    connect \\DOA0 $answer$1
    connect \\DIA0 \\given
  end
  cell \\DELAY_4260_OF_1 $answer$1$delay
    connect \\A $answer$1
    connect \\Y \\rows [3]
  end
  cell \\LUT4 \\other
    connect \\D \\rows [3]
  end
  wire width 2 $answer$2
  cell \\top_acceptance \\acceptance
    connect \\offers \\offers
    connect \\accepted $answer$2
  end
  cell \\DELAY_4500_OF_2 $answer$2$delay
    connect \\A $answer$2
    connect \\Y { \\b \\a }
  end
end
module \\top_acceptance
  wire width 2 input 1 \\offers
  wire width 2 output 2 \\accepted
end
"""
    assert with_boxes(before, TOP) == (after, {Box(1, 4260), Box(2, 4500)})


def test_what_leaves_a_component_late_goes_through_a_box_on_its_way_out():
    before = """module \\top_input
  wire width 2 output 1 \\crossing__rows__0
  wire output 2 \\crossing__outlived
  wire \\crossing__outlived$1
  cell $_NOT_ \\given
    connect \\A \\crossing__rows__0 [1]
    connect \\Y \\crossing__outlived
  end
end
module \\top_agent_store
  wire width 2 output 1 \\crossing__rows__0
end
"""
    after = """module \\top_input
  wire output 2 \\crossing__outlived
  wire width 1 $leaving$crossing__outlived
  wire width 2 output 1 \\crossing__rows__0
  wire width 2 $leaving$crossing__rows__0
  wire \\crossing__outlived$1
  cell $_NOT_ \\given
    connect \\A $leaving$crossing__rows__0 [1]
    connect \\Y $leaving$crossing__outlived
  end
  cell \\DELAY_5000_OF_2 $leaving$crossing__rows__0$delay
    connect \\A $leaving$crossing__rows__0
    connect \\Y \\crossing__rows__0
  end
  cell \\DELAY_4400_OF_1 $leaving$crossing__outlived$delay
    connect \\A $leaving$crossing__outlived
    connect \\Y \\crossing__outlived
  end
end
module \\top_agent_store
  wire width 2 output 1 \\crossing__rows__0
end
"""
    assert with_boxes(before, TOP) == (after, {Box(2, 5000), Box(1, 4400)})


def test_what_comes_to_a_component_goes_through_a_box_but_for_the_clock_and_what_is_in_another_ones_time():
    """A cell's port is no net, though it may have the name of one; a cell of the FPGA is no component."""
    before = """module \\top_port
  wire input 1 \\clk
  wire input 2 \\rst
  attribute \\src "there"
  wire width 2 input 3 signed \\rx__data
  wire input 4 \\clk_divided
  cell $_NOT_ \\given
    connect \\rx__data \\rx__data [1]
    connect \\B \\clk_divided
    connect \\C \\clk
  end
end
module \\top_store_acceptance
  wire width 2 input 1 \\offers
  cell $_NOT_ \\given
    connect \\A \\offers [1]
  end
end
module \\LUT4
  wire input 1 \\A
  cell $_NOT_ \\given
    connect \\A \\A
  end
end
module \\top
  wire width 2 input 1 \\offers
  cell $_NOT_ \\given
    connect \\A \\offers [1]
  end
end
"""
    port = """module \\top_port
  wire input 4 \\clk_divided
  wire width 1 $arriving$clk_divided
  attribute \\src "there"
  wire width 2 input 3 signed \\rx__data
  wire width 2 $arriving$rx__data
  wire input 1 \\clk
  wire input 2 \\rst
  cell $_NOT_ \\given
    connect \\rx__data $arriving$rx__data [1]
    connect \\B $arriving$clk_divided
    connect \\C \\clk
  end
  cell \\DELAY_3000_OF_2 $arriving$rx__data$delay
    connect \\A \\rx__data
    connect \\Y $arriving$rx__data
  end
  cell \\DELAY_3000_OF_1 $arriving$clk_divided$delay
    connect \\A \\clk_divided
    connect \\Y $arriving$clk_divided
  end
end
"""
    after = port + before[before.index("module \\top_store_acceptance") :]
    assert with_boxes(before, TOP) == (after, {Box(2, 3000), Box(1, 3000)})


@pytest.mark.slow
def test_what_a_block_ram_answers_is_used_last_and_for_what_it_was(tmp_path):
    make_netlist(merged_rtlil(Decision(), TOP), tmp_path, lambda line: None)
    modules = json.loads((tmp_path / NETLIST).read_text())["modules"]
    assert not [name for name in modules if name.startswith("DELAY_")]
    cells = modules[TOP]["cells"].values()
    assert {cell["type"] for cell in cells} == {"DP16KD", "LUT4", "TRELLIS_FF"}

    answer = next(cell for cell in cells if cell["type"] == "DP16KD")["connections"]["DOA0"][0]
    luts = {cell["connections"]["Z"][0]: cell for cell in cells if cell["type"] == "LUT4"}
    given = modules[TOP]["ports"]["given"]["bits"][0]
    end = next(cell for cell in cells if cell["type"] == "TRELLIS_FF" and cell["connections"]["Q"][0] == given)
    last = end["connections"]["DI"][0]
    assert answer in (luts[last]["connections"][pin][0] for pin in "ABCD")

    def value(net, values):
        if net not in luts:
            return values[net]
        lut = luts[net]
        inputs = [lut["connections"][pin][0] for pin in "DCBA"]
        row = int("".join(str(int(bit) if isinstance(bit, str) else value(bit, values)) for bit in inputs), 2)
        return int(lut["parameters"]["INIT"][-1 - row])

    sources = {net for lut in luts.values() for pin in "ABCD" for net in lut["connections"][pin]} - set(luts)
    sources = sorted(net for net in sources if isinstance(net, int))
    assert len(sources) == 9
    for bits in itertools.product((0, 1), repeat=9):
        assert value(last, dict(zip(sources, bits, strict=True))) == sum(bits) % 2
