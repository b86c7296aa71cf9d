"""What is seen at the taps of a run, put in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

from cosim.engines.base import Taps
from model.fabric import Fabric
from wire.framing import FramedPacket, Framer

__all__ = ["InOrder", "ModelTaps", "RowTaps"]


class InOrder:
    """Hands on the packets of several taps in the order in which they began, of one cycle in that of the taps."""

    def __init__(self, taps: Taps) -> None:
        self._taps = taps
        self._waiting: list[tuple[int, int, FramedPacket]] = []

    def give(self, seen: Iterable[tuple[int, FramedPacket]], begins_from: int) -> None:
        """Packets with their taps, those of one tap in order; none that follows later begins before BEGINS_FROM."""
        waiting = self._waiting
        waiting += [(packet.cycle, tap, packet) for tap, packet in seen]
        waiting.sort(key=itemgetter(0, 1))
        done = 0
        while done < len(waiting) and waiting[done][0] < begins_from:
            self._taps.take(*waiting[done][1:])
            done += 1
        if done:
            del waiting[:done]
            self._taps.pause()

    def end(self) -> None:
        """No packet follows."""
        self.give((), 1 << 64)


class RowTaps:
    """The packets in the rows that enter links."""

    def __init__(self, taps: Taps) -> None:
        self._framers = [Framer() for _direction in taps.directions]
        self._in_order = InOrder(taps)

    def rows(self, rows: Iterable[Sequence[int]], until: int) -> None:
        """Rows as (cycle, data, tap, K symbols), which with those given before are all in cycles below UNTIL."""
        framers = self._framers
        seen = []
        for cycle, data, tap, k in rows:
            packet = framers[tap].take(cycle, data, k)
            if packet is not None:
                seen.append((tap, packet))
        for tap, framer in enumerate(framers):
            packet = framer.rest(until)
            if packet is not None:
                seen.append((tap, packet))
        begun = (framer.begun for framer in framers)
        self._in_order.give(seen, min((cycle for cycle in begun if cycle is not None), default=until))

    def end(self) -> None:
        """The run is over: a packet that has not ended is not seen."""
        self._in_order.end()


class ModelTaps:
    """The packets that enter links of the golden model."""

    def __init__(self, fabric: Fabric, taps: Taps) -> None:
        """Before the model runs."""
        self._taps = [fabric.tap(link, direction) for link, direction in taps.directions]
        self._in_order = InOrder(taps)

    def look(self, until: int) -> None:
        """Hand on what can be known when all cycles below UNTIL are over."""
        if not self._taps:
            return
        seen = [(number, packet) for number, tap in enumerate(self._taps) for packet in tap.packets(until)]
        self._in_order.give(seen, min((tap.begins_from() for tap in self._taps), default=until))

    def end(self) -> None:
        """The run is over: a packet that has not ended is not seen."""
        self._in_order.end()
