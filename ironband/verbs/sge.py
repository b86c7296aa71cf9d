"""Pieces of memory that work requests name."""

from __future__ import annotations

from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.process_memory import MEMORY
from verbs.work import ScatterGather

__all__ = ["SGE"]


class SGE(PyverbsCM):
    """A piece of memory."""

    def __init__(self, addr: int, length: int, lkey: int) -> None:
        super().__init__()
        self.addr = addr
        self.length = length
        self.lkey = lkey

    def read(self, length: int, offset: int) -> bytes:
        """LENGTH bytes from OFFSET on."""
        with refusals("Failed to read SGE"):
            return MEMORY.read(self.addr + offset, length)

    @property
    def piece(self) -> ScatterGather:
        """The same for the adapter."""
        return ScatterGather(int(self.addr), int(self.length), int(self.lkey))

    def __str__(self) -> str:
        shown = (("Address", hex(self.addr)), ("Length", self.length), ("Key", hex(self.lkey)))
        return "".join(f"{name:22}: {value:<20}\n" for name, value in shown)
