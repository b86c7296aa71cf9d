"""What a context stands on: adapters at hosts, and time that passes only when somebody lets it."""

from __future__ import annotations

import atexit
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Protocol, Self

from ironband.verbs.pyverbs_error import NothingComesError, PyverbsUserError
from verbs.adapter import Adapter
from verbs.completions import AsyncEvent

__all__ = ["Host", "HostListener", "Network", "newest_network"]

_VAIN_POLLS: Final = 100
"""Polls of completion queues in a row that find nothing, while nothing can come."""


class HostListener(Protocol):
    """Hears what an adapter says outside completion queues."""

    def heard(self, event: AsyncEvent) -> None:
        """Takes an event."""

    def close(self) -> None:
        """The host ends."""


@dataclass(eq=False)
class Host:
    """A host.

    Attributes:
        name: as people call it.
        adapter: its transport.
        node_guid: of its adapter.
        sm_lid: where the Subnet Manager is, 0 if there is none.
        listeners: hear what the adapter says.
    """

    name: str
    adapter: Adapter
    node_guid: int
    sm_lid: int = 0
    listeners: list[HostListener] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Listen to the adapter."""
        self.adapter.on_event = self._pass_on

    def _pass_on(self, event: AsyncEvent) -> None:
        for listener in self.listeners:
            listener.heard(event)


class Network(ABC):
    """Hosts, and what joins them. Simulated time stands still between calls."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = {host.name: host for host in hosts}
        self._vain_polls = 0
        _open.append(self)
        # A program, or who types, may leave it open.
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, and all contexts at it; nothing if that has happened."""
        if self in _open:
            _open.remove(self)
            atexit.unregister(self.close)
            for host in self.hosts.values():
                for listener in list(host.listeners):
                    listener.close()

    @property
    @abstractmethod
    def now(self) -> int:
        """The cycle that time stands at."""

    @abstractmethod
    def step(self, most: int) -> None:
        """Lets a little time pass, not more than so many cycles, 1 and above."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """True if nothing is under way: no adapter waits for anything, no packet is in the fabric."""

    def host(self, name: str) -> Host:
        """A host.

        Raises:
            PyverbsUserError: there is none of this name.
        """
        found = self.hosts.get(name)
        if found is None:
            raise PyverbsUserError(f"host {name}: there is none; there are {', '.join(self.hosts)}")
        return found

    def run(self, cycles: int) -> None:
        """Lets so many cycles pass."""
        if cycles < 0:
            raise PyverbsUserError(f"run of {cycles} cycles: allowed 0 and above")
        end = self.now + cycles
        while self.now < end:
            self.step(end - self.now)

    def run_until(self, condition: Callable[[], bool], cycles: int | None = None) -> bool:
        """Lets time pass until a condition is true; false if it is not when CYCLES are over, or nothing is under way.

        Without CYCLES, it is the latter alone that ends it.
        """
        end = None if cycles is None else self.now + cycles
        while not condition():
            if (end is not None and self.now >= end) or self.is_idle:
                return False
            self.step(_MOST if end is None else end - self.now)
        return True

    def wait(self, condition: Callable[[], bool], cycles: int | None, what: str) -> None:
        """Likewise.

        Raises:
            NothingComesError: it has not become true.
        """
        start = self.now
        if not self.run_until(condition, cycles):
            passed = self.now - start
            why = "nothing is under way any more" if self.is_idle else f"has not come within {passed:,} cycles"
            raise NothingComesError(f"{what}: {why} at cycle {self.now:,}")

    def pause(self, what: str) -> None:
        """Lets a little time pass, for somebody who has found nothing.

        Raises:
            NothingComesError: this has been in vain many times, and nothing can come.
        """
        self._vain_polls = self._vain_polls + 1 if self.is_idle else 0
        if self._vain_polls > _VAIN_POLLS:
            self._vain_polls = 0
            raise NothingComesError(f"{what}: nothing is under way any more at cycle {self.now:,}")
        self.step(_MOST)

    def found(self) -> None:
        """Somebody has found something."""
        self._vain_polls = 0


_MOST: Final = 1 << 20

_open: list[Network] = []


def newest_network() -> Network:
    """That for contexts which do not say where they are.

    Raises:
        PyverbsUserError: there is none.
    """
    if not _open:
        raise PyverbsUserError("no fabric is open: expected `with Fabric(TOPOLOGY):` around it")
    return _open[-1]
