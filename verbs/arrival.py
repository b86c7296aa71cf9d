"""What a packet must be like for a queue pair to look at it (IBTA vol 1, 9.6.1)."""

from __future__ import annotations

from typing import Final

from verbs.pair_state import PairState
from verbs.port import Port
from verbs.states import QpState, QpType
from wire.codes import LID_MULTICAST_MIN, LNH
from wire.headers import BTH, GRH, GRH_IP_VER, GRH_NXT_HDR_BTH, LRH
from wire.opcodes import Opcode, Operation, Service
from wire.packet import Packet, parse

__all__ = ["check_path", "operation_of", "read_packet", "takes"]

_SERVICES: Final = {QpType.RC: Service.RC, QpType.UC: Service.UC, QpType.UD: Service.UD}

_IBA: Final = (LNH.IBA_LOCAL, LNH.IBA_GLOBAL)

_DEFINED: Final = frozenset(Opcode)

_STATES: Final = (QpState.RTR, QpState.RTS, QpState.SQD, QpState.SQE)


def read_packet(data: bytes) -> Packet | None:
    """The packet in these bytes; None if nobody can make anything of them.

    A request of RC with an opcode that is not defined is one too, without what may follow its BTH: its responder has to
    refuse it (IBTA vol 1, 9.7.4.1.2).
    """
    try:
        return parse(data)
    except ValueError:
        pass
    try:
        lrh = LRH.unpack(data)
        network = [GRH.unpack(data, LRH.size_bytes)] if lrh.lnh == LNH.IBA_GLOBAL else []
        bth = BTH.unpack(data, LRH.size_bytes + len(network) * GRH.size_bytes)
    except ValueError:
        return None
    is_undefined = bth.opcode >> 5 == Service.RC and bth.opcode not in _DEFINED
    return Packet(data, (lrh, *network, bth), b"") if lrh.lnh in _IBA and is_undefined else None


def operation_of(packet: Packet) -> Operation | None:
    """The operation of a packet's opcode; None if it is not defined."""
    opcode = packet.header(BTH).opcode
    return Opcode(opcode).operation if opcode in _DEFINED else None


def takes(pair: PairState, packet: Packet) -> bool:
    """True if the queue pair takes packets now, and of this service."""
    return pair.state in _STATES and packet.header(BTH).opcode >> 5 == _SERVICES[pair.kind]


def check_path(pair: PairState, port: Port, packet: Packet) -> bool:
    """True if the packet came the way that its queue pair's packets come.

    From a peer that is connected to it only, by LID, or by GID where packets carry a GRH; to a datagram's queue pair
    from anywhere (IBTA vol 1, 9.6.1.2 and 9.6.1.5).
    """
    grh, lrh = packet.grh, packet.lrh
    if grh is not None and (grh.ip_ver != GRH_IP_VER or grh.nxt_hdr != GRH_NXT_HDR_BTH):
        return False
    if pair.kind is QpType.UD:
        return grh is None or grh.dgid in port.gids
    path = pair.attributes.path
    if lrh.dlid >= LID_MULTICAST_MIN or lrh.slid != path.dlid or (grh is None) != (path.route is None):
        return False
    if grh is None or path.route is None:
        return True
    return grh.sgid == path.route.dgid and grh.dgid == port.gid(path.route.sgid_index)
