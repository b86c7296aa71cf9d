"""What is in a capture, by its directions, before anything is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from capture.chunk import Chunk, PacketFlag
from capture.directions import opposite
from capture.fields import Fields
from capture.reader import capture_reader
from capture.records import CaptureError
from wire.codes import VL15, is_unicast_lid
from wire.crc import LPCRC_BYTES, lpcrc_good
from wire.flow_control import FLOW_CONTROL, FlowControlOp
from wire.symbols import LINK_PACKET_BYTES

__all__ = ["Credits", "Survey", "SurveyedDirection", "survey"]

_DAMAGED: Final = PacketFlag.BAD | PacketFlag.MARKED | PacketFlag.CUT | PacketFlag.LINK


class Credits(NamedTuple):
    """What the first good flow control packet of a VL says.

    Attributes:
        sent: FCTBS; 0 where the link begins with it.
        limit: FCCL.
    """

    sent: int
    limit: int


@dataclass
class SurveyedDirection:
    """A direction of a capture.

    Attributes:
        name: as the capture calls it.
        bits_per_s: rate of its link, 0 if the capture does not say.
        data_packets, link_packets: how many there are.
        slids, dlids: unicast LIDs of its good data packets.
        vls: one more than the highest data VL.
        longest: PktLen of the longest packet, in words.
        credits: by VL.
    """

    name: str = ""
    bits_per_s: int = 0
    data_packets: int = 0
    link_packets: int = 0
    slids: set[int] = field(default_factory=set)
    dlids: set[int] = field(default_factory=set)
    vls: int = 1
    longest: int = 0
    credits: dict[int, Credits] = field(default_factory=dict)

    def add(self, chunk: Chunk) -> None:
        """Packets of this direction."""
        fields = Fields(chunk)
        is_link = chunk.has(PacketFlag.LINK)
        self.link_packets += int(is_link.sum())
        self.data_packets += int((~is_link).sum())
        good = fields.has_lrh & ((chunk.flags & _DAMAGED) == 0)
        vl, words = fields.lrh("vl"), fields.lrh("pkt_len")
        for lids, name in ((self.slids, "slid"), (self.dlids, "dlid")):
            lids.update(lid for lid in np.unique(fields.lrh(name)[good]).tolist() if is_unicast_lid(lid))
        used = vl[good & (vl != VL15)]
        self.vls = max(self.vls, int(used.max(initial=0)) + 1)
        self.longest = max(self.longest, int(words[good].max(initial=0)))
        link_vl = fields.flow_control("vl")
        whole = fields.has_flow_control & (chunk.length == LINK_PACKET_BYTES) & (link_vl != VL15)
        for one in set(np.unique(link_vl[whole]).tolist()) - self.credits.keys():
            bodies = map(chunk.bytes_of, np.flatnonzero(whole & (link_vl == one)).tolist())
            body = next(filter(lpcrc_good, bodies), None)
            if body is not None:
                said = FLOW_CONTROL.unpack(body[:-LPCRC_BYTES])
                self.credits[one] = Credits(0 if said.op == FlowControlOp.INIT else said.fctbs, said.fccl)
                self.vls = max(self.vls, one + 1)


@dataclass(frozen=True)
class Survey:
    """What is in a capture.

    Attributes:
        directions: by their numbers.
        packets: how many there are, up to what is damaged.
        first_ns, last_ns: the earliest time and the latest.
        damage: what ends it too soon; None if it is whole.
    """

    directions: tuple[SurveyedDirection, ...]
    packets: int
    first_ns: int
    last_ns: int
    damage: CaptureError | None

    @property
    def is_of_links(self) -> bool:
        """There are link packets in it; hosts see none."""
        return any(one.link_packets for one in self.directions)

    @property
    def numbers(self) -> Mapping[str, int]:
        """Of directions, by name."""
        return {one.name: number for number, one in enumerate(self.directions)}

    def back(self, number: int) -> SurveyedDirection | None:
        """The other direction of the same link, if names tell it."""
        name = opposite(self.directions[number].name)
        other = None if name is None else self.numbers.get(name)
        return None if other is None else self.directions[other]


def survey(place: str) -> Survey:
    """Look through a capture.

    Raises:
        CaptureError: it is none, or no InfiniBand packet can be read of it.
    """
    found: list[SurveyedDirection] = []
    first, last, packets = [], [], 0
    damage = None
    with capture_reader(place) as capture:
        try:
            for chunk in capture.chunks():
                packets += len(chunk)
                first.append(int(chunk.time_ns.min()))
                last.append(int(chunk.time_ns.max()))
                found += [SurveyedDirection() for _ in capture.directions[len(found) :]]
                for number in np.unique(chunk.direction).tolist():
                    found[number].add(chunk.where(chunk.direction == number))
        except CaptureError as error:
            if not packets:
                raise
            damage = error
        if not packets:
            raise CaptureError(f"{place}: there is no packet in it")
        for direction, name, speed in zip(found, capture.directions, capture.speeds, strict=True):
            direction.name, direction.bits_per_s = name, speed
    return Survey(tuple(found), packets, min(first), max(last), damage)
