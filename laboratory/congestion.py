"""Rates of flows over time, and the marks of congestion on their packets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from laboratory.flow_intervals import FlowKey
from laboratory.stretch import Stretch
from wire.codes import VL15

__all__ = ["Congestion", "FlowMarks"]

_FIRST_WINDOW_NS: Final = 1_000
_MOST_WINDOWS: Final = 128
_BITS: Final = 8


@dataclass
class FlowMarks:
    """One flow.

    Attributes:
        packets: how many there were, and
        bytes: how many bytes, LRH to VCRC.
        fecn: those that met congestion.
        becn: those that tell that packets of the other way did.
        bytes_in: bytes by the number of the window.
    """

    packets: int = 0
    bytes: int = 0
    fecn: int = 0
    becn: int = 0
    bytes_in: Counter[int] = field(default_factory=Counter)


class Congestion:
    """Follows a capture.

    Attributes:
        flows: by place and LIDs.
        window_ns: the length of a window of time; it doubles as a capture goes on.
    """

    def __init__(self) -> None:
        self.flows: dict[FlowKey, FlowMarks] = {}
        self.window_ns = _FIRST_WINDOW_NS
        self._begin_ns: int | None = None

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets."""
        data = stretch.where(stretch.is_data & (stretch.vl != VL15))
        if not len(data):
            return
        if self._begin_ns is None:
            self._begin_ns = int(data.time_ns.min())
        since = np.maximum(data.time_ns - self._begin_ns, 0)
        while int(since.max()) >= self.window_ns * _MOST_WINDOWS:
            self._double()
        window = since // self.window_ns
        flow = data.direction << 32 | data.slid << 16 | data.dlid
        for one in np.unique(flow).tolist():
            of_it = np.flatnonzero(flow == one)
            marks = self.flows.setdefault(FlowKey(one >> 32, one >> 16 & 0xFFFF, one & 0xFFFF), FlowMarks())
            marks.packets += len(of_it)
            marks.bytes += int(data.length[of_it].sum())
            marks.fecn += int(data.fecn[of_it].sum())
            marks.becn += int(data.becn[of_it].sum())
            bytes_in = np.bincount(window[of_it], weights=data.length[of_it])
            marks.bytes_in.update({number: int(bytes_in[number]) for number in np.flatnonzero(bytes_in).tolist()})

    def _double(self) -> None:
        self.window_ns *= 2
        for marks in self.flows.values():
            halved: Counter[int] = Counter()
            for number, count in marks.bytes_in.items():
                halved[number // 2] += count
            marks.bytes_in = halved

    def gbps(self, flow: FlowKey) -> tuple[list[float], list[float]]:
        """The rate of a flow: the start of each window in ns, and Gbit/s of packets, LRH to VCRC, in it."""
        bytes_in = self.flows[flow].bytes_in
        last = max((max(marks.bytes_in) for marks in self.flows.values()), default=-1)
        begin = self._begin_ns or 0
        times = [float(begin + number * self.window_ns) for number in range(last + 1)]
        return times, [bytes_in[number] * _BITS / self.window_ns for number in range(last + 1)]
