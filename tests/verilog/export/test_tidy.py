"""The written Verilog: registers where they are clocked, names as the designer gave them."""

import re

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from verilog.emit import merged_rtlil, rtlil_to_verilog
from verilog.export.names import give_plain_names
from verilog.export.rtlil import parse
from verilog.export.tidy import tidy

FIELDS = data.StructLayout({"low": 4, "high": 4})


class Counter(wiring.Component):
    """Counts by one or two, and holds a keyword and a struct in its signature."""

    up: In(1)
    join: In(1)
    value: Out(8)
    fields: Out(FIELDS)

    def elaborate(self, platform):
        m = Module()
        total = Signal(8, init=5)
        step = Signal(8)
        m.d.comb += [step.eq(1), self.value.eq(total), self.fields.eq(total)]
        with m.If(self.join):
            m.d.comb += step.eq(2)
        with m.If(self.up):
            m.d.sync += total.eq(total + step)
        m.submodules.store = store = memory.Memory(shape=8, depth=16, init=range(3, 19))
        read, write = store.read_port(), store.write_port()
        m.d.comb += [read.addr.eq(total), write.addr.eq(total), write.data.eq(read.data), write.en.eq(self.up)]
        return m


class Pair(wiring.Component):
    """Two counters, whose signals meet under one name."""

    up: In(1)
    total: Out(9)

    def elaborate(self, platform):
        m = Module()
        counters = [Counter(), Counter()]
        m.submodules.first, m.submodules.second = counters
        m.d.comb += [counter.up.eq(self.up) for counter in counters]
        m.d.comb += counters[1].join.eq(1)
        m.d.comb += self.total.eq(counters[0].value + counters[1].value)
        return m


@pytest.fixture(scope="module")
def text():
    modules = parse(merged_rtlil(Pair(), "pair"))
    give_plain_names(modules, {"\\total": "\\sum"})
    return tidy(rtlil_to_verilog("\n".join(map(str, modules.values()))))


def test_all_names_are_plain(text):
    assert "\\" not in text
    assert "$" not in text


def test_a_register_computes_its_next_value_where_it_is_clocked(text):
    assert "output reg [7:0] value = 8'h05" in text
    assert (
        """
  always @(posedge clk) begin
    if (up) begin
      value <= value + step;
    end
    if (rst) begin
      value <= 8'h05;
    end
  end
"""
        in text
    )


def test_a_net_that_a_submodule_drives_is_called_after_it(text):
    assert "assign sum = { 1'h0, first_value } + { 1'h0, second_value };" in text


def test_a_keyword_as_a_name_gets_an_underscore(text):
    assert "input wire join_" in text
    assert ".join_(1'h1)" in text


def test_fields_have_names_of_their_own(text):
    assert "assign fields_high = " in text


def test_a_port_of_the_top_has_the_name_that_it_was_given(text):
    assert re.search(r"output wire \[8:0\] sum\n\);", text)


def test_a_memory_that_counts_up_is_filled_with_words_of_its_width(text):
    assert re.search(r"for \((\w+) = 0; \1 < 16; \1 = \1 \+ 1\)\n +store\[\1\] = \1\[7:0\] \+ 8'd3;", text)


def test_a_register_that_is_held_after_another_assignment_is_held():
    """Only a process's first line may say nothing."""
    yosys = """\
module top(clk, d, hold, q);
  reg [7:0] \\$1 ;
  input clk;
  wire clk;
  input [7:0] d;
  wire [7:0] d;
  input hold;
  wire hold;
  output [7:0] q;
  reg [7:0] q = 8'h00;
  always @(posedge clk)
    q <= \\$1 ;
  always @* begin
    \\$1  = d;
    if (hold) begin
      \\$1  = q;
    end
  end
endmodule
"""
    assert "q <= d;" in tidy(yosys)
    assert "if (hold) begin\n      q <= q;" in tidy(yosys)
