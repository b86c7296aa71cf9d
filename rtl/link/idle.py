"""Idle data: what the lanes carry between packets (`wire.symbols.idle_byte`)."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from wire.symbols import IDLE_LFSR_BITS, IDLE_LFSR_SEED, IDLE_LFSR_STEPS, IDLE_LFSR_TAPS

__all__ = ["IdleData"]


class IdleData(wiring.Component):
    """The LFSR behind idle rows.

    Members:
        following: idle_byte(c + 1), in cycle c.
    """

    following: Out(8)

    def elaborate(self, platform: object) -> Module:
        """Build the LFSR: a row's shifts in every cycle."""
        m = Module()
        state = Signal(IDLE_LFSR_BITS, init=IDLE_LFSR_SEED)
        high, low = IDLE_LFSR_TAPS
        bits = list(state)
        for _ in range(IDLE_LFSR_STEPS):
            bits = [bits[high] ^ bits[low], *bits[:-1]]
        m.d.sync += state.eq(Cat(*bits))
        m.d.comb += self.following.eq(Cat(*bits[-8:]))
        return m
