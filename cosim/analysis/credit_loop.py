"""What credits let one flow of equal packets have of a long link: docs/reach.md derives it from docs/pipeline.md.

A packet that leaves spends credit, and the next one that needs the same credit leaves a **loop** later at the earliest:
the packet's flight, what the receiver does before it announces the credit anew, the flow control packet's flight. In
that time no more packets leave than there is credit for.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import ceil

from wire.flow_control import CREDIT_WINDOW
from wire.parameters import MAX_BLOCKS, MAX_FLIGHT

__all__ = ["CreditLoop"]


@dataclass(frozen=True)
class CreditLoop:
    """One flow over one link; the other direction carries flow control packets alone.

    Attributes:
        flight: of the link, in cycles.
        rows: of a packet on the link.
        blocks: of buffer and credit that a packet needs.
        pace: cycles of a row: 1 at 4X, 4 at 1X.
    """

    flight: int
    rows: int
    blocks: int
    pace: int = 1

    @property
    def packet_cycles(self) -> int:
        """How long a packet occupies the link."""
        return self.rows * self.pace

    @property
    def of_buffer(self) -> int:
        """Cycles from the grant of a packet to that of the one that has its room: it came, was read, and is gone."""
        # Sections 3.5 and 4: row 1 is looked at for two cycles, the head is visible in the third; 8.1: x_n + 1.
        read = self._granted(self.flight + 7 + self.pace)
        return self._returned(read + self.pace * (self.rows - 1) + 4)

    @property
    def of_window(self) -> int:
        """Cycles from the grant of a packet to that of one that may be sent as it has come: ABR grew by its header."""
        return self._returned(self.flight + 8 + self.pace)

    def _returned(self, announced: int) -> int:
        """When a packet is granted for credit of which a flow control packet may go in a cycle: two rows, 6.1 and 7."""
        return self._granted(self._granted(announced) + self.flight + 8 + self.pace)

    def _granted(self, cycle: int) -> int:
        """The first cycle from this one on in which an output at this pace is available."""
        return -(-cycle // self.pace) * self.pace

    def period(self, buffer_blocks: int) -> int:
        """Cycles after which all repeats."""
        return max(self._loops(buffer_blocks), key=lambda loop: loop[1] / loop[0])[1]

    def share(self, buffer_blocks: int) -> float:
        """Of the link's rows those that data gets, with such a buffer behind the link."""
        return min(packets * self.packet_cycles / cycles for packets, cycles in self._loops(buffer_blocks))

    def _loops(self, buffer_blocks: int) -> list[tuple[int, int]]:
        """Packets, and cycles in which no more leave: of the link itself, of the buffer and of the window."""
        packets = buffer_blocks // self.blocks
        return [
            (packets, packets * self.packet_cycles),
            (packets, self.of_buffer),
            (CREDIT_WINDOW // self.blocks, self.of_window),
        ]

    @property
    def needs(self) -> int | None:
        """Blocks of buffer with which data gets all rows; None if no buffer does, for the window is too small."""
        if CREDIT_WINDOW // self.blocks * self.packet_cycles < self.of_window:
            return None
        return ceil(self.of_buffer / self.packet_cycles) * self.blocks

    def longest(self, buffer_blocks: int = MAX_BLOCKS) -> int:
        """The longest flight at which data gets all rows with such a buffer, in cycles; 0 if there is none."""
        flights = range(1, MAX_FLIGHT + 1)
        return bisect_right(flights, -1.0, key=lambda flight: -replace(self, flight=flight).share(buffer_blocks))
