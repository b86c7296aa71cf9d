"""Verilog export: like modules merge, unlike ones do not."""

import re

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from cosim.engines.export import merge_modules, to_verilog


class Port(wiring.Component):
    """A memory in front of a counter that STEP may change."""

    d: In(8)
    q: Out(8)

    def __init__(self, init=0, step=1):
        self.init = init
        self.step = step
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = memory.Memory(shape=8, depth=4, init=[self.init])
        write, read = store.write_port(), store.read_port()
        total = Signal(8)
        m.d.comb += [write.data.eq(self.d), write.en.eq(1), read.addr.eq(self.d), self.q.eq(read.data ^ total)]
        m.d.sync += total.eq(total + self.step)
        return m


class Pair(wiring.Component):
    """Two ports under one name, so that merging has to work through a level of hierarchy."""

    d: In(8)
    q: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = Port()
        m.submodules.second = second = Port()
        m.d.comb += [first.d.eq(self.d), second.d.eq(first.q), self.q.eq(second.q)]
        return m


class Chain(wiring.Component):
    """Any stages in a row, so that each sees nets of its own."""

    d: In(8)
    q: Out(8)

    def __init__(self, stages, name="port"):
        self.stages = stages
        self.name = name
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        value = self.d
        for index, stage in enumerate(self.stages):
            m.submodules[f"{self.name}_{index}"] = stage
            m.d.comb += stage.d.eq(value)
            value = stage.q
        m.d.comb += self.q.eq(value)
        return m


def modules_of(text):
    return sorted(re.findall(r"^module (\S+?)\s*\(", text, re.M))


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


class Peek(wiring.Component):
    """Reads a signal that it was handed, past its signature."""

    q: Out(8)

    def __init__(self, secret):
        self.secret = secret
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.q.eq(self.secret)
        return m


def test_component_that_reaches_past_its_signature_still_gets_its_signals():
    class Reaching(wiring.Component):
        q: Out(8)

        def elaborate(self, platform):
            m = Module()
            secret = Signal(8)
            m.submodules.peek = peek = Peek(secret)
            m.d.sync += secret.eq(secret + 1)
            m.d.comb += self.q.eq(peek.q)
            return m

    text = to_verilog(Reaching(), "top")
    assert re.search(r"\.secret\(secret\)", text) or modules_of(text) == ["top"]


def test_net_names_stay_readable_and_no_source_paths_leak():
    text = to_verilog(Chain([Port()]), "switch")
    assert re.search(r"reg \[7:0\] total\b", text)
    assert "src" not in text
    assert not re.search(r"^module \\", text, re.M)


def test_text_without_modules_is_an_error():
    with pytest.raises(ValueError, match="no module in the RTLIL text"):
        merge_modules("")
