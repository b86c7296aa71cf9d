"""What the words of the trace's records hold, kind by kind: named fields, their places, reading and packing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from operator import itemgetter
from typing import ClassVar, Final

from .codes import PortState
from .meaning import HEX, Meaning
from .registers import ADDRESS_BITS
from .stimulus import Trigger
from .trace import WORD_BITS, WORDS, Delimiter, Discard, Kind, LinkResult, Record, Verdict

__all__ = [
    "LAYOUTS",
    "BusRead",
    "Deliver",
    "Inject",
    "RecordField",
    "RecordLayout",
    "RowPair",
    "Rows",
    "RxData",
    "RxFcp",
    "Scrap",
    "Send",
    "State",
    "TxData",
    "TxDiscard",
    "TxFcp",
]


def _named(codes: type[IntEnum], **others: str) -> Meaning:
    """A code by its name, or by another given for that name; by its number where it has none."""
    names = {int(code): others.get(code.name, code.name) for code in codes}
    return lambda value, width: names.get(value, str(value))


class RecordField:
    """Bits `lsb` to `lsb + width - 1` of word `a`, `b`, `c`, `d` or `e` of a record of one kind.

    Attributes:
        name: as its layout has it.
        label: what a person calls it.
        word: the word's place in a record.
        mask: `width` ones.
        meaning: how a person reads the value, a plain number where there is none.
        read: the value in a record; it is called for each record of a run.
    """

    def __init__(
        self, word: str, lsb: int = 0, width: int = WORD_BITS, *, label: str = "", meaning: Meaning | None = None
    ) -> None:
        self.name = ""
        self.label = label
        self.word = Record._fields.index(word)
        self.lsb = lsb
        self.width = width
        self.mask = (1 << width) - 1
        self.meaning = meaning
        self.read = _reader(self.word, lsb, width)

    def __set_name__(self, layout: type, name: str) -> None:
        self.name = name
        self.label = self.label or name.replace("_", " ")

    def text(self, record: Record) -> int | str:
        """The value in a record for a person, a number where that says all."""
        value = self.read(record)
        return value if self.meaning is None else self.meaning(value, self.width)


def _reader(word: int, lsb: int, width: int) -> Callable[[Record], int]:
    """Reads a field with no more steps than it takes."""
    mask = (1 << width) - 1
    if width == WORD_BITS:
        return itemgetter(word)
    if lsb + width == WORD_BITS:
        return lambda record: record[word] >> lsb
    if lsb == 0:
        return lambda record: record[word] & mask
    return lambda record: record[word] >> lsb & mask


class RecordLayout:
    """The fields of the records of one kind. Words that no field is in are 0.

    Attributes:
        kind: of the records.
        fields: in the order in which they are shown.
    """

    kind: ClassVar[Kind]
    fields: ClassVar[tuple[RecordField, ...]]

    def __init_subclass__(cls, kind: Kind) -> None:
        """Gather the fields.

        Raises:
            ValueError: a field beyond its word, or two on one bit.
        """
        cls.kind = kind
        cls.fields = tuple(field for field in vars(cls).values() if isinstance(field, RecordField))
        taken: Counter[int] = Counter()
        for field in cls.fields:
            bits = field.mask << field.lsb
            if bits >> WORD_BITS or bits & taken[field.word]:
                raise ValueError(f"{kind.name}.{field.name}: not in its word, or on bits of the fields before it")
            taken[field.word] |= bits
        LAYOUTS[kind] = cls

    @classmethod
    def record(cls, cycle: int, source: int, **values: int) -> Record:
        """A record with these values; fields not named are 0.

        Raises:
            ValueError: an unknown field, or a value that does not fit.
        """
        known = {field.name: field for field in cls.fields}
        words = [cycle, source, cls.kind, *[0] * WORDS]
        for name, value in values.items():
            if name not in known:
                raise ValueError(f"{cls.kind.name} has no field {name!r}, it has {', '.join(known)}")
            mask, width = known[name].mask, known[name].width
            if not 0 <= value <= mask:
                raise ValueError(f"{name}: value {value:#x} does not fit {width} bits, allowed 0..{mask:#x}")
            words[known[name].word] |= value << known[name].lsb
        return Record(*words)


LAYOUTS: Final[dict[int, type[RecordLayout]]] = {}
"""By kind."""


class RxData(RecordLayout, kind=Kind.RX_DATA):
    """A packet was received. Length, DLID and SL are 0 if the header was not processed."""

    verdict = RecordField("a", 0, 8, meaning=_named(Verdict))
    vl = RecordField("a", 8, 8)
    delimiter = RecordField("a", 16, 16, meaning=_named(Delimiter, CUT="cut"))
    pkt_len = RecordField("b", 0, 16, label="PktLen")
    end_row = RecordField("b", 16, 16)
    """Index k."""
    dlid = RecordField("c", 16, 16, label="DLID", meaning=HEX)
    sl = RecordField("c", 0, 16, label="SL")
    blocks = RecordField("d")
    """Taken from the buffer, 0 if not accepted."""


class RxFcp(RecordLayout, kind=Kind.RX_FCP):
    """A link packet was received; all as received, and 0 but the result for MALFORMED."""

    result = RecordField("a", 0, 8, meaning=_named(LinkResult))
    op = RecordField("a", 8, 8)
    vl = RecordField("a", 16, 16)
    fctbs = RecordField("b", 16, 16, label="FCTBS")
    fccl = RecordField("b", 0, 16, label="FCCL")


class State(RecordLayout, kind=Kind.STATE):
    """A port's state changed."""

    state = RecordField("a", meaning=_named(PortState))


class Scrap(RecordLayout, kind=Kind.SCRAP):
    """A queued packet known to be bad was dropped unsent. The source is the output port; port 0 is the node's agent."""

    slot = RecordField("a", 0, 16)
    input = RecordField("a", 16, 16)
    pkt_len = RecordField("b", label="PktLen")


class TxData(RecordLayout, kind=Kind.TX_DATA):
    """A packet was sent."""

    slot = RecordField("a", 0, 8)
    marked_bad = RecordField("a", 8, 4)
    fecn = RecordField("a", 12, 4, label="FECN")
    """It was marked here for congestion (docs/pipeline.md, section 7.3)."""
    input = RecordField("a", 16, 16)
    pkt_len = RecordField("b", 0, 16, label="PktLen")
    end_row = RecordField("b", 16, 16)
    """Index e."""
    first_cycle = RecordField("c")
    """Low 32 bits of w_0."""
    fingerprint = RecordField("d", meaning=HEX)
    """`wire.crc.fingerprint` of the 4(e+1) symbol bytes SDP..EGP/EBP."""
    lrh = RecordField("e", label="LRH", meaning=HEX)
    """Bytes 0..3 of the LRH as sent, byte 0 highest."""

    @classmethod
    def dlid(cls, record: Record) -> int:
        """LRH.DLID, which is part of that."""
        return cls.lrh.read(record) & 0xFFFF


class TxFcp(RecordLayout, kind=Kind.TX_FCP):
    """A flow control packet was sent."""

    op = RecordField("a", 0, 8)
    vl = RecordField("a", 8, 24)
    fctbs = RecordField("b", 16, 16, label="FCTBS")
    fccl = RecordField("b", 0, 16, label="FCCL")


class TxDiscard(RecordLayout, kind=Kind.TX_DISCARD):
    """A packet was swallowed in part or whole."""

    slot = RecordField("a", 0, 16)
    input = RecordField("a", 16, 16)
    pkt_len = RecordField("b", 0, 16, label="PktLen")
    end_row = RecordField("b", 16, 16)
    reason = RecordField("c", meaning=_named(Discard))


class Send(RecordLayout, kind=Kind.SEND):
    """A packet was taken from an adapter's host (source: port 1), or from a node's agent (source: port 0)."""

    slot = RecordField("a")
    pkt_len = RecordField("b", label="PktLen")


class Deliver(RecordLayout, kind=Kind.DELIVER):
    """A packet was given to an adapter's host, or to a node's agent."""

    slot = RecordField("a")
    pkt_len = RecordField("b", label="PktLen")
    first_cycle = RecordField("c")
    """Low 32 bits of the first word's cycle."""
    fingerprint = RecordField("d", meaning=HEX)
    """`wire.crc.fingerprint` of the bytes LRH..ICRC."""


class Inject(RecordLayout, kind=Kind.INJECT):
    """An injected error began to act."""

    trigger = RecordField("a", 0, 8, meaning=_named(Trigger))
    row = RecordField("a", 8, 24)


class BusRead(RecordLayout, kind=Kind.BUS_READ):
    """A register was read. The source is port 0 of the node."""

    address = RecordField("a", 0, ADDRESS_BITS, meaning=HEX)
    value = RecordField("b", meaning=HEX)


class RowPair(RecordLayout, kind=Kind.ROW):
    """Where only some nodes are RTL, one of them and its golden model have different rows on their wires: the last
    record. The cycle is the row's."""

    data = RecordField("a")
    k = RecordField("b", 0, 4)
    valid = RecordField("b", 4, 1)
    offers = RecordField("b", 5, 2)
    """The widths that the port offers beside the row, 0 if none (docs/pipeline.md, section 2)."""
    model_data = RecordField("c")
    model_k = RecordField("d", 0, 4)
    model_valid = RecordField("d", 4, 1)
    model_offers = RecordField("d", 5, 2)


class Rows(RecordLayout, kind=Kind.ROWS):
    """A period is over. The source is a link's direction, the cycle the period's last."""

    crc = RecordField("a", label="CRC", meaning=HEX)
    """`wire.row_crc.row_crc` of what entered there in each of the period's cycles."""
    data = RecordField("b")
    """What entered there in the last of them, 0 if nothing did."""
    k = RecordField("c", 0, 4)
    valid = RecordField("c", 4, 1)
