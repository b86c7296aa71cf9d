"""The two sides that a matcher joins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from ..kernel import NEVER
from ..packet import DataTransmission, Packet

__all__ = ["Output"]


class Output(ABC):
    """What the matching sees of an output.

    Attributes:
        index: of the output.
        bit: its place in masks of outputs.
        pitch: 1 for 4X, 4 for 1X.
        open_slots: mask of the slots whose heads may be granted at all.
        urgent, changed: flow control flags, masks of VLs.
        stale_from: the first cycle in which something changed that the flags do not show yet.
        busy_until: the last of a packet's busy cycles (section 8.3); flow control packets do not count.
        compute_flags: computes the flags visible in the current cycle, and `stale_from`.
        in_ptr, vl_ptr: rotating choices among inputs, for each slot, and among data slots.
        coming: heads that will be visible, or came while the output was busy.
    """

    def __init__(self, index: int, vls: int) -> None:
        self.index = index
        self.bit = 1 << index
        self.vls = vls
        self.pitch = 1
        self.open_slots = (1 << vls + 1) - 1
        self.urgent = 0
        self.changed = 0
        self.stale_from = NEVER
        self.compute_flags: Callable[[], None]
        self.busy_until = -1
        self.in_ptr = [0] * (vls + 1)
        self.vl_ptr = 0
        self.coming: list[Packet] = []

    @abstractmethod
    def room(self, slot: int) -> int | None:
        """(CL - TBS) mod 4096 of a data slot, or None if its heads need no credits."""

    @abstractmethod
    def grant(self, packet: Packet, reader: int) -> None:
        """Send a packet, granted in the current cycle; `reader` is the bit of the input's reader."""

    @abstractmethod
    def grant_flow_control(self) -> None:
        """Send a flow control packet, granted in the current cycle."""

    @abstractmethod
    def last_read(self, sending: DataTransmission) -> None:
        """The last row of a data packet is read in the current cycle."""

    @abstractmethod
    def heads_shown(self, count: int) -> None:
        """So many heads are visible from the current cycle on, or came while the output was busy."""

    @abstractmethod
    def rest(self) -> None:
        """No packet was granted in the current cycle."""
