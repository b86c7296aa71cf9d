"""What a head needs of its output to be eligible (docs/pipeline.md, section 7)."""

from amaranth.hdl import Cat, Mux, Value
from amaranth.lib import data

from rtl.widths import NEED_BITS
from wire.flow_control import CREDIT_WINDOW

__all__ = ["ROOM", "data_eligible", "room_of", "send_facts_layout"]

ROOM = data.StructLayout({"limit": NEED_BITS, "beyond": 1})
"""What decides about a data head: its blocks may go up to this limit, or, if `beyond`, only beyond it."""


def send_facts_layout(vls: int) -> data.StructLayout:
    """What a head must know of its output to go in the next cycle, as visible the cycle before.

    `blocked`: its port is in ActiveDefer, and data waits. `swallows`: mask of the slots that it may not send at all.
    `room`: what decides about a data head, by VL, see `room_of`.
    """
    return data.StructLayout({"blocked": 1, "swallows": vls + 1, "room": data.ArrayLayout(ROOM, vls)})


def room_of(credit: Value) -> Value:
    """A `ROOM`, by which heads need one comparison to know whether (credit - need) mod 4096 <= 2048.

    Up to 2,048 the credit is the limit; for k = 1, 2, ... blocks more than that those heads may go that need k or more,
    that is, more than k - 1. From there on none may.
    """
    low, high = credit[:NEED_BITS], credit[NEED_BITS:]
    window = CREDIT_WINDOW >> NEED_BITS
    at_window = high == window
    limited = (high == 0) | at_window
    beyond = (high > window) | (at_window & (low != 0))
    limit = Mux(at_window, low - 1, low)[:NEED_BITS]
    return Cat(limit | ~limited.replicate(NEED_BITS), beyond)


def data_eligible(room: data.View, need: Value, swallowed: Value) -> Value:
    """Whether a visible data head of `need` blocks may go to an output that is not blocked.

    What is swallowed needs no credits.
    """
    return swallowed | (room.beyond ^ (need <= room.limit))
