"""The clock of a switch's time limits, and the life time of its packets (docs/pipeline.md, section 7.2)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.rotation import lowest, number_of
from rtl.widths import LIFE_BITS
from wire.time_limits import EXPIRED_TICKS, LIFE_TIME_STAMPS, MAX_EXPONENT, TICK_CYCLES

__all__ = ["LifeClock", "LifeLimit", "LifeTime", "Stamp", "Tick", "is_tick_of", "outlived", "stamp_of"]

_ROUNDS: Final = LIFE_TIME_STAMPS // EXPIRED_TICKS

_TICK_BITS: Final = (TICK_CYCLES - 1).bit_length()


Tick = data.StructLayout({"valid": 1, "highest": LIFE_BITS})
"""This cycle is a tick of some exponent: then of all up to `highest`."""

LifeLimit = data.StructLayout({"exponent": LIFE_BITS, "changed": 1, "ticks": 1, "tick": Tick})
"""What an output must know: LIFE_TIME, whether it will be another in the next cycle, whether this is a tick of it, and
the tick."""

Stamp = data.StructLayout({"round": _ROUNDS, "place": EXPIRED_TICKS})
"""L of the contract, a number of ticks. It comes late out of a block RAM, so quotient and remainder by EXPIRED_TICKS
are one-hot each."""

LifeClock = data.StructLayout({"limits": 1, "now": Stamp})
"""What an input must know: whether there is a life time at all; its ticks before this cycle."""


def is_tick_of(tick: data.View, exponent: Value) -> Value:
    """This cycle is a tick of this exponent, which has none if it is no limit."""
    return tick.valid & (exponent <= tick.highest)


def stamp_of(ticks: int) -> data.Const:
    """So many ticks, modulo LIFE_TIME_STAMPS."""
    turn, place = divmod(ticks % LIFE_TIME_STAMPS, EXPIRED_TICKS)
    return Stamp.const({"round": 1 << turn, "place": 1 << place})


def outlived(clock: data.View, stamp: data.View) -> Value:
    """What arrived when the clock showed this has been here for its life time.

    Of the last EXPIRED_TICKS stamps one has each place: those up to that of now are of this round, the others of the
    one before.
    """
    now = clock.now
    passed = Cat(now.place[place:].any() for place in range(EXPIRED_TICKS))
    this_round, round_before = (stamp.round & now.round).any(), (stamp.round & now.round.rotate_right(1)).any()
    return clock.limits & ~Mux((stamp.place & passed).any(), this_round, round_before)


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
        now = Signal(Stamp, init=stamp_of(0))
        zeros = lowest(m, Cat(following[_TICK_BITS:], Const(1, 1)))
        m.d.sync += [
            following.eq(following + 1),
            tick.valid.eq(following[:_TICK_BITS] == 0),
            tick.highest.eq(number_of(zeros)),
        ]
        with m.If(is_tick_of(tick, self.exponent)):
            m.d.sync += now.place.eq(now.place.rotate_left(1))
            with m.If(now.place[-1]):
                m.d.sync += now.round.eq(now.round.rotate_left(1))
        m.d.comb += [
            self.limit.exponent.eq(self.exponent),
            self.limit.changed.eq(self.changed),
            self.limit.ticks.eq(is_tick_of(tick, self.exponent)),
            self.limit.tick.eq(tick),
            self.clock.now.eq(now),
            self.clock.limits.eq(self.exponent <= MAX_EXPONENT),
        ]
        return m
