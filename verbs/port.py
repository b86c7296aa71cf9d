"""A port of an adapter as its transport knows it: what the Subnet Manager has set, and what is counted."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from verbs.arrived import Arrived
from wire.codes import P_KEY_DEFAULT
from wire.stimulus import KeyViolation, WrongKey

__all__ = ["Port", "p_keys_match"]

_MEMBERSHIP = 0x8000
_P_KEY_BASE = 0x7FFF
_COUNTER_MAX = 0xFFFF


def p_keys_match(one: int, other: int) -> bool:
    """True if both are of one partition and at least one is a full member's (IBTA vol 1, 10.9.3)."""
    return bool((one ^ other) & _P_KEY_BASE == 0 and one & _P_KEY_BASE and (one | other) & _MEMBERSHIP)


@dataclass(slots=True)
class Port:
    """One port. Who carries the adapter keeps it as PortInfo, GUIDInfo and P_KeyTable are.

    Attributes:
        mtu: bytes of payload that may be sent, NeighborMTU.
        subnet_timeout: PortInfo.SubnetTimeOut: two traps are 4.096 us x 2 to it apart.
        p_key_violations: packets with a wrong P_Key, as PortInfo.P_KeyViolations counts them.
        q_key_violations: likewise.
        untold: those that the adapter's management agent, which has counts of its own, has not been told of.
    """

    lid: int
    gids: list[int] = field(default_factory=list)
    p_keys: list[int] = field(default_factory=lambda: [P_KEY_DEFAULT])
    lmc: int = 0
    mtu: int = 2048
    subnet_timeout: int = 0
    p_key_violations: int = 0
    q_key_violations: int = 0
    untold: deque[WrongKey] = field(default_factory=deque)

    def has_lid(self, lid: int) -> bool:
        """True for each LID that the port has by its LMC."""
        return lid >> self.lmc == self.lid >> self.lmc

    def path_bits(self, lid: int) -> int:
        """Which of the port's LIDs it is."""
        return lid & ((1 << self.lmc) - 1)

    def p_key(self, index: int) -> int:
        """An entry of the P_Key table; 0, which matches nothing, where it has none."""
        return self.p_keys[index] if index < len(self.p_keys) else 0

    def gid(self, index: int) -> int:
        """An entry of the GID table; 0, which is nobody's, where it has none."""
        return self.gids[index] if index < len(self.gids) else 0

    def count_p_key_violation(self, packet: Arrived) -> None:
        """Counts a packet whose P_Key is not the queue pair's."""
        self.p_key_violations = min(self.p_key_violations + 1, _COUNTER_MAX)
        self._to_be_told(packet, KeyViolation.P_KEY, packet.p_key)

    def count_q_key_violation(self, packet: Arrived) -> None:
        """Counts a packet, which has a DETH, whose Q_Key is not the queue pair's."""
        self.q_key_violations = min(self.q_key_violations + 1, _COUNTER_MAX)
        self._to_be_told(packet, KeyViolation.Q_KEY, packet.deth()[0])

    def _to_be_told(self, packet: Arrived, found: KeyViolation, key: int) -> None:
        source_qp = packet.deth()[1] if packet.has_deth else 0
        wrong = WrongKey(found, key, packet.slid, packet.dlid, packet.sl, source_qp, packet.dest_qp)
        self.untold.append(wrong)
