"""The requester of RC: requests sent, acknowledged, sent again (IBTA vol 1, 9.7.3, 9.7.5 and 9.7.7)."""

from __future__ import annotations

from collections import deque
from typing import Final

from verbs.aeth import AckKind, NakCode, ack_kind, ack_value
from verbs.arrived import Arrived
from verbs.completions import CompletionStatus
from verbs.end_to_end_credits import EndToEndCredits
from verbs.frame import Envelope, Outgoing
from verbs.incidents import Incident
from verbs.memory import MemoryFaultError
from verbs.pair_state import PairState
from verbs.psn import PSN_MASK, PSN_WINDOW, psn_add, psn_after
from verbs.regions import ProtectionError
from verbs.retries import Retries
from verbs.segments import Segment, packets_of, segment
from verbs.send_work import SendWork
from verbs.states import QpState
from verbs.work import SendOpcode, SendRequest, scatter
from wire.opcodes import Operation, Service

__all__ = ["ACK_INTERVAL", "RcRequester"]

ACK_INTERVAL: Final = 16
"""Within a message every packet of that number asks for an ACK: a time-out then covers few packets, and a long
message that loses one is not sent again from its beginning."""

# What packets are compared with has names of its own: docs/verbs.md, "Speed".
_RTS: Final = QpState.RTS
_SQD: Final = QpState.SQD
_ERR: Final = QpState.ERR
_ACKNOWLEDGE: Final = Operation.ACKNOWLEDGE
_READ_REQUEST: Final = Operation.RDMA_READ_REQUEST
_ATOMIC_ACKNOWLEDGE: Final = Operation.ATOMIC_ACKNOWLEDGE
_RDMA_READ: Final = SendOpcode.RDMA_READ
_ACK: Final = AckKind.ACK
_RNR_NAK: Final = AckKind.RNR_NAK
_NAK: Final = AckKind.NAK

_LAST_OF_READ: Final = (Operation.RDMA_READ_RESPONSE_LAST, Operation.RDMA_READ_RESPONSE_ONLY)

_NAK_STATUS: Final = {
    NakCode.INVALID_REQUEST: CompletionStatus.REM_INV_REQ_ERR,
    NakCode.REMOTE_ACCESS_ERROR: CompletionStatus.REM_ACCESS_ERR,
    NakCode.REMOTE_OPERATIONAL_ERROR: CompletionStatus.REM_OP_ERR,
    NakCode.INVALID_RD_REQUEST: CompletionStatus.REM_INV_RD_REQ_ERR,
}


class RcRequester:
    """Sends what was posted, in order, and again from where a NAK, a gap or a time-out says."""

    def __init__(self, pair: PairState, service: Service = Service.RC) -> None:
        self._pair = pair
        self._service = service
        self._works: deque[SendWork] = deque()
        self._current = 0
        """Index of the work from which the next packet comes."""
        self._psn = 0
        """PSN of the next packet to be sent, be it for the first time or again."""
        self._unacknowledged = 0
        """The oldest PSN that is."""
        self._sent = 0
        """The PSN after the last one that was ever sent."""
        self._unused = 0
        """The next PSN for a work that has none."""
        self._outstanding_reads = 0
        """READs and atomics begun and not done."""
        self._credits = EndToEndCredits(are_counted=service is not Service.RD)
        self._retries = Retries(pair)
        self._recovering = False
        """A gap in responses was seen, and what is missing is being asked for again."""

    def start(self) -> None:
        """Begins anew with the first PSN that the attributes give."""
        psn = self._pair.attributes.sq_psn
        self._psn = self._unacknowledged = self._sent = self._unused = psn
        self._current = self._outstanding_reads = 0
        self._credits = EndToEndCredits(are_counted=self._service is not Service.RD)
        self._recovering = False
        self._retries.renew()

    def post(self, request: SendRequest) -> None:
        """Adds a request."""
        self._works.append(SendWork(request, self._pair, error=CompletionStatus(request.refusal)))
        self._retire()

    @property
    def wake(self) -> int | None:
        """The cycle in which to call `expire`."""
        return self._retries.wake

    @property
    def waits_for_receiver(self) -> bool:
        """Whether it was told that there is no receive request yet."""
        return self._retries.waits_for_receiver

    @property
    def posted(self) -> int:
        """Requests that have not ended."""
        return len(self._works)

    @property
    def psn(self) -> int:
        """PSN of the next packet."""
        return self._psn

    @property
    def sl(self) -> int:
        """SL of the next packet."""
        return self._pair.attributes.path.sl

    @property
    def is_drained(self) -> bool:
        """True if nothing that was begun has not ended."""
        return not self._works or not (self._works[0].packets or self._works[0].done)

    def flush(self) -> None:
        """Ends all requests, as in an error state."""
        while self._works:
            self._end(self._works.popleft(), CompletionStatus.WR_FLUSH_ERR)
        self._retries.stop()

    def clear(self) -> None:
        """Forgets all requests."""
        self._works.clear()
        self._retries.stop()

    # Sending.

    def next_packet(self, now: int) -> Outgoing | None:
        """The next packet that may be sent now."""
        if self._retries.waits_for_receiver:
            return None
        while self._current < len(self._works) and self._pair.state in (_RTS, _SQD):
            work = self._works[self._current]
            if work.error:
                return None
            if not work.packets:
                if not self._may_begin(work):
                    return None
                if work.request.opcode.is_local:
                    self._perform(work)
                    continue
                self._begin(work)
            elif not (self._has_credit(work) or self._psn == work.first_psn or self._is_let_in(work)):
                return None
            return self._send(work, now)
        return None

    def _may_begin(self, work: SendWork) -> bool:
        request, attributes = work.request, self._pair.attributes
        if self._pair.state is _SQD or (request.fence and self._outstanding_reads):
            return False
        if request.opcode.is_local:
            return True
        if request.opcode.brings_data_back and self._outstanding_reads >= attributes.max_rd_atomic:
            return False
        count = packets_of(request.length, attributes.path_mtu)
        if psn_after(self._unused, self._unacknowledged) + count > PSN_WINDOW:
            return False
        return not request.opcode.takes_a_receive or self._credits.next_may_begin()

    def _has_credit(self, work: SendWork) -> bool:
        return not work.request.opcode.takes_a_receive or self._credits.covers(work.ssn)

    def _is_let_in(self, work: SendWork) -> bool:
        """The one packet that went without a credit has been acknowledged: the message has its receive request."""
        return 0 < psn_after(self._unacknowledged, work.first_psn) <= work.packets

    def _begin(self, work: SendWork) -> None:
        opcode = work.request.opcode
        work.ssn = self._credits.number(takes_a_receive=opcode.takes_a_receive)
        work.first_psn = self._unused
        work.packets = 1 if opcode.is_atomic else packets_of(work.request.length, self._pair.attributes.path_mtu)
        self._unused = psn_add(self._unused, work.packets)
        if opcode.brings_data_back:
            self._outstanding_reads += 1

    def _perform(self, work: SendWork) -> None:
        work.error = work.owner.perform_local(work.request)
        work.done = not work.error
        self._current += work.done
        self._retire()

    def _send(self, work: SendWork, now: int) -> Outgoing | None:
        index = psn_after(self._psn, work.first_psn)
        try:
            operation, extended, payload = self._segment(work, index)
        except (ProtectionError, MemoryFaultError):
            work.error = CompletionStatus.LOC_PROT_ERR
            self._retire()
            return None
        takes = work.packets - index if operation is _READ_REQUEST else 1
        ends = index + takes == work.packets
        ack_req = ends or index % ACK_INTERVAL == ACK_INTERVAL - 1 or (index == 0 and not self._has_credit(work))
        packet = self._envelope(work).packet(
            self._service << 5 | operation,
            self._psn,
            self._prefix(work) + extended,
            payload,
            ack_req=ack_req,
            solicited=ends and work.request.solicited,
        )
        self._psn = psn_add(self._psn, takes)
        if psn_after(self._psn, self._unacknowledged) > psn_after(self._sent, self._unacknowledged):
            self._sent = self._psn
        if ends:
            self._current += 1
        if ack_req:
            self._retries.start_timeout(now)
        return packet

    def _segment(self, work: SendWork, index: int) -> Segment:
        """What packet `index` of a work has after its BTH."""
        mtu = self._pair.attributes.path_mtu
        return segment(work.request, index, work.packets, mtu, work.owner.keys, work.owner.pd)

    def _envelope(self, work: SendWork) -> Envelope:
        """What the packets of a work have in common."""
        return self._pair.envelope

    def _prefix(self, work: SendWork) -> bytes:
        """Headers between the BTH and those of the operation."""
        return b""

    # Answers.

    def receive(self, packet: Arrived, now: int) -> None:
        """Takes an acknowledge, a READ response or an atomic's answer."""
        psn, operation = packet.psn, packet.operation
        ahead = psn_after(psn, self._unacknowledged)
        aeth = packet.aeth if packet.has_aeth else None
        kind = _ACK if aeth is None else ack_kind(aeth >> 24)
        if ahead >= psn_after(self._sent, self._unacknowledged):
            if ahead == PSN_MASK and kind is _ACK and aeth is not None:
                self._credits.take(ack_value(aeth >> 24), aeth & PSN_MASK)
            return
        if kind is None or (operation is not _ACKNOWLEDGE and kind is not _ACK):
            return
        if operation is _ACKNOWLEDGE and kind is _ACK:
            arrived = self._acknowledged(psn_add(psn, 1), now)
        else:
            arrived = self._acknowledged(psn, now)
        if aeth is not None and kind is _ACK:
            self._credits.take(ack_value(aeth >> 24), aeth & PSN_MASK)
        if self._pair.state is _ERR:
            return
        if not arrived:
            self._missed_answer(now)
        elif operation is not _ACKNOWLEDGE:
            self._take_data(packet, operation, now)
        elif aeth is not None and kind is _RNR_NAK:
            self._not_ready(ack_value(aeth >> 24), now)
        elif aeth is not None and kind is _NAK:
            self._refused(ack_value(aeth >> 24), now)

    def _acknowledged(self, psn: int, now: int) -> bool:
        """Everything before `psn` has arrived there; False if an answer with data before it has not come here."""
        start, complete = self._unacknowledged, True
        for work in self._works:
            if work.done:
                continue
            if work.awaits_data:
                missing = psn_add(work.first_psn, work.answered)
                if psn_after(missing, start) < psn_after(psn, start):
                    psn, complete = missing, False
                break
            if not work.packets or psn_after(psn, start) <= psn_after(work.end_psn, start):
                break
        if psn != start:
            is_behind = psn_after(self._psn, start) < psn_after(psn, start)
            self._unacknowledged = psn
            self._retries.renew()
            self._recovering = False
            self._retire()
            if is_behind:
                self._go_to(psn)
            if self._works and psn != self._sent:
                self._retries.start_timeout(now)
        return complete

    def _retire(self) -> None:
        """Ends the oldest works, as far as they are done."""
        while self._works:
            work = self._works[0]
            if work.error:
                self._fail(work.error)
                return
            if not work.done and not self._is_answered(work):
                return
            self._works.popleft()
            self._current = max(0, self._current - 1)
            if work.request.opcode.brings_data_back:
                self._outstanding_reads -= 1
            self._end(work, CompletionStatus.SUCCESS)

    def _end(self, work: SendWork, status: CompletionStatus) -> None:
        """Tells that a work has ended."""
        work.owner.complete_send(work.request, status)

    def _is_answered(self, work: SendWork) -> bool:
        if not work.packets or work.awaits_data:
            return False
        # The oldest work begins at the oldest PSN, or before it.
        return psn_after(self._unacknowledged, work.end_psn) < PSN_WINDOW

    def _take_data(self, packet: Arrived, operation: Operation | None, now: int) -> None:
        """Takes the answer to the oldest READ or atomic."""
        work = self._works[0]
        owner, request, mtu = work.owner, work.request, self._pair.attributes.path_mtu
        at = work.answered * mtu
        if request.opcode is _RDMA_READ:
            last = work.answered + 1 == work.packets
            data = packet.payload
            expected = min(mtu, request.length - at)
            fits = operation is not _ATOMIC_ACKNOWLEDGE and (operation in _LAST_OF_READ) == last
            fits = fits and len(data) == expected
        else:
            fits = request.opcode.is_atomic and operation is _ATOMIC_ACKNOWLEDGE
            data = packet.original.to_bytes(8, "little") if fits else b""
        if not fits:
            self._fail(CompletionStatus.BAD_RESP_ERR)
            return
        try:
            scatter(owner.keys, owner.pd, request.pieces, at, data)
        except (ProtectionError, MemoryFaultError):
            self._fail(CompletionStatus.LOC_PROT_ERR)
            return
        work.answered += 1
        self._acknowledged(psn_add(self._unacknowledged, 1), now)

    def _missed_answer(self, now: int) -> None:
        """An answer came that follows one that did not: a NAK that is implied (IBTA vol 1, 9.7.5.2.4)."""
        if not self._recovering:
            self._try_again(now, Incident.IMPLIED_NAK)
            self._recovering = True

    def _not_ready(self, timer_code: int, now: int) -> None:
        if self._retries.waits_for_receiver:
            return
        self._pair.on_incident(Incident.RNR_NAK, self._unacknowledged)
        if self._retries.wait_for_receiver(timer_code, now):
            self._go_to(self._unacknowledged)
        else:
            self._fail(CompletionStatus.RNR_RETRY_EXC_ERR)

    def _refused(self, code: int, now: int) -> None:
        if code == NakCode.PSN_SEQUENCE_ERROR:
            self._try_again(now, Incident.SEQUENCE_NAK)
        else:
            status = next((status for nak, status in _NAK_STATUS.items() if nak == code), CompletionStatus.BAD_RESP_ERR)
            self._fail(status)

    # Time, and sending again.

    def expire(self, now: int) -> None:
        """Lets time pass to `now`."""
        if self._retries.expire(now):
            self._recovering = False
            self._try_again(now, Incident.TIMEOUT)

    def _try_again(self, now: int, incident: Incident) -> None:
        """Sends again from the oldest PSN that is not acknowledged, if that is still allowed."""
        if self._retries.waits_for_receiver:
            return  # and then it is sent again from there anyway
        self._pair.on_incident(incident, self._unacknowledged)
        if self._retries.spend():
            self._go_to(self._unacknowledged)
            self._retries.start_timeout(now, anew=True)
        else:
            self._fail(CompletionStatus.RETRY_EXC_ERR)

    def _go_to(self, psn: int) -> None:
        """The next packet to be sent is that of `psn`."""
        self._psn = psn
        for index, work in enumerate(self._works):
            if not work.done and (not work.packets or psn_after(psn, work.first_psn) < work.packets):
                self._current = index
                return
        self._current = len(self._works)

    def _fail(self, status: CompletionStatus) -> None:
        """The oldest work ends with an error, and the queue pair with it."""
        self._end(self._works.popleft(), status)
        self._pair.fail(_ERR)
