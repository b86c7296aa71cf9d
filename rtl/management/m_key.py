"""The M_Key: its check, its violations, its lease (docs/management.md, section 4; IBTA vol 1, 14.2.4)."""

from typing import Final

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute import Word
from rtl.management.lease import Lease
from rtl.management.mad_head import M_KEY_BITS
from rtl.management.place import WORD_BITS, masks, place
from wire.port_info import PORT_INFO
from wire.registers import DATA_BITS

__all__ = ["Key", "MKey"]

_PROTECT_BITS = PORT_INFO["m_key_protect_bits"].width
_PERIOD_BITS = PORT_INFO["m_key_lease_period"].width
_VIOLATIONS_BITS = PORT_INFO["m_key_violations"].width

Key: Final = wiring.Signature(
    {"m_key": Out(M_KEY_BITS), "protect": Out(_PROTECT_BITS), "violations": Out(_VIOLATIONS_BITS), "hidden": Out(1)}
)
"""PortInfo's M_Key, M_KeyProtectBits, M_KeyViolations as visible; the SMP judged last may not see the M_Key."""


class MKey(wiring.Component):
    """Lets SMPs pass or not.

    Members:
        lease_second: register LEASE_SECOND, cycles.
        check: an SMP is judged in this cycle; `get`: it is a Get; `matches`: its M_Key is `m_key`.
        good: the key is right or there is none; `answered`: the SMP is worked on; `violation`: it is not; all with
            `check`.
        word: a word of a Set.
        key: the M_Key.
    """

    lease_second: In(DATA_BITS)
    check: In(1)
    get: In(1)
    matches: In(1)
    good: Out(1)
    answered: Out(1)
    violation: Out(1)
    word: In(Word)
    key: Out(Key)

    def elaborate(self, platform: object) -> Module:
        """Check, count, lease."""
        m = Module()
        key, word = self.key, self.word

        # The check. Get is answered with a wrong key, too, while only Set is protected.
        open_halves = Signal(2, init=0b11)  # of the M_Key, those that are 0
        kept_protect = Signal(_PROTECT_BITS)
        expired = Signal()
        m.d.comb += [
            key.protect.eq(Mux(expired, 0, kept_protect)),
            self.good.eq(open_halves.all() | self.matches),
            self.answered.eq(self.good | (self.get & ~key.protect[1])),
            self.violation.eq(~self.answered),
        ]
        with m.If(self.check):
            m.d.sync += key.hidden.eq(~self.good & key.protect[0])
        with m.If(self.check & self.violation):
            m.d.sync += key.violations.eq(key.violations + ~key.violations.all())

        # The lease.
        period = Signal(_PERIOD_BITS)
        m.submodules.lease = lease = Lease(_PERIOD_BITS)
        m.d.comb += [
            lease.period.eq(period),
            lease.second.eq(self.lease_second),
            lease.stops.eq(self.check & self.good),
            lease.violated.eq(self.check & self.violation),
            expired.eq(lease.expired),
        ]
        with m.If(expired):
            m.d.sync += kept_protect.eq(0)

        # A Set.
        m_key_word = min(masks(PORT_INFO["m_key"]))
        violations = place(PORT_INFO["m_key_violations"])
        with m.If(word.of_own_port_info), m.Switch(word.number):
            for half in range(2):
                with m.Case(m_key_word + half):
                    m.d.sync += key.m_key.word_select(1 - half, WORD_BITS).eq(word.request)
                    m.d.sync += open_halves[half].eq(word.request == 0)
            for name, register in (("m_key_lease_period", period), ("m_key_protect_bits", kept_protect)):
                with m.Case(place(PORT_INFO[name]).word):
                    m.d.sync += register.eq(place(PORT_INFO[name]).of(word.request))
            with m.Case(violations.word), m.If(violations.of(word.request) == 0):
                m.d.sync += key.violations.eq(0)
        return m
