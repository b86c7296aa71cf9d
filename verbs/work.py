"""Work requests: what a consumer posts to queue pairs (IBTA vol 1, 10.8 and 11.4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from verbs.address import AddressHandle
from verbs.regions import Access, KeyTable, MemoryWindow, ProtectionDomain

__all__ = [
    "ATOMIC_BYTES",
    "MAX_MESSAGE_BYTES",
    "ReceiveRequest",
    "ScatterGather",
    "SendOpcode",
    "SendRequest",
    "WindowBinding",
    "gather",
    "length_of",
    "scatter",
]

MAX_MESSAGE_BYTES: Final = 1 << 31
"""Of a message of RC or UC (IBTA vol 1, 9.7.1)."""

ATOMIC_BYTES: Final = 8


class SendOpcode(IntEnum):
    """What a work request of a send queue asks for; the numbers are those of the verbs that programs know."""

    RDMA_WRITE = 0
    RDMA_WRITE_WITH_IMM = 1
    SEND = 2
    SEND_WITH_IMM = 3
    RDMA_READ = 4
    ATOMIC_CMP_AND_SWP = 5
    ATOMIC_FETCH_AND_ADD = 6
    LOCAL_INV = 7
    BIND_MW = 8
    SEND_WITH_INV = 9

    @property
    def is_send(self) -> bool:
        """A message that goes where the receiver says."""
        return self in _SENDS

    @property
    def is_write(self) -> bool:
        """A message that goes where the sender says."""
        return self in _WRITES

    @property
    def is_atomic(self) -> bool:
        """Compare and swap, fetch and add."""
        return self in _ATOMICS

    @property
    def brings_data_back(self) -> bool:
        """Takes of the peer's resources for READs and atomics, and is answered by other than an ACK."""
        return self in _BRINGING_BACK

    @property
    def is_local(self) -> bool:
        """Nothing goes over the wire for it."""
        return self in _LOCAL

    @property
    def takes_a_receive(self) -> bool:
        """Consumes a receive request at the peer."""
        return self in _TAKING_A_RECEIVE


# Made once, since packets are asked for them: docs/verbs.md, "Speed".
_SENDS: Final = (SendOpcode.SEND, SendOpcode.SEND_WITH_IMM, SendOpcode.SEND_WITH_INV)
_WRITES: Final = (SendOpcode.RDMA_WRITE, SendOpcode.RDMA_WRITE_WITH_IMM)
_ATOMICS: Final = (SendOpcode.ATOMIC_CMP_AND_SWP, SendOpcode.ATOMIC_FETCH_AND_ADD)
_BRINGING_BACK: Final = (SendOpcode.RDMA_READ, *_ATOMICS)
_LOCAL: Final = (SendOpcode.LOCAL_INV, SendOpcode.BIND_MW)
_TAKING_A_RECEIVE: Final = (*_SENDS, SendOpcode.RDMA_WRITE_WITH_IMM)


class ScatterGather(NamedTuple):
    """A piece of local memory; of length 0 it is none, and its key is not looked at."""

    va: int
    length: int
    l_key: int


class WindowBinding(NamedTuple):
    """What BIND_MW binds a window to."""

    window: MemoryWindow
    new_key: int
    region_key: int
    va: int
    length: int
    access: Access


_NO_ACCESS: Final = Access.NONE
_LOCAL_WRITE: Final = Access.LOCAL_WRITE


def _check_width(name: str, value: int, width: int) -> None:
    """Refuse a value that has more bits than there are in its header."""
    if value >> width:
        raise ValueError(f"work request: {name} {value:#x} does not fit {width} bits")


@dataclass(slots=True)
class SendRequest:
    """A work request of a send queue.

    Attributes:
        inline: the data of the message itself, as it was when it was posted, instead of `pieces`.
        imm: immediate data, the 32-bit number that is in ImmDt.
        r_key: for what goes to or comes from remote memory, or what SEND_WITH_INV and LOCAL_INV invalidate.
        compare_add: compared with (CmpSwap) or added (FetchAdd).
        xrc_srq: of XRC, the number of the shared receive queue that it is for.
        eec: of RD, the number of the context here through which it goes.
        fence: waits until all READs and atomics before it are done.
        refusal: the status with which it ends in its turn, instead of being carried out.
    """

    wr_id: int
    opcode: SendOpcode
    pieces: Sequence[ScatterGather] = ()
    inline: bytes | None = None
    signaled: bool = True
    solicited: bool = False
    fence: bool = False
    imm: int = 0
    remote_va: int = 0
    r_key: int = 0
    compare_add: int = 0
    swap: int = 0
    handle: AddressHandle | None = None
    remote_qp: int = 0
    remote_q_key: int = 0
    binding: WindowBinding | None = None
    refusal: int = 0
    xrc_srq: int = 0
    eec: int = 0
    length: int = field(init=False)

    def __post_init__(self) -> None:
        """Check what goes into headers.

        Raises:
            ValueError: a value that does not fit.
        """
        _check_width("imm", self.imm, 32)
        _check_width("remote_va", self.remote_va, 64)
        _check_width("r_key", self.r_key, 32)
        _check_width("compare_add", self.compare_add, 64)
        _check_width("swap", self.swap, 64)
        _check_width("remote_qp", self.remote_qp, 24)
        _check_width("remote_q_key", self.remote_q_key, 32)
        _check_width("xrc_srq", self.xrc_srq, 24)
        self.length = length_of(self.pieces) if self.inline is None else len(self.inline)


class ReceiveRequest(NamedTuple):
    """A work request of a receive queue."""

    wr_id: int
    pieces: Sequence[ScatterGather] = ()


def length_of(pieces: Sequence[ScatterGather]) -> int:
    """Bytes that all pieces have together."""
    return sum(piece.length for piece in pieces)


def _parts(pieces: Sequence[ScatterGather], offset: int, length: int) -> list[tuple[int, int, int]]:
    """The pieces, or parts of them, that hold `length` bytes from `offset` on; fewer if they end before."""
    parts = []
    for va, size, l_key in pieces:
        if not length:
            break
        if offset < size:
            part = min(size - offset, length)
            parts.append((va + offset, part, l_key))
            length -= part
            offset = 0
        else:
            offset -= size
    return parts


def gather(keys: KeyTable, pd: ProtectionDomain, pieces: Sequence[ScatterGather], offset: int, length: int) -> bytes:
    """`length` bytes of what the pieces hold, from `offset` on.

    Raises:
        ProtectionError: a key does not allow it.
        MemoryFaultError: memory is not there any more.
    """
    parts = [
        keys.local(l_key, va, size, pd, _NO_ACCESS).read(size) for va, size, l_key in _parts(pieces, offset, length)
    ]
    return parts[0] if len(parts) == 1 else b"".join(parts)


def scatter(keys: KeyTable, pd: ProtectionDomain, pieces: Sequence[ScatterGather], offset: int, data: bytes) -> None:
    """Stores data in the pieces, from `offset` on.

    Raises:
        ProtectionError: a key does not allow it.
        MemoryFaultError: memory is not there any more.
    """
    at = 0
    for va, size, l_key in _parts(pieces, offset, len(data)):
        keys.local(l_key, va, size, pd, _LOCAL_WRITE).write(data[at : at + size])
        at += size
