"""How much a switch holds of what comes in by a port, measured from outside.

Two hosts send to a third as fast as they can, the second beginning later. First both send at the pace of their links,
and what the third cannot get meanwhile stays in the switch; then its buffers are full, and a host may send a packet
when one of its own has left. How many packets a host has sent more than have left is what the buffer holds
(EXPERIMENTS 4). Only the packets that hosts send are looked at, on their links.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from capture.directions import is_of_host
from capture.reader import CaptureReader
from capture.records import Integers
from capture.timeline import BITS_PER_S
from laboratory.stretch import Stretch
from laboratory.thinned import Thinned
from wire.codes import VL15
from wire.symbols import BITS_PER_SYMBOL, DELIMITERS

__all__ = ["BufferSize", "Sender"]

_NS: Final = 10**9
_SLOWER: Final = 1.5
"""An interval so much longer than a packet takes is one of waiting for credits."""


@dataclass
class Sender:
    """What one host has sent on a VL; times are those since the capture's first data packet.

    Attributes:
        direction: its link, an index into the capture's directions.
        blocks: of credit that a packet takes.
        pace_ns: the time that a packet takes on the link.
        packets: how many it sent.
        first_ns: the start of the first.
        before: packets begun before the other began.
        last_before_ns: the start of the last of them.
        waits: packets that waited for credits while the other sent, too.
        sent: points (ns, packets sent), thinned.
    """

    direction: int
    blocks: int
    pace_ns: float
    packets: int = 0
    first_ns: int = 0
    last_ns: int = 0
    before: int = 0
    last_before_ns: int = 0
    waits: int = 0
    sent: Thinned = field(default_factory=Thinned)
    _sum_number: int = 0
    _sum_ns: int = 0
    _first_wait: tuple[int, int] = (0, 0)
    _last_wait: tuple[int, int] = (0, 0)

    def waited(self, number: Integers, time_ns: Integers) -> None:
        """Take packets that waited, by their number, the first being 1, and their start."""
        if not self.waits:
            self._first_wait = int(number[0]), int(time_ns[0])
        self._last_wait = int(number[-1]), int(time_ns[-1])
        self.waits += len(number)
        self._sum_number += int(number.sum())
        self._sum_ns += int((time_ns - self._first_wait[1]).sum())

    @property
    def shared_pace_ns(self) -> float | None:
        """The time from packet to packet while it waits for credits; None if it did not."""
        if self.waits < 2:
            return None
        return (self._last_wait[1] - self._first_wait[1]) / (self._last_wait[0] - self._first_wait[0])

    def held(self, leaves_ns: float) -> float | None:
        """Packets that the switch holds for it while it waits; None if it never did.

        LEAVES_NS is when a first of its packets leaves, of those that meet others; the next leave at the shared pace.
        """
        pace = self.shared_pace_ns
        if pace is None:
            return None
        mean_number = self._sum_number / self.waits
        mean_ns = self._first_wait[1] + self._sum_ns / self.waits
        left = max(self.before, 1) + (mean_ns - leaves_ns) / pace
        return mean_number - left


class BufferSize:
    """Follows a capture of the links of two hosts.

    Attributes:
        senders: by VL, the one that began earlier first.
    """

    def __init__(self, capture: CaptureReader) -> None:
        """What hosts themselves captured is left out: it is not on a link."""
        self._capture = capture
        self._begin_ns: int | None = None
        self.senders: dict[int, list[Sender]] = {}

    def packets_held(self, vl: int) -> dict[int, float]:
        """Packets that the switch holds on a VL of what comes by a link, by direction; no others than two that met.

        When the later sender begins, a packet of the earlier one may be on its way through the switch. When it has
        left, one of the later sender's leaves, and from then on they take turns. If one never waited, or would have
        sent less than has left, they did not wait for each other.
        """
        known = self.senders.get(vl, [])
        if len(known) != 2:
            return {}
        earlier, later = known
        on_its_way = max(float(later.first_ns), earlier.last_before_ns + earlier.pace_ns)
        held = {earlier.direction: earlier.held(on_its_way), later.direction: later.held(on_its_way + later.pace_ns)}
        found = {direction: packets for direction, packets in held.items() if packets is not None}
        return found if len(found) == 2 and min(found.values()) > 0 else {}

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets."""
        of_hosts = [number for number, name in enumerate(self._capture.directions) if is_of_host(name)]
        data = stretch.where(stretch.is_data & (stretch.vl != VL15) & ~np.isin(stretch.direction, of_hosts))
        if self._begin_ns is None and len(data):
            self._begin_ns = int(data.time_ns.min())
        # Not since 1970: a float has 53 bits.
        data = replace(data, time_ns=data.time_ns - (self._begin_ns or 0))
        for vl in np.unique(data.vl).tolist():
            of_vl = data.where(data.vl == vl)
            order = np.argsort(of_vl.time_ns, kind="stable")
            self._follow(vl, of_vl.where(order))

    def _follow(self, vl: int, data: Stretch) -> None:
        known = self.senders.setdefault(vl, [])
        for direction in data.direction[np.sort(np.unique(data.direction, return_index=True)[1])].tolist():
            if all(sender.direction != direction for sender in known):
                mine = data.where(data.direction == direction)
                # A message's first packet may be a little longer.
                length, blocks = int(np.median(mine.length)), int(np.median(mine.blocks))
                rate = self._capture.speeds[direction] or BITS_PER_S
                pace = (length + DELIMITERS) * BITS_PER_SYMBOL * _NS / rate
                known.append(Sender(direction, blocks, pace, first_ns=int(mine.time_ns[0])))
        met_ns = known[1].first_ns if len(known) > 1 else None
        for sender in known:
            other_last = max((one.last_ns for one in known if one is not sender), default=0)
            mine = data.time_ns[data.direction == sender.direction]
            others = data.time_ns[data.direction != sender.direction]
            until = max(other_last, int(others[-1]) if len(others) else 0)
            self._count(sender, mine, met_ns, until)

    def _count(self, sender: Sender, time_ns: Integers, met_ns: int | None, until_ns: int) -> None:
        """Take the packets of a sender; the others send from `met_ns` to `until_ns`."""
        if not len(time_ns):
            return
        number = sender.packets + 1 + np.arange(len(time_ns))
        interval = np.diff(time_ns, prepend=sender.last_ns if sender.packets else time_ns[0])
        sender.sent.add(time_ns, number)
        early = time_ns < met_ns if met_ns is not None else np.full(len(time_ns), True)
        if early.any():
            sender.before, sender.last_before_ns = int(number[early][-1]), int(time_ns[early][-1])
        waits = ~early & (time_ns < until_ns) & (interval > _SLOWER * sender.pace_ns)
        if waits.any():
            sender.waited(number[waits], time_ns[waits])
        sender.packets += len(time_ns)
        sender.last_ns = int(time_ns[-1])
