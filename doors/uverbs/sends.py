"""Work requests that a program has posted, as the transport takes them."""

from __future__ import annotations

import struct
from typing import Final

from doors.uverbs.addresses import Address
from doors.uverbs.context import Context
from doors.uverbs.memory import Window
from doors.uverbs.rxe_rings import PostedSend
from verbs.completions import CompletionStatus
from verbs.queue_pair import PostError, QueuePair
from verbs.receive_queue import QueueFullError
from verbs.regions import Access, MemoryWindow, ProtectionDomain
from verbs.states import QpType
from verbs.work import ATOMIC_BYTES, MAX_MESSAGE_BYTES, SendOpcode, SendRequest, WindowBinding

__all__ = ["post"]

_FENCE, _SIGNALED, _SOLICITED, _INLINE = 1, 2, 4, 8
"""enum ibv_send_flags."""

_RDMA: Final = struct.Struct("=QI")
_ATOMIC: Final = struct.Struct("=QQQI")
_UD: Final = struct.Struct("=II4xI")
_BIND: Final = struct.Struct("=QQIIII")
"""The members of struct rxe_send_wr's `wr`."""

_OPCODES: Final = frozenset(SendOpcode)
_ATOMIC_WRITE: Final = 15
"""IBV_WR_ATOMIC_WRITE: the 8 bytes are in the request. They go as a WRITE, and are stored at once."""

_INVALIDATING: Final = (SendOpcode.SEND_WITH_INV, SendOpcode.LOCAL_INV)
_QP_MASK: Final = 0xFF_FFFF
_NO_WINDOW: Final = MemoryWindow(ProtectionDomain(0), 1, 0)
"""Of no protection domain that a program has: binding it fails."""

_KEY_INDEX: Final = 8
_ACCESS: Final = sum(Access)


def post(context: Context, pair: QueuePair, posted: PostedSend, *, signals_all: bool) -> None:
    """Hand a posted request to a queue pair. One that it does not take ends with an error in its turn."""
    if posted.opcode == _ATOMIC_WRITE and pair.pair.kind is QpType.RC:
        posted = posted._replace(opcode=SendOpcode.RDMA_WRITE, flags=posted.flags | _INLINE, length=ATOMIC_BYTES)
    is_cut = posted.flags & _INLINE and posted.length > pair.capabilities.max_inline_data
    if posted.opcode not in _OPCODES or is_cut:
        pair.refuse(SendRequest(posted.wr_id, SendOpcode.SEND), CompletionStatus.LOC_QP_OP_ERR)
        return
    request = _request(context, pair, posted, signals_all=signals_all)
    try:
        pair.post_send(request)
    except (PostError, QueueFullError):
        longest = pair.pair.port.mtu if pair.pair.kind is QpType.UD else MAX_MESSAGE_BYTES
        is_long = request.length > longest
        pair.refuse(request, CompletionStatus.LOC_LEN_ERR if is_long else CompletionStatus.LOC_QP_OP_ERR)


def _request(context: Context, pair: QueuePair, posted: PostedSend, *, signals_all: bool) -> SendRequest:
    opcode, flags, operands = SendOpcode(posted.opcode), posted.flags, posted.operands
    is_inline = flags & _INLINE
    request = SendRequest(
        posted.wr_id,
        opcode,
        () if is_inline else posted.pieces,
        posted.inline[: posted.length] if is_inline else None,
        signaled=bool(signals_all or flags & _SIGNALED),
        solicited=bool(flags & _SOLICITED),
        fence=bool(flags & _FENCE),
    )
    if opcode in _INVALIDATING:
        request.r_key = int.from_bytes(posted.ex, "little")
    else:
        request.imm = int.from_bytes(posted.ex, "big")
    if opcode is SendOpcode.BIND_MW:
        request.binding = _binding(context, operands)
    elif opcode.is_atomic:
        request.remote_va, request.compare_add, request.swap, request.r_key = _ATOMIC.unpack_from(operands)
    elif opcode.is_write or opcode is SendOpcode.RDMA_READ:
        request.remote_va, request.r_key = _RDMA.unpack_from(operands)
    elif pair.pair.kind is QpType.UD:
        number, request.remote_q_key, handle = _UD.unpack_from(operands)
        request.remote_qp = number & _QP_MASK
        address = context.find(handle, Address)
        request.handle = address.address if address is not None else None
    return request


def _binding(context: Context, operands: bytes) -> WindowBinding:
    """The window is named by the key that it has when its turn comes; what stays of that is its index."""
    va, length, region_key, old_key, new_key, access = _BIND.unpack_from(operands)
    windows = (one.window for one in context.objects(Window))
    window = next((one for one in windows if one.key >> _KEY_INDEX == old_key >> _KEY_INDEX), _NO_WINDOW)
    return WindowBinding(window, new_key, region_key, va, length, Access(access & _ACCESS))
