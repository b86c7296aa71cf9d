"""What a packet must be like for a queue pair to look at it (IBTA vol 1, 9.6.1)."""

from __future__ import annotations

from typing import Final

from verbs.arrived import Arrived
from verbs.pair_state import PairState
from verbs.port import Port
from verbs.states import QpState, QpType
from wire.codes import LID_MULTICAST_MIN
from wire.headers import GRH_IP_VER, GRH_NXT_HDR_BTH
from wire.layout import Record
from wire.opcodes import Service

__all__ = ["check_path", "leads_to_bth", "takes"]

_SERVICES: Final = {
    QpType.RC: (Service.RC, Service.CNP),
    QpType.UC: (Service.UC, Service.CNP),
    QpType.UD: (Service.UD, Service.CNP),
    QpType.XRC_SEND: (Service.XRC, Service.CNP),
    QpType.XRC_RECV: (Service.XRC, Service.CNP),
    QpType.RD: (),
    QpType.EEC: (Service.RD,),
}
"""What comes for RD comes through contexts."""

_STATES: Final = (QpState.RTR, QpState.RTS, QpState.SQD, QpState.SQE)


def takes(pair: PairState, packet: Arrived) -> bool:
    """True if the queue pair takes packets now, and of this service."""
    return pair.state in _STATES and packet.service in _SERVICES[pair.kind]


def leads_to_bth(grh: Record) -> bool:
    """True if a GRH is of this version and says that a BTH follows."""
    return grh.ip_ver == GRH_IP_VER and grh.nxt_hdr == GRH_NXT_HDR_BTH


def check_path(pair: PairState, port: Port, packet: Arrived) -> bool:
    """True if the packet came the way that its queue pair's packets come.

    From a peer that is connected to it only, by LID, or by GID where packets carry a GRH; to a datagram's queue pair
    from anywhere (IBTA vol 1, 9.6.1.2 and 9.6.1.5).
    """
    grh = packet.grh
    if grh is not None and not leads_to_bth(grh):
        return False
    if pair.kind is QpType.UD:
        return grh is None or grh.dgid in port.gids
    path = pair.attributes.path
    if packet.dlid >= LID_MULTICAST_MIN or packet.slid != path.dlid or (grh is None) != (path.route is None):
        return False
    if grh is None or path.route is None:
        return True
    return grh.sgid == path.route.dgid and grh.dgid == port.gid(path.route.sgid_index)
