"""Small components of which designs with identical and different modules are made."""

import re

from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out


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
