"""What the two halves of a queue pair share: identity, attributes, state, queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from verbs.completions import (
    COMPLETED_AS,
    AsyncEvent,
    AsyncEventType,
    CompletionOpcode,
    CompletionQueue,
    CompletionStatus,
    WorkCompletion,
)
from verbs.frame import Envelope
from verbs.incidents import Incident
from verbs.port import Port
from verbs.receive_queue import ReceiveQueue, SharedReceiveQueue
from verbs.regions import KeyTable, ProtectionDomain, ProtectionError, ReliableDomain, XrcDomain
from verbs.states import QpAttributes, QpState, QpType
from verbs.work import ReceiveRequest, SendOpcode, SendRequest

__all__ = ["MessageContext", "MessageHolder", "MessageSource", "PairState", "XrcReceives"]


@dataclass(eq=False, slots=True)
class XrcReceives:
    """A shared receive queue of XRC: its domain, and where its requests complete."""

    queue: SharedReceiveQueue
    domain: XrcDomain
    cq: CompletionQueue


class MessageSource(Protocol):
    """A send queue of RD, whose messages go through contexts, one at a time."""

    @property
    def owner(self) -> PairState:
        """The queue pair."""

    @property
    def message(self) -> SendRequest:
        """The oldest, which is to be sent now."""

    def ended(self, status: CompletionStatus) -> None:
        """It has been sent, or not."""


class MessageContext(Protocol):
    """What sends messages for others: an end-to-end context."""

    def offer(self, source: MessageSource) -> None:
        """Sends the source's message when its turn comes."""

    def withdraw(self, source: MessageSource) -> None:
        """Does so no more, and stops in the middle of it if it has begun."""


class MessageHolder(Protocol):
    """What receives messages for others: an end-to-end context."""

    def release(self, target: PairState, status: CompletionStatus | None) -> None:
        """Lets go of a queue pair that takes no more: of its message under way too, which ends with a status or in
        silence."""


@dataclass(eq=False, slots=True)
class PairState:
    """A queue pair as its requester and its responder see it.

    Attributes:
        on_send_ended: called with each request of the send queue when it has ended, also if nothing is completed.
        others: all queue pairs and contexts of the adapter by number.
        shared: its shared receive queues of XRC by the numbers that senders know them by.
        reliable_domain: of RD.
        xrc_domain: of XRC that receives.
        context, holder: of RD, the part of a context that sends, and the part that receives.
        changed: says that there may be something to send.
        on_incident: called with each incident and its PSN.
        fail: takes the queue pair to SQE or ERR, and flushes what the state flushes.
        report: tells of an asynchronous event.
    """

    number: int
    kind: QpType
    pd: ProtectionDomain
    send_cq: CompletionQueue
    recv_cq: CompletionQueue
    receives: ReceiveQueue
    keys: KeyTable
    ports: Sequence[Port]
    cycle_ns: int
    report: Callable[[AsyncEvent], None]
    state: QpState = QpState.RESET
    attributes: QpAttributes = field(default_factory=QpAttributes)
    fail: Callable[[QpState], None] = lambda state: None
    others: Mapping[int, PairState] = field(default_factory=dict)
    shared: Mapping[int, XrcReceives] = field(default_factory=dict)
    reliable_domain: ReliableDomain | None = None
    xrc_domain: XrcDomain | None = None
    context: MessageContext | None = None
    holder: MessageHolder | None = None
    changed: Callable[[], None] = lambda: None
    on_send_ended: Callable[[SendRequest], None] = lambda request: None
    on_incident: Callable[[Incident, int], None] = lambda incident, psn: None

    def release(self, status: CompletionStatus | None) -> None:
        """Ends the messages for it that contexts hold, if it is of RD."""
        if self.reliable_domain is not None:
            for other in self.others.values():
                if other.holder is not None:
                    other.holder.release(self, status)

    @property
    def port(self) -> Port:
        """The port that the queue pair uses."""
        return self.ports[self.attributes.port - 1]

    @property
    def envelope(self) -> Envelope:
        """What packets to the peer have in common."""
        attributes = self.attributes
        return Envelope(self.port, attributes.path, attributes.p_key_index, attributes.dest_qp)

    def tell(self, event: AsyncEventType) -> None:
        """Reports an event of this queue pair."""
        self.report(AsyncEvent(event, self.number))

    def complete_send(self, request: SendRequest, status: CompletionStatus = CompletionStatus.SUCCESS) -> None:
        """Tells that a request of the send queue has ended, if it wanted that or has failed."""
        self.on_send_ended(request)
        if request.signaled or status:
            opcode = COMPLETED_AS[request.opcode]
            self.send_cq.add(WorkCompletion(request.wr_id, status, opcode, self.number, request.length))

    def complete_receive(self, request: ReceiveRequest, status: CompletionStatus) -> None:
        """Tells that a receive request has failed."""
        self.recv_cq.add(WorkCompletion(request.wr_id, status, CompletionOpcode.RECV, self.number))

    def perform_local(self, request: SendRequest) -> CompletionStatus:
        """Does what a work request asks for without a packet."""
        try:
            if request.opcode is SendOpcode.LOCAL_INV:
                self.keys.invalidate(request.r_key, self.pd, self.number)
            elif request.binding is not None:
                window, new_key, region_key, va, length, access = request.binding
                self.keys.bind(
                    window, region_key, va, length, access, pd=self.pd, qp_number=self.number, new_key=new_key
                )
        except ProtectionError:
            binds = request.opcode is SendOpcode.BIND_MW
            return CompletionStatus.MW_BIND_ERR if binds else CompletionStatus.LOC_QP_OP_ERR
        return CompletionStatus.SUCCESS
