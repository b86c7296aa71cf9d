"""Notices of congestion: what is sent for a packet that met some where no answer could say so (IBTA vol 1, A10.2).

UC and UD answer nothing, and so does who gets a READ's data; RC says it in its answers.
"""

from __future__ import annotations

from verbs.address import AddressVector, GlobalRoute
from verbs.arrived import Arrived
from verbs.frame import Envelope
from verbs.packet_queue import PacketQueue
from verbs.pair_state import PairState
from verbs.port import Port
from verbs.states import QpType
from wire.opcodes import Opcode

__all__ = ["CongestionNotices"]


class CongestionNotices(PacketQueue):
    """Those that a port has to send, before anything else, one at a time for each queue pair that is to be told."""

    def __init__(self, port: Port) -> None:
        super().__init__()
        self._port = port

    def add(self, pair: PairState, packet: Arrived) -> None:
        """One for the sender of a packet."""
        dest_qp = packet.deth()[1] if pair.kind is QpType.UD else pair.attributes.dest_qp
        route = None if packet.grh is None else self._route_back(packet.grh.sgid, packet.grh.dgid)
        bits = self._port.path_bits(packet.dlid)
        vector = AddressVector(packet.slid, packet.sl, bits, route, pair.attributes.port)
        notice = Envelope(self._port, vector, pair.attributes.p_key_index, dest_qp).packet(Opcode.CNP, 0, becn=True)
        if notice not in self._waiting:
            self.put(notice)

    def _route_back(self, sgid: int, dgid: int) -> GlobalRoute:
        return GlobalRoute(sgid, self._port.gids.index(dgid) if dgid in self._port.gids else 0)
