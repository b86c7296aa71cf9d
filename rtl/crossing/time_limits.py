"""The clock of a switch's time limits, and the life time of its packets (docs/pipeline.md, section 7.2)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.rotation import lowest, number_of
from rtl.widths import LIFE_BITS
from wire.time_limits import EXPIRED_TICKS, LIFE_TIME_STAMPS, MAX_EXPONENT, TICK_CYCLES

__all__ = ["STAMP_BITS", "LifeClock", "LifeLimit", "LifeTime", "Tick", "is_tick_of", "outlived"]

STAMP_BITS: Final = (LIFE_TIME_STAMPS - 1).bit_length()

_TICK_BITS: Final = (TICK_CYCLES - 1).bit_length()


Tick = data.StructLayout({"valid": 1, "highest": LIFE_BITS})
"""This cycle is a tick of some exponent: then of all up to `highest`."""

LifeLimit = data.StructLayout({"exponent": LIFE_BITS, "changed": 1, "ticks": 1, "tick": Tick})
"""What an output must know: LIFE_TIME, whether it will be another in the next cycle, whether this is a tick of it, and
the tick."""

LifeClock = data.StructLayout({"limits": 1, "now": STAMP_BITS})
"""What an input must know: whether there is a life time at all; its ticks before this cycle, L of the contract."""


def is_tick_of(tick: data.View, exponent: Value) -> Value:
    """This cycle is a tick of this exponent, which has none if it is no limit."""
    return tick.valid & (exponent <= tick.highest)


def outlived(clock: data.View, stamp: Value) -> Value:
    """What arrived when the clock showed this has been here for its life time.

    Of the last EXPIRED_TICKS stamps, a power of two, one has each remainder, and which is known but for its remainder:
    the stamp, which comes late out of a block RAM, is compared with that and not subtracted.
    """
    bits = EXPIRED_TICKS.bit_length() - 1
    rounds = clock.now[bits:]
    of_remainder = Mux(stamp[:bits] > clock.now[:bits], (rounds - 1)[: len(rounds)], rounds)
    return clock.limits & (stamp[bits:] != of_remainder)


class LifeTime(wiring.Component):
    """One a switch: counts its cycles, and the ticks of LIFE_TIME.

    Members:
        exponent, changed: LIFE_TIME, and whether it will be another in the next cycle.
        limit, clock: for outputs and inputs.
    """

    exponent: In(LIFE_BITS)
    changed: In(1)
    limit: Out(LifeLimit)
    clock: Out(LifeClock)

    def elaborate(self, platform: object) -> Module:
        """A tick of an exponent is one of all lower ones: the zeros that a cycle's number ends in say which."""
        m = Module()
        following = Signal(_TICK_BITS + MAX_EXPONENT, init=1)  # the number of the next cycle
        tick = Signal(Tick, init={"valid": 1, "highest": MAX_EXPONENT})
        now = Signal(STAMP_BITS)
        zeros = lowest(m, Cat(following[_TICK_BITS:], Const(1, 1)))
        m.d.sync += [
            following.eq(following + 1),
            tick.valid.eq(following[:_TICK_BITS] == 0),
            tick.highest.eq(number_of(zeros)),
            now.eq(now + is_tick_of(tick, self.exponent)),
        ]
        m.d.comb += [
            self.limit.exponent.eq(self.exponent),
            self.limit.changed.eq(self.changed),
            self.limit.ticks.eq(is_tick_of(tick, self.exponent)),
            self.limit.tick.eq(tick),
            self.clock.now.eq(now),
            self.clock.limits.eq(self.exponent <= MAX_EXPONENT),
        ]
        return m
