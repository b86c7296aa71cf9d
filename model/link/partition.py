"""Partitions: what a switch's ports check of a packet's P_Key (docs/pipeline.md, section 3.6).

A packet that is checked is noted to be so with its header. Three cycles after the last byte of its P_Key the tables
have been gone through, a third in each of them, so that what was written meanwhile counts for some entries and not
for others.
"""

from typing import Final

from wire.codes import LNH, P_KEY_DEFAULT
from wire.port_tables import P_KEY_TABLE
from wire.registers import PartitionCheck
from wire.trace import Verdict

from ..packet import Packet

__all__ = ["JOIN_AFTER_KEY", "Partition", "check_partition", "p_key_of", "p_key_rejection"]

JOIN_AFTER_KEY: Final = 3
"""Rows from the one with the last byte of the P_Key to the one with which the packet joins."""
_KEY_ROWS: Final[dict[int, int]] = {LNH.IBA_LOCAL.value: 3, LNH.IBA_GLOBAL.value: 13}
"""The row with the last byte of the P_Key, by LNH; raw packets have none."""
_LNH_SHIFT: Final = 16
_LNH: Final = 3
_ENTRIES_A_CYCLE: Final = 11
_CYCLES: Final = 3
_FULL: Final = 0x8000
_BASE: Final = 0x7FFF
# Plain numbers, for the compiled model.
_INBOUND: Final = PartitionCheck.INBOUND.value
_OUTBOUND: Final = PartitionCheck.OUTBOUND.value
_RAW_INBOUND: Final = PartitionCheck.RAW_INBOUND.value
_RAW_OUTBOUND: Final = PartitionCheck.RAW_OUTBOUND.value


class Partition:
    """A port's register PARTITION and its P_Keys.

    Attributes:
        checks: of `PartitionCheck`, as visible in the current cycle.
    """

    __slots__ = ("_keys", "_written", "checks")

    def __init__(self) -> None:
        self.checks = 0
        self._keys = [P_KEY_DEFAULT] + [0] * (P_KEY_TABLE.count - 1)
        # Of the last cycles: the cycle of a write, the entry, and what it held before.
        self._written: list[tuple[int, int, int]] = []

    def write(self, cycle: int, entry: int, p_key: int) -> None:
        """An entry holds a P_Key, visible from the current cycle on."""
        self._written = [write for write in self._written if write[0] > cycle - _CYCLES]
        self._written.append((cycle, entry, self._keys[entry]))
        self._keys[entry] = p_key

    def has(self, cycle: int, p_key: int, *, departs: bool) -> bool:
        """Whether a P_Key was in the table, whose last third is looked at in the current cycle.

        Where a packet `departs`, it or the table has to be of a full member.
        """
        base = p_key & _BASE
        if not base:
            return False
        full = p_key | (0 if departs else _FULL)
        return any(entry & _BASE == base and (entry | full) & _FULL for entry in self._looked_at(cycle))

    def _looked_at(self, cycle: int) -> list[int]:
        """The entries as they were when they were looked at."""
        since = cycle - _CYCLES + 1
        if not self._written or self._written[-1][0] <= since:
            return self._keys
        keys = self._keys.copy()
        for written, entry, before in reversed(self._written):
            if written > since + entry // _ENTRIES_A_CYCLE:
                keys[entry] = before
        return keys


def check_partition(packet: Packet, arrival: int, departure: int) -> bool:
    """Note what PARTITION of the ports of arrival and of departure checks of a packet; False if that is nothing.

    What has no P_Key, if it is checked, is rejected at once.
    """
    key_row = _KEY_ROWS.get(packet.lrh >> _LNH_SHIFT & _LNH, 0)
    on_arrival = arrival & (_INBOUND if key_row else _RAW_INBOUND)
    checks = on_arrival | departure & (_OUTBOUND if key_row else _RAW_OUTBOUND)
    if not checks:
        return False
    packet.checks = checks
    if key_row and packet.n >= key_row + JOIN_AFTER_KEY:
        packet.key_row = key_row
    else:
        packet.constraint = Verdict.RCV_CONSTRAINT if on_arrival else Verdict.XMIT_CONSTRAINT
    return True


def p_key_of(packet: Packet) -> int:
    """The P_Key of a packet that has one, and whose P_Key is looked for."""
    row = packet.key_row
    return (packet.word(row - 1) & 0xFF) << 8 | packet.word(row) >> 24


def p_key_rejection(packet: Packet, arrival: Partition, departure: Partition, cycle: int) -> Verdict:
    """What the tables of both ports make of a packet's P_Key, if they have been gone through in the current cycle."""
    p_key = p_key_of(packet)
    if packet.checks & _INBOUND and not arrival.has(cycle, p_key, departs=False):
        return Verdict.RCV_CONSTRAINT
    if packet.checks & _OUTBOUND and not departure.has(cycle, p_key, departs=True):
        return Verdict.XMIT_CONSTRAINT
    return Verdict.GOOD
