"""Guarded packets: multicast packets that are inspected before they are heads (docs/pipeline.md, section 3.8)."""

from collections.abc import Callable
from typing import Final

from ..kernel import DECIDE, NEVER, Kernel
from ..packet import Packet

__all__ = ["Inspection"]

_BEGIN_TO_LOOK: Final = 2
"""Cycles from the one in which an inspection begins to the first in which a table may be looked into."""
_LOOK_TO_NEXT: Final = 2
"""Cycles from the last look until the next inspection may begin."""
_LOOK_TO_HEAD: Final = 3
"""And until the packet is a visible head."""
_SECOND_LOOK: Final = 1
"""Cycles between the looks for the P_Key of a packet that arrives, which are into two tables."""


class Inspection:
    """That of an input of a port: of one packet at a time, a table in a cycle.

    Attributes:
        arriving: the packet that came last of those whose P_Keys are looked for while they arrive: that goes before.
    """

    __slots__ = (
        "_idle_from",
        "_inspected",
        "_kernel",
        "_look",
        "_output",
        "_outputs",
        "_packet",
        "_ptr",
        "_waiting",
        "arriving",
    )

    def __init__(
        self,
        kernel: Kernel,
        vls: int,
        outputs: int,
        look: Callable[[Packet, int], None],
        inspected: Callable[[Packet], None],
    ) -> None:
        """`look` is called for a packet and each of so many outputs, in the cycle in which that one's table is looked
        into, and then `inspected`, with the packet's `visible_from` known."""
        self.arriving: Packet | None = None
        self._kernel = kernel
        self._outputs = outputs
        self._look = look
        self._inspected = inspected
        self._waiting: list[Packet | None] = [None] * vls  # by their VLs: those that would be heads, from then on
        self._ptr = 0
        self._packet: Packet | None = None
        self._output = 0  # the next one of it
        self._idle_from = 0  # NEVER while a packet is inspected

    def wait(self, packet: Packet) -> None:
        """A packet is the first in its queue: it would be a visible head from a cycle ahead on, its `visible_from`."""
        self._waiting[packet.slot_in] = packet
        self._kernel.at(packet.visible_from, DECIDE, self._begin)

    def _begin(self, _: None) -> None:
        """Begin in the current cycle b, if there is a packet that waits."""
        now = self._kernel.now
        if now < self._idle_from:  # there is a look at what waits then
            return
        vls = len(self._waiting)
        for turn in range(vls):
            vl = (self._ptr + turn) % vls
            packet = self._waiting[vl]
            if packet is not None and packet.visible_from <= now:
                self._waiting[vl] = None
                self._ptr = (vl + 1) % vls
                self._packet, self._output = packet, 0
                self._idle_from = NEVER
                self._kernel.at(now + _BEGIN_TO_LOOK, DECIDE, self._step)
                return

    def _step(self, _: None) -> None:
        """Look into the next table in the current cycle, unless that is taken."""
        now = self._kernel.now
        packet, arriving = self._packet, self.arriving
        assert packet is not None
        if arriving is None or not arriving.key_at - _SECOND_LOOK <= now <= arriving.key_at:
            self._look(packet, self._output)
            self._output += 1
            if self._output == self._outputs:
                self._packet = None
                self._idle_from = now + _LOOK_TO_NEXT
                self._kernel.at(self._idle_from, DECIDE, self._begin)
                packet.visible_from = now + _LOOK_TO_HEAD
                self._inspected(packet)
                return
        self._kernel.at(now + 1, DECIDE, self._step)
