"""VL arbitration: lists of data VLs with weights, high and low (docs/pipeline.md, section 7.1)."""

from typing import Final

from wire.parameters import vl_arbitration_entries

from ..kernel import RECEIVE, UPDATE, Kernel
from ..packet import DataTransmission

__all__ = ["ArbitrationList", "VlArbitration"]

_ORDER_LATENCY: Final = 2
"""Cycles from what is visible of a list until it is in the VL order."""
_CHARGE_LATENCY: Final = 4
"""Cycles from a grant until its packet's blocks are taken from its entry and the allowance, as from credits."""
_LIMIT_BLOCKS: Final = 64
"""Blocks of a unit of VL_HIGH_LIMIT."""
_NO_LIMIT: Final = 255
_NO_VL: Final = -1


class ArbitrationList:
    """One list, where it stands, and what remains of the entry there.

    Attributes:
        size: its entries.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._weights = [0] * size  # as visible
        self._vls = [_NO_VL] * size  # of the entries that count, as the VL order knows them
        self._place = size - 1
        self._remaining = 0

    def set_weight(self, entry: int, weight: int) -> None:
        """The weight that a charge finds, in blocks."""
        self._weights[entry] = weight

    def set_vl(self, entry: int, vl: int) -> None:
        """The VL, which the VL order finds; -1 if the entry does not count."""
        self._vls[entry] = vl

    def entries(self) -> dict[int, int]:
        """The entry of each VL, in the VLs' order: from the place on if something remains, else from the next one."""
        vls, size = self._vls, self.size
        entry = self._place
        if not self._remaining:
            entry += 1
        entry_of: dict[int, int] = {}
        for _ in range(size):
            if entry == size:
                entry = 0
            vl = vls[entry]
            if vl != _NO_VL and vl not in entry_of:
                entry_of[vl] = entry
            entry += 1
        return entry_of

    def charge(self, entry: int, blocks: int) -> None:
        """An entry has sent a packet, which may be longer than what remains."""
        remains = self._remaining
        if entry != self._place or not remains:
            self._place = entry
            remains = self._weights[entry]
        self._remaining = max(0, remains - blocks)


class VlArbitration:
    """That of one port's output.

    Attributes:
        high, low: its lists.
        high_limit: VL_HIGH_LIMIT, as visible.
    """

    def __init__(self, kernel: Kernel, vls: int) -> None:
        """`vls` data VLs, more than one."""
        self._kernel = kernel
        self._data_vls = vls
        size = vl_arbitration_entries(vls)
        self.high = ArbitrationList(size)
        self.low = ArbitrationList(size)
        self.high_limit = 0
        self._left = 0  # of the high list's allowance, in blocks
        self._spent = False
        # Arranged when a choice is made after something of it changed: the VLs that a list serves, and how.
        self._is_arranged = True
        self._listed: list[int] = []
        self._served: dict[int, tuple[ArbitrationList, int]] = {}

    def write(self, of: ArbitrationList, entry: int, vl: int, weight: int) -> None:
        """Write an entry of a list, visible in the current cycle."""
        of.set_weight(entry, weight)
        counts = weight != 0 and vl < self._data_vls
        seen = of, entry, vl if counts else _NO_VL
        self._kernel.at(self._kernel.now + _ORDER_LATENCY, UPDATE, self._see, seen)

    def _see(self, written: tuple[ArbitrationList, int, int]) -> None:
        of, entry, vl = written
        of.set_vl(entry, vl)
        self._is_arranged = False

    def order(self, turns: list[int]) -> list[int]:
        """The data VLs in the order of this cycle's choice; those that no list has are in the order of TURNS."""
        if not self._is_arranged:
            self._arrange()
        listed = self._listed
        if not listed:
            return turns
        if len(listed) == len(turns):
            return listed
        served = self._served
        return listed + [vl for vl in turns if vl not in served]

    def _arrange(self) -> None:
        served: dict[int, tuple[ArbitrationList, int]] = {}
        for of in (self.low, self.high) if self._spent else (self.high, self.low):
            for vl, entry in of.entries().items():
                if vl not in served:
                    served[vl] = of, entry
        self._served = served
        self._listed = list(served)
        self._is_arranged = True

    def granted(self, sending: DataTransmission) -> None:
        """A packet is granted in the current cycle, by its order, and will be charged if its row 0 is not refused."""
        slot = sending.packet.slot
        if slot in self._served:
            of, entry = self._served[slot]
            # At the edge: what shows in that very cycle does not count yet.
            self._kernel.at(self._kernel.now + _CHARGE_LATENCY, RECEIVE, self._charge, (sending, of, entry))

    def _charge(self, granted: tuple[DataTransmission, ArbitrationList, int]) -> None:
        sending, of, entry = granted
        if sending.refused == 0:
            return
        blocks = sending.packet.need
        of.charge(entry, blocks)
        allowance = _LIMIT_BLOCKS * self.high_limit
        if of is self.low:
            self._left, self._spent = allowance, False
        elif self.high_limit == _NO_LIMIT:
            self._spent = False
        else:
            self._left = max(0, (allowance if self._spent else self._left) - blocks)
            self._spent = self._left == 0
        self._is_arranged = False
