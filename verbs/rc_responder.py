"""The responder of RC: requests carried out once, in order, and answered (IBTA vol 1, 9.7.4 and 9.7.5.1)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from verbs.aeth import NO_CREDIT_COUNT, AckKind, NakCode, credit_code, syndrome
from verbs.arrived import Arrived
from verbs.completions import AsyncEventType, CompletionStatus
from verbs.fields import aeth_bytes, atomic_ack_bytes
from verbs.frame import Envelope, Outgoing
from verbs.incidents import Incident
from verbs.incoming import IncomingMessage, ReceiverNotReadyError, RefusedRequestError
from verbs.memory import MemoryFaultError
from verbs.pair_state import PairState
from verbs.psn import PSN_WINDOW, psn_add, psn_after
from verbs.regions import Access, Place, ProtectionError
from verbs.segments import packets_of
from verbs.states import QpState
from verbs.work import ATOMIC_BYTES, MAX_MESSAGE_BYTES
from wire.opcodes import Operation, Service

__all__ = ["RcResponder"]

_UINT64 = (1 << 64) - 1

# What packets are compared with, or answered by, has names of its own: docs/verbs.md, "Speed".
_ACKNOWLEDGE: Final = Operation.ACKNOWLEDGE
_READ_REQUEST: Final = Operation.RDMA_READ_REQUEST
_RESPONSE_FIRST: Final = Operation.RDMA_READ_RESPONSE_FIRST
_RESPONSE_MIDDLE: Final = Operation.RDMA_READ_RESPONSE_MIDDLE
_RESPONSE_LAST: Final = Operation.RDMA_READ_RESPONSE_LAST
_RESPONSE_ONLY: Final = Operation.RDMA_READ_RESPONSE_ONLY
_ATOMIC_ACKNOWLEDGE: Final = Operation.ATOMIC_ACKNOWLEDGE
_CMP_SWAP: Final = Operation.CMP_SWAP
_ATOMICS: Final = (_CMP_SWAP, Operation.FETCH_ADD)
_ACK: Final = AckKind.ACK
_RNR_NAK: Final = AckKind.RNR_NAK
_NAK: Final = AckKind.NAK
_REMOTE_READ: Final = Access.REMOTE_READ
_REMOTE_ATOMIC: Final = Access.REMOTE_ATOMIC
_RC: Final = Service.RC


@dataclass(slots=True)
class _Acknowledge:
    """An ACK of all up to `psn`, or a NAK of it, which its syndrome says; an ACK's credits are those of its sending."""

    psn: int
    msn: int
    nak: int | None = None


@dataclass(slots=True)
class _ReadAnswer:
    """What a READ still has to be answered with.

    Attributes:
        target: whose memory it is.
        index, count: the next response, of how many.
        is_repeat: it answers a duplicate.
    """

    psn: int
    msn: int
    target: PairState
    va: int
    length: int
    r_key: int
    count: int
    is_repeat: bool
    index: int = 0

    @property
    def next_psn(self) -> int:
        return psn_add(self.psn, self.index)

    @property
    def end_psn(self) -> int:
        return psn_add(self.psn, self.count)


@dataclass(slots=True)
class _AtomicAnswer:
    psn: int
    msn: int
    original: int
    is_repeat: bool


class RcResponder:
    """Carries out what is expected, answers duplicates, and says what is missing."""

    def __init__(self, pair: PairState, service: Service = Service.RC) -> None:
        self._pair = pair
        self._service = service
        self._message = IncomingMessage(pair)
        self._expected = 0
        self._msn = 0
        """Messages completed."""
        self._has_refused = False
        """A NAK of the expected PSN was sent: nothing else is until that comes."""
        self._has_seen_congestion = False
        """A request had FECN set: the next answer says so by BECN (IBTA vol 1, A10.2.1)."""
        self._answers: deque[_Acknowledge | _ReadAnswer | _AtomicAnswer] = deque()
        """What is to be sent, in the order of PSNs but for duplicates."""
        self._atomics: deque[tuple[int, int]] = deque()
        """PSN and result of the latest atomics, for duplicates."""

    @property
    def expected(self) -> int:
        """PSN of the next packet."""
        return self._expected

    def start(self) -> None:
        """Begins anew with the first PSN that the attributes give."""
        self.clear()
        self._expected = self._pair.attributes.rq_psn
        self._msn = 0

    def clear(self) -> None:
        """Forgets what it was doing."""
        self._message.clear()
        self._answers.clear()
        self._atomics.clear()
        self._has_refused = self._has_seen_congestion = False

    def flush(self) -> None:
        """Ends the receive request of a message that will not end. Answers that are due are still sent."""
        self._message.end(CompletionStatus.WR_FLUSH_ERR)

    # Requests.

    def receive(self, packet: Arrived) -> None:
        """Takes a request."""
        psn = packet.psn
        self._has_seen_congestion |= packet.fecn
        behind = psn_after(self._expected, psn)
        if behind == 0:
            self._carry_out(packet)
        elif behind <= PSN_WINDOW:
            self._repeat(packet, psn, behind)
        elif not self._has_refused:
            self._refuse(_NAK, NakCode.PSN_SEQUENCE_ERROR, Incident.OUT_OF_SEQUENCE)

    def _carry_out(self, packet: Arrived) -> None:
        operation = packet.operation
        self._has_refused = False
        try:
            target = self._target_of(packet)
            if operation is _READ_REQUEST:
                self._read(packet, target)
            elif operation in _ATOMICS:
                self._atomic(packet, operation, target)
            else:
                ends = self._message.accept(packet, operation, target)
                self._expected = psn_add(self._expected, 1)
                self._msn = psn_add(self._msn, ends)
                if packet.ack_req:
                    self._acknowledge()
        except ReceiverNotReadyError:
            self._refuse(_RNR_NAK, self._target_of(packet).attributes.min_rnr_timer, Incident.NOT_READY)
        except RefusedRequestError as refused:
            self._give_up(refused)

    def _target_of(self, packet: Arrived) -> PairState:
        """For whom a request is.

        Raises:
            RefusedRequestError: for nobody who takes it.
        """
        return self._pair

    def _read(self, packet: Arrived, target: PairState) -> None:
        pair, reth = self._pair, packet.reth()
        self._check_resources()
        if reth.dma_len > MAX_MESSAGE_BYTES or packet.payload:
            raise RefusedRequestError.invalid()
        if reth.dma_len:
            self._check_access(target, reth.r_key, reth.va, reth.dma_len, _REMOTE_READ)
        count = packets_of(reth.dma_len, pair.attributes.path_mtu)
        # The message counts as completed from here on (IBTA vol 1, 9.7.7.1).
        self._msn = psn_add(self._msn, 1)
        answer = _ReadAnswer(self._expected, self._msn, target, reth.va, reth.dma_len, reth.r_key, count, False)
        self._answers.append(answer)
        self._expected = answer.end_psn

    def _atomic(self, packet: Arrived, operation: Operation, target: PairState) -> None:
        pair, eth = self._pair, packet.atomic()
        self._check_resources()
        if eth.va % ATOMIC_BYTES or packet.payload:
            raise RefusedRequestError.invalid()
        place = self._check_access(target, eth.r_key, eth.va, ATOMIC_BYTES, _REMOTE_ATOMIC)
        try:
            original = int.from_bytes(place.read(ATOMIC_BYTES), "little")
            result = original + eth.swap_dt & _UINT64
            if operation is _CMP_SWAP:
                result = eth.swap_dt if original == eth.cmp_dt else original
            place.write(result.to_bytes(ATOMIC_BYTES, "little"))
        except MemoryFaultError as error:
            event = AsyncEventType.QP_FATAL
            raise RefusedRequestError(NakCode.REMOTE_OPERATIONAL_ERROR, event=event) from error
        self._msn = psn_add(self._msn, 1)
        self._answers.append(_AtomicAnswer(self._expected, self._msn, original, False))
        self._atomics.append((self._expected, original))
        while len(self._atomics) > pair.attributes.max_dest_rd_atomic:
            self._atomics.popleft()
        self._expected = psn_add(self._expected, 1)

    def _check_resources(self) -> None:
        """Neither in the middle of a message nor with more READs and atomics than were agreed upon."""
        held = sum(not isinstance(answer, _Acknowledge) and not answer.is_repeat for answer in self._answers)
        if self._message.in_progress or held >= self._pair.attributes.max_dest_rd_atomic:
            raise RefusedRequestError.invalid()

    @staticmethod
    def _check_access(target: PairState, r_key: int, va: int, length: int, access: Access) -> Place:
        if not target.attributes.access & access:
            raise RefusedRequestError.access()
        try:
            return target.keys.remote(r_key, va, length, target.pd, target.number, access)
        except ProtectionError as error:
            raise RefusedRequestError.access() from error

    # Duplicates.

    def _repeat(self, packet: Arrived, psn: int, behind: int) -> None:
        self._pair.on_incident(Incident.DUPLICATE, self._expected)
        operation = packet.operation
        if operation is _READ_REQUEST:
            self._read_again(packet, psn, behind)
        elif operation in _ATOMICS:
            is_due = any(isinstance(answer, _AtomicAnswer) and answer.psn == psn for answer in self._answers)
            original = next((result for number, result in self._atomics if number == psn), None)
            if original is not None and not is_due:
                self._answers.append(_AtomicAnswer(psn, self._msn, original, True))
        else:
            self._acknowledge()

    def _read_again(self, packet: Arrived, psn: int, behind: int) -> None:
        """A READ is carried out again from where its requester lacks answers (IBTA vol 1, 9.7.5.1.4)."""
        pair, reth = self._pair, packet.reth()
        count = packets_of(reth.dma_len, pair.attributes.path_mtu)
        if count > behind:
            return
        try:
            target = self._target_of(packet)
        except RefusedRequestError:
            return
        again = _ReadAnswer(psn, self._msn, target, reth.va, reth.dma_len, reth.r_key, count, True)
        repeats = 0
        for index, answer in enumerate(self._answers):
            if not isinstance(answer, _ReadAnswer):
                continue
            if answer.end_psn == again.end_psn:
                if psn_after(psn, answer.next_psn) >= PSN_WINDOW:
                    again.is_repeat = answer.is_repeat
                    self._answers[index] = again
                return
            repeats += answer.is_repeat
        if repeats < pair.attributes.max_dest_rd_atomic:
            self._answers.append(again)

    # Answers.

    def _acknowledge(self) -> None:
        """All up to the last expected packet; what was to be said of fewer need not be said any more."""
        last = self._answers[-1] if self._answers else None
        if isinstance(last, _Acknowledge) and last.nak is None:
            self._answers.pop()
        self._answers.append(_Acknowledge(psn_add(self._expected, -1), self._msn))

    def _refuse(self, kind: AckKind, value: int, incident: Incident) -> None:
        self._pair.on_incident(incident, self._expected)
        self._has_refused = True
        self._answers.append(_Acknowledge(self._expected, self._msn, syndrome(kind, value)))

    def _give_up(self, refused: RefusedRequestError) -> None:
        """The requester is told, and nothing more is taken."""
        self._refuse(_NAK, refused.nak, Incident.REFUSED)
        if refused.status is not None:
            self._message.end(refused.status)
        if refused.event is not None:
            self._pair.tell(refused.event)
        self._stop()

    def _stop(self) -> None:
        """Takes nothing any more, since a request could not be carried out."""
        self._pair.fail(QpState.ERR)

    def next_packet(self, held: bool) -> Outgoing | None:
        """The next answer; none if it brings a READ's data, and is held up."""
        while self._answers:
            answer = self._answers[0]
            if isinstance(answer, _ReadAnswer):
                if held:
                    return None
                packet = self._read_response(answer)
                if packet is not None:
                    return packet
                continue
            self._answers.popleft()
            if isinstance(answer, _AtomicAnswer):
                result = atomic_ack_bytes(answer.original)
                return self._packet(_ATOMIC_ACKNOWLEDGE, answer.psn, self._aeth(answer.msn) + result)
            aeth = self._aeth(answer.msn) if answer.nak is None else aeth_bytes(answer.nak, answer.msn)
            return self._packet(_ACKNOWLEDGE, answer.psn, aeth)
        return None

    def _read_response(self, answer: _ReadAnswer) -> Outgoing | None:
        """The next response to a READ; None if its memory cannot be read any more."""
        mtu, target = self._pair.attributes.path_mtu, answer.target
        at, psn = answer.index * mtu, answer.next_psn
        size = min(mtu, answer.length - at)
        data = b""
        try:
            if size:
                access = _REMOTE_READ
                place = target.keys.remote(answer.r_key, answer.va + at, size, target.pd, target.number, access)
                data = place.read(size)
        except (ProtectionError, MemoryFaultError):
            if answer.is_repeat:
                self._answers.popleft()
            else:
                self._answers.clear()
                nak = syndrome(_NAK, NakCode.REMOTE_OPERATIONAL_ERROR)
                self._answers.append(_Acknowledge(psn, answer.msn, nak))
                target.tell(AsyncEventType.QP_FATAL)
                self._stop()
            return None
        first, last = answer.index == 0, answer.index == answer.count - 1
        answer.index += 1
        if last:
            self._answers.popleft()
        if first:
            operation = _RESPONSE_ONLY if last else _RESPONSE_FIRST
        else:
            operation = _RESPONSE_LAST if last else _RESPONSE_MIDDLE
        return self._packet(operation, psn, self._aeth(answer.msn) if first or last else b"", data)

    def _aeth(self, msn: int) -> bytes:
        """An ACK with the credits that there are now: of messages that are not complete, also the one under way."""
        receives = self._pair.receives
        is_counted = self._service is _RC and not receives.is_shared
        code = NO_CREDIT_COUNT if not is_counted else credit_code(len(receives) + self._message.holds_request)
        return aeth_bytes(syndrome(_ACK, code), msn)

    def _packet(self, operation: Operation, psn: int, extended: bytes, payload: bytes = b"") -> Outgoing:
        becn, self._has_seen_congestion = self._has_seen_congestion, False
        opcode = self._service << 5 | operation
        return self._envelope().packet(opcode, psn, self._prefix() + extended, payload, becn=becn)

    def _envelope(self) -> Envelope:
        """What all answers have in common."""
        return self._pair.envelope

    def _prefix(self) -> bytes:
        """Headers between the BTH and those of the operation."""
        return b""
