"""One stream of messages: the two queue pairs that carry it, and what their consumers do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cosim.hosts.message_memory import DATAGRAM_HEAD, ArrivingMessages, AtomicResults, MessageContent, SentMessages
from cosim.scenario.message_flow import MessageOperation
from cosim.stimulus.flows import Arrivals, MessageStream
from cosim.stimulus.message_events import MessageEvent, MessageListener, MessageStep
from verbs.adapter import Adapter
from verbs.address import AddressHandle, AddressVector
from verbs.aeth import ack_timeout_cycles, rnr_timer_cycles
from verbs.completions import CompletionFlag, CompletionQueue, WorkCompletion
from verbs.incidents import Incident
from verbs.memory import BufferMemory, Memory
from verbs.queue_pair import QpCapabilities, QueuePair
from verbs.regions import Access, ProtectionDomain
from verbs.states import QpChanges, QpState, QpType
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest

__all__ = ["HostEnd", "MessageConnection"]

_MOST_MESSAGES: Final = 1 << 24
_MOST_READS: Final = 128
"""READs and atomics that an adapter has outstanding at once."""
_Q_KEY: Final = 0x1234_5678

_REMOTE: Final = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC

_OPCODES: Final[dict[MessageOperation, SendOpcode]] = {
    "send": SendOpcode.SEND,
    "rdma_write": SendOpcode.RDMA_WRITE,
    "rdma_write_with_imm": SendOpcode.RDMA_WRITE_WITH_IMM,
    "rdma_read": SendOpcode.RDMA_READ,
    "fetch_add": SendOpcode.ATOMIC_FETCH_AND_ADD,
    "cmp_swap": SendOpcode.ATOMIC_CMP_AND_SWP,
}


@dataclass(frozen=True, slots=True)
class HostEnd:
    """A port of a host's adapter, where a stream begins or ends.

    Attributes:
        node: the fabric's name for it.
        number: the port's, in its adapter.
    """

    node: str
    adapter: Adapter
    pd: ProtectionDomain
    number: int

    @property
    def lid(self) -> int:
        """Its LID."""
        return self.adapter.ports[self.number - 1].lid


class MessageConnection:
    """The queue pairs of a stream of messages, and the consumers at both.

    Attributes:
        sender, receiver: the queue pairs.
    """

    def __init__(
        self,
        index: int,
        stream: MessageStream,
        ends: tuple[HostEnd, HostEnd],
        path_mtu: int,
        arrivals: Arrivals,
        cycles_per_message: int,
        cycle_ns: int,
        tell: MessageListener,
    ) -> None:
        """Both are brought up to Ready to Send. A message keeps its link busy for so many cycles."""
        self._index = index
        self._stream = stream
        self._flow = flow = stream.flow
        self._source, self._destination = ends
        self._arrivals = arrivals
        self._busy = cycles_per_message
        self._tell = tell
        self._ready = arrivals.next()
        """The cycle from which there is one more message; None if there is none."""
        self._number = 0
        """Of the next message."""
        self._outstanding = 0
        self._posted_at: dict[int, int] = {}
        self._arrived = 0
        """The number after that of the last message that has arrived."""
        self._has_failed = False
        self._place = 0
        """Of the next receive request."""
        self._unposted = flow.receives if flow.takes_a_receive else 0
        self._next_receive = 0
        self._waits = {
            Incident.TIMEOUT: ack_timeout_cycles(flow.timeout, cycle_ns) or 0,
            Incident.RNR_NAK: rnr_timer_cycles(flow.min_rnr_timer, cycle_ns),
        }
        kind = QpType[flow.transport.upper()]
        head = DATAGRAM_HEAD if kind is QpType.UD else 0
        self._stride = head + flow.size
        content = AtomicResults() if flow.is_atomic else MessageContent(index)
        sent, self._arriving = SentMessages(content, flow.size), ArrivingMessages(content, flow.size, head=head)
        if flow.transport == "uc" and flow.operation == "rdma_write":
            # No completion tells of these.
            adapter = self._destination.adapter
            self._arriving.on_whole = lambda place: self._arrive(self._destination, place, adapter.now)
        here: Memory = self._arriving if flow.brings_data_back else sent
        there: Memory = self._arriving
        if flow.brings_data_back:
            there = BufferMemory(flow.size) if flow.is_atomic else sent
        self._local_key = self._register(self._source, here, Access.LOCAL_WRITE)
        self._remote_key = self._register(self._destination, there, _REMOTE)
        self.sender = self._queue_pair(self._source, kind, flow.depth, self._send_ended)
        self.receiver = self._queue_pair(self._destination, kind, flow.receives, self._received)
        self._bring_up(self._source, self.sender, self._destination, self.receiver, path_mtu)
        self._bring_up(self._destination, self.receiver, self._source, self.sender, path_mtu)
        self._handle: AddressHandle | None = None
        if kind is QpType.UD:
            self._handle = self._source.adapter.create_ah(self._source.pd, self._path(self._source, self._destination))

    # Making it.

    def _register(self, end: HostEnd, memory: Memory, access: Access) -> int:
        length = memory.base + len(memory.bytes) if isinstance(memory, BufferMemory) else _MOST_MESSAGES * self._stride
        return end.adapter.keys.register(end.pd, memory, 0, length, access).key

    def _queue_pair(
        self, end: HostEnd, kind: QpType, requests: int, completed: Callable[[WorkCompletion, int], None]
    ) -> QueuePair:
        adapter = end.adapter
        queue = adapter.create_cq(2 * requests)
        _follow(queue, lambda completion: completed(completion, adapter.now))
        sizes = QpCapabilities(max_send_wr=requests, max_recv_wr=requests)
        queue_pair = adapter.create_qp(kind, end.pd, queue, queue, capabilities=sizes)
        queue_pair.pair.on_incident = lambda incident, psn: self._tell(
            MessageEvent(self._index, adapter.now, end.node, incident, psn=psn, cycles=self._waits.get(incident, 0))
        )
        return queue_pair

    def _bring_up(self, end: HostEnd, own: QueuePair, peer: HostEnd, other: QueuePair, path_mtu: int) -> None:
        flow, kind = self._flow, own.pair.kind
        first: QpChanges = {"p_key_index": 0, "port": end.number}
        ready: QpChanges = {}
        sending: QpChanges = {"sq_psn": 0}
        if kind is QpType.UD:
            first["q_key"] = _Q_KEY
        else:
            first["access"] = _REMOTE
            ready = {"path": self._path(end, peer), "path_mtu": path_mtu, "dest_qp": other.number, "rq_psn": 0}
        if kind is QpType.RC:
            reads = min(flow.depth, _MOST_READS)
            ready.update({"max_dest_rd_atomic": reads, "min_rnr_timer": flow.min_rnr_timer})
            sending.update({"timeout": flow.timeout, "retry_cnt": flow.retry_count, "rnr_retry": flow.rnr_retry})
            sending["max_rd_atomic"] = reads
        own.modify(QpState.INIT, **first)
        own.modify(QpState.RTR, **ready)
        own.modify(QpState.RTS, **sending)

    def _path(self, end: HostEnd, peer: HostEnd) -> AddressVector:
        return AddressVector(peer.lid, sl=self._flow.sl, port=end.number)

    # Consumers.

    @property
    def due(self) -> int | None:
        """The cycle in which a consumer has something to do if nothing completes; None if none has."""
        times = []
        if self._ready is not None and self._outstanding < self._flow.depth and not self._has_failed:
            times.append(self._ready)
        if self._unposted:
            times.append(self._next_receive)
        return min(times, default=None)

    def act(self, now: int) -> None:
        """Posts what is to be posted by cycle `now`."""
        while self._unposted and self._next_receive <= now:
            piece = ScatterGather(self._place * self._stride, self._stride, self._remote_key)
            self.receiver.post_receive(ReceiveRequest(self._place, [piece]))
            self._place += 1
            self._unposted -= 1
            if self._place >= self._flow.receives:
                self._next_receive = now + self._flow.receive_every
        while self._ready is not None and self._ready <= now and self._outstanding < self._flow.depth:
            if self._has_failed:
                return
            self._post(now)
            self._arrivals.sent(self._busy)
            self._ready = self._arrivals.next()

    def _post(self, now: int) -> None:
        number, flow = self._number, self._flow
        self._number += 1
        self._outstanding += 1
        self._posted_at[number] = now
        at, opcode = number * flow.size, _OPCODES[flow.operation]
        request = SendRequest(
            number,
            opcode,
            [ScatterGather(at, flow.size, self._local_key)],
            imm=number if opcode is SendOpcode.RDMA_WRITE_WITH_IMM else 0,
            remote_va=at if flow.is_write or opcode is SendOpcode.RDMA_READ else 0,
            r_key=0 if opcode.is_send else self._remote_key,
            compare_add=1 if opcode is SendOpcode.ATOMIC_FETCH_AND_ADD else number if opcode.is_atomic else 0,
            swap=number + 1 if opcode is SendOpcode.ATOMIC_CMP_AND_SWP else 0,
            handle=self._handle,
            remote_qp=self.receiver.number if self._handle is not None else 0,
            remote_q_key=_Q_KEY if self._handle is not None else 0,
        )
        self._tell(MessageEvent(self._index, now, self._source.node, MessageStep.POSTED, number))
        self.sender.post_send(request)

    def _send_ended(self, completion: WorkCompletion, now: int) -> None:
        """A request of the sender has ended."""
        self._outstanding -= 1
        if completion.status:
            self._has_failed = True
            self._fail(self._source, completion, now)
        elif self._flow.transport == "rc" and not self._flow.takes_a_receive:
            self._arrive(self._source if self._flow.brings_data_back else self._destination, completion.wr_id, now)

    def _received(self, completion: WorkCompletion, now: int) -> None:
        """A receive request has ended."""
        if completion.status:
            self._fail(self._destination, completion, now)
            return
        if not self._unposted:
            self._next_receive = max(self._next_receive, now + self._flow.receive_every)
        self._unposted += 1
        has_imm = completion.flags & CompletionFlag.WITH_IMM
        self._arrive(self._destination, completion.imm if has_imm else completion.wr_id, now)

    def _fail(self, end: HostEnd, completion: WorkCompletion, now: int) -> None:
        self._tell(
            MessageEvent(self._index, now, end.node, MessageStep.FAILED, completion.wr_id, status=completion.status)
        )

    def _arrive(self, end: HostEnd, place: int, now: int) -> None:
        """A message is in its place, and its host knows."""
        number, wrong = self._arriving.take(place)
        if number < self._arrived or (number > self._arrived and self._flow.transport == "rc"):
            wrong = wrong or f"it comes after message {self._arrived - 1}"
        posted = self._posted_at.pop(number, None)
        if posted is None:
            wrong = wrong or "nobody has sent it"
        # What it has overtaken will not come any more.
        for overtaken in range(self._arrived, number):
            self._posted_at.pop(overtaken, None)
            self._arriving.forget(overtaken)
        self._arrived = max(self._arrived, number + 1)
        event = MessageEvent(self._index, now, end.node, MessageStep.WRONG, number, text=wrong)
        if not wrong:
            event = MessageEvent(self._index, now, end.node, MessageStep.ARRIVED, number, cycles=now - (posted or 0))
        self._tell(event)


def _follow(queue: CompletionQueue, completed: Callable[[WorkCompletion], None]) -> None:
    """Hands each completion on in the cycle in which it comes."""

    def poll() -> None:
        for completion in queue.poll(queue.depth):
            completed(completion)
        queue.request_notification()

    queue.on_completion = poll
    queue.request_notification()
