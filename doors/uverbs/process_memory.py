"""The memory of a program, which an adapter reads and writes.

It is reached through the kernel's file for it. That is bound to the program's memory itself: once the program has ended
there is nothing behind it, whoever has its number then.
"""

from __future__ import annotations

import os
from typing import Final

from doors.descriptors import kept
from verbs.memory import MemoryFaultError

__all__ = ["ProcessMemory"]

_WHOLE: Final = 8
"""Bytes that are stored at once."""

_MOST_ADDRESS: Final = (1 << 63) - 1


class ProcessMemory:
    """The memory of a process, as long as it has it."""

    def __init__(self, process: int) -> None:
        """Opens it.

        Raises:
            OSError: it is another user's, or gone.
        """
        self._file = kept(os.open(f"/proc/{process}/mem", os.O_RDWR | os.O_CLOEXEC))

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)

    def read(self, address: int, length: int) -> bytes:
        """See `verbs.memory.Memory`."""
        data = b""
        if address + length <= _MOST_ADDRESS:
            try:
                data = os.pread(self._file, length, address)
            except OSError:
                data = b""
        if len(data) != length:
            raise MemoryFaultError(f"{length} bytes at {address:#x}: the program does not have them")
        return data

    def write(self, address: int, data: bytes) -> None:
        """See `verbs.memory.Memory`."""
        before = len(data) - 1 if len(data) > _WHOLE else 0
        stored = 0
        if address + len(data) <= _MOST_ADDRESS:
            try:
                stored = os.pwrite(self._file, data[:before], address) if before else 0
                stored += os.pwrite(self._file, data[before:], address + before)
            except OSError:
                stored = 0
        if stored != len(data):
            raise MemoryFaultError(f"{len(data)} bytes at {address:#x}: the program has no such memory to be written")
