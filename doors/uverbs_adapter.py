"""A host's channel adapter as its verbs device: the transport, its ports, and whose every event is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from doors.host_port import HostPort
from verbs.adapter import Adapter
from verbs.completions import AsyncEvent, AsyncEventType

__all__ = ["UverbsAdapter"]

Tell = Callable[[AsyncEventType], None]
"""Takes the events of a queue pair, a completion queue or a shared receive queue."""


class UverbsAdapter:
    """What all programs of a host have in common.

    Attributes:
        adapter: the transport.
        ports: as management knows them.
        owners: by an event's source, who is told.
    """

    def __init__(self, adapter: Adapter, ports: Sequence[HostPort]) -> None:
        self.adapter = adapter
        self.ports: Final = ports
        self.owners: dict[object, Tell] = {}
        adapter.on_event = self._report

    def _report(self, event: AsyncEvent) -> None:
        tell = self.owners.get(event.source)
        if tell is not None:
            tell(event.type)
