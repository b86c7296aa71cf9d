"""A capture as columns of what measurements look at, some thousand packets at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture.chunk import PacketFlag
from capture.fields import Fields
from capture.reader import CaptureReader
from capture.records import Integers
from capture.selection import ends
from wire.crc import VCRC_BYTES
from wire.packet import BLOCK_BYTES, WORD_BYTES

__all__ = ["Stretch", "other_way", "stretches"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Packets in the order of a capture; a column for each attribute.

    What a packet ought to be long its LRH says, so that packets of which only the beginning was captured count whole.

    Attributes:
        time_ns: when it started.
        direction: index into the capture's directions.
        is_data: a data packet that has an LRH.
        is_credit: a flow control packet; only then FCTBS and FCCL mean anything.
        vl: its VL, of either kind.
        blocks: of credit that a data packet takes.
        length: bytes of a data packet, LRH to VCRC.
        fctbs: blocks that the sender has sent.
        fccl: up to where its receiver may send.
        slid: from where.
        dlid: to where.
        fecn: whether it met congestion.
        becn: whether it tells its receiver that its packets did.
    """

    time_ns: Integers
    direction: Integers
    is_data: Flags
    is_credit: Flags
    vl: Integers
    blocks: Integers
    length: Integers
    fctbs: Integers
    fccl: Integers
    slid: Integers
    dlid: Integers
    fecn: Flags
    becn: Flags

    def __len__(self) -> int:
        """Number of packets."""
        return len(self.time_ns)

    def where(self, wanted: Flags | Integers) -> Stretch:
        """Some of the packets."""
        return Stretch(*(getattr(self, name)[wanted] for name in self.__slots__))


def stretches(capture: CaptureReader) -> Iterator[Stretch]:
    """All of a capture, but for packets that were cut: nobody knows what they were.

    Raises:
        CaptureError: it is damaged.
    """
    for whole in capture.chunks():
        chunk = whole.where(~whole.has(PacketFlag.CUT))
        fields = Fields(chunk)
        length = fields.lrh("pkt_len") * WORD_BYTES + VCRC_BYTES
        yield Stretch(
            chunk.time_ns,
            chunk.direction,
            fields.has_lrh,
            fields.has_flow_control,
            np.where(fields.has_flow_control, fields.flow_control("vl"), fields.lrh("vl")),
            (length + BLOCK_BYTES - 1) // BLOCK_BYTES,
            length,
            fields.flow_control("fctbs"),
            fields.flow_control("fccl"),
            fields.lrh("slid"),
            fields.lrh("dlid"),
            fields.has_bth & (fields.bth("fecn") == 1),
            fields.has_bth & (fields.bth("becn") == 1),
        )


def other_way(directions: list[str], direction: int) -> int | None:
    """The other direction of the same link: by its name; without names, the other of two."""
    found = ends(directions[direction])
    if found is None:
        return 1 - direction if len(directions) == 2 else None
    name = f"{found[1]} -> {found[0]}"
    return directions.index(name) if name in directions else None
