"""What consumers make at an adapter, and end when nobody uses it any more (IBTA vol 1, 11.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Final

from verbs.address import AddressHandle, AddressVector
from verbs.completions import AsyncEvent, AsyncEventType, CompletionEntries, CompletionQueue
from verbs.limits import AdapterLimits
from verbs.multicast import MulticastGroups
from verbs.pair_state import PairState, XrcReceives
from verbs.port import Port
from verbs.queue_pair import QpCapabilities, QueuePair, name_of
from verbs.receive_queue import PostedReceives, ReceiveQueue, SharedReceiveQueue
from verbs.regions import InUseError, KeyTable, ProtectionDomain, ReliableDomain, XrcDomain
from verbs.states import QpState, QpType
from verbs.turns import Turns

__all__ = ["FIRST_QP", "Resources"]

FIRST_QP: Final = 2
"""0 and 1 are QP0 and QP1."""

_NO_QUEUES: Final = QpCapabilities(0, 0, 0, 0, 0)


class Resources:
    """Domains, queues, handles and queue pairs of an adapter.

    Attributes:
        limits: how much of everything there may be.
        keys: all memory that may be reached.
        groups: multicast groups, and who is attached to them.
        on_event: gets each asynchronous event.
    """

    def __init__(self, ports: Sequence[Port], cycle_ns: int, limits: AdapterLimits, first_qp: int) -> None:
        self.ports = tuple(ports)
        self.limits = limits
        self.keys = KeyTable(limits)
        self.groups = MulticastGroups(limits)
        self.on_event: Callable[[AsyncEvent], None] = lambda event: None
        self._cycle_ns = cycle_ns
        self._pairs: dict[int, QueuePair] = {}
        self._states: dict[int, PairState] = {}
        self._turns = Turns(len(ports), self._pairs)
        self._numbers = count(first_qp)
        self._domain_numbers = count(1)
        self._domains: dict[ProtectionDomain, None] = {}
        self._reliable_domains: dict[ReliableDomain, None] = {}
        self._xrc_domains: dict[XrcDomain, None] = {}
        self._completion_queues: dict[CompletionQueue, None] = {}
        self._shared_queues: dict[SharedReceiveQueue, None] = {}
        self._xrc_receives: dict[int, XrcReceives] = {}
        self._handles: dict[AddressHandle, None] = {}

    def allocate_pd(self) -> ProtectionDomain:
        """A protection domain.

        Raises:
            LimitError: one more than there may be.
        """
        self.limits.check(max_pd=len(self._domains) + 1)
        domain = ProtectionDomain(next(self._domain_numbers))
        self._domains[domain] = None
        return domain

    def deallocate_pd(self, pd: ProtectionDomain) -> None:
        """Ends a protection domain.

        Raises:
            InUseError: something is in it (IBTA vol 1, 11.2.1.6).
        """
        InUseError.check(f"protection domain {pd.number}", self._users_of(pd))
        del self._domains[pd]

    def _users_of(self, pd: ProtectionDomain) -> Iterator[str]:
        yield from (name_of(queue_pair) for queue_pair in self._pairs.values() if queue_pair.pair.pd is pd)
        yield from self.keys.users_of(pd)
        yield from ("a shared receive queue" for queue in self._shared_queues if queue.pd is pd)
        yield from ("an address handle" for handle in self._handles if handle.pd is pd)

    def allocate_rdd(self) -> ReliableDomain:
        """A domain of RD."""
        domain = ReliableDomain(next(self._domain_numbers))
        self._reliable_domains[domain] = None
        return domain

    def deallocate_rdd(self, domain: ReliableDomain) -> None:
        """Ends a domain of RD.

        Raises:
            InUseError: queue pairs or contexts are in it.
        """
        users = (queue_pair for queue_pair in self._pairs.values() if queue_pair.pair.reliable_domain is domain)
        InUseError.check(f"reliable datagram domain {domain.number}", map(name_of, users))
        del self._reliable_domains[domain]

    def open_xrcd(self) -> XrcDomain:
        """A domain of XRC."""
        domain = XrcDomain(next(self._domain_numbers))
        self._xrc_domains[domain] = None
        return domain

    def close_xrcd(self, domain: XrcDomain) -> None:
        """Ends a domain of XRC.

        Raises:
            InUseError: queue pairs or shared receive queues are in it.
        """
        users = [name_of(queue_pair) for queue_pair in self._pairs.values() if queue_pair.pair.xrc_domain is domain]
        users += [
            f"shared receive queue {number:#x}" for number, of in self._xrc_receives.items() if of.domain is domain
        ]
        InUseError.check(f"XRC domain {domain.number}", users)
        del self._xrc_domains[domain]

    def create_cq(self, depth: int, entries: CompletionEntries | None = None) -> CompletionQueue:
        """A completion queue, whose entries are kept in `entries` if given.

        Raises:
            LimitError: longer than it may be, or one more than there may be.
        """
        self.limits.check(max_cqe=depth, max_cq=len(self._completion_queues) + 1)
        queue = CompletionQueue(depth, entries)
        queue.on_overrun = lambda: self._overrun(queue)
        self._completion_queues[queue] = None
        return queue

    def resize_cq(self, queue: CompletionQueue, depth: int, entries: CompletionEntries | None = None) -> None:
        """See `CompletionQueue.resize`.

        Raises:
            LimitError: longer than it may be.
            ValueError: shorter than what it holds.
        """
        self.limits.check(max_cqe=depth)
        queue.resize(depth, entries)

    def destroy_cq(self, queue: CompletionQueue) -> None:
        """Ends a completion queue.

        Raises:
            InUseError: a queue pair, or a shared receive queue of XRC, completes into it (IBTA vol 1, 11.2.6.4).
        """
        users = [name_of(queue_pair) for queue_pair in self._pairs.values() if queue_pair.completes_into(queue)]
        users += [f"shared receive queue {number:#x}" for number, of in self._xrc_receives.items() if of.cq is queue]
        InUseError.check("completion queue", users)
        del self._completion_queues[queue]

    def _overrun(self, queue: CompletionQueue) -> None:
        """A completion was lost: no queue pair that completes there can go on (IBTA vol 1, 11.6.3.1)."""
        self._report(AsyncEvent(AsyncEventType.CQ_ERR, queue))
        for queue_pair in self._pairs.values():
            pair = queue_pair.pair
            completes = queue_pair.completes_into(queue) or self._is_target_of(pair, queue)
            if completes and pair.state not in (QpState.RESET, QpState.ERR):
                pair.tell(AsyncEventType.QP_FATAL)
                pair.fail(QpState.ERR)

    def _is_target_of(self, pair: PairState, queue: CompletionQueue) -> bool:
        """True if it receives for shared receive queues of XRC that complete there."""
        domains = (receives.domain for receives in self._xrc_receives.values() if receives.cq is queue)
        return pair.xrc_domain is not None and pair.xrc_domain in domains

    def create_srq(
        self, pd: ProtectionDomain, max_wr: int, max_sge: int, posted: PostedReceives | None = None
    ) -> SharedReceiveQueue:
        """A shared receive queue, whose requests are kept in `posted` if given.

        Raises:
            LimitError: longer than it may be, or one more than there may be.
        """
        self.limits.check(max_srq_wr=max_wr, max_srq_sge=max_sge, max_srq=len(self._shared_queues) + 1)
        queue = SharedReceiveQueue(pd, max_wr, max_sge, posted)
        queue.on_limit = lambda: self._report(AsyncEvent(AsyncEventType.SRQ_LIMIT_REACHED, queue))
        self._shared_queues[queue] = None
        return queue

    def create_xrc_srq(
        self, pd: ProtectionDomain, domain: XrcDomain, cq: CompletionQueue, max_wr: int, max_sge: int
    ) -> SharedReceiveQueue:
        """A shared receive queue of XRC, whose requests complete into `cq`; senders know it by its number.

        Raises:
            LimitError: longer than it may be, or one more than there may be.
        """
        queue = self.create_srq(pd, max_wr, max_sge)
        queue.number = next(self._numbers)
        self._xrc_receives[queue.number] = XrcReceives(queue, domain, cq)
        return queue

    def modify_srq(
        self,
        queue: SharedReceiveQueue,
        *,
        max_wr: int | None = None,
        limit: int | None = None,
        posted: PostedReceives | None = None,
    ) -> None:
        """See `SharedReceiveQueue.modify`.

        Raises:
            LimitError: longer than it may be.
            ValueError: shorter than what is posted, or a limit above its length.
        """
        self.limits.check(max_srq_wr=max_wr or 0)
        queue.modify(max_wr=max_wr, limit=limit, posted=posted)

    def destroy_srq(self, queue: SharedReceiveQueue) -> None:
        """Ends a shared receive queue.

        Raises:
            InUseError: a queue pair takes from it (IBTA vol 1, 11.2.3.5).
        """
        users = (queue_pair for queue_pair in self._pairs.values() if queue_pair.pair.receives is queue)
        InUseError.check("shared receive queue", map(name_of, users))
        del self._shared_queues[queue]
        self._xrc_receives.pop(queue.number, None)

    def create_ah(self, pd: ProtectionDomain, vector: AddressVector) -> AddressHandle:
        """An address handle.

        Raises:
            LimitError: one more than there may be.
            ValueError: a port or a GID that the adapter does not have.
        """
        self.limits.check(max_ah=len(self._handles) + 1)
        if not 1 <= vector.port <= len(self.ports):
            raise ValueError(f"address handle for port {vector.port}: allowed 1..{len(self.ports)}")
        gids = self.ports[vector.port - 1].gids
        if vector.route is not None and not 0 <= vector.route.sgid_index < len(gids):
            raise ValueError(f"address handle with SGID index {vector.route.sgid_index}: port has {len(gids)} GIDs")
        handle = AddressHandle(pd, vector)
        self._handles[handle] = None
        return handle

    def destroy_ah(self, handle: AddressHandle) -> None:
        """Ends an address handle. Requests that name it and were posted go where it said."""
        del self._handles[handle]

    def create_qp(
        self,
        kind: QpType,
        pd: ProtectionDomain,
        send_cq: CompletionQueue,
        recv_cq: CompletionQueue,
        *,
        srq: SharedReceiveQueue | None = None,
        capabilities: QpCapabilities | None = None,
        posted: PostedReceives | None = None,
        rdd: ReliableDomain | None = None,
    ) -> QueuePair:
        """A queue pair, in RESET. It takes from `srq` if given, and keeps its receive requests in `posted` if given.

        One of RD is in a domain of RD; for XRC that receives, and contexts, see below.

        Raises:
            LimitError: longer queues, or requests of more pieces, than there may be; one more than there may be.
        """
        sizes = capabilities or QpCapabilities()
        self.limits.check(max_inline_data=sizes.max_inline_data)
        self.limits.check(max_qp_wr=max(sizes.max_send_wr, sizes.max_recv_wr))
        self.limits.check(max_sge=max(sizes.max_send_sge, sizes.max_recv_sge))
        receives = ReceiveQueue(sizes.max_recv_wr, sizes.max_recv_sge, posted) if srq is None else srq
        if (kind is QpType.RD) != (rdd is not None) or kind in (QpType.XRC_RECV, QpType.EEC):
            raise ValueError(f"{kind.name} queue pair, domain of RD {rdd}: allowed is RD with one, others without")
        pair = self._pair_state(kind, pd, send_cq, recv_cq, receives)
        pair.reliable_domain = rdd
        return self._add_pair(pair, sizes)

    def create_xrc_target(self, domain: XrcDomain) -> QueuePair:
        """A queue pair of XRC that receives for the shared receive queues of a domain."""
        pair = self._pair_state(QpType.XRC_RECV)
        pair.xrc_domain = domain
        return self._add_pair(pair, _NO_QUEUES)

    def create_eec(self, domain: ReliableDomain) -> QueuePair:
        """An end-to-end context, through which queue pairs of a domain of RD send."""
        pair = self._pair_state(QpType.EEC)
        pair.reliable_domain = domain
        return self._add_pair(pair, _NO_QUEUES)

    def _pair_state(
        self,
        kind: QpType,
        pd: ProtectionDomain | None = None,
        send_cq: CompletionQueue | None = None,
        recv_cq: CompletionQueue | None = None,
        receives: ReceiveQueue | None = None,
    ) -> PairState:
        """What queue pairs share; those that have no domain or queues get ones that nobody knows."""
        self.limits.check(max_qp=len(self._pairs) + 1)
        return PairState(
            next(self._numbers),
            kind,
            ProtectionDomain(0) if pd is None else pd,
            CompletionQueue(1) if send_cq is None else send_cq,
            CompletionQueue(1) if recv_cq is None else recv_cq,
            ReceiveQueue(0, 0) if receives is None else receives,
            self.keys,
            self.ports,
            self._cycle_ns,
            self._report,
            others=self._states,
            shared=self._xrc_receives,
        )

    def _add_pair(self, pair: PairState, sizes: QpCapabilities) -> QueuePair:
        queue_pair = self._pairs[pair.number] = QueuePair(pair, sizes, self._turns.add)
        self._states[pair.number] = pair
        return queue_pair

    def destroy_qp(self, queue_pair: QueuePair) -> None:
        """Ends a queue pair; what comes for it is dropped, and windows that are bound at it are not any more.

        Raises:
            InUseError: it is attached to a multicast group.
        """
        groups = self.groups.of(queue_pair)
        InUseError.check(name_of(queue_pair), (f"multicast group {mgid:#034x}" for mgid, _mlid in groups))
        self._end_sending(queue_pair)
        del self._pairs[queue_pair.number], self._states[queue_pair.number]
        queue_pair.clear()
        self.keys.unbind_all(queue_pair.number)

    def _end_sending(self, queue_pair: QueuePair) -> None:
        """What is left to do for a queue pair before it ends; nothing, without somebody who sends."""

    def attach_multicast(self, queue_pair: QueuePair, mgid: int, mlid: int) -> None:
        """See `MulticastGroups.attach`."""
        self.groups.attach(queue_pair, mgid, mlid)

    def detach_multicast(self, queue_pair: QueuePair, mgid: int, mlid: int) -> None:
        """See `MulticastGroups.detach`."""
        self.groups.detach(queue_pair, mgid, mlid)

    def _report(self, event: AsyncEvent) -> None:
        self.on_event(event)
