"""What a head needs of its output to be eligible (docs/pipeline.md, section 7)."""

from amaranth.hdl import Cat, Mux, Value
from amaranth.lib import data

from wire.flow_control import CREDIT_WINDOW

__all__ = ["data_eligible", "room_layout", "room_of", "send_facts_layout"]


def room_layout(need_bits: int) -> data.StructLayout:
    """What decides about a data head: its blocks may go up to this limit, or, if `beyond`, only beyond it."""
    return data.StructLayout({"limit": need_bits, "beyond": 1})


def send_facts_layout(vls: int, need_bits: int) -> data.StructLayout:
    """What a head must know of its output to go in the next cycle, as visible the cycle before.

    `blocked`: its port is in ActiveDefer, and data waits. `swallows`: mask of the slots that it may not send at all.
    `room`: what decides about a data head, by VL, see `room_of`. NEED_BITS has a head's blocks, if it needs credits.
    """
    return data.StructLayout({"blocked": 1, "swallows": vls + 1, "room": data.ArrayLayout(room_layout(need_bits), vls)})


def room_of(credit: Value, need_bits: int) -> Value:
    """A `room_layout`, by which heads need one comparison to know whether (credit - need) mod 4096 <= 2048.

    Up to 2,048 the credit is the limit; for k = 1, 2, ... blocks more than that those heads may go that need k or more,
    that is, more than k - 1. From there on none may.
    """
    low, high = credit[:need_bits], credit[need_bits:]
    window = CREDIT_WINDOW >> need_bits
    at_window = high == window
    limited = (high == 0) | at_window
    beyond = (high > window) | (at_window & (low != 0))
    limit = Mux(at_window, low - 1, low)[:need_bits]
    return Cat(limit | ~limited.replicate(need_bits), beyond)


def data_eligible(room: data.View, need: Value, swallowed: Value) -> Value:
    """Whether a visible data head of `need` blocks may go to an output that is not blocked.

    What is swallowed needs no credits.
    """
    return swallowed | (room.beyond ^ (need <= room.limit))
