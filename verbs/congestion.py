"""Notices of congestion: what UC and UD answer to a packet that met some; RC says it in ACKs (IBTA vol 1, A10.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from verbs.address import AddressVector, GlobalRoute
from verbs.arrived import Arrived
from verbs.frame import Envelope, Outgoing
from verbs.pair_state import PairState
from verbs.port import Port
from verbs.states import QpType
from wire.opcodes import Opcode

__all__ = ["CongestionNotices"]


class CongestionNotices:
    """Those that a port has to send, before anything else, one at a time for each queue pair that is to be told."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._waiting: deque[Outgoing] = deque()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._waiting)

    def add(self, pair: PairState, packet: Arrived) -> None:
        """Answers a packet of UC or UD."""
        dest_qp = packet.deth()[1] if pair.kind is QpType.UD else pair.attributes.dest_qp
        route = None if packet.grh is None else self._route_back(packet.grh.sgid, packet.grh.dgid)
        bits = self._port.path_bits(packet.dlid)
        vector = AddressVector(packet.slid, packet.sl, bits, route, pair.attributes.port)
        notice = Envelope(self._port, vector, pair.attributes.p_key_index, dest_qp).packet(Opcode.CNP, 0, becn=True)
        if notice not in self._waiting:
            self._waiting.append(notice)

    def _route_back(self, sgid: int, dgid: int) -> GlobalRoute:
        return GlobalRoute(sgid, self._port.gids.index(dgid) if dgid in self._port.gids else 0)

    def take(self, blocked: Collection[int]) -> Outgoing | None:
        """The next one; None if there is none, or none has an SL that there is room for."""
        for notice in self._waiting:
            if notice.sl not in blocked:
                self._waiting.remove(notice)
                return notice
        return None
