"""Which packets of a capture are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from capture.chunk import Chunk, PacketFlag
from capture.directions import HOST, ends
from capture.fields import Fields

__all__ = ["Kind", "Selection"]

Kind = Literal["data", "link"]


@dataclass(frozen=True)
class Selection:
    """What packets must be to be shown; of several values of one kind, one must fit, and none stand for all.

    Attributes:
        ports: the direction, one of its ends `S[1]`, or the node there `S`.
        lids: SLID or DLID.
        opcodes: of the BTH.
        kinds: data packets or link packets.
        since_ns: the first time.
        until_ns: the time before which they start.
    """

    ports: Sequence[str] = ()
    lids: Sequence[int] = ()
    opcodes: Sequence[int] = ()
    kinds: Sequence[Kind] = ()
    since_ns: int | None = None
    until_ns: int | None = None

    def at_ports(self, direction: str) -> bool:
        """Whether a direction is asked for."""
        found = ends(direction) or (direction.removesuffix(HOST),)
        return not self.ports or bool({direction, *found, *(end.partition("[")[0] for end in found)} & {*self.ports})

    def of(self, chunk: Chunk, fields: Fields, directions: Sequence[str]) -> NDArray[np.bool_]:
        """Which packets of a chunk are asked for."""
        wanted = np.array([self.at_ports(direction) for direction in directions])[chunk.direction]
        if self.lids:
            lids = list(self.lids)
            wanted &= fields.has_lrh & (np.isin(fields.lrh("slid"), lids) | np.isin(fields.lrh("dlid"), lids))
        if self.opcodes:
            wanted &= fields.has_bth & np.isin(fields.bth("opcode"), list(self.opcodes))
        if self.kinds:
            is_link = chunk.has(PacketFlag.LINK)
            wanted &= np.isin(is_link, [kind == "link" for kind in self.kinds])
        if self.since_ns is not None:
            wanted &= chunk.time_ns >= self.since_ns
        if self.until_ns is not None:
            wanted &= chunk.time_ns < self.until_ns
        return wanted
