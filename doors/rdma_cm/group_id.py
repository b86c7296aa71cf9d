"""A multicast group that a program has joined by one of its rdma_cm_ids, or wants to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from doors.mads.host_port import HostPort
from doors.rdma_cm.layouts import UD_PARAM, CmEventCode
from doors.rdma_cm.mgid import GroupAddress, group_mgid
from doors.rdma_cm.port_groups import Member, PortGroups
from doors.rdma_cm.qp import ah_attr
from verbs.address import AddressVector, GlobalRoute
from verbs.multicast import MULTICAST_QP
from wire.ip_cm import PortSpace
from wire.layout import Record
from wire.mc_member_record import JoinState
from wire.path_record import EXACTLY

__all__ = ["GroupId"]

_NAMES: Final = frozenset({"mgid", "port_gid", "join_state", "p_key", "q_key", "sl", "flow_label", "t_class"})
_IPOIB_NAMES: Final = frozenset({"mtu_selector", "mtu", "rate_selector", "rate", "hop_limit"})
"""In IPoIB's groups all are as in the broadcast group; in others MTU and rate are what the port has."""


class GroupId:
    """One of them.

    Attributes:
        user: what the program calls it.
        number: by which the program knows it.
        told: events of it that the program has got.
    """

    def __init__(
        self,
        user: int,
        address: GroupAddress,
        state: JoinState,
        space: int,
        q_key: int | None,
        tell: Callable[[GroupId, CmEventCode, int, bytes], None],
    ) -> None:
        """Q_KEY is the group's, None the broadcast group's; TELL takes its events with their statuses and parameters,
        which are a struct rdma_ucm_ud_param."""
        self.user = user
        self.number = 0
        self.told = 0
        self._address = address
        self._state = state
        self._space = space
        self._q_key = q_key
        self._tell = tell
        self._has_left = False
        self._groups: PortGroups | None = None
        self._member: Member | None = None

    def join(self, groups: PortGroups, port: HostPort, p_key: int) -> None:
        """Asks for it at a port; what comes of it is an event."""
        self._groups = groups

        def heard(status: int, record: Record) -> None:
            if status:
                self._tell(self, CmEventCode.MULTICAST_ERROR, status, b"")
            else:
                self._tell(self, CmEventCode.MULTICAST_JOIN, 0, _parameters(record, port))

        def found(status: int, broadcast: Record) -> None:
            if self._has_left:
                return
            if status:
                heard(status, broadcast)
                return
            wanted = broadcast.replace(
                mgid=group_mgid(self._address, self._space, broadcast.mgid),
                port_gid=port.gid,
                join_state=self._state,
                mtu_selector=EXACTLY,
                rate_selector=EXACTLY,
                **({} if self._q_key is None else {"q_key": self._q_key}),
            )
            names = _NAMES | (_IPOIB_NAMES if self._space == PortSpace.IPOIB else set())
            self._member = Member(wanted, names, heard)
            groups.join(self._member)

        groups.look_up_broadcast(p_key, found)

    def leave(self) -> None:
        """The program wants it no more."""
        self._has_left = True
        if self._groups is not None and self._member is not None:
            self._groups.leave(self._member)


def _parameters(record: Record, port: HostPort) -> bytes:
    """How packets get to a group: a struct rdma_ucm_ud_param."""
    route = GlobalRoute(record.mgid, 0, record.flow_label, record.hop_limit, record.t_class)
    path = AddressVector(record.mlid, record.sl, 0, route, port.number)
    return UD_PARAM.pack(qp_num=MULTICAST_QP, qkey=record.q_key, ah_attr=ah_attr(path, record.rate))
