"""FCTBS and FCCL of a link, followed: is every block counted, how does room come back, how often is it told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
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
        fctbs: of the first flow control packet and, counted on beyond 4095, of the last.
        fccl: the same.
        sent: points (ns, blocks sent) as packets start, thinned.
        allowed: points (ns, FCCL), counted on, thinned.
    """

    packets: int = 0
    blocks: int = 0
    told: int = 0
    miscounted: int = 0
    fctbs: list[int] = field(default_factory=list)
    fccl: list[int] = field(default_factory=list)
    sent: Thinned = field(default_factory=Thinned)
    allowed: Thinned = field(default_factory=Thinned)
    _steps: Counter[tuple[int, int]] = field(default_factory=Counter)
    _idle: Counter[int] = field(default_factory=Counter)
    _since: int = 0
    """Blocks of packets since the last flow control packet."""
    _last_ns: int = 0

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets, all of this VL and direction."""
        credit = np.flatnonzero(stretch.is_credit)
        charged = np.cumsum(np.where(stretch.is_data, stretch.blocks, 0))
        data = np.flatnonzero(stretch.is_data)
        self.sent.add(stretch.time_ns[data], self.blocks + charged[data])
        if len(credit):
            self._told(stretch.where(credit), charged[credit])
            self._since = 0
            last = charged[credit[-1]]
        else:
            last = 0
        self._since += int(charged[-1] - last)
        self.packets += len(data)
        self.blocks += int(charged[-1])

    def _told(self, credit: Stretch, charged: Integers) -> None:
        """Take flow control packets; CHARGED are the blocks before each in this stretch."""
        self.told += len(credit)
        fctbs, fccl, time_ns, before = credit.fctbs, credit.fccl, credit.time_ns, charged.copy()
        if self.fctbs:
            fctbs = np.insert(fctbs, 0, self.fctbs[1] % CREDIT_MODULUS)
            fccl = np.insert(fccl, 0, self.fccl[1] % CREDIT_MODULUS)
            time_ns = np.insert(time_ns, 0, self._last_ns)
            before = np.insert(before, 0, -self._since)
        else:
            self.fctbs, self.fccl = [int(fctbs[0])] * 2, [int(fccl[0])] * 2
            self.allowed.add(time_ns[:1], fccl[:1])
        moved = np.diff(fctbs) % CREDIT_MODULUS
        self.miscounted += int(np.count_nonzero(moved != np.diff(before) % CREDIT_MODULUS))
        self.fctbs[1] += int(moved.sum())
        # It goes forth but for a receiver that has lost room.
        step = (np.diff(fccl) + _HALF) % CREDIT_MODULUS - _HALF
        interval = np.diff(time_ns)
        self.allowed.add(time_ns[1:], self.fccl[1] + np.cumsum(step))
        self.fccl[1] += int(step.sum())
        self._last_ns = int(time_ns[-1])
        still = (moved == 0) & (step == 0)
        self._idle.update(interval[still].tolist())
        self._steps.update(zip(step[step != 0].tolist(), interval[step != 0].tolist(), strict=True))

    @property
    def period_ns(self) -> int | None:
        """The time after which flow control packets come that have no news; None if there were none."""
        return self._idle.most_common(1)[0][0] if self._idle else None

    def steps(self) -> Iterator[Step]:
        """How FCCL moved, by blocks."""
        for blocks in sorted({blocks for blocks, _ in self._steps}):
            times = [ns for (step, ns), count in self._steps.items() if step == blocks for _ in range(count)]
            yield Step(blocks, len(times), median(times), min(times))


class CreditTrace:
    """Follows a capture.

    Attributes:
        lanes: by direction and VL, those with flow control.
    """

    def __init__(self) -> None:
        self.lanes: dict[tuple[int, int], Lane] = {}

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets."""
        whole = stretch.where((stretch.is_data | stretch.is_credit) & (stretch.vl != VL15))
        for direction, vl in sorted(set(zip(whole.direction.tolist(), whole.vl.tolist(), strict=True))):
            of_it = whole.where((whole.direction == direction) & (whole.vl == vl))
            self.lanes.setdefault((direction, vl), Lane()).follow(of_it)
