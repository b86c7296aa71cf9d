"""Outputs: what they may send, and what they are told (docs/pipeline.md, sections 7 and 8)."""

from abc import ABC, abstractmethod
from typing import Final

from ..kernel import NEVER
from ..packet import DataTransmission, Packet
from .backlog import Backlog
from .vl_arbitration import VlArbitration

__all__ = ["SWALLOWED", "FlowFlags", "Gate", "LocalOutput", "Output"]

SWALLOWED: Final = -1
"""In place of room for a slot's heads: the output takes them, and sends nothing of them."""


class Gate:
    """Which heads an output may send. This one has room for all.

    Attributes:
        open_slots: mask of the slots whose heads may be granted at all; that of VL15 always is one.
    """

    def __init__(self, vls: int) -> None:
        self.open_slots = (1 << vls + 1) - 1

    def room(self, slot: int) -> int | None:
        """(CL - TBS) mod 4096 of a data slot; None if its heads need no credits; or SWALLOWED."""
        return None


class FlowFlags:
    """The flow control flags of an output. Here none is ever set.

    Attributes:
        urgent, changed: masks of VLs.
        stale_from: the first cycle in which something changed that the flags do not show yet.
    """

    def __init__(self) -> None:
        self.urgent = 0
        self.changed = 0
        self.stale_from = NEVER

    def compute(self) -> None:
        """Compute the flags visible in the current cycle, and `stale_from`."""


class Output(ABC):
    """What the matching sees of an output.

    Attributes:
        index: of the output.
        bit: its place in masks of outputs.
        gate, flags: what it may send.
        pitch: 1 for 4X, 4 for 1X.
        busy_until: the last of a packet's busy cycles (section 8.3); flow control packets do not count.
        in_ptr, vl_ptr: rotating choices among inputs, for each slot, and among data slots.
        vl_ptr_from: the cycle from which on the VL order follows from `vl_ptr`.
        vl_ptr_before: what it follows from until then.
        arbitration: its choice among data slots before that; None if it is no port's, or there is one data VL.
        backlog: what waits for it, if it is a port's of a switch.
        coming: heads that will be visible, or came while the output was busy.
        seen_from: of each slot, a cycle from which on there has been a visible head, as far as heads are shown: the
            first, unless that is before the slot's last grant; NEVER if there is none.
    """

    def __init__(self, index: int, vls: int, gate: Gate, flags: FlowFlags) -> None:
        self.index = index
        self.bit = 1 << index
        self.gate = gate
        self.flags = flags
        self.pitch = 1
        self.busy_until = -1
        self.in_ptr = [0] * (vls + 1)
        self.vl_ptr = 0
        self.vl_ptr_from = 0
        self.vl_ptr_before = 0
        self.arbitration: VlArbitration | None = None
        self.backlog: Backlog | None = None
        self.coming: list[Packet] = []
        self.seen_from = [NEVER] * (vls + 1)

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
    def end_early(self, sending: DataTransmission, k: int) -> None:
        """The packet being sent turns out to end with row k < n, not yet read.

        Raises:
            Underrun: it has been read.
        """

    @abstractmethod
    def heads_shown(self, count: int) -> None:
        """So many heads are visible from the current cycle on, or came while the output was busy."""

    @abstractmethod
    def rest(self) -> None:
        """No packet was offered in the current cycle."""

    @abstractmethod
    def offer_refused(self, slot: int) -> None:
        """The input does not accept the packet of a slot that was offered in the current cycle."""


class LocalOutput(Output):
    """An output to what is in the node itself: of 4X pace, without credits and flow control packets."""

    def __init__(self, index: int, vls: int) -> None:
        super().__init__(index, vls, Gate(vls), FlowFlags())

    def grant_flow_control(self) -> None:
        """There is none: no flag is ever set."""

    def heads_shown(self, count: int) -> None:
        """Waiting is not counted here."""

    def rest(self) -> None:
        """Waiting is not counted here."""

    def offer_refused(self, slot: int) -> None:
        """Waiting is not counted here."""
