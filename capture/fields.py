"""Header fields of many packets at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capture.chunk import Chunk, PacketFlag
from capture.records import Integers, gathered
from wire.codes import LNH
from wire.crc import VCRC_BYTES
from wire.flow_control import FLOW_CONTROL
from wire.headers import BTH, GRH, LRH
from wire.layout import Layout
from wire.packet import WORD_BYTES

__all__ = ["Fields"]


class Fields:
    """The headers of a chunk's packets; where a packet has no such header, its fields mean nothing.

    Attributes:
        has_lrh: which packets have one: data packets long enough.
        has_bth: which packets have one: those whose LNH says so, if they are long enough.
        has_flow_control: which link packets have Op, FCTBS, VL and FCCL.
    """

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        is_link = chunk.has(PacketFlag.LINK)
        self.has_lrh: NDArray[np.bool_] = ~is_link & (chunk.length >= LRH.size_bytes)
        self.has_flow_control: NDArray[np.bool_] = is_link & (chunk.length >= FLOW_CONTROL.size_bytes)
        lnh = self.lrh("lnh")
        self.bth_at: Integers = np.where(lnh == LNH.IBA_GLOBAL, LRH.size_bytes + GRH.size_bytes, LRH.size_bytes)
        self.has_bth: NDArray[np.bool_] = (
            self.has_lrh & (lnh >= LNH.IBA_LOCAL) & (chunk.length >= self.bth_at + BTH.size_bytes)
        )
        self._bth_start = chunk.start + self.bth_at

    def lrh(self, name: str) -> Integers:
        """A field of the LRH of each packet."""
        return self._field(LRH, name, self._chunk.start)

    def bth(self, name: str) -> Integers:
        """A field of the BTH of each packet."""
        return self._field(BTH, name, self._bth_start)

    def flow_control(self, name: str) -> Integers:
        """A field of each flow control packet."""
        return self._field(FLOW_CONTROL, name, self._chunk.start)

    def _field(self, layout: Layout, name: str, start: Integers) -> Integers:
        field = layout[name]
        span = gathered(self._chunk.data, start + field.byte, field.byte_span)
        return span >> field.lsb_in_span & field.max

    def lost_bytes(self) -> Integers:
        """How many bytes a packet's capture lacks of what its LRH says, VCRC included; below 0 where it has more."""
        return self.lrh("pkt_len") * WORD_BYTES + VCRC_BYTES - self._chunk.length
