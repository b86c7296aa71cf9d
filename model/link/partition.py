"""Partitions: what a switch's ports check of a packet's P_Key (docs/pipeline.md, sections 3.6 and 3.8).

A packet that is checked is noted to be so with its header. When the last byte of its P_Key has come, the table of the
port that it came by is looked into, and a cycle later that of the port that it is to leave by. What is written into the
tables of a switch takes effect in turns, one entry after the other.
"""

from collections import deque
from typing import Final

from wire.codes import LNH, P_KEY_DEFAULT
from wire.port_tables import P_KEY_TABLE
from wire.registers import P_KEY_TURN, PartitionCheck
from wire.trace import Verdict

from ..packet import Packet

__all__ = [
    "JOIN_AFTER_KEY",
    "Partition",
    "Turns",
    "check_partition",
    "may_leave",
    "p_key_of",
    "p_key_rejection",
]

JOIN_AFTER_KEY: Final = 3
"""Rows from the one with the last byte of the P_Key to the one with which the packet joins."""
_KEY_ROWS: Final[dict[int, int]] = {LNH.IBA_LOCAL.value: 3, LNH.IBA_GLOBAL.value: 13}
"""The row with the last byte of the P_Key, by LNH; raw packets have none."""
_LNH_SHIFT: Final = 16
_LNH: Final = 3
_GONE: Final = 4
"""Cycles from the turn of an entry that changes until it is 0."""
_NEW: Final = 11
"""Cycles from that turn until it has its new value."""
_FULL: Final = 0x8000
_BASE: Final = 0x7FFF
# Plain numbers, for the compiled model.
_INBOUND: Final = PartitionCheck.INBOUND.value
_OUTBOUND: Final = PartitionCheck.OUTBOUND.value
_RAW_INBOUND: Final = PartitionCheck.RAW_INBOUND.value
_RAW_OUTBOUND: Final = PartitionCheck.RAW_OUTBOUND.value


class Turns:
    """Whose turn it is, of the entries of a switch's tables that have been written."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = -P_KEY_TURN

    def take(self, cycle: int) -> int:
        """The turn of the next written entry, whose write is visible in a cycle but for its waiting."""
        self._last = turn = max(cycle, self._last + P_KEY_TURN)
        return turn


class Partition:
    """A port's register PARTITION and its P_Keys.

    Attributes:
        checks: of `PartitionCheck`, as visible in the current cycle.
    """

    __slots__ = ("_changes", "_keys", "_turns", "_written", "checks")

    def __init__(self, turns: Turns) -> None:
        """`turns` are those of all ports of the switch."""
        self.checks = 0
        self._turns = turns
        self._keys = [P_KEY_DEFAULT] + [0] * (P_KEY_TABLE.count - 1)
        self._written = self._keys.copy()  # when all of them have had their turns
        # Cycle from which on it is visible, entry, P_Key: in order, for those of one entry end before another begins.
        self._changes: deque[tuple[int, int, int]] = deque()

    def write(self, cycle: int, entry: int, p_key: int) -> None:
        """An entry is to hold a P_Key: visible from the current cycle on, but for its waiting for its turn."""
        turn = self._turns.take(cycle)
        if self._written[entry] != p_key:
            self._written[entry] = p_key
            self._changes.append((turn + _GONE, entry, 0))
            self._changes.append((turn + _NEW, entry, p_key))

    def has(self, cycle: int, p_key: int, *, departs: bool) -> bool:
        """Whether a P_Key is in the table in a cycle: the current one or the one before.

        Where a packet `departs`, it or the table has to be of a full member.
        """
        base = p_key & _BASE
        if not base:
            return False
        full = p_key | (0 if departs else _FULL)
        return any(entry & _BASE == base and (entry | full) & _FULL for entry in self._visible(cycle))

    def _visible(self, cycle: int) -> list[int]:
        """The entries as visible in a cycle; what changes in it stays to come, for those who ask for the one before."""
        changes = self._changes
        while changes and changes[0][0] < cycle:
            _, entry, p_key = changes.popleft()
            self._keys[entry] = p_key
        if not changes or changes[0][0] != cycle:
            return self._keys
        keys = self._keys.copy()
        _, entry, p_key = changes[0]
        keys[entry] = p_key
        return keys


def check_partition(packet: Packet, arrival: int, departure: int) -> bool:
    """Note what PARTITION of the ports of arrival and of departure checks of a packet; False if it may join with its
    header, for all of that.

    DEPARTURE is that of all ports for which it has copies, if it has: it may be guarded, and joins behind its P_Key.
    What has no P_Key, if it is checked, is rejected at once.
    """
    key_row = _KEY_ROWS.get(packet.lrh >> _LNH_SHIFT & _LNH, 0)
    checks = on_arrival = arrival & (_INBOUND if key_row else _RAW_INBOUND)
    on_departure = departure & (_OUTBOUND if key_row else _RAW_OUTBOUND)
    if packet.copies is None:
        checks |= on_departure
    elif on_departure:
        packet.copies.are_guarded = True
    if key_row and packet.n >= key_row + JOIN_AFTER_KEY:
        if on_arrival | on_departure:
            packet.checks, packet.key_row = checks, key_row
            return True
    elif checks:
        packet.constraint = Verdict.RCV_CONSTRAINT if on_arrival else Verdict.XMIT_CONSTRAINT
        return True
    return False


def p_key_of(packet: Packet) -> int:
    """The P_Key of a packet that has one, and whose P_Key is looked for."""
    row = packet.key_row
    return (packet.word(row - 1) & 0xFF) << 8 | packet.word(row) >> 24


def p_key_rejection(packet: Packet, arrival: Partition, departure: Partition, cycle: int) -> Verdict:
    """What the tables of both ports make of a packet's P_Key, if the second is looked into in the current cycle."""
    p_key = p_key_of(packet)
    if packet.checks & _INBOUND and not arrival.has(cycle - 1, p_key, departs=False):
        return Verdict.RCV_CONSTRAINT
    if packet.checks & _OUTBOUND and not departure.has(cycle, p_key, departs=True):
        return Verdict.XMIT_CONSTRAINT
    return Verdict.GOOD


def may_leave(packet: Packet, departure: Partition, cycle: int) -> bool:
    """Whether the copy of a guarded packet for a port may leave by it, whose table is looked into in the current
    cycle."""
    has_bth = packet.lrh >> _LNH_SHIFT & _LNH in _KEY_ROWS
    if not departure.checks & (_OUTBOUND if has_bth else _RAW_OUTBOUND):
        return True
    return packet.key_row != 0 and departure.has(cycle, p_key_of(packet), departs=True)
