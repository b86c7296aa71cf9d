"""Modules of which a design has several are compiled once, and the design does the same."""

import re
import subprocess

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from cosim.scenario.scenario_file import load_scenario
from cosim.simulators import precompiled_modules
from cosim.simulators.build import build
from cosim.simulators.precompiled_modules import split
from tests.cosim.engines.stages import Counted, Pipeline
from verilog.design import fabric_design
from verilog.emit import to_verilog

CYCLES = 1000
BENCH = """\
module bench;
  reg clk = 0;
  wire [63:0] q;
  dut dut (.clk(clk), .rst(1'b0), .q(q));
  integer cycle = 0;
  initial begin
    for (cycle = 0; cycle < 1000; cycle = cycle + 1) begin
      #2 clk = 1;
      #2 clk = 0;
      $display("%h", q);
    end
    $finish;
  end
endmodule
"""


@pytest.fixture(autouse=True)
def even_small_modules_are_precompiled(monkeypatch):
    monkeypatch.setattr(precompiled_modules, "WORTH_CHARACTERS", 0)


def test_like_modules_are_one():
    rest, found = split(to_verilog(Pipeline(), "pipeline"))
    assert len(found) == 1
    assert len(re.findall(r"^module ", rest, re.M)) == 2
    assert f"{found[0].name}_step(" in rest


def test_a_module_below_several_tops_is_there_once():
    text = to_verilog(Pipeline(), "pipeline")
    top = re.search(r"^module pipeline\(.*?^endmodule\n", text, re.M | re.S)
    assert top
    rest, found = split(text + top[0].replace("module pipeline(", "module other("))
    assert len(found) == 1
    assert len(re.findall(r"^module ", rest, re.M)) == 3


def test_a_module_with_one_instance_is_not_precompiled():
    text = to_verilog(Pipeline(stages=1), "pipeline")
    assert split(text) == (text, [])


def test_small_modules_are_not_precompiled(monkeypatch):
    monkeypatch.setattr(precompiled_modules, "WORTH_CHARACTERS", 10**6)
    text = to_verilog(Pipeline(), "pipeline")
    assert split(text) == (text, [])


def test_a_precompiled_module_is_the_same_in_every_design():
    (one,) = split(to_verilog(Pipeline(), "pipeline"))[1]
    (other,) = split(to_verilog(Pipeline(stages=7), "another"))[1]
    assert one == other


def test_only_what_depends_on_inputs_at_once_is_settled():
    rest, (module,) = split(to_verilog(Pipeline(), "pipeline"))
    (settle,) = re.findall(rf"function void {module.name}_settle\((.*)\);", rest)
    assert re.findall(r"(input|output) [a-z ]+ (p_\w+)", settle) == [
        ("input", "p_stepped"),
        ("input", "p_d"),
        ("output", "p_mixed"),
    ]


def test_modules_with_a_falling_edge_are_not_precompiled():
    text = to_verilog(Pipeline(), "pipeline").replace("@(posedge clk)", "@(negedge clk)")
    assert split(text)[1] == []


class TwoWays(wiring.Component):
    """Two outputs that depend on an input each."""

    a: In(8)
    b: In(8)
    of_a: Out(8)
    of_b: Out(8)

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        m.d.comb += [self.of_a.eq(self.a ^ count), self.of_b.eq(self.b + count)]
        return m


class ThereAndBack(wiring.Component):
    """Two of them; in each, what one output gives is what the other depends on if `joined`."""

    d: In(8)
    q: Out(8)

    def __init__(self, joined):
        self.joined = joined
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        ways = [TwoWays() for _ in range(2)]
        for number, way in enumerate(ways):
            m.submodules[f"way_{number}"] = way
            m.d.comb += [way.a.eq(self.d + number), way.b.eq(way.of_a if self.joined else self.d)]
        m.d.comb += self.q.eq(ways[0].of_b ^ ways[1].of_b)
        return m


@pytest.mark.parametrize("joined", [False, True])
def test_a_module_whose_calls_would_make_a_loop_is_left_in_the_design(joined):
    """There is none in the design: an output that an input depends on does not depend on that input."""
    text = to_verilog(ThereAndBack(joined), "there_and_back")
    rest, found = split(text)
    assert (len(found), rest == text) == ((0, True) if joined else (1, False))


@pytest.mark.slow
def test_adapters_both_halves_of_a_switchs_ports_and_agents_are_precompiled(monkeypatch):
    monkeypatch.undo()
    text = fabric_design(load_scenario("jam").fabric).verilog
    rest, found = split(text)
    assert len(found) == 5
    assert len(rest) < len(text) / 2


class Counter(wiring.Component):
    """It counts. `at_once` depends on its input at once, `before` on registers only."""

    d: In(8)
    at_once: Out(8)
    before: Out(8)

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        m.d.comb += [self.at_once.eq(self.d + count), self.before.eq(count)]
        return m


class Delayed(wiring.Component):
    """Counters, and what they give in registers one behind the other, which Verilator writes the last first.

    So it writes late what depends on a counter's step, and may have asked for `at_once` long before.
    """

    d: In(8)
    q: Out(32)

    def elaborate(self, platform):
        m = Module()
        given = []
        for number in range(2):
            m.submodules[f"counter_{number}"] = counter = Counter()
            m.d.comb += counter.d.eq(self.d)
            last = counter.before
            for _place in range(4):
                following = Signal(8)
                m.d.sync += following.eq(last)
                last = following
            given += [counter.at_once, last]
        m.d.comb += self.q.eq(Cat(given))
        return m


class Seldom(wiring.Component):
    """It counts, which is seen every 100 cycles."""

    q: Out(8)

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(100))
        m.d.sync += count.eq(count + 1)
        with m.If(count == 99):
            m.d.sync += [count.eq(0), self.q.eq(self.q + 1)]
        return m


class SeldomTwice(wiring.Component):
    """Two of them, and nothing that changes in between."""

    q: Out(16)

    def elaborate(self, platform):
        m = Module()
        m.submodules.seldom_0 = first = Seldom()
        m.submodules.seldom_1 = second = Seldom()
        m.d.comb += self.q.eq(Cat(first.q, second.q))
        return m


class Quiet(wiring.Component):
    """Precompiled modules in precompiled modules whose inputs stay as they are while they go on inside.

    Args:
        kind: of the outer ones, which have `q` and may have an input `d`.
    """

    q: Out(64)

    def __init__(self, kind):
        self.kind = kind
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        cycle, d = Signal(5), Signal(8)
        m.d.sync += cycle.eq(cycle + 1)
        with m.If(cycle == 0):
            m.d.sync += d.eq(d + 37)
        m.submodules.first = first = self.kind()
        m.submodules.second = second = self.kind()
        if self.kind is Delayed:
            m.d.comb += [first.d.eq(d), second.d.eq(~d)]
        m.d.comb += self.q.eq(Cat(first.q, second.q))
        return m


def expected(dut):
    """`q` of the design in each cycle, in Amaranth's simulator."""
    seen = []

    async def watch(ctx):
        for _cycle in range(CYCLES):
            await ctx.tick()
            seen.append(ctx.get(dut.q))

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(watch)
    simulator.run()
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("design", [Counted, lambda: Quiet(Delayed), lambda: Quiet(SeldomTwice)])
def test_a_design_of_precompiled_modules_does_in_each_cycle_what_it_does_in_amaranths_simulator(design, tmp_path):
    sources = {"dut.v": to_verilog(design(), "dut"), "bench.v": BENCH}
    assert len(split(sources["dut.v"])[1]) == 2
    command = [*build("verilator", sources, "bench").command(), "--bare"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [int(line, 16) for line in result.stdout.splitlines()[:CYCLES]] == expected(design())
