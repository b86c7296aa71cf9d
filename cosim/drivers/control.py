"""Registers, links, errors and stalls of a fabric, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cocotb.triggers import Lock

from cosim.drivers.mailbox import Mailbox
from wire.stimulus import Control, Injection, Operation, injection_target

__all__ = ["ControlDriver"]


class ControlDriver:
    """Gives control operations (`wire.stimulus.Operation`), each as soon as possible.

    A method returns in the cycle in which its operation is on the wires; what it does shows when docs/pipeline.md
    says. Nodes are given by name, links by index.
    """

    def __init__(self, mailbox: Mailbox, nodes: Sequence[str]) -> None:
        self._mailbox = mailbox
        self._nodes = {name: index for index, name in enumerate(nodes)}
        self._reading = Lock()

    async def write(self, node: str, address: int, data: int) -> None:
        """Write a register of a node."""
        await self._give(Operation.BUS_WRITE, self._nodes[node], (address, data, 0, 0))

    async def read(self, node: str, address: int) -> int:
        """Read a register of a node."""
        async with self._reading:
            before = self._mailbox.read("reads")
            await self._give(Operation.BUS_READ, self._nodes[node], (address, 0, 0, 0))
            await self._mailbox.changed("reads", before)
            return self._mailbox.read("read_data")

    async def inject(self, link: int, direction: int, injection: Injection) -> None:
        """Arm an error on a direction of a link (0 from its end a to b)."""
        await self._give(Operation.INJECT, injection_target(link, direction), injection.args())

    async def link_down(self, link: int) -> None:
        """Take a link down."""
        await self._give(Operation.LINK_DOWN, link)

    async def link_up(self, link: int) -> None:
        """Bring a link up."""
        await self._give(Operation.LINK_UP, link)

    async def stall(self, adapter: str, slots: Iterable[int]) -> None:
        """Have an adapter's host take packets of all slots but these."""
        await self._give(Operation.RECV_STALL, self._nodes[adapter], (sum(1 << slot for slot in set(slots)), 0, 0, 0))

    async def _give(self, operation: Operation, target: int, args: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
        await self._mailbox.control(Control(0, operation, target, args))
