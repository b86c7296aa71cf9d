"""How long packets stand at the head of the queues for a VL of a port (docs/pipeline.md, section 7.2)."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.time_limits import LifeLimit, Tick, is_tick_of
from rtl.registers.port_registers import TimeLimitsSignature
from rtl.widths import LIFE_BITS
from wire.time_limits import EXPIRED_TICKS, MAX_EXPONENT, NO_LIMIT, STALL_TICKS

__all__ = ["HeadOfQueue"]

_TICK_BITS = (STALL_TICKS - 1).bit_length()


class HeadOfQueue(wiring.Component):
    """The limits of one output of a switch.

    That a packet was granted (g) is known late in the next cycle. It is seen here in g+2, and counts at once: it is the
    last to be known of what decides.

    Members:
        limits: HOQ_LIFE, VL_STALL_COUNT; `life_follows`: LIFE_TIME, and what else there is to know of the next cycle.
        heads: mask of the data VLs that have a visible head.
        granted, discarded: mask of the data VL that was granted a packet two cycles ago; whether that is swallowed
            because of HOQ_LIFE.
        expired, stalled: masks of the data VLs of which packets are to be swallowed; `beyond`: of both.
        binding: HOQ_LIFE is at most LIFE_TIME.
    """

    def __init__(self, vls: int) -> None:
        self.vls = vls
        super().__init__(
            {
                "limits": In(TimeLimitsSignature),
                "life_follows": In(LifeLimit),
                "heads": In(vls),
                "granted": In(vls),
                "discarded": In(1),
                "expired": Out(vls),
                "stalled": Out(vls),
                "beyond": Out(vls),
                "binding": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Ticks of the smaller exponent, then VL by VL."""
        m = Module()
        limits, follows = self.limits, self.life_follows
        tick, anew = Signal(), Signal()
        begun_anew = Signal(2)  # in this cycle, in the one before
        life_time, tick_of = Signal(LIFE_BITS, init=NO_LIMIT), Signal(Tick)
        m.d.comb += [
            tick.eq(is_tick_of(tick_of, limits.hoq_life) | is_tick_of(tick_of, life_time)),
            anew.eq(limits.changed | follows.changed),
            self.binding.eq(limits.hoq_life <= life_time),
        ]
        limited = Signal()  # in the cycle before, what stalls comes to an end
        m.d.sync += [
            life_time.eq(follows.exponent),
            tick_of.eq(follows.tick),
            begun_anew.eq(Cat(anew, begun_anew)),
            limited.eq(limits.hoq_life <= MAX_EXPONENT),
        ]
        counts = self.discarded & ~begun_anew.any()
        for vl in range(self.vls):
            self._follow(m, vl, tick, counts, limited, anew)
        return m

    def _follow(self, m: Module, vl: int, tick: Signal, counts: Value, limited: Signal, anew: Signal) -> None:
        """One VL. The ticks counted are those that its heads have seen or, in a stall, those of the stall."""
        granted = self.granted[vl]
        discards = Signal(len(self.limits.vl_stall_count), name=f"discards_{vl}")
        more = discards + 1
        would_stall, stalled_before = Signal(name=f"would_stall_{vl}"), Signal(name=f"stalled_before_{vl}")
        ticks = Signal(_TICK_BITS, name=f"ticks_{vl}")
        at_limit = ticks >= EXPIRED_TICKS
        m.d.comb += [
            would_stall.eq(counts & limited & (more == self.limits.vl_stall_count)),
            self.stalled[vl].eq(stalled_before | (granted & would_stall)),
            self.expired[vl].eq(~stalled_before & ~granted & at_limit),
            self.beyond[vl].eq(stalled_before | Mux(granted, would_stall, at_limit)),
        ]
        with m.If(granted):
            m.d.sync += discards.eq(Mux(counts & ~would_stall, more, 0))
        with m.If(~self.stalled[vl] & ~self.heads[vl]):
            m.d.sync += ticks.eq(0)
        with m.Elif(granted & ~stalled_before):
            m.d.sync += ticks.eq(tick)
        with m.Else():
            m.d.sync += ticks.eq(ticks + (tick & (stalled_before | ~at_limit)))
        m.d.sync += stalled_before.eq(self.stalled[vl] & ~(stalled_before & ticks.all() & tick))
        with m.If(anew):
            m.d.sync += [discards.eq(0), ticks.eq(0), stalled_before.eq(0)]
