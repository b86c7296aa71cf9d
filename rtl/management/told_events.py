"""What traps about wrong keys tell of the latest of their events (docs/management.md, section 5)."""

from typing import Final

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import LUT_RAM
from rtl.rotation import any_of, lowest, number_of
from rtl.widths import PORT_BITS, SL_BITS
from wire.headers import BTH, LRH
from wire.notice import NOTICE_DETAILS, TrapNumber
from wire.stimulus import KeyViolation

__all__ = ["KEYS", "LatestEvents", "WrongKey", "WrongPKey", "told_layout"]

KEYS: Final = len(KeyViolation)
"""Keys of a packet that may be wrong, a bit each as in `KeyViolation`."""

_LID: Final = LRH["dlid"].width
_QP: Final = BTH["dest_qp"].width
_KEY: Final = NOTICE_DETAILS[TrapNumber.BAD_P_KEY]["key"].width

WrongKey: Final = data.FlexibleLayout(
    128,
    {
        "found": data.Field(KEYS, 0),
        "sl": data.Field(SL_BITS, 4),
        "source_qp": data.Field(_QP, 8),
        "dlid": data.Field(_LID, 32),
        "slid": data.Field(_LID, 48),
        "key": data.Field(_KEY, 64),
        "dest_qp": data.Field(_QP, 96),
    },
)
"""What an adapter's host has found, as the arguments of a control operation have it (`wire.stimulus.WrongKey`)."""

_OF_ADAPTER: Final = data.StructLayout({name: field.shape for name, field in WrongKey if name != "found"})
_OF_SWITCH: Final = data.StructLayout(
    {"slid": _LID, "dlid": _LID, "sl": SL_BITS, "p_key": BTH["p_key"].width, "port": PORT_BITS}
)

WrongPKey: Final = data.StructLayout({"valid": 1, **{name: field.shape for name, field in _OF_SWITCH}})
"""In this cycle a packet is said to be rejected for its P_Key; of an input in the next, of the switch in the next but
one, by which port of a switch, and the rest."""


def told_layout(is_switch: bool) -> data.StructLayout:
    """What is told of a packet with a wrong key."""
    return _OF_SWITCH if is_switch else _OF_ADAPTER


class LatestEvents(wiring.Component):
    """Keeps the latest event of each of some traps, and what the trap that is being sent tells.

    Args:
        event: what is kept of one.
        traps: how many.

    Members:
        happens: it is an event of these traps, in this cycle. `event`: this, in the next.
        begins: one-hot: step 0 of a trap of these is in this cycle.
        told: the latest event of that trap, as visible then; from the third cycle after on.
    """

    def __init__(self, event: data.StructLayout, traps: int) -> None:
        self._event = event
        self._traps = traps
        super().__init__({"happens": In(traps), "event": In(event), "begins": In(traps), "told": Out(event)})

    def elaborate(self, platform: object) -> Module:
        """A few places, of which one is free: there the next event goes. It comes from far, and waits for a cycle."""
        m = Module()
        happens, begins = (
            [Signal(self._traps, name=f"{name}_{ago}") for ago in (1, 2)] for name in ("happens", "begins")
        )
        event = Signal(self._event, reset_less=True)
        m.d.sync += [
            Cat(happens).eq(Cat(self.happens, happens)),
            Cat(begins).eq(Cat(self.begins, begins)),
            event.eq(self.event),
        ]

        place_bits = (self._traps + 1).bit_length()
        latest = [Signal(place_bits, name=f"latest_{trap}") for trap in range(self._traps)]
        told, free = Signal(place_bits), Signal(place_bits)
        used = Signal(1 << place_bits)
        m.d.comb += [used.eq(any_of(1 << place for place in (*latest, told))), free.eq(number_of(lowest(m, ~used)))]
        m.submodules.events = events = Memory(shape=self._event, depth=len(used), init=[], attrs=LUT_RAM)
        write, read = events.write_port(), events.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(happens[-1].any()),
            write.addr.eq(free),
            write.data.eq(event),
            read.addr.eq(told),
            self.told.eq(read.data),
        ]
        for trap, place in enumerate(latest):
            with m.If(begins[-1][trap]):
                m.d.sync += told.eq(place)
            with m.If(happens[-1][trap]):
                m.d.sync += place.eq(free)
        return m
