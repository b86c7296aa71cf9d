"""A small design whose exported Verilog is looked at."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

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
