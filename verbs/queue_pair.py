"""Queue pairs: posted to, modified, carried (IBTA vol 1, 10.2.4 and 10.3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol, Unpack

from verbs.arrived import Arrived
from verbs.completions import AsyncEventType, CompletionQueue, CompletionStatus
from verbs.frame import Outgoing
from verbs.no_half import NoResponder, NoSender
from verbs.pair_state import PairState
from verbs.rc_requester import RcRequester
from verbs.rc_responder import RcResponder
from verbs.rd_context import RdRequester, RdResponder
from verbs.rd_send_queue import RdSendQueue
from verbs.receive_queue import QueueFullError
from verbs.states import QpAttributes, QpChanges, QpState, QpType, TransitionError, check_ranges, check_transition
from verbs.uc import UcResponder, uc_packet
from verbs.ud import UdResponder, ud_packet
from verbs.unacknowledged import UnacknowledgedSender
from verbs.work import ATOMIC_BYTES, MAX_MESSAGE_BYTES, ReceiveRequest, SendOpcode, SendRequest
from verbs.xrc import XrcRequester, XrcResponder
from wire.codes import MTU, mtu_bytes

__all__ = ["PostError", "QpCapabilities", "QueuePair", "name_of"]

_SENDS: Final = frozenset({SendOpcode.SEND, SendOpcode.SEND_WITH_IMM})
_WRITES: Final = frozenset({SendOpcode.RDMA_WRITE, SendOpcode.RDMA_WRITE_WITH_IMM})
_LOCAL: Final = frozenset({SendOpcode.LOCAL_INV, SendOpcode.BIND_MW})

_OPCODES: Final = {
    QpType.RC: frozenset(SendOpcode),
    QpType.UC: _SENDS | _WRITES | _LOCAL,
    QpType.UD: _SENDS,
    QpType.XRC_SEND: frozenset(SendOpcode),
    QpType.XRC_RECV: frozenset[SendOpcode](),
    QpType.RD: frozenset(SendOpcode) - {SendOpcode.SEND_WITH_INV},
    QpType.EEC: frozenset[SendOpcode](),
}

_WITH_RECEIVES: Final = (QpType.RC, QpType.UC, QpType.UD, QpType.RD)

_RECEIVING: Final = (QpState.RTR, QpState.RTS, QpState.SQD, QpState.SQE)
_TAKING_SENDS: Final = (QpState.RTS, QpState.SQD, QpState.SQE, QpState.ERR)


class PostError(ValueError):
    """A work request that a queue pair does not take, now or ever."""


@dataclass(frozen=True, slots=True)
class QpCapabilities:
    """Sizes of the queues of a queue pair."""

    max_send_wr: int = 128
    max_recv_wr: int = 128
    max_send_sge: int = 16
    max_recv_sge: int = 16
    max_inline_data: int = 256


class _Sender(Protocol):
    def start(self) -> None: ...
    def post(self, request: SendRequest) -> None: ...
    def receive(self, packet: Arrived, now: int) -> None: ...
    def next_packet(self, now: int) -> Outgoing | None: ...
    def expire(self, now: int) -> None: ...
    def flush(self) -> None: ...
    def clear(self) -> None: ...
    @property
    def wake(self) -> int | None: ...
    @property
    def waits_for_receiver(self) -> bool: ...
    @property
    def posted(self) -> int: ...
    @property
    def psn(self) -> int: ...
    @property
    def is_drained(self) -> bool: ...
    @property
    def sl(self) -> int: ...


class _Responder(Protocol):
    @property
    def expected(self) -> int: ...
    def start(self) -> None: ...
    def receive(self, packet: Arrived) -> None: ...
    def next_packet(self, held: bool) -> Outgoing | None: ...
    def flush(self) -> None: ...
    def clear(self) -> None: ...


def _halves(pair: PairState) -> tuple[_Sender, _Responder]:
    match pair.kind:
        case QpType.RC:
            return RcRequester(pair), RcResponder(pair)
        case QpType.XRC_SEND:
            return XrcRequester(pair), NoResponder()
        case QpType.XRC_RECV:
            return NoSender(), XrcResponder(pair)
        case QpType.RD:
            return RdSendQueue(pair), NoResponder()
        case QpType.EEC:
            return RdRequester(pair), RdResponder(pair)
        case QpType.UC:
            return UnacknowledgedSender(pair, uc_packet), UcResponder(pair)
        case QpType.UD:
            return UnacknowledgedSender(pair, ud_packet), UdResponder(pair)


def name_of(queue_pair: QueuePair) -> str:
    """As errors call it."""
    is_context = queue_pair.pair.kind is QpType.EEC
    return f"{'end-to-end context' if is_context else 'queue pair'} {queue_pair.number:#x}"


class QueuePair:
    """A queue pair.

    Attributes:
        pair: what it shares with its two halves; for who looks, not for who posts.
        held_until: the cycle up to which it may send nothing but acknowledges; None if nobody holds it up.
    """

    def __init__(self, pair: PairState, capabilities: QpCapabilities, changed: Callable[[QueuePair], None]) -> None:
        """`changed` is called whenever there may be something to send, or another time to wake."""
        self.pair = pair
        self.capabilities = capabilities
        self.held_until: int | None = None
        self._changed = changed
        self._sender, self._responder = _halves(pair)
        self._answered_last = False
        self._is_drained = False
        self._has_heard = False
        pair.fail = self._fail
        pair.changed = lambda: changed(self)

    @property
    def number(self) -> int:
        """QPN."""
        return self.pair.number

    @property
    def state(self) -> QpState:
        """The state it is in."""
        return self.pair.state

    def completes_into(self, queue: CompletionQueue) -> bool:
        """True if one of its work queues does."""
        return self.pair.send_cq is queue or self.pair.recv_cq is queue

    # What the consumer calls.

    def query(self) -> QpAttributes:
        """Its attributes as they are now: the PSNs are the next ones that it sends and expects."""
        return replace(self.pair.attributes, sq_psn=self._sender.psn, rq_psn=self._responder.expected)

    def modify(self, to: QpState | None = None, **changes: Unpack[QpChanges]) -> None:
        """Goes to a state, or stays, and sets attributes.

        Raises:
            TransitionError: the standard has no such transition, or it requires or allows other attributes.
        """
        pair, before = self.pair, self.pair.state
        after = before if to is None else to
        check_transition(pair.kind, before, after, changes)
        check_ranges(changes)
        self._check_values(changes)
        if after is QpState.RESET:
            pair.attributes = QpAttributes()
            self.clear()
            if not pair.receives.is_shared:
                pair.receives.clear()
        for name, value in changes.items():
            setattr(pair.attributes, name, value)
        pair.state = after
        if (before, after) == (QpState.INIT, QpState.RTR):
            self._responder.start()
            self._has_heard = False
        elif (before, after) == (QpState.RTR, QpState.RTS):
            self._sender.start()
        elif after is QpState.SQD:
            self._is_drained = before is QpState.SQD and self._is_drained
        elif after is QpState.ERR and before is not QpState.ERR:
            self._flush()
            self._responder.clear()
        self._changed(self)

    def _check_values(self, changes: QpChanges) -> None:
        pair = self.pair
        number = changes.get("port", pair.attributes.port)
        if not 1 <= number <= len(pair.ports):
            raise TransitionError(f"port {number}: allowed 1..{len(pair.ports)}")
        port = pair.ports[number - 1]
        route = changes["path"].route if "path" in changes else None
        if route is not None and not 0 <= route.sgid_index < len(port.gids):
            raise TransitionError(f"path with SGID index {route.sgid_index}: port {number} has {len(port.gids)} GIDs")
        index = changes.get("p_key_index", 0)
        if not 0 <= index < len(port.p_keys):
            raise TransitionError(f"p_key_index {index}: allowed 0..{len(port.p_keys) - 1}")
        mtu = changes.get("path_mtu", port.mtu)
        if mtu not in map(mtu_bytes, MTU) or mtu > port.mtu:
            raise TransitionError(f"path_mtu {mtu}: allowed 256, 512, 1024, 2048, 4096, up to the port's {port.mtu}")

    def post_send(self, request: SendRequest) -> None:
        """Adds a request to the send queue.

        Raises:
            PostError: the queue pair is not ready to send, or is of a type that does not have such requests, or the
                request is longer than a message may be.
            QueueFullError: the send queue is full.
        """
        if problem := self._problem(request):
            raise PostError(f"{self._named(request)}: {problem}")
        most = self.capabilities.max_send_wr
        if self._sender.posted >= most:
            raise QueueFullError(f"{self._named(request)}: its send queue is full with {most} requests")
        self._post(request)

    def _problem(self, request: SendRequest) -> str:
        """Why the queue pair does not take a request; nothing if it does."""
        pair, limits, opcode = self.pair, self.capabilities, request.opcode
        if opcode not in _OPCODES[pair.kind]:
            allowed = ", ".join(sorted(allowed.name for allowed in _OPCODES[pair.kind])) or "nothing"
            return f"allowed {allowed}"
        if pair.state not in _TAKING_SENDS:
            return f"it is in {pair.state.name}, allowed {', '.join(s.name for s in _TAKING_SENDS)}"
        longest = pair.port.mtu if pair.kind is QpType.UD else MAX_MESSAGE_BYTES
        if request.length > longest:
            return f"{request.length} bytes, allowed up to {longest}"
        if opcode.is_atomic and request.length != ATOMIC_BYTES:
            return f"{request.length} bytes, allowed {ATOMIC_BYTES}"
        if len(request.pieces) > limits.max_send_sge:
            return f"{len(request.pieces)} pieces, allowed up to {limits.max_send_sge}"
        if request.inline is not None and (opcode.brings_data_back or request.length > limits.max_inline_data):
            return f"{request.length} bytes inline, allowed up to {limits.max_inline_data}, not read"
        return ""

    def _named(self, request: SendRequest) -> str:
        return f"{request.opcode.name} on {self.pair.kind.name} queue pair {self.number:#x}"

    def refuse(self, request: SendRequest, status: CompletionStatus) -> None:
        """Adds a request that `post_send` does not take: it ends with an error, once all before it have ended.

        An adapter does so that finds it in a queue in memory, to which a program has added it.
        """
        request.refusal = status
        self._post(request)

    def _post(self, request: SendRequest) -> None:
        if self.pair.state in (QpState.SQE, QpState.ERR):
            self.pair.complete_send(request, CompletionStatus.WR_FLUSH_ERR)
            return
        self._sender.post(request)
        self._changed(self)

    def post_receive(self, request: ReceiveRequest) -> None:
        """Adds a request to the receive queue.

        Raises:
            PostError: the queue pair is in RESET, or takes from a shared receive queue.
            QueueFullError: the receive queue is full.
            ValueError: it has more pieces than the queue takes.
        """
        pair = self.pair
        if pair.receives.is_shared:
            raise PostError(f"receive request at queue pair {pair.number:#x}: it has a shared receive queue")
        if pair.kind not in _WITH_RECEIVES:
            raise PostError(f"receive request at {name_of(self)}: it has no receive queue")
        if pair.state is QpState.RESET:
            raise PostError(f"receive request at queue pair {pair.number:#x}: it is in RESET")
        if pair.state is QpState.ERR:
            pair.complete_receive(request, CompletionStatus.WR_FLUSH_ERR)
        else:
            pair.receives.post(request)

    def flush_receives(self) -> None:
        """In ERR, ends the receive requests that a program has added since to a queue in memory."""
        if self.pair.state is QpState.ERR and not self.pair.receives.is_shared:
            self._flush_receives()

    @property
    def is_drained(self) -> bool:
        """True if nothing that was begun to be sent has not ended."""
        return self._sender.is_drained

    # What the adapter calls.

    def clear(self) -> None:
        """Forgets all that is under way, since it ends."""
        self._sender.clear()
        self._responder.clear()
        self.pair.release(None)

    @property
    def sl(self) -> int:
        """SL of the next packet."""
        return self._sender.sl

    @property
    def wake(self) -> int | None:
        """The cycle in which to call `expire`; None if nothing is waited for."""
        held, wake = self.held_until, self._sender.wake
        return wake if held is None else held if wake is None else min(held, wake)

    @property
    def waits_for_receiver(self) -> bool:
        """Whether that is because its peer's consumer had posted no receive request (RNR NAK)."""
        return self._sender.waits_for_receiver

    def expire(self, now: int) -> None:
        """Lets time pass to `now`."""
        if self.held_until is not None and self.held_until <= now:
            self.held_until = None
        self._sender.expire(now)
        self._changed(self)

    def receive(self, packet: Arrived, now: int) -> None:
        """Takes a packet whose headers are in order."""
        if self.pair.state not in _RECEIVING:
            return
        if packet.is_request:
            if self.pair.state is QpState.RTR and not self._has_heard:
                self._has_heard = True
                self.pair.tell(AsyncEventType.COMM_EST)
            self._responder.receive(packet)
        elif self.pair.state is not QpState.RTR:
            self._sender.receive(packet, now)
        self._check_drained()
        self._changed(self)

    def next_packet(self, now: int) -> Outgoing | None:
        """The next packet to be sent; answers and requests take turns if there are both."""
        held = self.held_until is not None
        packet = None if self._answered_last else self._responder.next_packet(held)
        self._answered_last = packet is not None
        if packet is None and not held and self.pair.state in (QpState.RTS, QpState.SQD):
            packet = self._sender.next_packet(now)
            self._check_drained()
        if packet is None:
            packet = self._responder.next_packet(held)
        return packet

    def _check_drained(self) -> None:
        if self.pair.state is QpState.SQD and not self._is_drained and self._sender.is_drained:
            self._is_drained = True
            if self.pair.attributes.sqd_notify:
                self.pair.tell(AsyncEventType.SQ_DRAINED)

    def _fail(self, state: QpState) -> None:
        if self.pair.state is QpState.ERR:
            return
        self.pair.state = state
        if state is QpState.ERR:
            self._flush()
        else:
            self._sender.flush()
        self._changed(self)

    def _flush(self) -> None:
        pair = self.pair
        self._sender.flush()
        self._responder.flush()
        pair.release(CompletionStatus.WR_FLUSH_ERR)
        if pair.receives.is_shared:
            pair.tell(AsyncEventType.QP_LAST_WQE_REACHED)
        else:
            self._flush_receives()

    def _flush_receives(self) -> None:
        while (request := self.pair.receives.take()) is not None:
            self.pair.complete_receive(request, CompletionStatus.WR_FLUSH_ERR)
