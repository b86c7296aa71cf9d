"""Attributes whose blocks are stored and read back (docs/management.md, sections 4.1 and 4.3)."""

from collections.abc import Generator

from .agent_node import AgentNode
from .attribute import ANSWER, COMMIT, Request, SettableAttribute

__all__ = ["StoredBlock"]


class StoredBlock(SettableAttribute):
    """A block of bytes for each thing that the modifier selects. Any value is accepted."""

    def __init__(self, node: AgentNode, reset: bytes) -> None:
        """`reset` is what every block holds at reset."""
        self._node = node
        self._reset = reset
        self._blocks: dict[int, bytes] = {}

    def kept(self, data: bytes) -> bytes:
        """What is stored of the bytes of a Set."""
        return data

    def writes(self, which: int, data: bytes) -> list[tuple[int, int, int]]:
        """Step, address and value of the register writes of a Set, in the order of their steps."""
        return []

    def block(self, which: int) -> bytes:
        """What a block holds."""
        return self._blocks.get(which, self._reset)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """Some blocks are also written to registers."""
        data = request.data[: len(self._reset)]
        for step, address, value in self.writes(request.which, data):
            yield step
            self._node.bus_write(address, value)
        yield COMMIT
        self._blocks[request.which] = self.kept(data)
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """As stored."""
        yield ANSWER
        return self.block(request.which)
