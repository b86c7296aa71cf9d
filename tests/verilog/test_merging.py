"""Identical modules merge, different ones do not."""

import re

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verilog.emit import to_verilog
from verilog.merging import merge_modules

from .components import Chain, Pair, Port, modules_of


def test_eight_like_ports_are_one_module():
    text = to_verilog(Chain([Port() for _ in range(8)]), "switch")
    assert modules_of(text) == ["switch", "switch_port"]
    assert len(re.findall(r"^\s*switch_port port_\d \(", text, re.M)) == 8


def test_like_modules_merge_through_levels():
    text = to_verilog(Chain([Pair() for _ in range(4)], "pair"), "fabric")
    assert modules_of(text) == ["fabric", "fabric_first", "fabric_pair"]


def test_ports_that_differ_stay_apart():
    text = to_verilog(Chain([Port(step=1), Port(step=2), Port(step=1)]), "switch")
    assert modules_of(text) == ["switch", "switch_port", "switch_port_2"]


def test_memories_with_different_contents_stay_apart():
    text = to_verilog(Chain([Port(init=1), Port(init=2), Port(init=2)]), "switch")
    assert len(modules_of(text)) == 3


def test_tied_and_open_ports_do_not_tell_like_ports_apart():
    class Tied(wiring.Component):
        q: Out(8)

        def elaborate(self, platform):
            m = Module()
            m.submodules.port_0 = first = Port()
            m.submodules.port_1 = second = Port()
            m.submodules.port_2 = Port()
            m.d.comb += [first.d.eq(3), second.d.eq(5), self.q.eq(first.q)]
            return m

    assert modules_of(to_verilog(Tied(), "switch")) == ["switch", "switch_port"]


def test_components_on_different_clock_edges_stay_apart():
    class TwoEdges(wiring.Component):
        d: In(8)
        q: Out(16)

        def elaborate(self, platform):
            m = Module()
            m.domains.falling = ClockDomain(clk_edge="neg")
            m.d.comb += ClockSignal("falling").eq(ClockSignal())
            stages = [Port(), Port()]
            m.submodules.rising_port = stages[0]
            m.submodules.falling_port = DomainRenamer("falling")(stages[1])
            m.d.comb += [stage.d.eq(self.d) for stage in stages]
            m.d.comb += [self.q[:8].eq(stages[0].q), self.q[8:].eq(stages[1].q)]
            return m

    text = to_verilog(TwoEdges(), "top")
    assert len(modules_of(text)) == 3
    assert "always @(negedge falling_clk)" in text


def test_text_without_modules_is_an_error():
    with pytest.raises(ValueError, match="no module in the RTLIL text"):
        merge_modules("")
