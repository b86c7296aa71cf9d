"""Ports configured, then taken from Initialize over Armed to Active (IBTA vol 1, 7.2 and 14.2.5.6)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from sm.discovery import Findings
from sm.events import PortStateSet, PortStuck, SetRefused, Tell, Unsettled
from sm.mad_client import MadClient, RefusedError, SmpError
from sm.settings import SubnetSettings
from sm.sma_client import Path, SmaClient
from sm.subnet import End
from sm.tasks import gather
from wire.codes import PortState
from wire.port_info import NO_CHANGE, PORT_INFO

__all__ = ["UNCHANGED", "bring_up_ports"]

UNCHANGED: Final[Mapping[str, int]] = {
    "port_state": NO_CHANGE,
    "port_physical_state": NO_CHANGE,
    "link_down_default_state": NO_CHANGE,
    "link_width_enabled": NO_CHANGE,
    "link_speed_enabled": NO_CHANGE,
}
"""Fields of PortInfo in a Set that leaves a port's link as it is."""


async def bring_up_ports(
    mads: MadClient,
    found: Findings,
    wanted: Mapping[End, Mapping[str, int]],
    settings: SubnetSettings,
    tell: Tell,
    has_trap: Callable[[], bool],
) -> bool:
    """Sets the `wanted` fields of PortInfo, and takes both ends of every link to Active; whether it got there.

    One Set holds a port's fields and takes it from Initialize to Armed, and both ends of a link are armed before
    either is made Active. A port that does not take a step yet, or has fallen back because its peer was not ready,
    has further rounds with a pause between. A node that does not answer is reported and does not hold up others,
    unless `has_trap` says that a change was reported meanwhile: then the subnet has changed, and must be looked at
    again at once.
    """
    ports = _Ports(mads, found, wanted, tell, has_trap)
    for turn in range(settings.attempts):
        if turn:
            await mads.timer(settings.activation_wait)
            await ports.take(ports.read, ports.beside_fallen)
        await ports.take(ports.configure, [end for end in wanted if ports.is_to_configure(end)])
        await ports.take(ports.activate, [end for end in wanted if ports.is_armed(end)])
        if ports.are_outdated:
            return False
        if not any(ports.is_hopeful(end) for end in wanted):
            break
    stuck = [end for end in wanted if not ports.is_ready(end)]
    for end in stuck:
        tell(PortStuck(end, found.state(end)))
    return not stuck and not ports.mute_paths


class _Ports:
    """Ports being taken to Active; `found` keeps what is known of them."""

    def __init__(
        self,
        mads: MadClient,
        found: Findings,
        wanted: Mapping[End, Mapping[str, int]],
        tell: Tell,
        has_trap: Callable[[], bool],
    ) -> None:
        self._workers = mads.window
        self._sma = SmaClient(mads)
        self._found = found
        self._wanted = wanted
        self._tell = tell
        self._has_trap = has_trap
        self._refused: set[End] = set()
        """Ports that do not take what is wanted of them."""
        self.mute_paths: set[Path] = set()
        """Of nodes that did not answer."""

    @property
    def are_outdated(self) -> bool:
        """Whether the subnet is no longer as it was found: a node does not answer, and a trap may say why."""
        return bool(self.mute_paths) and self._has_trap()

    async def take(self, step: Callable[[End], Coroutine[Any, Any, None]], ends: Iterable[End]) -> None:
        """Takes a step with each of some ports, in their order.

        No more are in progress than SMPs may be outstanding, so that if a node falls silent its other ports need
        not be waited for.
        """
        left = iter(ends)

        async def work() -> None:
            for end in left:
                if self.are_outdated:
                    return
                if not self._is_mute(end):
                    await step(end)

        await gather([work() for _worker in range(self._workers)])

    def is_ready(self, end: End) -> bool:
        """Whether the port is Active; ports without a link need not be."""
        return self._found.subnet.peer(end) is None or self._found.state(end) == PortState.ACTIVE

    def is_hopeful(self, end: End) -> bool:
        """Whether the port is not ready and may yet become so."""
        peer = self._found.subnet.peer(end)
        return not (self.is_ready(end) or self._is_mute(end) or (peer is not None and self._is_mute(peer)))

    def is_armed(self, end: End) -> bool:
        """Whether Active is the next step."""
        return self._found.subnet.peer(end) is not None and self._found.state(end) == PortState.ARMED

    def is_to_configure(self, end: End) -> bool:
        """Whether Armed is the next step, or a field is not as wanted."""
        info = self._found.ports[end]
        differs = any(info[name] != value for name, value in self._wanted[end].items())
        return self._is_initial(end) or (differs and end not in self._refused)

    def _is_mute(self, end: End) -> bool:
        return self._found.path(end) in self.mute_paths

    def _is_initial(self, end: End) -> bool:
        return self._found.subnet.peer(end) is not None and self._found.state(end) == PortState.INITIALIZE

    @property
    def beside_fallen(self) -> list[End]:
        """Ports taken for Armed or Active whose peers are in Initialize: they have fallen back too, or will.

        A port in Initialize sends flow control packets that take the other end there (RemoteInit).
        """
        return [
            end
            for end in self._wanted
            if (peer := self._found.subnet.peer(end)) is not None
            and self._is_initial(peer)
            and self._found.state(end) in (PortState.ARMED, PortState.ACTIVE)
        ]

    async def read(self, end: End) -> None:
        """Reads what a port is now."""
        try:
            self._found.ports[end] = await self._sma.port_info(self._found.path(end), end.port)
        except SmpError as error:
            self._fell_silent(end, error)

    async def configure(self, end: End) -> None:
        """Sets the wanted fields, and Armed if that is the next step."""
        await self._set(end, PortState.ARMED if self._is_initial(end) else PortState.NO_CHANGE)

    async def activate(self, end: End) -> None:
        """Sets Active."""
        await self._set(end, PortState.ACTIVE)

    async def _set(self, end: End, state: PortState) -> None:
        was = self._found.state(end)
        info = self._found.ports[end].replace(**{**self._wanted[end], **UNCHANGED, "port_state": state})
        try:
            self._found.ports[end] = await self._sma.set_port_info(self._found.path(end), end.port, info)
        except RefusedError as error:
            # The valid part of it holds nevertheless, and the answer shows it.
            answer = PORT_INFO.unpack(error.data)
            if answer.port_state != PortState.NO_CHANGE:
                self._found.ports[end] = answer
            if state != PortState.ACTIVE and end not in self._refused:
                self._refused.add(end)
                self._tell(SetRefused(str(error)))
        except SmpError as error:
            self._fell_silent(end, error)
        if self._found.state(end) not in (was, PortState.INITIALIZE):
            self._tell(PortStateSet(end, self._found.state(end)))

    def _fell_silent(self, end: End, error: SmpError) -> None:
        self.mute_paths.add(self._found.path(end))
        self._tell(Unsettled(str(error)))
