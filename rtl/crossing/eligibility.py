"""What a head needs of its output to be eligible (docs/pipeline.md, section 7)."""

from typing import Final

from amaranth.hdl import Cat, Mux, Value
from amaranth.lib import data

from rtl.widths import NEED_BITS
from wire.flow_control import CREDIT_WINDOW

__all__ = ["data_eligible", "room_of", "send_facts_layout"]

_ROOM_BITS: Final = NEED_BITS + 1


def send_facts_layout(vls: int) -> data.StructLayout:
    """What a head must know of its output to go in the next cycle, as visible the cycle before.

    `blocked`: its port is in ActiveDefer, and data waits. `swallows`: mask of the slots that it may not send at all.
    `room`: what decides about a data head, by VL, see `room_of`.
    """
    return data.StructLayout({"blocked": 1, "swallows": vls + 1, "room": data.ArrayLayout(_ROOM_BITS, vls)})


def room_of(credit: Value, swallow: Value) -> Value:
    """The credit that heads see: for any that there can be, (room - need) mod 256 <= 128 says the same as
    (credit - need) mod 4096 <= 2048, and is always true if packets need no credits, since they are swallowed.

    So it is the credit, except that 128 to 2,048 are 128; from there on it follows the credit. It is 0 where no head
    could go.
    """
    low, high = credit[:NEED_BITS], credit[NEED_BITS:]
    window = CREDIT_WINDOW >> NEED_BITS
    ample = swallow | ((high != 0) & (high <= window))
    follows = ~swallow & ((high == 0) | (high == window))
    return Cat(Mux(follows, low, 0), ample)


def data_eligible(room: Value, need: Value, oversize: Value) -> Value:
    """A visible data head of `need` blocks may go to an output that is not blocked.

    What it leaves of the room is at most half of its range: less, or just that.
    """
    left = (room - need)[:_ROOM_BITS]
    leaves_half = room[-1] & (room[:NEED_BITS] == need)
    return oversize | ~left[-1] | leaves_half
