"""The CC_Key: its check, its violations, its lease (docs/management.md, section 7; IBTA vol 1, A10.4.3.4)."""

from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.lease import Lease
from rtl.management.mad_head import CC_KEY_BITS
from rtl.management.place import WORD_BITS, fields_in_words, masks, place
from rtl.registers.bus import PageAccess
from rtl.rotation import any_of
from wire.congestion_control import CONGESTION_KEY_INFO, CcAttribute
from wire.registers import DATA_BITS, congestion_address, place_of_address

__all__ = ["CcKey"]

_KEY_WORDS: Final = masks(CONGESTION_KEY_INFO["cc_key"])
_PROTECT: Final = place(CONGESTION_KEY_INFO["protect_bit"])
_PERIOD: Final = place(CONGESTION_KEY_INFO["lease_period"])
_VIOLATIONS: Final = place(CONGESTION_KEY_INFO["violations"])


class CcKey(wiring.Component):
    """Lets CC requests pass or not; CongestionKeyInfo on the register bus.

    Members:
        lease_second: register LEASE_SECOND, cycles.
        check: a request is judged in this cycle; `get`: it is a Get; `given`: its CC_Key, also in the cycle before.
        good: the key is right or there is none; `answered`: then, or to a Get, there is an answer; both with `check`.
        hidden: from the next cycle on, in the answer the CC_Key is not seen.
        access: to the page of congestion control; a write is visible in the next cycle, and wins over a violation.
        shown: in the cycle after a read what is visible in it, else 0.
    """

    lease_second: In(DATA_BITS)
    check: In(1)
    get: In(1)
    given: In(CC_KEY_BITS)
    good: Out(1)
    answered: Out(1)
    hidden: Out(1)
    access: In(PageAccess)
    shown: Out(DATA_BITS)

    def elaborate(self, platform: object) -> Module:
        """Check, count, lease; registers."""
        m = Module()
        key, key_follows = Signal(CC_KEY_BITS), Signal(CC_KEY_BITS)
        kept_protect, protect = Signal(_PROTECT.width), Signal(_PROTECT.width)
        period, violations = Signal(_PERIOD.width), Signal(_VIOLATIONS.width)
        m.submodules.lease = lease = Lease(_PERIOD.width)
        good, violated = Signal(init=1), Signal()
        # A cycle ahead: what is written then counts, and the request's key is there.
        m.d.sync += [key.eq(key_follows), good.eq((key_follows == 0) | (key_follows == self.given))]
        m.d.comb += [
            key_follows.eq(key),
            protect.eq(Mux(lease.expired, 0, kept_protect)),
            self.good.eq(good),
            self.answered.eq(good | (self.get & ~protect)),
            violated.eq(self.check & ~self.answered),
            lease.period.eq(period),
            lease.second.eq(self.lease_second),
            lease.stops.eq(self.check & good),
            lease.violated.eq(violated),
        ]
        with m.If(self.check):
            m.d.sync += self.hidden.eq(~good)
        with m.If(violated):
            m.d.sync += violations.eq(violations + ~violations.all())
        with m.If(lease.expired):
            m.d.sync += kept_protect.eq(0)

        # A write.
        words = sorted({*_KEY_WORDS, _PROTECT.word, _VIOLATIONS.word})
        addresses = [congestion_address(CcAttribute.CONGESTION_KEY_INFO, word) for word in words]
        access, value = self.access, self.access.wdata
        here = Signal(len(words))
        m.d.comb += here.eq(
            Cat(access.select & (access.offset == place_of_address(address)[1]) for address in addresses)
        )
        at = dict(zip(words, here, strict=True))
        for half, word in enumerate(reversed(_KEY_WORDS)):
            with m.If(access.write & at[word]):
                m.d.comb += key_follows.word_select(half, WORD_BITS).eq(value)
        with m.If(access.write & at[_PROTECT.word]):
            m.d.sync += [kept_protect.eq(_PROTECT.of(value)), period.eq(_PERIOD.of(value))]
        with m.If(access.write & at[_VIOLATIONS.word] & (_VIOLATIONS.of(value) == 0)):
            m.d.sync += violations.eq(0)

        # A read.
        fields = {"cc_key": key, "protect_bit": protect, "lease_period": period, "violations": violations}
        shown = fields_in_words({CONGESTION_KEY_INFO[name]: field for name, field in fields.items()})
        reading = Signal(len(words))
        m.d.sync += reading.eq(Mux(access.read, here, 0))
        of_words = (Mux(read, shown[word], 0) for word, read in zip(words, reading, strict=True))
        m.d.comb += self.shown.eq(any_of(of_words))
        return m
