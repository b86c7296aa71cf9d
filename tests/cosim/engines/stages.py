"""A pipeline of identical stages that pass values on by registers, at once, and backwards."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out


class Stage(wiring.Component):
    """`mixed` depends on `d` at once, all other outputs on registers only."""

    d: In(8)
    back: In(8)
    reg: In(40)  # a keyword in Verilog
    total: Out(8)
    mixed: Out(8)
    wide: Out(100)

    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = memory.Memory(shape=8, depth=16, init=[3, 1, 4, 1, 5, 9])
        write, read = store.write_port(), store.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.d[:4]),
            write.data.eq(self.back),
            write.en.eq(self.d[7]),
            read.addr.eq(self.total[:4]),
            self.mixed.eq((self.d + self.total) ^ read.data),
        ]
        with m.If(self.reg[39]):
            m.d.sync += self.total.eq(self.total + self.back + 1)
        m.d.sync += self.wide.eq(Cat(self.total, self.reg, self.wide[:52]))
        return m


class Pipeline(wiring.Component):
    """Stages in a row; `q` folds all that they give."""

    d: In(8)
    q: Out(64)

    def __init__(self, stages=4):
        self.stages = stages
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        stages = [Stage() for _ in range(self.stages)]
        folded = 0
        for number, stage in enumerate(stages):
            m.submodules[f"stage_{number}"] = stage
            m.d.comb += [
                stage.d.eq(stages[number - 1].mixed if number else self.d),
                stage.back.eq(stages[(number + 1) % len(stages)].total),
                stage.reg.eq(stages[number - 1].wide[60:]),
            ]
            folded = folded ^ Cat(stage.mixed, stage.total, stage.wide[52:])
        m.d.sync += self.q.eq(self.q.rotate_left(1) ^ folded[:64])
        return m


class Counted(wiring.Component):
    """Two pipelines with a stimulus: identical modules in identical modules."""

    q: Out(64)

    def elaborate(self, platform):
        m = Module()
        d = Signal(8)
        m.d.sync += d.eq(d + 37)
        m.submodules.pipeline_0 = first = Pipeline()
        m.submodules.pipeline_1 = second = Pipeline()
        m.d.comb += [first.d.eq(d), second.d.eq(first.q), self.q.eq(first.q ^ second.q.rotate_left(7))]
        return m
