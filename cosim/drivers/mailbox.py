"""The mailbox of a running simulation: what the drivers share of its top's registers and files."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from cocotb.triggers import ReadWrite, SimTimeoutError, ValueChange, with_timeout

from cosim.harness.stream_files import Outbox
from cosim.harness.top import CYCLE_NS
from rtl.fabric.ports import FabricPorts
from wire.stimulus import Control, Post

__all__ = ["Mailbox", "within"]

_NEVER = (1 << 64) - 1
_T = TypeVar("_T")


class Mailbox:
    """Posts stimulus to the players and rings their doorbells.

    Attributes:
        outbox: the files, open in the simulation's directory.
    """

    def __init__(self, dut: Any, ports: FabricPorts) -> None:
        self.outbox = Outbox(Path(), ports)
        self._dut = dut

    def start(self) -> None:
        """Let the clock run forever, and have everything that comes out readable at once."""
        self._dut.eager.value = 1
        self._dut.stop.value = _NEVER

    def packet(self, post: Post) -> None:
        """Post a packet.

        Raises:
            KeyError: the node has no such slot.
        """
        self.outbox.packet(post)
        self.outbox.flush()
        self._dut.posted.value = sum(count << 32 * stream for stream, count in enumerate(self.outbox.packets))

    async def control(self, *controls: Control) -> None:
        """Post control operations, and wait until the last of them is on the wires."""
        for control in controls:
            self.outbox.control(control)
        self.outbox.flush()
        self._dut.controls_posted.value = number = self.outbox.controls
        await self.until(lambda: int(self._dut.controls_given.value) >= number, "controls_given")

    async def until(self, condition: Callable[[], bool], register: str) -> None:
        """Wait for a condition that can only come true when a register of the top changes."""
        handle = getattr(self._dut, register)
        while not condition():
            await ValueChange(handle)
            # Registers of one clock edge do not change at one moment on every simulator.
            await ReadWrite()

    async def changed(self, register: str, before: int) -> None:
        """Wait until a register of the top is no longer BEFORE."""
        await self.until(lambda: self.read(register) != before, register)

    def read(self, register: str) -> int:
        """The value of a register of the top."""
        return int(getattr(self._dut, register).value)


async def within(cycles: int | None, awaited: Coroutine[Any, Any, _T], what: str) -> _T:
    """Wait for something for a number of cycles, or forever.

    Raises:
        TimeoutError: it took longer.
    """
    if cycles is None:
        return await awaited
    try:
        return await with_timeout(awaited, cycles * CYCLE_NS, "ns")
    except SimTimeoutError:
        raise TimeoutError(f"{what}: nothing in {cycles} cycles") from None
