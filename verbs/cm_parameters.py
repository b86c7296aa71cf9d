"""What the two ends of a connection tell each other, and how their queue pairs are set by it (IBTA vol 1, 12.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from verbs.address import AddressVector
from verbs.regions import Access
from verbs.states import QpChanges, QpState, QpType
from wire.cm_codes import ConnectedService
from wire.codes import QP_GSI, mtu_bytes
from wire.layout import Record

__all__ = ["CmRoute", "ConnectionPath", "ConnectionReply", "ConnectionRequest", "Negotiated"]

_PACKET_RATE: Final = 3
"""10 Gbit/s, in the code of StaticRateControl: 4X at SDR."""

_MIN_RNR_TIMER: Final = 0
"""655 ms: as Linux has it, whose consumers count on that time to post what is to be received."""

_SERVICES: Final = {QpType.RC: ConnectedService.RC, QpType.UC: ConnectedService.UC}


class CmRoute(NamedTuple):
    """How a message goes to a communication manager, or back to where one has come from.

    Attributes:
        p_key_index: of the P_Key in the table of the own port, which `path` says.
        qpn: where its communication manager is.
    """

    path: AddressVector
    p_key_index: int = 0
    qpn: int = QP_GSI


@dataclass(frozen=True, slots=True)
class ConnectionPath:
    """The path between two queue pairs, as the one sees it that asks for a connection.

    Attributes:
        mtu: code of the path's MTU.
        rate: code of the path's rate.
        life_time: code of the time that a packet may take.
    """

    route: CmRoute
    local_lid: int
    local_gid: int
    remote_gid: int
    p_key: int
    mtu: int
    rate: int = _PACKET_RATE
    life_time: int = 14

    @property
    def ack_timeout(self) -> int:
        """Code of the Local ACK Timeout: there and back."""
        return min(31, self.life_time + 1)

    def fields(self) -> dict[str, int]:
        """Of a REQ."""
        path = self.route.path
        grh = path.route
        return {
            "partition_key": self.p_key,
            "path_packet_payload_mtu": self.mtu,
            "primary_local_port_lid": self.local_lid,
            "primary_remote_port_lid": path.dlid,
            "primary_local_port_gid": self.local_gid,
            "primary_remote_port_gid": self.remote_gid,
            "primary_flow_label": grh.flow_label if grh is not None else 0,
            "primary_traffic_class": grh.traffic_class if grh is not None else 0,
            "primary_hop_limit": grh.hop_limit if grh is not None else 0,
            "primary_packet_rate": self.rate,
            "primary_sl": path.sl,
            "primary_subnet_local": int(grh is None),
            "primary_local_ack_timeout": self.ack_timeout,
        }


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """What a consumer says when it asks for a connection.

    Attributes:
        responder_resources: READs and atomics of the peer that it takes at once.
        initiator_depth: READs and atomics that it wants to have outstanding.
        retry_count, rnr_retry_count: for the peer's queue pair.
    """

    service_id: int
    path: ConnectionPath
    kind: QpType
    qpn: int
    responder_resources: int = 1
    initiator_depth: int = 1
    retry_count: int = 7
    rnr_retry_count: int = 7
    srq: bool = False
    flow_control: bool = True
    private_data: bytes = b""

    def fields(self) -> dict[str, int]:
        """Of a REQ.

        Raises:
            ValueError: a type of queue pairs that are not connected.
        """
        if self.kind not in _SERVICES:
            raise ValueError(f"connection of {self.kind.name} queue pairs: allowed RC, UC")
        return {
            "service_id": self.service_id,
            "local_qpn": self.qpn,
            "transport_service_type": _SERVICES[self.kind],
            "responder_resources": self.responder_resources,
            "initiator_depth": self.initiator_depth,
            "retry_count": self.retry_count,
            "rnr_retry_count": self.rnr_retry_count,
            "srq": int(self.srq),
            "end_to_end_flow_control": int(self.flow_control),
            **self.path.fields(),
        }


@dataclass(frozen=True, slots=True)
class ConnectionReply:
    """What a consumer says when it accepts one."""

    qpn: int
    responder_resources: int = 1
    initiator_depth: int = 1
    rnr_retry_count: int = 7
    srq: bool = False
    flow_control: bool = True
    private_data: bytes = b""

    def fields(self) -> dict[str, int]:
        """Of a REP."""
        return {
            "local_qpn": self.qpn,
            "responder_resources": self.responder_resources,
            "initiator_depth": self.initiator_depth,
            "rnr_retry_count": self.rnr_retry_count,
            "srq": int(self.srq),
            "end_to_end_flow_control": int(self.flow_control),
        }


@dataclass(slots=True)
class Negotiated:
    """What is known of a connection's queue pairs so far, as one of its ends sees it.

    Attributes:
        route: how the queue pair's packets go.
        mtu: code of the path's MTU.
        qpn, psn: the own queue pair, and the first PSN that it sends; `remote_...`: of the peer.
        responder_resources, initiator_depth: READs and atomics that are taken from the peer, and sent to it.
    """

    kind: QpType
    route: CmRoute
    mtu: int
    ack_timeout: int
    psn: int
    qpn: int = 0
    remote_qpn: int = 0
    remote_psn: int = 0
    responder_resources: int = 0
    initiator_depth: int = 0
    retry_count: int = 0
    rnr_retry_count: int = 0
    srq: bool = False
    flow_control: bool = True

    @classmethod
    def asked(cls, request: ConnectionRequest, psn: int) -> Negotiated:
        """By the end that asks."""
        return cls(
            request.kind,
            request.path.route,
            request.path.mtu,
            request.path.ack_timeout,
            psn,
            qpn=request.qpn,
            responder_resources=request.responder_resources,
            initiator_depth=request.initiator_depth,
            retry_count=request.retry_count,
            rnr_retry_count=request.rnr_retry_count,
            srq=request.srq,
            flow_control=request.flow_control,
        )

    @classmethod
    def heard(cls, req: Record, route: CmRoute, psn: int) -> Negotiated:
        """By the end that is asked. What the other one sends is what this one takes, and so on."""
        return cls(
            QpType.RC if req.transport_service_type == ConnectedService.RC else QpType.UC,
            route,
            req.path_packet_payload_mtu,
            req.primary_local_ack_timeout,
            psn,
            remote_qpn=req.local_qpn,
            remote_psn=req.starting_psn,
            responder_resources=req.initiator_depth,
            initiator_depth=req.responder_resources,
            retry_count=req.retry_count,
            rnr_retry_count=req.rnr_retry_count,
            srq=bool(req.srq),
            flow_control=bool(req.end_to_end_flow_control),
        )

    def replied(self, rep: Record) -> None:
        """The answer of the end that was asked."""
        self.remote_qpn = rep.local_qpn
        self.remote_psn = rep.starting_psn
        self.responder_resources = rep.initiator_depth
        self.initiator_depth = rep.responder_resources
        self.rnr_retry_count = rep.rnr_retry_count
        self.srq = bool(rep.srq)
        self.flow_control = bool(rep.end_to_end_flow_control)

    def reply(self, reply: ConnectionReply) -> None:
        """The own answer."""
        self.qpn = reply.qpn
        self.responder_resources = reply.responder_resources
        self.initiator_depth = reply.initiator_depth

    def changes(self, to: QpState) -> QpChanges:
        """How the own queue pair is modified on its way to INIT, RTR and RTS.

        Raises:
            ValueError: another state.
        """
        is_rc = self.kind is QpType.RC
        match to:
            case QpState.INIT:
                access = Access.LOCAL_WRITE | Access.REMOTE_WRITE
                if is_rc and self.responder_resources:
                    access |= Access.REMOTE_READ | Access.REMOTE_ATOMIC
                return {"p_key_index": self.route.p_key_index, "port": self.route.path.port, "access": access}
            case QpState.RTR:
                changes: QpChanges = {
                    "path": self.route.path,
                    "path_mtu": mtu_bytes(self.mtu),
                    "dest_qp": self.remote_qpn,
                    "rq_psn": self.remote_psn,
                }
                if is_rc:
                    changes |= {"max_dest_rd_atomic": self.responder_resources, "min_rnr_timer": _MIN_RNR_TIMER}
                return changes
            case QpState.RTS:
                changes = {"sq_psn": self.psn}
                if is_rc:
                    changes |= {
                        "timeout": self.ack_timeout,
                        "retry_cnt": self.retry_count,
                        "rnr_retry": self.rnr_retry_count,
                        "max_rd_atomic": self.initiator_depth,
                    }
                return changes
            case _:
                raise ValueError(f"{to.name} is not set by a connection: allowed INIT, RTR, RTS")
