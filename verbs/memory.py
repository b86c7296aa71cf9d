"""Memory as an adapter reaches it: what lies behind may be a buffer here or another process."""

from __future__ import annotations

from typing import Protocol

__all__ = ["BufferMemory", "Memory", "MemoryFaultError"]


class MemoryFaultError(Exception):
    """The memory is not there, though it was when it was registered."""


class Memory(Protocol):
    """Bytes by address. Addresses are what a program calls them, its virtual ones."""

    def read(self, address: int, length: int) -> bytes:
        """`length` bytes from `address` on.

        Raises:
            MemoryFaultError: not all of them can be reached.
        """

    def write(self, address: int, data: bytes) -> None:
        """Stores `data` from `address` on, its last byte last, since programs look for that.

        Raises:
            MemoryFaultError: not all of it can be stored.
        """


class BufferMemory:
    """Memory of our own, from `base` on."""

    def __init__(self, size: int, base: int = 0) -> None:
        self.base = base
        self.bytes = bytearray(size)
        """What is stored, the byte at `base` first."""

    def read(self, address: int, length: int) -> bytes:
        """See `Memory`."""
        at = self._place(address, length)
        return bytes(self.bytes[at : at + length])

    def write(self, address: int, data: bytes) -> None:
        """See `Memory`."""
        at = self._place(address, len(data))
        self.bytes[at : at + len(data)] = data

    def _place(self, address: int, length: int) -> int:
        at = address - self.base
        if at < 0 or at + length > len(self.bytes):
            raise MemoryFaultError(
                f"{length} bytes at {address:#x}: allowed {self.base:#x}..{self.base + len(self.bytes):#x}"
            )
        return at
