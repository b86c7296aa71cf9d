"""Trace outputs: one slot for each kind of record that a component emits."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from amaranth.hdl import Cat, Const, Module, Value, ValueLike, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from wire.trace import WORD_BITS, WORDS, Record
from wire.trace_layout import RecordLayout

__all__ = ["RECORD_LAYOUT", "TraceSignature", "gather", "report"]

RECORD_LAYOUT = data.ArrayLayout(unsigned(WORD_BITS), WORDS)
"""The words a..e of a record, a in the lowest bits (`wire.trace`)."""

_WORD_A = Record._fields.index("a")


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


def report(
    m: Module, trace: Any, slot: int, valid: ValueLike, layout: type[RecordLayout], /, **fields: ValueLike
) -> None:
    """Slot SLOT of TRACE has a record of this layout if VALID, with these fields; those not named are 0."""
    words: dict[int, list[Value]] = defaultdict(list)
    for field in sorted((getattr(layout, name) for name in fields), key=lambda field: (field.word, field.lsb)):
        parts = words[field.word - _WORD_A]
        parts += [Const(0, field.lsb - len(Cat(parts))), Value.cast(fields[field.name])]
    m.d.comb += trace.valid[slot].eq(valid)
    m.d.comb += [trace.payload[slot][word].eq(Cat(parts)) for word, parts in words.items()]


def gather(m: Module, trace: Any, parts: Iterable[tuple[Any, int]], first: int = 0) -> None:
    """The slots of TRACE from FIRST on are what PARTS say: each a trace, and a slot of it."""
    for slot, (part, place) in enumerate(parts, first):
        m.d.comb += [trace.valid[slot].eq(part.valid[place]), trace.payload[slot].eq(part.payload[place])]
