"""The quick engine does what Amaranth's own does."""

import random
from typing import Any

from amaranth.hdl import Cat, ClockDomain, DomainRenamer, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from tests.rtl.quick_engine import QuickEngine

CYCLES = 600
INPUTS = ("d", "address", "enable", "choice", "restart")
OUTPUTS = ("total", "parity", "stored", "seen", "parts", "slow", "kept", "late", "around", "sum")


class Slow(wiring.Component):
    """Idle but for every eighth cycle."""

    d: In(8)
    enable: In(1)
    q: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.enable):
            m.d.sync += self.q.eq(self.q * 3 + self.d)
        return m


class Various(wiring.Component):
    """A little of everything: signs, parts of signals, choices, memories, resets, an edge that falls, and bits that
    depend on others of their signals."""

    d: In(8)
    address: In(3)
    enable: In(1)
    choice: In(3)
    restart: In(1)
    pair: In(data.StructLayout({"low": 3, "high": signed(5)}))
    total: Out(signed(12))
    parity: Out(1)
    stored: Out(8)
    seen: Out(8)
    parts: Out(16)
    slow: Out(8)
    kept: Out(8)
    late: Out(8)
    around: Out(12)
    sum: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = sync = ClockDomain(async_reset=True)
        m.domains.falling = falling = ClockDomain(clk_edge="neg", reset_less=True)
        m.d.comb += [falling.clk.eq(sync.clk), sync.rst.eq(self.restart & (self.address == 0))]
        m.submodules.memory = memory = Memory(shape=8, depth=6, init=[3, 5])
        write = memory.write_port(granularity=4)
        read, at_once = memory.read_port(transparent_for=(write,)), memory.read_port(domain="comb")
        m.submodules.slow = slow = Slow()
        m.submodules.late = late = DomainRenamer("falling")(Slow())
        beat = Signal(3)
        kept = Signal(8, init=9, reset_less=True)
        m.d.sync += [beat.eq(beat + 1), kept.eq(kept + self.d)]
        m.d.comb += [
            *(port.addr.eq(self.address) for port in (write, read, at_once)),
            write.data.eq(self.d),
            write.en.eq(Mux(self.enable, self.choice, 0)),
            self.stored.eq(read.data),
            self.seen.eq(at_once.data),
            self.parity.eq(Cat(self.d, self.total).xor()),
            slow.d.eq(self.d),
            slow.enable.eq(beat == 7),
            self.slow.eq(slow.q),
            late.d.eq(self.d),
            late.enable.eq(self.enable),
            self.late.eq(late.q),
            self.kept.eq(kept),
            self.parts.eq(0xA5A5),
            self.sum.eq(self.pair.low + self.pair.high),
        ]
        # Signals of which bits depend on each other's, and on their own; and copies of copies.
        there, back, copy, again = Signal(4), Signal(4), Signal(4), Signal(4)
        m.d.comb += [again.eq(copy), copy.eq(back), self.around.eq(Cat(there, again, back))]
        m.d.comb += there.eq(Cat(self.d[0], back[0], self.d[2] ^ there[1], back[2]))
        m.d.comb += [back[bit].eq(there[bit] ^ self.choice[bit % 3]) for bit in reversed(range(4))]
        with m.If(self.enable):
            m.d.sync += self.total.eq(self.total - self.d.as_signed())
            m.d.comb += self.parts.bit_select(self.choice, 4).eq(self.d)
        with m.Switch(self.choice):
            with m.Case("1-0"):
                m.d.sync += self.total[:4].eq(self.d)
            with m.Default():
                m.d.comb += self.parts[8:10].eq(self.choice)
        return m


def seen(engine: Any, seed: int) -> list[tuple[int, ...]]:
    """All outputs in each cycle, of two runs between which the simulator is reset."""
    dut = Various()
    found: list[tuple[int, ...]] = []

    async def drive(ctx: Any) -> None:
        draw = random.Random(seed)
        for _ in range(CYCLES):
            for name in INPUTS:
                if draw.random() < 0.4:
                    ctx.set(getattr(dut, name), draw.randrange(256) & (1 << len(getattr(dut, name))) - 1)
            if draw.random() < 0.02:
                ctx.set(dut.total, draw.randrange(-2048, 2048))
            if draw.random() < 0.1:
                ctx.set(dut.d[2:5], draw.randrange(8))
            if draw.random() < 0.2:
                low, high = {"low": draw.randrange(8)}, {"high": draw.randrange(-16, 16)}
                ctx.set(dut.pair, draw.choice([{}, low, high, low | high]))
                ctx.set(dut.pair.low, draw.randrange(8))
            found.append((*(ctx.get(getattr(dut, name)) for name in OUTPUTS), ctx.get(dut.parts[5:11])))
            await ctx.tick()

    simulator = Simulator(dut, engine=engine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    simulator.reset()
    simulator.run()
    return found


def test_it_does_in_each_cycle_what_amaranths_own_does() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    expected = seen("pysim", seed)
    assert seen(QuickEngine, seed) == expected
    assert expected[:CYCLES] == expected[CYCLES:]
    assert all(len(set(values)) > 1 for values in zip(*expected, strict=True))
