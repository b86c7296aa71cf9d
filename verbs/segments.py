"""Messages cut into packets of the path MTU (IBTA vol 1, 9.4)."""

from __future__ import annotations

from typing import Final, NamedTuple

from verbs.fields import atomic_bytes, number32_bytes, reth_bytes
from verbs.regions import KeyTable, ProtectionDomain
from verbs.work import SendOpcode, SendRequest, gather
from wire.opcodes import Operation

__all__ = ["Segment", "packets_of", "segment"]


class Segment(NamedTuple):
    """What one packet of a request has after its BTH."""

    operation: Operation
    extended: bytes
    payload: bytes


class _Operations(NamedTuple):
    first: Operation
    middle: Operation
    last: Operation
    only: Operation


_SEND: Final = (Operation.SEND_FIRST, Operation.SEND_MIDDLE)
_WRITE: Final = (Operation.RDMA_WRITE_FIRST, Operation.RDMA_WRITE_MIDDLE)

_OPERATIONS: Final = {
    SendOpcode.SEND: _Operations(*_SEND, Operation.SEND_LAST, Operation.SEND_ONLY),
    SendOpcode.SEND_WITH_IMM: _Operations(*_SEND, Operation.SEND_LAST_IMM, Operation.SEND_ONLY_IMM),
    SendOpcode.SEND_WITH_INV: _Operations(*_SEND, Operation.SEND_LAST_INV, Operation.SEND_ONLY_INV),
    SendOpcode.RDMA_WRITE: _Operations(*_WRITE, Operation.RDMA_WRITE_LAST, Operation.RDMA_WRITE_ONLY),
    SendOpcode.RDMA_WRITE_WITH_IMM: _Operations(*_WRITE, Operation.RDMA_WRITE_LAST_IMM, Operation.RDMA_WRITE_ONLY_IMM),
}

_WITH_IMM: Final = (SendOpcode.SEND_WITH_IMM, SendOpcode.RDMA_WRITE_WITH_IMM)


def packets_of(length: int, path_mtu: int) -> int:
    """Packets, and PSNs, that so many bytes take; no bytes take one."""
    return max(1, -(-length // path_mtu))


def segment(
    request: SendRequest, index: int, count: int, path_mtu: int, keys: KeyTable, pd: ProtectionDomain
) -> Segment:
    """Packet `index` of the `count` that a request takes.

    Of a READ it is a request for what begins there: one that was answered in part goes on where it was.

    Raises:
        ProtectionError: a key does not allow that the data is read.
        MemoryFaultError: it is not there any more.
    """
    opcode, at = request.opcode, index * path_mtu
    if opcode is SendOpcode.RDMA_READ:
        header = reth_bytes(request.remote_va + at, request.r_key, request.length - at)
        return Segment(Operation.RDMA_READ_REQUEST, header, b"")
    if opcode.is_atomic:
        swaps = opcode is SendOpcode.ATOMIC_CMP_AND_SWP
        swap_dt, cmp_dt = (request.swap, request.compare_add) if swaps else (request.compare_add, 0)
        header = atomic_bytes(request.remote_va, request.r_key, swap_dt, cmp_dt)
        return Segment(Operation.CMP_SWAP if swaps else Operation.FETCH_ADD, header, b"")
    begins, ends = index == 0, index == count - 1
    kind = _OPERATIONS[opcode]
    alone, among = (kind.only, kind.first), (kind.last, kind.middle)
    operation = (alone if begins else among)[not ends]
    header = b""
    if begins and opcode.is_write:
        header = reth_bytes(request.remote_va, request.r_key, request.length)
    if ends and opcode in _WITH_IMM:
        header += number32_bytes(request.imm)
    elif ends and opcode is SendOpcode.SEND_WITH_INV:
        header = number32_bytes(request.r_key)
    size = min(path_mtu, request.length - at)
    if request.inline is not None:
        return Segment(operation, header, request.inline[at : at + size])
    return Segment(operation, header, gather(keys, pd, request.pieces, at, size))
