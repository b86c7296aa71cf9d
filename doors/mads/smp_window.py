"""How many SMPs are in the fabric at once: VL15 has no flow control, and what finds no room there is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from doors.mads.agents import SMI_CLASSES
from doors.mads.host_port import HostPort
from doors.mads.mad_layer import MadLayer, Moment, Outgoing, transaction_id

__all__ = ["SmpWindow"]


class SmpWindow:
    """Lets so many requests into the fabric as the least port has room for, whoever sends them.

    What has to wait is not late: its time begins when it goes.
    """

    def __init__(self, layer: MadLayer, size: int) -> None:
        self._layer = layer
        self._size = size
        self._abroad: set[int] = set()
        self._waiting: deque[tuple[HostPort, Outgoing]] = deque()

    def keeps(self, port: HostPort, outgoing: Outgoing) -> bool:
        """Whether a MAD has to wait, and is kept."""
        if outgoing.mad[1] not in SMI_CLASSES or not outgoing.answered:
            return False
        request = self._layer.requests.get(transaction_id(outgoing.mad))
        if request is None:
            return False
        request.held = True
        self._waiting.append((port, outgoing))
        return True

    def released(self, now: Moment) -> Iterator[tuple[HostPort, Outgoing]]:
        """What may go now."""
        requests = self._layer.requests
        self._abroad = {tid for tid in self._abroad if tid in requests and not requests[tid].held}
        while self._waiting and len(self._abroad) < self._size:
            port, outgoing = self._waiting.popleft()
            tid = transaction_id(outgoing.mad)
            request = requests.get(tid)
            if request is not None:
                request.begin(now)
                self._abroad.add(tid)
                yield port, outgoing
