"""Memory for regions that programs give an address for, under the names that pyverbs has."""

from __future__ import annotations

from typing import Final

from ironband.verbs.base import refusals
from ironband.verbs.process_memory import MEMORY

__all__ = ["free", "malloc", "mmap", "munmap", "posix_memalign", "read", "read32", "read64", "write"]
__all__ += ["writebe32", "writebe64"]

_READ: Final = "Failed to read memory"
_WRITE: Final = "Failed to write memory"


def malloc(size: int) -> int:
    """The address of so many new bytes."""
    return MEMORY.allocate(size)


def posix_memalign(size: int, alignment: int = 8) -> int:
    """Likewise, a multiple of ALIGNMENT."""
    return MEMORY.allocate(size, alignment)


def mmap(addr: int = 0, length: int = 100, prot: int = 0, flags: int = 0, fd: int = 0, offset: int = 0) -> int:
    """Likewise; all but LENGTH does not matter, as the memory is of no file."""
    return MEMORY.allocate(length)


def free(ptr: int) -> None:
    """Ends what begins at an address."""
    with refusals("Failed to free memory"):
        MEMORY.release(ptr)


def munmap(addr: int, length: int) -> None:
    """Likewise."""
    free(addr)


def write(addr: int, data: str | bytes, length: int, offset: int = 0) -> None:
    """Stores the first bytes of DATA."""
    with refusals(_WRITE):
        MEMORY.write(addr + offset, (data.encode() if isinstance(data, str) else data)[:length])


def writebe32(addr: int, val: int, offset: int = 0) -> None:
    """Stores a 32-bit number, the highest byte first, at the so-manieth such place."""
    write(addr, val.to_bytes(4, "big"), 4, 4 * offset)


def writebe64(addr: int, val: int, offset: int = 0) -> None:
    """Stores a 64-bit number likewise."""
    write(addr, val.to_bytes(8, "big"), 8, 8 * offset)


def read(addr: int, length: int, offset: int = 0) -> bytes:
    """The bytes at an address."""
    with refusals(_READ):
        return MEMORY.read(addr + offset, length)


def read32(addr: int, offset: int = 0) -> int:
    """The 32-bit number, lowest byte first, at the so-manieth such place."""
    return int.from_bytes(read(addr, 4, 4 * offset), "little")


def read64(addr: int, offset: int = 0) -> int:
    """A 64-bit number likewise."""
    return int.from_bytes(read(addr, 8, 8 * offset), "little")
