"""From an adapter to its host (docs/pipeline.md, section 9)."""

from collections.abc import Callable

from ..crossing.matcher import Matcher
from ..crossing.sides import Output
from ..packet import DataTransmission, Packet

__all__ = ["HostOutput"]


class HostOutput(Output):
    """An output of 4X pace, without credits and flow control packets.

    Attributes:
        stalled: mask of data VLs that the host stalls; VL15 cannot be stalled.
    """

    def __init__(self, matcher: Matcher, index: int, vls: int, deliver: Callable[[Packet], None]) -> None:
        """`deliver` is called in the cycle in which a packet's last row is read."""
        super().__init__(index, vls)
        self.stalled = 0
        self._matcher = matcher
        self._deliver = deliver
        self._all_slots = self.open_slots
        self._vl15 = 1 << vls

    def stall(self, mask: int) -> None:
        """Heads of these slots wait, from the current cycle on, but for VL15's."""
        self.stalled = mask & ~self._vl15
        self.open_slots = self._all_slots & ~self.stalled
        self._matcher.wake(self.bit)

    def room(self, slot: int) -> None:
        """A host has room."""
        return

    def grant(self, packet: Packet, reader: int) -> None:
        """Read a packet; it is whole, and good."""
        matcher = self._matcher
        sending = DataTransmission(self, packet, matcher.kernel.now, packet.slot, reader)
        self.busy_until = sending.last_read
        matcher.reads(sending)

    def grant_flow_control(self) -> None:
        """There is none: no flag is ever set."""

    def last_read(self, sending: DataTransmission) -> None:
        """The packet is the host's, and its blocks return."""
        packet, matcher = sending.packet, self._matcher
        self._deliver(packet)
        matcher.inputs[packet.input].buffer.release(sending.reader, packet, matcher.kernel.now + 1)

    def heads_shown(self, count: int) -> None:
        """Waiting is not counted here."""

    def rest(self) -> None:
        """Waiting is not counted here."""
