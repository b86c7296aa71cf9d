"""ClassPortInfo of congestion control: where a switch's trap of that class goes (docs/management.md, 5 and 7)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.place import constant_words, fields_in_words, place
from rtl.registers.bus import PageAccess
from rtl.rotation import any_of
from wire.codes import P_KEY_DEFAULT, Q_KEY_SMI, QP_SMI
from wire.congestion_control import (
    CC_CAPABILITIES,
    CC_CLASS_PORT_INFO,
    CC_CLASS_VERSION,
    CC_RESP_TIME,
    CcAttribute,
)
from wire.registers import DATA_BITS, congestion_address, place_of_address

__all__ = ["CcClassPortInfo", "TrapDestination", "at_subnet_manager"]

_STORED: Final = ("sl", "lid", "p_key", "qp", "q_key")
_PLACES: Final = {name: place(CC_CLASS_PORT_INFO[f"trap_{name}"]) for name in _STORED}
_CONSTANT: Final = CC_CLASS_PORT_INFO.pack(
    class_version=CC_CLASS_VERSION, capability_mask=CC_CAPABILITIES, resp_time_value=CC_RESP_TIME
)

TrapDestination: Final = wiring.Signature({name: Out(where.width) for name, where in _PLACES.items()})
"""Where a trap goes: TrapSL, TrapLID, TrapP_Key, TrapQP, TrapQ_Key, or a Subnet Manager's."""


def at_subnet_manager(lid: Value, sl: Value) -> dict[str, Value]:
    """A `TrapDestination`, by name: QP0 of the one that is there."""
    return {"sl": sl, "lid": lid, "p_key": Const(P_KEY_DEFAULT), "qp": Const(QP_SMI), "q_key": Const(Q_KEY_SMI)}


class CcClassPortInfo(wiring.Component):
    """The attribute on the register bus, and what a trap takes of it.

    Members:
        access: to the page of congestion control; a write is visible in the next cycle.
        shown: in the cycle after a read what is visible in it, else 0.
        wanted, wanted_next: TrapLID is not 0, as visible in this cycle, in the next.
        taken: step 0 of a trap is in this cycle. `gmp_trap`: it is congestion control's, else the Subnet Manager's, at
            `sm_lid`, `sm_sl`.
        destination: what is visible then, from the next cycle on.
    """

    access: In(PageAccess)
    shown: Out(DATA_BITS)
    wanted: Out(1)
    wanted_next: Out(1)
    taken: In(1)
    gmp_trap: In(1)
    sm_lid: In(_PLACES["lid"].width)
    sm_sl: In(_PLACES["sl"].width)
    destination: Out(TrapDestination)

    def elaborate(self, platform: object) -> Module:
        """Writes, what a trap takes, reads."""
        m = Module()
        access = self.access
        stored = {name: Signal(where.width, name=name) for name, where in _PLACES.items()}
        shown = {word: [value] for word, value in constant_words(_CONSTANT).items()}
        for word, value in fields_in_words(
            {CC_CLASS_PORT_INFO[f"trap_{name}"]: field for name, field in stored.items()}
        ).items():
            shown.setdefault(word, []).append(value)
        words = sorted(shown)
        offsets = [place_of_address(congestion_address(CcAttribute.CLASS_PORT_INFO, word))[1] for word in words]
        here = Signal(len(words))
        m.d.comb += here.eq(Cat(access.select & (access.offset == offset) for offset in offsets))
        at = dict(zip(words, here, strict=True))

        lid_next = Signal.like(stored["lid"])
        m.d.comb += [lid_next.eq(stored["lid"]), self.wanted_next.eq(lid_next != 0)]
        m.d.sync += self.wanted.eq(self.wanted_next)
        for name, where in _PLACES.items():
            with m.If(access.write & at[where.word]):
                m.d.sync += stored[name].eq(where.of(access.wdata))
        with m.If(access.write & at[_PLACES["lid"].word]):
            m.d.comb += lid_next.eq(_PLACES["lid"].of(access.wdata))
        to_sm = at_subnet_manager(self.sm_lid, self.sm_sl)
        with m.If(self.taken):
            m.d.sync += [
                getattr(self.destination, name).eq(Mux(self.gmp_trap, value, to_sm[name]))
                for name, value in stored.items()
            ]

        reading = Signal(len(words))
        m.d.sync += reading.eq(Mux(access.read, here, 0))
        of_words = (Mux(read, any_of(shown[word]), 0) for word, read in zip(words, reading, strict=True))
        m.d.comb += self.shown.eq(any_of(of_words))
        return m
