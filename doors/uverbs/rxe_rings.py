"""The rings that a program and its adapter share: struct rxe_queue_buf and what is in it (rdma/rdma_user_rxe.h).

One of the two puts elements in, the other takes them out, and each says how far it is in an index that the other reads.
A program may write anything there, at any time: only its own index is read, and only what is in the ring is reached.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Iterator
from fcntl import F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, fcntl
from typing import Final, NamedTuple

from doors.descriptors import kept
from doors.uverbs.layouts import MMINFO, WC
from verbs.completions import CompletionFlag, WorkCompletion
from verbs.work import ReceiveRequest, ScatterGather

__all__ = ["CompletionRing", "PostedSend", "ReceiveRing", "Ring", "RingFile", "SendRing"]

_MOST_RINGS: Final = 8192
"""Of one program: the kernel has not room for any number of mappings here."""

_PRODUCER: Final = 128 // 4
_CONSUMER: Final = 256 // 4
_DATA: Final = 384

_CQE_BYTES: Final = 64
_SGE: Final = struct.Struct("=QII")
_RECV_WQE: Final = struct.Struct("=Q8xII4xI8x")
"""Of struct rxe_recv_wqe: wr_id, dma.length, dma.resid, dma.num_sge."""
_SEND_WQE: Final = struct.Struct("=Q4xII4s160sI8xI8x")
"""Of struct rxe_send_wqe: wr_id, opcode, send_flags, ex, wr to first_psn and so on, dma.length, dma.num_sge."""


class RingFile:
    """The memory file that has all rings of an open device: programs map it by offset."""

    def __init__(self) -> None:
        self.descriptor = kept(os.memfd_create("uverbs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        # It never becomes shorter, or what is mapped here would not be there.
        fcntl(self.descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)
        self._end = 0
        self._rings = 0

    def close(self) -> None:
        """Programs keep what they have mapped."""
        os.close(self.descriptor)

    def take(self, size: int) -> int:
        """Offset of so many bytes more.

        Raises:
            OSError: there are too many rings.
        """
        if self._rings == _MOST_RINGS:
            raise OSError(errno.ENOMEM, f"{_MOST_RINGS} rings")
        self._rings += 1
        offset, self._end = self._end, self._end + -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        os.ftruncate(self.descriptor, self._end)
        return offset

    def give_back(self) -> None:
        """A ring is not there any more."""
        self._rings -= 1

    def has(self, offset: int, size: int) -> bool:
        """Whether there is something to be mapped."""
        return offset % mmap.PAGESIZE == 0 and size > 0 and offset + size <= self._end


class Ring:
    """A ring.

    Attributes:
        capacity: elements that it has room for.
    """

    def __init__(self, file: RingFile, entries: int, element: int) -> None:
        """Room for ENTRIES of ELEMENT bytes at the least."""
        self._log2 = (element - 1).bit_length()
        self.capacity = self._mask = (1 << entries.bit_length()) - 1
        self._size = _DATA + (self._mask + 1 << self._log2)
        self._file = file
        self._offset = file.take(self._size)
        try:
            self._map = mmap.mmap(file.descriptor, self._size, offset=self._offset)
        except OSError:
            file.give_back()
            raise
        self._words = memoryview(self._map)[:_DATA].cast("I")
        self._words[0], self._words[1] = self._log2, self._mask
        self.element = element

    @staticmethod
    def most(entries: int) -> int:
        """The largest capacity that is not above ENTRIES."""
        return (1 << (entries + 1).bit_length() - 1) - 1

    def close(self) -> None:
        """Give its memory back: a program finds nothing but zeros there from then on."""
        self._words.release()
        self._map.madvise(mmap.MADV_REMOVE)
        self._map.close()
        self._file.give_back()

    @property
    def info(self) -> bytes:
        """What a program is told."""
        return MMINFO.pack(offset=self._offset, size=self._size)

    # Both ends.

    @property
    def produced(self) -> int:
        """The index behind the last element."""
        return self._words[_PRODUCER] & self._mask

    @produced.setter
    def produced(self, index: int) -> None:
        self._words[_PRODUCER] = index & self._mask

    @property
    def consumed(self) -> int:
        """The index of the oldest element."""
        return self._words[_CONSUMER] & self._mask

    @consumed.setter
    def consumed(self, index: int) -> None:
        self._words[_CONSUMER] = index & self._mask

    def distance(self, first: int, last: int) -> int:
        """Elements from one index to another."""
        return last - first & self._mask

    def read(self, index: int) -> bytes:
        """An element."""
        at = _DATA + ((index & self._mask) << self._log2)
        return self._map[at : at + self.element]

    def write(self, index: int, data: bytes) -> None:
        """Put an element, which is not seen before its producer's index is behind it."""
        at = _DATA + ((index & self._mask) << self._log2)
        self._map[at : at + len(data)] = data


class _OnRing:
    """What is on a ring.

    Attributes:
        ring: the ring.
    """

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self._next = 0


class CompletionRing(_OnRing):
    """The entries of a completion queue (`verbs.completions.Entries`), which the program takes."""

    def __len__(self) -> int:
        return self.ring.distance(self.ring.consumed, self._next)

    def append(self, completion: WorkCompletion, /) -> None:
        """See `verbs.completions.Entries`."""
        is_key = CompletionFlag.WITH_INV in completion.flags
        data = WC.pack(
            wr_id=completion.wr_id,
            status=completion.status,
            opcode=completion.opcode,
            byte_len=completion.byte_len & 0xFFFF_FFFF,
            ex=completion.imm.to_bytes(4, "little" if is_key else "big"),
            qp_num=completion.qp_number,
            src_qp=completion.src_qp,
            wc_flags=completion.flags,
            pkey_index=completion.p_key_index,
            slid=completion.slid,
            sl=completion.sl,
            dlid_path_bits=completion.dlid_path_bits,
            port_num=1,
        )
        self._put(data)

    def _put(self, data: bytes) -> None:
        self.ring.write(self._next, data)
        self._next += 1
        self.ring.produced = self._next

    def popleft(self) -> WorkCompletion:
        """The program takes them by itself."""
        raise NotImplementedError

    def move(self, ring: Ring) -> Ring:
        """Go to another ring with all that was not taken; the one before."""
        before, first, count = self.ring, self.ring.consumed, len(self)
        self.ring, self._next = ring, 0
        for index in range(first, first + count):
            self._put(before.read(index))
        return before


class ReceiveRing(_OnRing):
    """The requests of a receive queue (`verbs.receive_queue.ReceiveRequests`), which the program posts."""

    def __init__(self, ring: Ring, max_sge: int) -> None:
        super().__init__(ring)
        self._max_sge = max_sge

    @staticmethod
    def element(max_sge: int) -> int:
        """Bytes of a request."""
        return _RECV_WQE.size + max_sge * _SGE.size

    def __len__(self) -> int:
        return self.ring.distance(self._next, self.ring.produced)

    def append(self, request: ReceiveRequest, /) -> None:
        """The program posts them by itself."""
        raise NotImplementedError

    def popleft(self) -> ReceiveRequest:
        """See `verbs.receive_queue.ReceiveRequests`."""
        data = self.ring.read(self._next)
        wr_id, _length, _resid, count = _RECV_WQE.unpack_from(data)
        self._to(self._next + 1)
        return ReceiveRequest(wr_id, _pieces(data, _RECV_WQE.size, min(count, self._max_sge)))

    def clear(self) -> None:
        """See `verbs.receive_queue.ReceiveRequests`."""
        self._to(self.ring.produced)

    def _to(self, index: int) -> None:
        self._next = index
        self.ring.consumed = index

    def move(self, ring: Ring) -> Ring:
        """Go to another ring with all that was not taken; the one before."""
        before, first, count = self.ring, self._next, len(self)
        for index in range(count):
            ring.write(index, before.read(first + index))
        ring.produced = count
        self.ring, self._next = ring, 0
        return before


class PostedSend(NamedTuple):
    """A request of a send queue as a program has posted it.

    Attributes:
        ex: immediate data or a key.
        operands: what the opcode has besides, struct rxe_send_wr from its `wr` on.
        inline: bytes that follow, if the data is not in `pieces`.
    """

    wr_id: int
    opcode: int
    flags: int
    ex: bytes
    operands: bytes
    length: int
    pieces: tuple[ScatterGather, ...]
    inline: bytes


class SendRing(_OnRing):
    """The requests of a send queue. A request stays until it has ended."""

    def __init__(self, ring: Ring, max_sge: int) -> None:
        super().__init__(ring)
        self._max_sge = max_sge
        self._oldest = 0

    @staticmethod
    def element(max_sge: int, max_inline: int) -> int:
        """Bytes of a request."""
        return _SEND_WQE.size + max(max_sge * _SGE.size, max_inline)

    def drain(self) -> Iterator[PostedSend]:
        """What was posted since the last time."""
        for _ in range(self.ring.distance(self._next, self.ring.produced)):
            data = self.ring.read(self._next)
            self._next += 1
            wr_id, opcode, flags, ex, operands, length, count = _SEND_WQE.unpack_from(data)
            pieces = _pieces(data, _SEND_WQE.size, min(count, self._max_sge))
            yield PostedSend(wr_id, opcode, flags, ex, operands, length, pieces, data[_SEND_WQE.size :])

    def ended(self) -> None:
        """The oldest request has ended: there is room for another."""
        self._oldest += 1
        self.ring.consumed = self._oldest

    def clear(self) -> None:
        """Forget all requests."""
        self._next = self._oldest = self.ring.produced
        self.ring.consumed = self._oldest


def _pieces(data: bytes, at: int, count: int) -> tuple[ScatterGather, ...]:
    return tuple(ScatterGather(*_SGE.unpack_from(data, at + index * _SGE.size)) for index in range(count))
