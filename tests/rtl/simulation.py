"""A design in Amaranth's simulator that many test benches drive, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.lib.data import View
from amaranth.sim import Simulator

from tests.rtl.quick_engine import QuickEngine
from toolchain.garbage import no_garbage_collection

TestBench = Callable[[Any], Coroutine[Any, Any, None]]


class Simulation:
    """A design that is elaborated once, which takes longer than most tests of it, and reset before each run."""

    def __init__(self, design: Any) -> None:
        self._bench: TestBench | None = None
        with no_garbage_collection():
            self._simulator = Simulator(design, engine=QuickEngine)
        self._simulator.add_clock(1e-6, if_exists=True)
        self._simulator.add_testbench(self._drive)

    def run(self, bench: TestBench) -> None:
        """Run a test bench from reset to its end."""
        if self._bench is not None:
            self._simulator.reset()
        self._bench = bench
        with _members_kept():
            self._simulator.run()

    def note_changes(self, names: list[str]) -> None:
        """Add the name of each register and memory to NAMES when it changes, the first time from now on."""
        self._simulator._engine.note_changes(names)

    async def _drive(self, ctx: Any) -> None:
        assert self._bench is not None
        await self._bench(ctx)


@contextmanager
def _members_kept() -> Iterator[None]:
    """Views have each of their members made once, not at every use, which takes longer than most of what it is for."""
    make = View.__getitem__

    def member(view: Any, key: Any) -> Any:
        if type(key) not in (int, str):
            return make(view, key)
        kept = view.__dict__.setdefault("_kept", {})
        if key not in kept:
            kept[key] = make(view, key)
        return kept[key]

    View.__getitem__ = member
    try:
        yield
    finally:
        View.__getitem__ = make
