"""Where multicast packets go: the MFT and the registers beside it (docs/pipeline.md, sections 3.7 and 10)."""

from typing import Final

from wire.codes import LID_MULTICAST_MIN
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE
from wire.registers import MFT_PAGE, NodeRegister

__all__ = ["MulticastForwarding"]

_PART: Final = MULTICAST_FORWARDING_TABLE.entry.width
"""Ports of a part of an entry."""
_LID_MAX: Final = 0xFFFF
_PORT_MAX: Final = 0xFF
_NO_PORT: Final = 255
_TOP: Final[int] = NodeRegister.MULTICAST_FDB_TOP
_PRIMARY: Final[int] = NodeRegister.DEFAULT_MULTICAST_PRIMARY
_NOT_PRIMARY: Final[int] = NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY


class MulticastForwarding:
    """The masks of the MFT, MULTICAST_FDB_TOP and both default ports, as visible."""

    def __init__(self, size: int, ports: int) -> None:
        """`size` LIDs; ports are 0 to `ports`."""
        self._masks = [0] * size
        self._all = (1 << ports + 1) - 1
        self._parts = ports // _PART + 1
        self._top = 0
        self._primary = _NO_PORT
        self._not_primary = _NO_PORT

    def ports(self, dlid: int, arrival: int) -> int:
        """The mask of a packet's ports, of which that of its arrival may be one."""
        index = dlid - LID_MULTICAST_MIN
        if index < len(self._masks) and (not self._top or dlid <= self._top):
            return self._masks[index] & self._all
        port = self._not_primary if arrival == self._primary else self._primary
        return 1 << port & self._all

    def write_part(self, page: int, index: int, value: int) -> None:
        """Write a part of an entry; of another page, or a LID or ports that there are not, none."""
        part = page - MFT_PAGE
        if 0 <= part < self._parts and index < len(self._masks) and value < 1 << _PART:
            shift = part * _PART
            self._masks[index] = self._masks[index] & ~((1 << _PART) - 1 << shift) | value << shift

    def read(self, offset: int) -> int:
        """A register of page 0; what is none of them reads 0."""
        if offset == _TOP:
            return self._top
        if offset == _PRIMARY:
            return self._primary
        return self._not_primary if offset == _NOT_PRIMARY else 0

    def write(self, offset: int, value: int) -> None:
        """Write a register of page 0, if it is one of them."""
        if offset == _TOP and value <= _LID_MAX:
            self._top = value
        elif offset == _PRIMARY and value <= _PORT_MAX:
            self._primary = value
        elif offset == _NOT_PRIMARY and value <= _PORT_MAX:
            self._not_primary = value
