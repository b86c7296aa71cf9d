"""FCTBS and FCCL of a link, followed: is every block counted, how does room come back, how often is it told."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import numpy as np

from capture.records import Integers
from laboratory.stretch import Stretch
from laboratory.thinned import Thinned
from wire.codes import VL15
from wire.flow_control import CREDIT_MODULUS

__all__ = ["CreditTrace", "Lane", "Step"]

_HALF: Final = CREDIT_MODULUS // 2


@dataclass(frozen=True)
class Step:
    """How FCCL moved from one flow control packet to the next.

    Attributes:
        blocks: by how much.
        count: how often.
        median_ns: between the starts of the two.
        least_ns: the shortest of these times.
    """

    blocks: int
    count: int
    median_ns: float
    least_ns: int


@dataclass
class Lane:
    """One VL of one direction.

    Attributes:
        packets: data packets, and
        blocks: the blocks of credit that they take.
        told: flow control packets.
        miscounted: those whose FCTBS moved by something else than the blocks of the packets since the last one.
        unjudged: those of which nobody can say it, as there was a damaged packet on the link since the last one.
        restarts: how often the link came up again, from when on both count from the beginning.
        fctbs: of the first flow control packet and, counted on beyond 4095, of the last.
        fccl: the same. What begins anew when the link comes up again is counted on, too.
        sent: points (ns, blocks sent) as packets start, thinned.
        allowed: points (ns, FCCL), counted on, thinned.
    """

    packets: int = 0
    blocks: int = 0
    told: int = 0
    miscounted: int = 0
    unjudged: int = 0
    restarts: int = 0
    fctbs: list[int] = field(default_factory=list)
    fccl: list[int] = field(default_factory=list)
    sent: Thinned = field(default_factory=Thinned)
    allowed: Thinned = field(default_factory=Thinned)
    _steps: Counter[tuple[int, int]] = field(default_factory=Counter)
    _idle: Counter[int] = field(default_factory=Counter)
    _since: int = 0
    """Blocks of packets since the last flow control packet."""
    _damaged: int = 0
    """Damaged packets of the link since then."""
    _last: tuple[int, int, bool, int] = (0, 0, False, 0)
    """FCTBS and FCCL of the last flow control packet, whether it was of a link that comes up, and its start."""

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets: all of this VL and direction, and damaged ones of whatever VL."""
        is_data = stretch.is_data & ~stretch.is_damaged
        credit, data = np.flatnonzero(stretch.is_credit), np.flatnonzero(is_data)
        charged = np.cumsum(np.where(is_data, stretch.blocks, 0))
        damaged = np.cumsum(stretch.is_damaged, dtype=np.int64)
        self.sent.add(stretch.time_ns[data], self.blocks + charged[data])
        since, damaged_since = int(charged[-1]), int(damaged[-1])
        if len(credit):
            self._told(stretch.where(credit), charged[credit], damaged[credit])
            self._since, self._damaged = since - int(charged[credit[-1]]), damaged_since - int(damaged[credit[-1]])
        else:
            self._since += since
            self._damaged += damaged_since
        self.packets += len(data)
        self.blocks += since

    def _told(self, credit: Stretch, charged: Integers, damaged: Integers) -> None:
        """Take flow control packets; CHARGED are the blocks before each in this stretch, DAMAGED damaged packets."""
        fctbs, fccl, initial, time_ns = credit.fctbs, credit.fccl, credit.is_initial, credit.time_ns
        if self.told:
            last = self._last
            fctbs, fccl, initial, time_ns = (
                np.insert(column, 0, value) for column, value in zip((fctbs, fccl, initial, time_ns), last, strict=True)
            )
            charged, damaged = np.insert(charged, 0, -self._since), np.insert(damaged, 0, -self._damaged)
        else:
            self.fctbs, self.fccl = [int(fctbs[0])] * 2, [int(fccl[0])] * 2
            self.allowed.add(time_ns[:1], fccl[:1])
        self.told += len(credit)
        self._last = int(fctbs[-1]), int(fccl[-1]), bool(initial[-1]), int(time_ns[-1])
        anew = initial[1:] & ~initial[:-1]
        moved = np.where(anew, 0, np.diff(fctbs) % CREDIT_MODULUS)
        wrong = ~anew & (moved != np.diff(charged) % CREDIT_MODULUS)
        doubtful = np.diff(damaged) > 0
        self.miscounted += int(np.count_nonzero(wrong & ~doubtful))
        self.unjudged += int(np.count_nonzero(~anew & doubtful))
        self.restarts += int(np.count_nonzero(anew))
        self.fctbs[1] += int(moved.sum())
        # It goes forth but for a receiver that has lost room.
        step = np.where(anew, 0, (np.diff(fccl) + _HALF) % CREDIT_MODULUS - _HALF)
        interval = np.diff(time_ns)
        self.allowed.add(time_ns[1:], self.fccl[1] + np.cumsum(step))
        self.fccl[1] += int(step.sum())
        self._idle.update(interval[~anew & (moved == 0) & (step == 0)].tolist())
        self._steps.update(zip(step[step != 0].tolist(), interval[step != 0].tolist(), strict=True))

    @property
    def period_ns(self) -> int | None:
        """The time after which flow control packets come that have no news; None if there were none."""
        return self._idle.most_common(1)[0][0] if self._idle else None

    def steps(self) -> Iterator[Step]:
        """How FCCL moved, by blocks."""
        intervals: dict[int, list[tuple[int, int]]] = {}
        for (blocks, ns), count in sorted(self._steps.items()):
            intervals.setdefault(blocks, []).append((ns, count))
        for blocks, known in intervals.items():
            total = sum(count for _ns, count in known)
            yield Step(blocks, total, _median(known, total), known[0][0])


def _median(known: list[tuple[int, int]], total: int) -> float:
    """Of values in rising order, each with how often it is there."""
    upto = list(accumulate(count for _value, count in known))
    low, high = (known[bisect_right(upto, place)][0] for place in ((total - 1) // 2, total // 2))
    return (low + high) / 2


class CreditTrace:
    """Follows a capture.

    Attributes:
        lanes: by direction and VL, those with flow control.
    """

    def __init__(self) -> None:
        self.lanes: dict[tuple[int, int], Lane] = {}

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets."""
        sound = (stretch.is_data & ~stretch.is_damaged | stretch.is_credit) & (stretch.vl != VL15)
        for direction in np.unique(stretch.direction[sound | stretch.is_damaged]).tolist():
            of_it = stretch.where((stretch.direction == direction) & (sound | stretch.is_damaged))
            vls = {*of_it.vl[~of_it.is_damaged].tolist()}
            if of_it.is_damaged.any():
                vls |= {vl for known, vl in self.lanes if known == direction}
            for vl in sorted(vls):
                lane = self.lanes.setdefault((direction, vl), Lane())
                lane.follow(of_it.where(of_it.is_damaged | (of_it.vl == vl)))
