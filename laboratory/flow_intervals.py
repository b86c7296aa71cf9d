"""Times between the packets of each flow, as they stand in a capture, and in what order flows take turns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from laboratory.stretch import Stretch
from wire.codes import VL15

__all__ = ["FlowIntervals", "FlowKey", "FlowTimes"]

_US: Final = 1000
_LONGEST_US: Final = 1_000_000
"""Longer intervals count as this."""


class FlowKey(NamedTuple):
    """Packets from one LID to another, seen at one place.

    Attributes:
        direction: index into the capture's directions.
        slid: from where.
        dlid: to where.
    """

    direction: int
    slid: int
    dlid: int


@dataclass
class FlowTimes:
    """The times of a flow.

    Attributes:
        packets: how many there were.
        first_ns: the start of the first, and
        last_ns: of the last.
        microseconds: how many intervals there are of each length, in whole microseconds, rounded down.
        nanoseconds: the same in nanoseconds.
    """

    packets: int = 0
    first_ns: int = 0
    last_ns: int = 0
    microseconds: Counter[int] = field(default_factory=Counter)
    nanoseconds: Counter[int] = field(default_factory=Counter)

    @property
    def usual_ns(self) -> int:
        """The most frequent interval; 0 if there is none."""
        return self.nanoseconds.most_common(1)[0][0] if self.nanoseconds else 0

    @property
    def mean_ns(self) -> float:
        """Of all intervals; 0 if there is none."""
        return (self.last_ns - self.first_ns) / (self.packets - 1) if self.packets > 1 else 0.0

    @property
    def usual_share(self) -> float:
        """Share of the intervals that are, rounded down to microseconds, the most frequent one."""
        total = self.microseconds.total()
        return self.microseconds.most_common(1)[0][1] / total if total else 0.0


class FlowIntervals:
    """Follows a capture.

    Attributes:
        flows: by place and LIDs, in the order of their first packets.
        turns: how many packets flows had in a row, by direction: {1: n} is a flow after the other. The first turn and
            the last do not count, since then a flow may have been alone.
    """

    def __init__(self) -> None:
        self.flows: dict[FlowKey, FlowTimes] = {}
        self.turns: dict[int, Counter[int]] = {}
        self._turn: dict[int, tuple[int, int, bool]] = {}
        """The flow whose turn it is on a direction, its packets so far, and whether it is the first."""

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets."""
        data = stretch.where(stretch.is_data & (stretch.vl != VL15))
        flow = data.slid << 16 | data.dlid
        for direction in np.unique(data.direction).tolist():
            of_it = np.flatnonzero(data.direction == direction)
            for one in np.unique(flow[of_it]).tolist():
                key = FlowKey(direction, one >> 16, one & 0xFFFF)
                self._times(self.flows.setdefault(key, FlowTimes()), data.time_ns[of_it[flow[of_it] == one]].tolist())
            self._take_turns(direction, flow[of_it].tolist())

    def _times(self, flow: FlowTimes, times: list[int]) -> None:
        if not flow.packets:
            flow.first_ns = flow.last_ns = times[0]
            flow.packets, times = 1, times[1:]
        starts = np.array([flow.last_ns, *times], np.int64)
        interval = np.diff(starts)
        flow.packets += len(times)
        flow.last_ns = int(starts[-1])
        for counts, values in (
            (flow.nanoseconds, np.minimum(interval, _LONGEST_US * _US)),
            (flow.microseconds, np.minimum(interval // _US, _LONGEST_US)),
        ):
            lengths, often = np.unique(values, return_counts=True)
            counts.update(dict(zip(lengths.tolist(), often.tolist(), strict=True)))

    def _take_turns(self, direction: int, flows: list[int]) -> None:
        turns = self.turns.setdefault(direction, Counter())
        sequence = np.array(flows)
        begins = np.flatnonzero(np.diff(sequence)) + 1
        bounds = [0, *begins.tolist(), len(flows)]
        current, length, first = self._turn.get(direction, (flows[0], 0, True))
        for begin, end in pairwise(bounds):
            if flows[begin] != current:
                if not first:
                    turns[length] += 1
                current, length, first = flows[begin], 0, False
            length += end - begin
        self._turn[direction] = current, length, first
