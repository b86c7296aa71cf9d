"""A capture as columns of what measurements look at, some thousand packets at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture.chunk import PacketFlag
from capture.directions import opposite
from capture.fields import Fields
from capture.reader import CaptureReader
from capture.records import Integers
from wire.crc import VCRC_BYTES
from wire.flow_control import FlowControlOp
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
        is_damaged: a data packet that was cut, or received with errors and not marked bad before: what its LRH says may
            be wrong.
        is_data: a data packet that has an LRH, and was not cut.
        is_credit: a good flow control packet; only then FCTBS and FCCL mean anything.
        is_initial: one of a link that comes up: counting begins anew.
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
    is_damaged: Flags
    is_data: Flags
    is_credit: Flags
    is_initial: Flags
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
    """All of a capture.

    Raises:
        CaptureError: it is damaged.
    """
    for chunk in capture.chunks():
        fields = Fields(chunk)
        is_cut = chunk.has(PacketFlag.CUT)
        is_broken = is_cut | chunk.has(PacketFlag.BAD) & ~chunk.has(PacketFlag.MARKED)
        op = fields.flow_control("op")
        is_credit = fields.has_flow_control & ~is_broken & (op <= FlowControlOp.INIT)
        length = fields.lrh("pkt_len") * WORD_BYTES + VCRC_BYTES
        yield Stretch(
            chunk.time_ns,
            chunk.direction,
            is_broken & ~chunk.has(PacketFlag.LINK),
            fields.has_lrh & ~is_cut,
            is_credit,
            is_credit & (op == FlowControlOp.INIT),
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
    name = opposite(directions[direction])
    if name is None:
        return 1 - direction if len(directions) == 2 else None
    return directions.index(name) if name in directions else None
