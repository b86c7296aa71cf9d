"""A host's channel adapter as its verbs device: the transport, its ports, and whose every event is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from doors.mads.host_port import HostPort
from doors.uverbs.operations import Operations
from verbs.adapter import Adapter
from verbs.completions import AsyncEvent, AsyncEventType
from wire.codes import PortState

__all__ = ["PortEvent", "UverbsAdapter"]

Tell = Callable[[AsyncEventType], None]
"""Takes the events of a queue pair, a completion queue or a shared receive queue."""


class PortEvent(IntEnum):
    """What is told of ports (enum ib_event_type)."""

    PORT_ACTIVE = 9
    PORT_ERR = 10
    LID_CHANGE = 11
    PKEY_CHANGE = 12
    SM_CHANGE = 13
    CLIENT_REREGISTER = 17
    GID_CHANGE = 18


class _Known(NamedTuple):
    """What programs were told of a port."""

    is_active: bool
    lid: tuple[int, int]
    p_keys: tuple[int, ...]
    manager: tuple[int, int]
    gid: int
    is_to_reregister: bool

    @classmethod
    def of(cls, port: HostPort) -> _Known:
        info = port.info
        is_active = info.port_state in (PortState.ACTIVE, PortState.ACTIVE_DEFER)
        manager = info.master_sm_lid, info.master_sm_sl
        reregister = bool(info.client_reregister)
        return cls(is_active, (info.lid, info.lmc), tuple(port.p_keys), manager, port.gid, reregister)


class UverbsAdapter:
    """What all programs of a host have in common.

    Attributes:
        adapter: the transport.
        ports: as management knows them.
        owners: by an event's source, who is told.
        listeners: by open device, who is told of ports: number and event.
        operations: what is done.
    """

    def __init__(self, adapter: Adapter, ports: Sequence[HostPort], operations: Operations | None = None) -> None:
        self.adapter = adapter
        self.ports: Final = ports
        self.operations = Operations(lambda: adapter.now) if operations is None else operations
        self.owners: dict[object, Tell] = {}
        self.listeners: dict[object, Callable[[int, int], None]] = {}
        self._known = {port: _Known.of(port) for port in ports}
        adapter.on_event = self._report

    def update(self, port: HostPort) -> None:
        """Tell programs what has become of a port."""
        before, self._known[port] = self._known[port], _Known.of(port)
        for event in _events(before, self._known[port]):
            for tell in self.listeners.values():
                tell(port.number, event)

    @property
    def name(self) -> str:
        """The host's."""
        return self.ports[0].host

    def _report(self, event: AsyncEvent) -> None:
        tell = self.owners.get(event.source)
        if tell is not None:
            tell(event.type)


def _events(before: _Known, now: _Known) -> Iterator[PortEvent]:
    if before.lid != now.lid:
        yield PortEvent.LID_CHANGE
    if before.gid != now.gid:
        yield PortEvent.GID_CHANGE
    if before.p_keys != now.p_keys:
        yield PortEvent.PKEY_CHANGE
    if before.manager != now.manager:
        yield PortEvent.SM_CHANGE
    if now.is_to_reregister and not before.is_to_reregister:
        yield PortEvent.CLIENT_REREGISTER
    if before.is_active != now.is_active:
        yield PortEvent.PORT_ACTIVE if now.is_active else PortEvent.PORT_ERR
