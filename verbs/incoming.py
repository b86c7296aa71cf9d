"""A SEND or RDMA WRITE that is coming in, packet by packet: what RC and UC have in common (IBTA vol 1, 9.7.4)."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from verbs.aeth import NakCode
from verbs.arrived import Arrived
from verbs.completions import AsyncEventType, CompletionFlag, CompletionOpcode, CompletionStatus, WorkCompletion
from verbs.memory import MemoryFaultError
from verbs.pair_state import PairState
from verbs.regions import Access, ProtectionError
from verbs.work import MAX_MESSAGE_BYTES, ReceiveRequest, length_of, scatter
from wire.opcodes import Operation

__all__ = ["IncomingMessage", "ReceiverNotReadyError", "RefusedRequestError", "begins_message"]


class ReceiverNotReadyError(Exception):
    """No receive request is posted for what came."""


class RefusedRequestError(Exception):
    """A request that cannot be carried out.

    Attributes:
        nak: what its requester is told.
        status: what the receive request that it had taken ends with; None if it had none, or that is flushed.
        event: what the responder's consumer is told.
    """

    def __init__(
        self, nak: NakCode, *, status: CompletionStatus | None = None, event: AsyncEventType | None = None
    ) -> None:
        super().__init__(nak.name)
        self.nak = nak
        self.status = status
        self.event = event

    @classmethod
    def invalid(cls) -> RefusedRequestError:
        """For what no requester should send."""
        return cls(NakCode.INVALID_REQUEST, event=AsyncEventType.QP_REQ_ERR)

    @classmethod
    def access(cls) -> RefusedRequestError:
        """For an R_Key, a range or a right."""
        return cls(NakCode.REMOTE_ACCESS_ERROR, event=AsyncEventType.QP_ACCESS_ERR)


class _Kind(Enum):
    NOTHING = 0
    SEND = 1
    WRITE = 2


class _Part(NamedTuple):
    kind: _Kind
    begins: bool
    ends: bool
    imm: bool = False
    invalidates: bool = False


_PARTS: Final = {
    Operation.SEND_FIRST: _Part(_Kind.SEND, True, False),
    Operation.SEND_MIDDLE: _Part(_Kind.SEND, False, False),
    Operation.SEND_LAST: _Part(_Kind.SEND, False, True),
    Operation.SEND_LAST_IMM: _Part(_Kind.SEND, False, True, imm=True),
    Operation.SEND_LAST_INV: _Part(_Kind.SEND, False, True, invalidates=True),
    Operation.SEND_ONLY: _Part(_Kind.SEND, True, True),
    Operation.SEND_ONLY_IMM: _Part(_Kind.SEND, True, True, imm=True),
    Operation.SEND_ONLY_INV: _Part(_Kind.SEND, True, True, invalidates=True),
    Operation.RDMA_WRITE_FIRST: _Part(_Kind.WRITE, True, False),
    Operation.RDMA_WRITE_MIDDLE: _Part(_Kind.WRITE, False, False),
    Operation.RDMA_WRITE_LAST: _Part(_Kind.WRITE, False, True),
    Operation.RDMA_WRITE_LAST_IMM: _Part(_Kind.WRITE, False, True, imm=True),
    Operation.RDMA_WRITE_ONLY: _Part(_Kind.WRITE, True, True),
    Operation.RDMA_WRITE_ONLY_IMM: _Part(_Kind.WRITE, True, True, imm=True),
}


def begins_message(operation: Operation | None) -> bool:
    """True for the first and for the only packet of a message."""
    part = None if operation is None else _PARTS.get(operation)
    return part is not None and part.begins


class IncomingMessage:
    """The message that a responder is in the middle of, if any, and the receive request that it has taken."""

    def __init__(self, pair: PairState) -> None:
        self._pair = pair
        self._target = pair
        """Whose receive requests, memory and completion queue it is for."""
        self._kind = _Kind.NOTHING
        self._request: ReceiveRequest | None = None
        self._bytes = 0
        """That have come."""
        self._va = 0
        self._r_key = 0
        self._total = 0
        """That an RDMA WRITE announced."""

    @property
    def target(self) -> PairState:
        """For whom it is."""
        return self._target

    @property
    def in_progress(self) -> bool:
        """True between the first and the last packet of a message."""
        return self._kind is not _Kind.NOTHING

    @property
    def holds_request(self) -> bool:
        """True if a receive request was taken and not completed."""
        return self._request is not None

    def abandon(self) -> None:
        """Forgets the message; the next one gets its receive request (UC: IBTA vol 1, 9.8.2.2)."""
        self._kind = _Kind.NOTHING

    def clear(self) -> None:
        """Forgets the message and its receive request."""
        self._kind = _Kind.NOTHING
        self._request = None

    def end(self, status: CompletionStatus) -> None:
        """Ends the message, and completes its receive request, if it has taken one, with an error."""
        if self._request is not None:
            self._target.complete_receive(self._request, status)
        self.clear()

    def accept(self, packet: Arrived, operation: Operation | None, target: PairState) -> bool:
        """Carries out what the packet asks for, for whom it is; True if that ends the message.

        Nothing is changed if it cannot be.

        Raises:
            RefusedRequestError: it never can.
            ReceiverNotReadyError: it needs a receive request.
        """
        part = _PARTS.get(operation) if operation is not None else None
        if part is None or part.begins == self.in_progress or not (part.begins or part.kind is self._kind):
            raise RefusedRequestError.invalid()
        if not part.begins and target is not self._target:
            raise RefusedRequestError.invalid()
        if not packet.payload_rule.allows(len(packet.payload), self._pair.attributes.path_mtu):
            raise RefusedRequestError.invalid()
        self._target = target
        if part.kind is _Kind.SEND:
            self._store_sent(packet, part)
        else:
            self._store_written(packet, part)
        self._kind = _Kind.NOTHING if part.ends else part.kind
        if part.ends and self._request is not None and (part.kind is _Kind.SEND or part.imm):
            self._complete(packet, part, self._request)
            self._request = None
        return part.ends

    def _take_request(self) -> ReceiveRequest:
        if self._request is None:
            self._request = self._target.receives.take()
        if self._request is None:
            raise ReceiverNotReadyError
        return self._request

    def _store_sent(self, packet: Arrived, part: _Part) -> None:
        request, pair = self._take_request(), self._target
        at = 0 if part.begins else self._bytes
        end = at + len(packet.payload)
        if end > length_of(request.pieces):
            raise RefusedRequestError(NakCode.INVALID_REQUEST, status=CompletionStatus.LOC_LEN_ERR)
        try:
            scatter(pair.keys, pair.pd, request.pieces, at, packet.payload)
        except (ProtectionError, MemoryFaultError) as error:
            status = CompletionStatus.LOC_PROT_ERR
            raise RefusedRequestError(NakCode.REMOTE_OPERATIONAL_ERROR, status=status) from error
        if part.invalidates:
            try:
                pair.keys.invalidate(packet.invalidated_key, pair.pd, pair.number)
            except ProtectionError as error:
                raise RefusedRequestError.access() from error
        self._bytes = end

    def _store_written(self, packet: Arrived, part: _Part) -> None:
        pair, size = self._target, len(packet.payload)
        va, r_key, total, at = self._va, self._r_key, self._total, self._bytes
        if part.begins:
            reth, at = packet.reth(), 0
            va, r_key, total = reth.va, reth.r_key, reth.dma_len
        if total > MAX_MESSAGE_BYTES or (at + size != total if part.ends else at + size >= total):
            raise RefusedRequestError.invalid()
        if part.imm:
            self._take_request()
        if total and not pair.attributes.access & Access.REMOTE_WRITE:
            raise RefusedRequestError.access()
        if total:  # of no bytes, the R_Key is not looked at (IBTA vol 1, 9.7.4.1.5)
            try:
                if part.begins:
                    pair.keys.remote(r_key, va, total, pair.pd, pair.number, Access.REMOTE_WRITE)
                place = pair.keys.remote(r_key, va + at, size, pair.pd, pair.number, Access.REMOTE_WRITE)
            except ProtectionError as error:
                raise RefusedRequestError.access() from error
            try:
                place.write(packet.payload)
            except MemoryFaultError as error:
                event = AsyncEventType.QP_FATAL
                raise RefusedRequestError(NakCode.REMOTE_OPERATIONAL_ERROR, event=event) from error
        self._va, self._r_key, self._total, self._bytes = va, r_key, total, at + size

    def _complete(self, packet: Arrived, part: _Part, request: ReceiveRequest) -> None:
        sends, flags, imm = part.kind is _Kind.SEND, CompletionFlag.NONE, 0
        if part.imm:
            flags, imm = CompletionFlag.WITH_IMM, packet.imm
        elif part.invalidates:
            flags, imm = CompletionFlag.WITH_INV, packet.invalidated_key
        completion = WorkCompletion(
            request.wr_id,
            CompletionStatus.SUCCESS,
            CompletionOpcode.RECV if sends else CompletionOpcode.RECV_RDMA_WITH_IMM,
            self._target.number,
            self._bytes,
            imm,
            flags,
            src_qp=packet.deth()[1] if packet.has_deth else self._pair.attributes.dest_qp,
            slid=packet.slid,
            sl=packet.sl,
        )
        self._target.recv_cq.add(completion, solicited=packet.solicited)
