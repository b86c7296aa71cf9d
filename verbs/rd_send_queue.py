"""The send queue of an RD queue pair: its messages go one by one, each through a context (IBTA vol 1, 9.7.8)."""

from __future__ import annotations

from collections import deque

from verbs.completions import CompletionStatus
from verbs.frame import Outgoing
from verbs.no_half import NoSender
from verbs.pair_state import MessageContext, PairState
from verbs.states import QpState, QpType
from verbs.work import SendRequest

__all__ = ["RdSendQueue"]


class RdSendQueue(NoSender):
    """Offers its oldest message to the context that it names, and the next when that has ended.

    It sends nothing: packets, PSNs, answers and timers are the contexts'.
    """

    def __init__(self, pair: PairState) -> None:
        self._pair = pair
        self._works: deque[SendRequest] = deque()
        self._context: MessageContext | None = None
        """Which has the oldest message."""

    @property
    def owner(self) -> PairState:
        """The queue pair."""
        return self._pair

    @property
    def message(self) -> SendRequest:
        """The oldest, which is to be sent now."""
        return self._works[0]

    @property
    def posted(self) -> int:
        """Requests that have not ended."""
        return len(self._works)

    @property
    def is_drained(self) -> bool:
        """True between messages."""
        return self._context is None

    def post(self, request: SendRequest) -> None:
        """Adds a request."""
        self._works.append(request)

    def next_packet(self, now: int) -> Outgoing | None:
        """Offers the next message; its packets are the context's."""
        while self._works and self._context is None and self._pair.state is QpState.RTS:
            request = self._works[0]
            status = CompletionStatus(request.refusal)
            if not status:
                status = self._pair.perform_local(request) if request.opcode.is_local else self._offer(request)
            if status or request.opcode.is_local:
                self.ended(status)
        return None

    def _offer(self, request: SendRequest) -> CompletionStatus:
        context = self._pair.others.get(request.eec)
        if context is None or context.kind is not QpType.EEC or context.context is None:
            return CompletionStatus.INV_EECN_ERR
        if context.reliable_domain is not self._pair.reliable_domain:
            return CompletionStatus.LOC_RDD_VIOL_ERR
        if context.state not in (QpState.RTS, QpState.SQD):
            return CompletionStatus.INV_EEC_STATE_ERR
        self._context = context.context
        self._context.offer(self)
        return CompletionStatus.SUCCESS

    def ended(self, status: CompletionStatus) -> None:
        """The oldest message has been sent, or not: then nothing is any more (IBTA vol 1, 10.3.1)."""
        self._context = None
        self._pair.complete_send(self._works.popleft(), status)
        if status:
            self._pair.fail(QpState.SQE)
        self._pair.changed()

    def flush(self) -> None:
        """Ends all requests, as in an error state."""
        self._withdraw()
        while self._works:
            self._pair.complete_send(self._works.popleft(), CompletionStatus.WR_FLUSH_ERR)

    def clear(self) -> None:
        """Forgets all requests."""
        self._withdraw()
        self._works.clear()

    def _withdraw(self) -> None:
        context, self._context = self._context, None
        if context is not None:
            context.withdraw(self)
