"""Rows of an open port, symbol by symbol. Python wakes every cycle here: these are for short link tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import Event, FallingEdge, RisingEdge

from cosim.drivers.mailbox import within
from wire.symbols import Control, Row, idle_row

__all__ = ["RowDriver", "RowFrame", "RowMonitor"]

_K_LANE_0 = 0b1000
_K_LANE_3 = 0b0001


class RowDriver:
    """Drives the rows into an open port: those it was given, idle rows when it has none, one in each cycle."""

    def __init__(self, dut: Any, index: int) -> None:
        self._data = getattr(dut, f"rx_{index}_data")
        self._k = getattr(dut, f"rx_{index}_k")
        self._valid = getattr(dut, f"rx_{index}_valid")
        self._clk = dut.clk
        self._rows: deque[Row] = deque()
        self._idle = Event()
        cocotb.start_soon(self._drive())

    def send_nowait(self, rows: Iterable[Row]) -> None:
        """Queue rows, to follow those queued before without a gap."""
        self._rows.extend(rows)

    async def send(self, rows: Iterable[Row]) -> None:
        """Queue rows, and wait until the last of all queued ones is on the wires."""
        self._rows.extend(rows)
        self._idle.clear()
        await self._idle.wait()

    async def _drive(self) -> None:
        step = 0
        self._valid.value = 1
        while True:
            row = self._rows.popleft() if self._rows else idle_row(step)
            self._data.value = row.data
            self._k.value = row.k
            if not self._rows:
                self._idle.set()
            step += 1
            await RisingEdge(self._clk)


class RowFrame(NamedTuple):
    """A packet on the wires of a port."""

    cycle: int
    """Of its first row."""
    rows: tuple[Row, ...]

    @property
    def start(self) -> Control:
        """SDP of a data packet, SLP of a link packet."""
        return Control(self.rows[0].data >> 24)

    @property
    def good(self) -> bool:
        """Whether it ended with EGP."""
        return self.rows[-1].data & 0xFF == Control.EGP

    @property
    def body(self) -> bytes:
        """The bytes between the delimiters, VCRC or LPCRC included."""
        return b"".join(row.data.to_bytes(4, "big") for row in self.rows)[1:-1]


class RowMonitor:
    """Watches the rows out of an open port, and gathers packets from start to end delimiter."""

    def __init__(self, dut: Any, index: int, cycle: Callable[[], int]) -> None:
        """CYCLE says which it is."""
        self._data = getattr(dut, f"tx_{index}_data")
        self._k = getattr(dut, f"tx_{index}_k")
        self._valid = getattr(dut, f"tx_{index}_valid")
        self._cycle = cycle
        self._clk = dut.clk
        self._frames: Queue[RowFrame] = Queue()
        self._name = f"frame at open port {index}"
        cocotb.start_soon(self._watch())

    async def recv(self, timeout_cycles: int | None = None) -> RowFrame:
        """Wait for the next packet.

        Raises:
            TimeoutError: none came in so many cycles.
        """
        return await within(timeout_cycles, self._frames.get(), self._name)

    async def recv_data(self, timeout_cycles: int | None = None) -> RowFrame:
        """Wait for the next data packet; link packets before it are passed over.

        Raises:
            TimeoutError: none came in so many cycles.
        """

        async def next_data() -> RowFrame:
            while (frame := await self._frames.get()).start is not Control.SDP:
                pass
            return frame

        return await within(timeout_cycles, next_data(), self._name)

    def count(self) -> int:
        """Packets gathered and not yet received here."""
        return self._frames.qsize()

    async def _watch(self) -> None:
        rows: list[Row] = []
        first = 0
        while True:
            # In the middle of a cycle its values stand, on any simulator.
            await FallingEdge(self._clk)
            if not self._valid.value:
                continue
            row = Row(int(self._data.value), int(self._k.value))
            if row.k == _K_LANE_0:
                rows, first = [row], self._cycle()
            elif rows:
                rows.append(row)
                if row.k == _K_LANE_3:
                    self._frames.put_nowait(RowFrame(first, tuple(rows)))
                    rows = []
