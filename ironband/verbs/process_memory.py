"""The memory of this process that regions are made of, each piece at an address of its own.

Addresses are numbers that only this API knows, far apart from each other and above 4 GiB: what is beyond the end of a
piece belongs to nobody, and an address that was cut to 32 bits is none.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from verbs.memory import MemoryFaultError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["MEMORY", "PAGE_BYTES", "ProcessMemory"]

PAGE_BYTES: Final = 4096
_FIRST_ADDRESS: Final = 0x10_0000_0000


class ProcessMemory:
    """Pieces by address; a `verbs.memory.Memory`."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: dict[int, memoryview] = {}
        self._next = _FIRST_ADDRESS

    def allocate(self, length: int, alignment: int = PAGE_BYTES) -> int:
        """The address of so many new bytes, which are 0."""
        return self.attach(bytearray(length), alignment)

    def attach(self, buffer: Buffer, alignment: int = PAGE_BYTES) -> int:
        """The address of somebody's bytes: a bytearray, an mmap, an array of numpy.

        Raises:
            ValueError: they cannot be written, or are not in one piece.
        """
        view = memoryview(buffer)
        if view.readonly:
            raise ValueError(f"{type(buffer).__name__}: cannot be written, expected bytes that can")
        if not view.c_contiguous:
            raise ValueError(f"{type(buffer).__name__}: is not in one piece, expected one that is")
        piece = view.cast("B")
        size = max(alignment, PAGE_BYTES)
        start = -(-self._next // size) * size
        # At least a page between two pieces is nobody's.
        self._next = start + len(piece) + PAGE_BYTES
        self._starts.append(start)
        self._pieces[start] = piece
        return start

    def release(self, address: int) -> None:
        """Ends the piece that begins at an address.

        Raises:
            ValueError: none does.
        """
        if address not in self._pieces:
            raise ValueError(f"address {address:#x}: no memory begins there")
        self._starts.remove(address)
        del self._pieces[address]

    def read(self, address: int, length: int) -> bytes:
        """See `verbs.memory.Memory`."""
        piece, at = self._place(address, length)
        return bytes(piece[at : at + length])

    def write(self, address: int, data: bytes) -> None:
        """See `verbs.memory.Memory`."""
        piece, at = self._place(address, len(data))
        piece[at : at + len(data)] = data

    def check(self, address: int, length: int) -> None:
        """Raises MemoryFaultError unless all of it is there."""
        self._place(address, length)

    def _place(self, address: int, length: int) -> tuple[memoryview, int]:
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            start = self._starts[index]
            piece = self._pieces[start]
            if address + length <= start + len(piece):
                return piece, address - start
        raise MemoryFaultError(f"{length} bytes at {address:#x}: there is no such memory")


MEMORY: Final = ProcessMemory()
"""That of this process."""
