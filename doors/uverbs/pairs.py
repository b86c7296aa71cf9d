"""Queue pairs of a program."""

from __future__ import annotations

import errno
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, cast

from doors.mads.umad_device import DeviceError
from doors.uverbs.addresses import vector_of
from doors.uverbs.completions import Completions
from doors.uverbs.context import Command, Context, Handled, Reply, check
from doors.uverbs.layouts import (
    CREATE_QP_RESP,
    DESTROY_EVENTS_RESP,
    EX_TAIL,
    MMINFO,
    POST_SEND_RESP,
    QP_DEST,
    QUERY_QP_RESP,
)
from doors.uverbs.memory import Domain
from doors.uverbs.receives import SharedReceives
from doors.uverbs.rxe_rings import ReceiveRing, Ring, SendRing
from doors.uverbs.sends import post
from verbs.address import AddressVector
from verbs.completions import AsyncEventType
from verbs.queue_pair import QpCapabilities, QueuePair
from verbs.regions import Access
from verbs.states import QpChanges, QpState, QpType, TransitionError
from verbs.work import SendRequest
from wire.codes import MTU, mtu_bytes

__all__ = [
    "Pair",
    "attach_mcast",
    "create_qp",
    "create_qp_ex",
    "destroy_qp",
    "detach_mcast",
    "modify_qp",
    "post_send",
    "query_qp",
]

_SGE_BYTES: Final = 16
_KINDS: Final = frozenset((QpType.RC, QpType.UC, QpType.UD))
_STATES: Final = frozenset(QpState)
_PSN_MASK: Final = 0xFF_FFFF
_MIG_MIGRATED: Final = 0
_ALTERNATE_PATH: Final = 1 << 14
_MIGRATION_STATE: Final = 1 << 18
_STATE: Final = 1 << 0
_CURRENT_STATE: Final = 1 << 1
_NOTHING_TO_SET: Final = _STATE | _CURRENT_STATE | _ALTERNATE_PATH | _MIGRATION_STATE
_MTU_CODES: Final = {mtu_bytes(code): code for code in MTU}

_PATH: Final = 1 << 7
_MASK: Final = {
    1 << 2: "sqd_notify",
    1 << 3: "access",
    1 << 4: "p_key_index",
    1 << 5: "port",
    1 << 6: "q_key",
    _PATH: "path",
    1 << 8: "path_mtu",
    1 << 9: "timeout",
    1 << 10: "retry_cnt",
    1 << 11: "rnr_retry",
    1 << 12: "rq_psn",
    1 << 13: "max_rd_atomic",
    1 << 15: "min_rnr_timer",
    1 << 16: "sq_psn",
    1 << 17: "max_dest_rd_atomic",
    1 << 20: "dest_qp",
}
"""enum ibv_qp_attr_mask."""


@dataclass(eq=False, slots=True)
class Pair(Handled):
    """A queue pair.

    Attributes:
        sends, posted: its rings; none for receives if they are shared.
        user: what the program calls it in events.
        told: events that it was told.
        posted_at: cycles in which the requests were posted that have not ended; they end in turn.
    """

    RANK = 0

    context: Context
    queue_pair: QueuePair
    sends: SendRing
    posted: ReceiveRing | None
    signals_all: bool
    user: int
    told: int = field(default=0, init=False)
    posted_at: deque[int] = field(default_factory=deque, init=False)

    def __post_init__(self) -> None:
        """Let the program be told."""
        self.context.host.owners[self.queue_pair.number] = self._tell
        self.queue_pair.pair.on_send_ended = self._send_ended

    def _send_ended(self, request: SendRequest) -> None:
        self.sends.ended()
        host = self.context.host
        host.operations.ended(host.name, request, self.posted_at.popleft())

    def _tell(self, event: AsyncEventType) -> None:
        self.told += 1
        self.context.tell(self.user, event)

    def end(self) -> None:
        """See `Handled`."""
        host = self.context.host
        host.adapter.destroy_qp(self.queue_pair)
        del host.owners[self.queue_pair.number]
        self.sends.ring.close()
        if self.posted is not None:
            self.posted.ring.close()

    def abandon(self) -> None:
        """See `Handled`."""
        adapter = self.context.host.adapter
        for group in adapter.groups.of(self.queue_pair):
            adapter.detach_multicast(self.queue_pair, *group)
        self.end()

    def flush_receives(self) -> None:
        """In the error state, what was posted since it began is flushed: nothing else would look at it."""
        if self.posted is not None and self.queue_pair.state is QpState.ERR and len(self.posted):
            self.queue_pair.flush_receives()


def _create(context: Context, fields: Any) -> tuple[Pair, bytes]:
    """A queue pair, and where its rings are."""
    check(fields.qp_type in _KINDS, errno.EOPNOTSUPP)
    domain = context.get(fields.pd_handle, Domain)
    send_cq = context.get(fields.send_cq_handle, Completions)
    recv_cq = context.get(fields.recv_cq_handle, Completions)
    shared = context.get(fields.srq_handle, SharedReceives) if fields.is_srq else None
    limits = context.host.adapter.limits
    most = Ring.most(limits.max_qp_wr)
    check(fields.max_send_wr <= most)
    limits.check(max_sge=fields.max_send_sge, max_inline_data=fields.max_inline_data)
    if shared is None:
        check(fields.max_recv_wr <= most)
        limits.check(max_sge=fields.max_recv_sge)
    inline = max(fields.max_inline_data, _SGE_BYTES * fields.max_send_sge)
    element = SendRing.element(fields.max_send_sge, inline)
    sends = SendRing(context.ring(max(fields.max_send_wr, 1), element), fields.max_send_sge)
    posted = None
    if shared is None:
        ring = context.ring(max(fields.max_recv_wr, 1), ReceiveRing.element(fields.max_recv_sge))
        posted = ReceiveRing(ring, fields.max_recv_sge)
    sizes = QpCapabilities(
        max_send_wr=sends.ring.capacity,
        max_recv_wr=posted.ring.capacity if posted is not None else 0,
        max_send_sge=fields.max_send_sge,
        max_recv_sge=fields.max_recv_sge if posted is not None else 0,
        max_inline_data=inline,
    )
    queue_pair = context.host.adapter.create_qp(
        QpType(fields.qp_type),
        domain.domain,
        send_cq.queue,
        recv_cq.queue,
        srq=shared.queue if shared is not None else None,
        capabilities=sizes,
        posted=posted,
    )
    pair = Pair(context, queue_pair, sends, posted, bool(fields.sq_sig_all), fields.user_handle)
    receives = posted.ring.info if posted is not None else MMINFO.pack()
    return context.add(pair), receives + sends.ring.info


def _capabilities(pair: Pair) -> dict[str, int]:
    sizes = pair.queue_pair.capabilities
    return {
        "max_send_wr": sizes.max_send_wr,
        "max_recv_wr": sizes.max_recv_wr,
        "max_send_sge": sizes.max_send_sge,
        "max_recv_sge": sizes.max_recv_sge,
        "max_inline_data": sizes.max_inline_data,
    }


def _created(pair: Pair) -> bytes:
    return CREATE_QP_RESP.pack(qp_handle=pair.handle, qpn=pair.queue_pair.number, **_capabilities(pair))


def create_qp(context: Context, fields: Any, _command: Command) -> Reply:
    """A queue pair."""
    pair, rings = _create(context, fields)
    return Reply(_created(pair), rings)


def create_qp_ex(context: Context, fields: Any, _command: Command) -> Reply:
    """The same; nothing more can be asked for."""
    check(not fields.comp_mask and not fields.create_flags, errno.EOPNOTSUPP)
    pair, rings = _create(context, fields)
    return Reply(_created(pair) + EX_TAIL.pack(response_length=CREATE_QP_RESP.size + EX_TAIL.size), rings)


def modify_qp(context: Context, fields: Any, _command: Command) -> Reply:
    """Another state, other attributes."""
    pair = context.get(fields.qp_handle, Pair)
    queue_pair, mask = pair.queue_pair, fields.attr_mask
    check(not mask & _CURRENT_STATE or fields.cur_qp_state == queue_pair.state)
    check(not mask & _STATE or fields.qp_state in _STATES)
    to = QpState(fields.qp_state) if mask & _STATE else None
    changes: QpChanges = {}
    if to not in (QpState.RESET, QpState.ERR):
        check(not mask & ~(sum(_MASK) | _NOTHING_TO_SET))
        changes = _changes(fields)
    try:
        queue_pair.modify(to, **changes)
    except TransitionError:
        raise DeviceError(errno.EINVAL) from None
    if to is QpState.RESET:
        pair.sends.clear()
        pair.posted_at.clear()
    return Reply()


def _changes(fields: Any) -> QpChanges:
    values = {
        "sqd_notify": bool(fields.en_sqd_async_notify),
        "access": Access(fields.qp_access_flags & sum(Access)),
        "p_key_index": fields.pkey_index,
        "port": fields.port_num,
        "q_key": fields.qkey,
        "path_mtu": mtu_bytes(fields.path_mtu) if fields.path_mtu in _MTU_CODES.values() else 0,
        "timeout": fields.timeout,
        "retry_cnt": fields.retry_cnt,
        "rnr_retry": fields.rnr_retry,
        "rq_psn": fields.rq_psn & _PSN_MASK,
        "max_rd_atomic": fields.max_rd_atomic,
        "min_rnr_timer": fields.min_rnr_timer,
        "sq_psn": fields.sq_psn & _PSN_MASK,
        "max_dest_rd_atomic": fields.max_dest_rd_atomic,
        "dest_qp": fields.dest_qp_num & _PSN_MASK,
    }
    if fields.attr_mask & _PATH:
        values["path"] = vector_of(QP_DEST.unpack(fields.dest))
    return cast(QpChanges, {name: values[name] for bit, name in _MASK.items() if fields.attr_mask & bit})


def query_qp(context: Context, fields: Any, _command: Command) -> Reply:
    """Attributes and state."""
    pair = context.get(fields.qp_handle, Pair)
    attributes, state = pair.queue_pair.query(), pair.queue_pair.state
    answer = QUERY_QP_RESP.pack(
        dest=_dest(attributes.path),
        alt_dest=_dest(AddressVector(0, port=0)),
        qkey=attributes.q_key,
        rq_psn=attributes.rq_psn,
        sq_psn=attributes.sq_psn,
        dest_qp_num=attributes.dest_qp,
        qp_access_flags=attributes.access,
        pkey_index=attributes.p_key_index,
        qp_state=state,
        cur_qp_state=state,
        path_mtu=_MTU_CODES[attributes.path_mtu],
        path_mig_state=_MIG_MIGRATED,
        sq_draining=int(state is QpState.SQD and not pair.queue_pair.is_drained),
        max_rd_atomic=attributes.max_rd_atomic,
        max_dest_rd_atomic=attributes.max_dest_rd_atomic,
        min_rnr_timer=attributes.min_rnr_timer,
        port_num=attributes.port,
        timeout=attributes.timeout,
        retry_cnt=attributes.retry_cnt,
        rnr_retry=attributes.rnr_retry,
        sq_sig_all=pair.signals_all,
        **_capabilities(pair),
    )
    return Reply(answer)


def _dest(vector: AddressVector) -> bytes:
    route = vector.route
    return QP_DEST.pack(
        dgid=route.dgid.to_bytes(16, "big") if route else bytes(16),
        flow_label=route.flow_label if route else 0,
        dlid=vector.dlid,
        sgid_index=route.sgid_index if route else 0,
        hop_limit=route.hop_limit if route else 0,
        traffic_class=route.traffic_class if route else 0,
        sl=vector.sl,
        src_path_bits=vector.src_path_bits,
        is_global=route is not None,
        port_num=vector.port,
    )


def post_send(context: Context, fields: Any, _command: Command) -> Reply:
    """A doorbell: there are requests in the send queue's ring."""
    pair = context.get(fields.qp_handle, Pair)
    if pair.queue_pair.state in (QpState.RESET, QpState.INIT, QpState.RTR):
        pair.sends.clear()
        raise DeviceError(errno.EINVAL)
    for posted in pair.sends.drain():
        pair.posted_at.append(context.host.operations.clock())
        post(context, pair.queue_pair, posted, signals_all=pair.signals_all)
    return Reply(POST_SEND_RESP.pack())


def attach_mcast(context: Context, fields: Any, _command: Command) -> Reply:
    """Copies of what comes for a multicast group."""
    pair = context.get(fields.qp_handle, Pair)
    try:
        context.host.adapter.attach_multicast(pair.queue_pair, int.from_bytes(fields.gid, "big"), fields.mlid)
    except ValueError:
        raise DeviceError(errno.EINVAL) from None
    return Reply()


def detach_mcast(context: Context, fields: Any, _command: Command) -> Reply:
    """No copies any more."""
    pair = context.get(fields.qp_handle, Pair)
    try:
        context.host.adapter.detach_multicast(pair.queue_pair, int.from_bytes(fields.gid, "big"), fields.mlid)
    except ValueError:
        raise DeviceError(errno.EINVAL) from None
    return Reply()


def destroy_qp(context: Context, fields: Any, _command: Command) -> Reply:
    """Its end."""
    pair = context.get(fields.handle, Pair)
    context.remove(pair)
    return Reply(DESTROY_EVENTS_RESP.pack(events_reported=pair.told - context.take_back(pair.user)))
