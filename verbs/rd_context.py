"""End-to-end contexts of RD: connections that carry messages of many queue pairs (IBTA vol 1, 9.7.8).

Each half is RC's, with a message at a time. One that cannot be carried out ends for its queue pairs alone: RESYNC tells
the peer to forget it, and to go on with another PSN.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from verbs.aeth import AckKind, NakCode
from verbs.arrived import Arrived
from verbs.completions import CompletionStatus
from verbs.fields import deth_bytes, number32_bytes
from verbs.frame import Envelope, Outgoing
from verbs.incidents import Incident
from verbs.incoming import RefusedRequestError
from verbs.pair_state import MessageSource, PairState
from verbs.psn import PSN_WINDOW, psn_add, psn_after
from verbs.rc_requester import RcRequester
from verbs.rc_responder import RcResponder
from verbs.segments import Segment
from verbs.send_work import SendWork
from verbs.states import QpState, QpType
from verbs.work import SendOpcode, SendRequest
from wire.opcodes import Operation, Service

__all__ = ["RdRequester", "RdResponder"]

_OWN_Q_KEY: Final = 1 << 31
_RECEIVING: Final = (QpState.RTR, QpState.RTS, QpState.SQD, QpState.SQE)
_RESYNC: Final = SendRequest(0, SendOpcode.SEND, signaled=False)
"""Stands for a RESYNC among works."""


class RdRequester(RcRequester):
    """Sends messages of queue pairs in the order in which they were offered, each when the one before has ended."""

    def __init__(self, pair: PairState) -> None:
        super().__init__(pair, Service.RD)
        self._waiting: deque[MessageSource] = deque()
        self._source: MessageSource | None = None
        """Whose message is under way."""
        self._dest_qp = 0
        self._deth = b""
        """Of the message under way, or of the one that RESYNC ends."""
        pair.context = self

    def offer(self, source: MessageSource) -> None:
        """Sends the source's message when its turn comes."""
        self._waiting.append(source)
        self._pair.changed()

    def withdraw(self, source: MessageSource) -> None:
        """Does so no more, and stops in the middle of it if it has begun."""
        if source is self._source:
            self._source = None
            self._abandon()
        else:
            self._waiting.remove(source)

    def next_packet(self, now: int) -> Outgoing | None:
        """The next packet that may be sent now."""
        if not self._works and self._waiting:
            source = self._source = self._waiting.popleft()
            request, owner = source.message, source.owner
            is_own = request.remote_q_key & _OWN_Q_KEY
            self._dest_qp = request.remote_qp
            self._deth = deth_bytes(owner.attributes.q_key if is_own else request.remote_q_key, owner.number)
            self._works.append(SendWork(request, owner))
        return super().next_packet(now)

    def _segment(self, work: SendWork, index: int) -> Segment:
        return Segment(Operation.RESYNC, b"", b"") if work.request is _RESYNC else super()._segment(work, index)

    def _envelope(self, work: SendWork) -> Envelope:
        pair = self._pair
        return Envelope(pair.port, pair.attributes.path, pair.attributes.p_key_index, self._dest_qp)

    def _prefix(self, work: SendWork) -> bytes:
        return number32_bytes(self._pair.attributes.dest_qp) + self._deth

    def _end(self, work: SendWork, status: CompletionStatus) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.ended(status)

    def _fail(self, status: CompletionStatus) -> None:
        """The message ends with an error; if nobody answers, the context ends too (IBTA vol 1, 9.9.2.4)."""
        work = self._works[0]
        if status is CompletionStatus.RETRY_EXC_ERR:
            self._works.clear()
            self._pair.fail(QpState.ERR)
        else:
            self._abandon()
        self._end(work, status)

    def _abandon(self) -> None:
        """Forgets the message; the peer has to, if anything of it was sent."""
        has_begun = self._works[0].packets > 0 and self._sent != self._works[0].first_psn
        self._works.clear()
        self._psn = self._unacknowledged = self._unused = self._sent
        self._current = self._outstanding_reads = 0
        self._recovering = False
        self._retries.renew()
        if has_begun:
            self._works.append(SendWork(_RESYNC, self._pair))
        self._pair.changed()

    def flush(self) -> None:
        """Ends all messages, as in the error state."""
        self._retries.stop()
        if self._works:
            self._end(self._works.popleft(), CompletionStatus.LOC_EEC_OP_ERR)
        while self._waiting:
            self._waiting.popleft().ended(CompletionStatus.INV_EEC_STATE_ERR)

    def clear(self) -> None:
        """Ends all messages; nothing is left of them."""
        self.flush()


class RdResponder(RcResponder):
    """Carries out requests for queue pairs of its domain."""

    def __init__(self, pair: PairState) -> None:
        super().__init__(pair, Service.RD)
        self._reply_to = 0
        """The queue pair whose request came last."""
        self._target = pair
        """Whose that was here."""
        pair.holder = self

    def receive(self, packet: Arrived) -> None:
        """Takes a request."""
        self._reply_to = packet.deth()[1]
        if packet.operation is Operation.RESYNC and not 0 < psn_after(self._expected, packet.psn) <= PSN_WINDOW:
            self._resynchronize(packet.psn)
        else:
            super().receive(packet)

    def _resynchronize(self, psn: int) -> None:
        """Forgets the message under way, and goes on after this PSN."""
        self._message.end(CompletionStatus.REM_ABORT_ERR)
        self._answers.clear()
        self._has_refused = False
        self._expected = psn_add(psn, 1)
        self._acknowledge()

    def release(self, target: PairState, status: CompletionStatus | None) -> None:
        """Lets go of a queue pair that takes no more."""
        if self._message.target is not target:
            return
        if status is not None:
            self._message.end(status)
        self._message.clear()

    def _target_of(self, packet: Arrived) -> PairState:
        target = self._pair.others.get(packet.dest_qp)
        if (
            target is None
            or (target.kind, target.reliable_domain) != (QpType.RD, self._pair.reliable_domain)
            or target.state not in _RECEIVING
        ):
            raise RefusedRequestError(NakCode.INVALID_RD_REQUEST)
        if packet.deth()[0] != target.attributes.q_key:
            self._pair.port.count_q_key_violation(packet)
            raise RefusedRequestError(NakCode.INVALID_RD_REQUEST)
        self._target = target
        return target

    def _give_up(self, refused: RefusedRequestError) -> None:
        """The requester is told; its queue pair and ours go on with other messages."""
        self._refuse(AckKind.NAK, refused.nak, Incident.REFUSED)
        self._message.end(refused.status or CompletionStatus.REM_ABORT_ERR)
        if refused.event is not None:
            self._target.tell(refused.event)

    def _stop(self) -> None:
        """The context goes on."""

    def _envelope(self) -> Envelope:
        pair = self._pair
        return Envelope(pair.port, pair.attributes.path, pair.attributes.p_key_index, self._reply_to)

    def _prefix(self) -> bytes:
        return number32_bytes(self._pair.attributes.dest_qp)
