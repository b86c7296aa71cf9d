"""The clock of a switch's time limits, and the life time of its packets (docs/pipeline.md, section 7.2)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.rotation import at_number, lowest, number_of
from rtl.widths import LIFE_BITS
from wire.time_limits import EXPIRED_TICKS, LIFE_TIME_STAMPS, MAX_EXPONENT, TICK_CYCLES

__all__ = [
    "CLOCK_AT_RESET",
    "LifeClock",
    "LifeLimit",
    "LifeTime",
    "Stamp",
    "Tick",
    "clock_of",
    "is_tick_of",
    "outlived",
]

_NEAR: Final = 2 * EXPIRED_TICKS
_NEAR_BITS: Final = _NEAR.bit_length() - 1
"""Of a stamp, so many bits say whether it is one of the last EXPIRED_TICKS, if the others are right."""

_TICK_BITS: Final = (TICK_CYCLES - 1).bit_length()


Tick = data.StructLayout({"valid": 1, "highest": LIFE_BITS})
"""A cycle is a tick of some exponent: then of all up to `highest`."""

LifeLimit = data.StructLayout({"exponent": LIFE_BITS, "changed": 1, "tick": Tick})
"""What an output must know of the next cycle: LIFE_TIME, whether it is another than now, the tick."""

Stamp = unsigned((LIFE_TIME_STAMPS - 1).bit_length())
"""L of the contract, a number of ticks."""

LifeClock = data.StructLayout({"limits": 1, "now": Stamp, "near": _NEAR, "before": Stamp.width - _NEAR_BITS})
"""What an input must know: whether there is a life time at all; its ticks before this cycle.

A stamp comes late out of a block RAM, and so what it is compared with is ready: `near` is the mask of the lower bits
that one of the last EXPIRED_TICKS stamps may have, `before` its upper bits if it is in the second half of those.
"""


def is_tick_of(tick: data.View, exponent: Value) -> Value:
    """A cycle is a tick of this exponent, which has none if it is no limit."""
    return tick.valid & (exponent <= tick.highest)


def clock_of(ticks: int, *, limits: bool) -> data.Const:
    """The clock after so many ticks."""
    return LifeClock.const(
        {
            "limits": limits,
            "now": ticks % LIFE_TIME_STAMPS,
            "near": sum(1 << (ticks - ago) % _NEAR for ago in range(EXPIRED_TICKS)),
            "before": (ticks - EXPIRED_TICKS) % LIFE_TIME_STAMPS >> _NEAR_BITS,
        }
    )


CLOCK_AT_RESET: Final = clock_of(0, limits=False)


def outlived(clock: data.View, stamp: Value) -> Value:
    """What arrived when the clock showed this has been here for its life time."""
    lower, upper = stamp[:_NEAR_BITS], stamp[_NEAR_BITS:]
    right = upper == Mux(lower[-1], clock.before, clock.now[_NEAR_BITS:])
    return clock.limits & ~(at_number(lower, clock.near) & right)


class LifeTime(wiring.Component):
    """One a switch: counts its cycles, and the ticks of LIFE_TIME.

    Members:
        exponent, exponent_follows, changed: LIFE_TIME, what it will be in the next cycle, whether that is another.
        limit: for outputs, which have registers of their own for it. clock_follows: for inputs, likewise, the clock in
            the next cycle.
    """

    exponent: In(LIFE_BITS)
    exponent_follows: In(LIFE_BITS)
    changed: In(1)
    limit: Out(LifeLimit)
    clock_follows: Out(LifeClock)

    def elaborate(self, platform: object) -> Module:
        """A tick of an exponent is one of all lower ones: the zeros that a cycle's number ends in say which."""
        m = Module()
        following = Signal(_TICK_BITS + MAX_EXPONENT, init=2)  # the number of the cycle behind the next one
        tick = Signal(Tick, init={"valid": 1, "highest": MAX_EXPONENT})
        tick_follows = Signal(Tick)
        clock = Signal(LifeClock, init=CLOCK_AT_RESET)
        follows = self.clock_follows
        zeros = lowest(m, Cat(following[_TICK_BITS:], Const(1, 1)))
        m.d.sync += [
            following.eq(following + 1),
            tick_follows.valid.eq(following[:_TICK_BITS] == 0),
            tick_follows.highest.eq(number_of(zeros)),
            tick.eq(tick_follows),
            clock.eq(follows),
        ]
        m.d.comb += follows.eq(clock)
        with m.If(is_tick_of(tick, self.exponent)):
            m.d.comb += [
                follows.now.eq(clock.now + 1),
                follows.near.eq(clock.near.rotate_left(1)),
                follows.before.eq((clock.now + 1 - EXPIRED_TICKS)[_NEAR_BITS:]),
            ]
        m.d.comb += [
            follows.limits.eq(self.exponent_follows <= MAX_EXPONENT),
            self.limit.exponent.eq(self.exponent_follows),
            self.limit.changed.eq(self.changed),
            self.limit.tick.eq(tick_follows),
        ]
        return m
