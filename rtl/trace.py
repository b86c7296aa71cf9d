"""Trace outputs: one slot for each kind of record that a component emits."""

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from wire.trace import WORDS

__all__ = ["RECORD_LAYOUT", "TraceSignature", "gather"]

RECORD_LAYOUT = data.ArrayLayout(unsigned(32), WORDS)
"""The words a..e of a record, a in the lowest bits (`wire.trace`)."""


class TraceSignature(wiring.Signature):
    """Records of one cycle, one of each slot at most.

    The record in slot i of cycle c is stamped with c. A component with such an output names its
    slots in an attribute `trace_slots`, a list of (port, `wire.trace.Kind`) in ascending order.

    Members:
        valid: bit i says that slot i has a record in this cycle.
        payload: the words of each slot's record, see `RECORD_LAYOUT`. A signal for each: one of all would be wider
            than Amaranth converts from 59 ports on.

    Raises:
        ValueError: fewer than one slot.
    """

    def __init__(self, slots: int) -> None:
        if slots < 1:
            raise ValueError(f"slots {slots}: expected 1 and above")
        super().__init__({"valid": Out(slots), "payload": Out(RECORD_LAYOUT).array(slots)})


def gather(m: Module, trace: Any, parts: Iterable[tuple[Any, int]]) -> None:
    """Slot i of TRACE is what the i-th of PARTS says: a trace, and a slot of it."""
    for slot, (part, place) in enumerate(parts):
        m.d.comb += [trace.valid[slot].eq(part.valid[place]), trace.payload[slot].eq(part.payload[place])]
