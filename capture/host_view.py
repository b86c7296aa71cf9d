"""What a host sees of its link: the good data packets that it sends and receives, with its own clock's stamps."""

from __future__ import annotations

from capture.host_clock import HostClock
from capture.wire_packet import Way, WirePacket
from wire.crc import vcrc_good
from wire.trace import Delimiter

__all__ = ["HostView"]


class HostView:
    """A host that captures.

    Attributes:
        direction: its own among those of the capture.
        clock: when it takes stamps, and how many packets it has not got.
        last_ns: its last stamp.
    """

    def __init__(self, direction: int, host: str) -> None:
        self.direction = direction
        self.clock = HostClock(host)
        self.last_ns = 0
        self._lost = 0

    def see(self, way: Way, passed_ns: float, data: bytes, ending: Delimiter) -> WirePacket | None:
        """What it captures of a data packet of its link, which has passed at this time; None if it does not."""
        if ending is not Delimiter.EGP or not vcrc_good(data):
            return None
        stamp_ns = self.clock.stamp(passed_ns, len(data), sent=way is Way.OUT)
        if stamp_ns is None:
            return None
        missed, self._lost = self.clock.lost - self._lost, self.clock.lost
        self.last_ns = stamp_ns
        return WirePacket(self.direction, stamp_ns, False, data, ending, way, missed)
