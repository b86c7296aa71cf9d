"""From an adapter to its host (docs/pipeline.md, section 9)."""

from collections.abc import Callable

from ..crossing.matcher import Matcher
from ..crossing.output import LocalOutput
from ..packet import DataTransmission, Packet

__all__ = ["HostOutput"]


class HostOutput(LocalOutput):
    """The path to the host.

    Attributes:
        stalled: mask of data VLs that the host stalls; VL15 cannot be stalled.
    """

    def __init__(self, matcher: Matcher, index: int, vls: int, deliver: Callable[[Packet], None]) -> None:
        """`deliver` is called in the cycle in which a packet's last row is read."""
        super().__init__(index, vls)
        self.stalled = 0
        self._matcher = matcher
        self._deliver = deliver
        self._all_slots = self.gate.open_slots
        self._vl15 = 1 << vls

    def stall(self, mask: int) -> None:
        """Heads of these slots, except VL15's, wait from the current cycle on."""
        self.stalled = mask & ~self._vl15
        self.gate.open_slots = self._all_slots & ~self.stalled
        self._matcher.wake(self.bit)

    def grant(self, packet: Packet, reader: int) -> None:
        """Read a packet; it is whole, and good."""
        matcher = self._matcher
        sending = DataTransmission(packet, matcher.kernel.now, packet.slot, self.pitch, reader)
        self.busy_until = sending.last_read
        matcher.reads(sending)

    def last_read(self, sending: DataTransmission) -> None:
        """The packet goes to the host, and its blocks return."""
        self._deliver(sending.packet)
        self._matcher.release(sending, self._matcher.kernel.now + 1)

    def end_early(self, sending: DataTransmission, k: int) -> None:
        """A host gets whole packets only."""
        raise AssertionError(f"packet to a host ends with row {k}: expected row {sending.packet.n}, as it was whole")
