"""Two adapters on a wire: what tests of transports stand on."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol, Unpack

from verbs.adapter import Adapter
from verbs.address import AddressVector
from verbs.completions import AsyncEvent, CompletionQueue, WorkCompletion
from verbs.frame import Outgoing
from verbs.memory import BufferMemory
from verbs.port import Port
from verbs.queue_pair import QpCapabilities, QueuePair
from verbs.receive_queue import SharedReceiveQueue
from verbs.regions import Access, MemoryRegion, ProtectionDomain
from verbs.states import QpChanges, QpState, QpType
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest
from wire.packet import Packet, parse

ALL_ACCESS = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC | Access.MW_BIND
MEMORY_BYTES = 1 << 16
MEMORY_BASE = 0x10000
LATENCY = 100
"""Cycles from one adapter to the other."""


class Transport(Protocol):
    """What a wire carries."""

    def receive(self, data: bytes, now: int) -> None: ...
    def poll(self, now: int) -> Outgoing | None: ...
    @property
    def wake(self) -> int | None: ...


@dataclass
class End:
    """An adapter with one queue pair, one region and a completion queue for each direction."""

    adapter: Adapter
    pd: ProtectionDomain
    memory: BufferMemory
    region: MemoryRegion
    send_cq: CompletionQueue
    recv_cq: CompletionQueue
    qp: QueuePair
    events: list[AsyncEvent] = field(default_factory=list)
    srq: SharedReceiveQueue | None = None

    def piece(self, offset: int, length: int) -> ScatterGather:
        return ScatterGather(MEMORY_BASE + offset, length, self.region.key)

    def put(self, offset: int, data: bytes) -> None:
        self.memory.write(MEMORY_BASE + offset, data)

    def get(self, offset: int, length: int) -> bytes:
        return self.memory.read(MEMORY_BASE + offset, length)

    def send(
        self,
        offset: int,
        length: int,
        opcode: SendOpcode = SendOpcode.SEND,
        *,
        wr_id: int = 0,
        to: tuple[End, int] | None = None,
        **more: object,
    ) -> SendRequest:
        """Posts a request of `length` bytes at `offset`; `to` is the peer and the offset in its region."""
        remote = {} if to is None else {"remote_va": MEMORY_BASE + to[1], "r_key": to[0].region.key}
        request = SendRequest(wr_id, opcode, [self.piece(offset, length)], **{**remote, **more})
        self.qp.post_send(request)
        return request

    def receive(self, offset: int, length: int, wr_id: int = 0) -> None:
        request = ReceiveRequest(wr_id, [self.piece(offset, length)])
        if self.srq is not None:
            self.srq.post(request)
        else:
            self.qp.post_receive(request)

    def sent(self) -> list[WorkCompletion]:
        return self.send_cq.poll(1000)

    def received(self) -> list[WorkCompletion]:
        return self.recv_cq.poll(1000)


def make_end(
    lid: int, kind: QpType = QpType.RC, *, shared: bool = False, capabilities: QpCapabilities | None = None
) -> End:
    adapter = Adapter([Port(lid, gids=[0xFE80 << 112 | lid])])
    pd = adapter.allocate_pd()
    memory = BufferMemory(MEMORY_BYTES, MEMORY_BASE)
    region = adapter.keys.register(pd, memory, MEMORY_BASE, MEMORY_BYTES, ALL_ACCESS)
    send_cq, recv_cq = adapter.create_cq(1024), adapter.create_cq(1024)
    srq = adapter.create_srq(pd, 128, 4) if shared else None
    rdd = adapter.allocate_rdd() if kind is QpType.RD else None
    qp = adapter.create_qp(kind, pd, send_cq, recv_cq, srq=srq, capabilities=capabilities, rdd=rdd)
    end = End(adapter, pd, memory, region, send_cq, recv_cq, qp, srq=srq)
    adapter.on_event = end.events.append
    return end


def rtr_changes(kind: QpType, path: AddressVector, dest_qp: int, psn: int, mtu: int = 256) -> QpChanges:
    if kind is QpType.UD:
        return {}
    changes: QpChanges = {"path": path, "path_mtu": mtu, "dest_qp": dest_qp, "rq_psn": psn}
    if kind is QpType.RC:
        changes.update(max_dest_rd_atomic=4, min_rnr_timer=1)
    return changes


def bring_up(end: End, path: AddressVector, dest_qp: int, psn: int = 0, **changes: Unpack[QpChanges]) -> None:
    """RESET to RTS."""
    kind = end.qp.pair.kind
    if kind is QpType.UD:
        end.qp.modify(QpState.INIT, p_key_index=0, port=1, q_key=0x11)
    else:
        end.qp.modify(QpState.INIT, p_key_index=0, port=1, access=changes.get("access", ALL_ACCESS & ~Access.MW_BIND))
    ready = rtr_changes(kind, path, dest_qp, changes.get("rq_psn", psn), changes.get("path_mtu", 256))
    for name in ("max_dest_rd_atomic", "min_rnr_timer"):
        if name in changes:
            ready[name] = changes[name]  # type: ignore[literal-required]
    end.qp.modify(QpState.RTR, **ready)
    sending: QpChanges = {"sq_psn": changes.get("sq_psn", psn)}
    if kind is QpType.RC:
        sending.update(
            timeout=changes.get("timeout", 8),
            retry_cnt=changes.get("retry_cnt", 7),
            rnr_retry=changes.get("rnr_retry", 7),
            max_rd_atomic=changes.get("max_rd_atomic", 4),
        )
    end.qp.modify(QpState.RTS, **sending)


def bring_up_context(context: QueuePair, path: AddressVector, peer: int, psn: int = 0, mtu: int = 256) -> None:
    """A context of RD, RESET to RTS."""
    context.modify(QpState.INIT, p_key_index=0, port=1)
    context.modify(QpState.RTR, path=path, path_mtu=mtu, dest_qp=peer, rq_psn=psn, max_dest_rd_atomic=4)
    context.modify(QpState.RTS, sq_psn=psn, timeout=8, retry_cnt=7, rnr_retry=7, max_rd_atomic=4)


def bring_up_datagram(queue_pair: QueuePair, q_key: int) -> None:
    """A queue pair of RD, RESET to RTS."""
    queue_pair.modify(QpState.INIT, access=ALL_ACCESS & ~Access.MW_BIND, q_key=q_key)
    queue_pair.modify(QpState.RTR, min_rnr_timer=1)
    queue_pair.modify(QpState.RTS)


def connected(kind: QpType = QpType.RC, *, shared: bool = False, **changes: Unpack[QpChanges]) -> tuple[End, End]:
    """Two ends, connected to each other, in RTS."""
    ends = make_end(1, kind), make_end(2, kind, shared=shared)
    for end, peer in (ends, ends[::-1]):
        bring_up(end, AddressVector(peer.adapter.ports[0].lid), peer.qp.number, **changes)
    return ends


Fate = Callable[[int, int, bytes], Iterator[int] | list[int]]
"""Of a packet, by number, side that sends it and bytes: after how many cycles it arrives, once for each copy."""


class Wire:
    """Carries packets between two transports.

    Attributes:
        log: side and bytes of each packet that was sent.
    """

    def __init__(self, a: Transport, b: Transport, fate: Fate = lambda number, side, data: [LATENCY]) -> None:
        self.sides = (a, b)
        self.now = 0
        self.log: list[tuple[int, bytes]] = []
        self._fate = fate
        self._order = count()
        self._flying: list[tuple[int, int, int, bytes]] = []

    def run(self, until: int | None = None) -> None:
        """Lets time pass until nothing happens any more, or to a cycle."""
        while (when := self._next()) is not None and (until is None or when <= until):
            self.now = max(self.now, when)
            while self._flying and self._flying[0][0] <= self.now:
                _when, _order, side, data = heapq.heappop(self._flying)
                self.sides[side].receive(data, self.now)
            for side, transport in enumerate(self.sides):
                outgoing = transport.poll(self.now)
                if outgoing is not None:
                    self._send(side, outgoing.data)
            # A packet takes its time on the wire.
            self.now += 1
        if until is not None:
            self.now = max(self.now, until)

    def _send(self, side: int, data: bytes) -> None:
        for delay in self._fate(len(self.log), side, data):
            heapq.heappush(self._flying, (self.now + delay, next(self._order), 1 - side, data))
        self.log.append((side, data))

    def _next(self) -> int | None:
        times = [wake for transport in self.sides if (wake := transport.wake) is not None]
        times += [flying[0] for flying in self._flying[:1]]
        return min(times, default=None)

    def packets(self, side: int | None = None) -> list[Packet]:
        """What was sent, by one side or by both."""
        return [parse(data) for sender, data in self.log if side in (None, sender)]


@dataclass
class Through:
    """A transport that gets packets as something else hands them on."""

    transport: Transport
    change: Callable[[bytes], bytes]

    def receive(self, data: bytes, now: int) -> None:
        self.transport.receive(self.change(data), now)

    def poll(self, now: int) -> Outgoing | None:
        return self.transport.poll(now)

    @property
    def wake(self) -> int | None:
        return self.transport.wake


def wire_between(a: End, b: End, fate: Fate | None = None) -> Wire:
    return Wire(a.adapter, b.adapter, *([fate] if fate else []))
