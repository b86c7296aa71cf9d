"""When a Subnet Manager looks at its subnet: heavy sweeps on traps and changes, light sweeps on a timer.

A heavy sweep looks at everything and corrects what is wrong; a light sweep only asks each switch whether anything
has changed since (SwitchInfo.PortStateChange).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from sm.discovery import Findings
from sm.events import SweepEnded, SweepStarted, Tell
from sm.mad_client import MadClient, SmpError
from sm.settings import SubnetSettings
from sm.sma_client import SmaClient
from sm.subnet import MANAGEMENT_PORT, End
from sm.tasks import Future, gather
from sm.trap_events import trap_event
from wire.layout import Record
from wire.mad import MadMethod, mad_data
from wire.notice import NOTICE, TrapNumber
from wire.sma import SmaAttribute

__all__ = ["HeavySweep", "Sweeper", "find_change"]

_CHANGES: Final = (TrapNumber.LINK_STATE_CHANGE, TrapNumber.LOCAL_CHANGES)
"""Traps after which the subnet may look otherwise."""


class HeavySweep(NamedTuple):
    """The result of a heavy sweep."""

    complete: bool
    """Whether all is as it should be."""
    changed: frozenset[int] = frozenset()
    """LIDs of switches whose PortStateChange it found set and cleared: they send, or have sent, a trap about it."""


async def find_change(sma: SmaClient, found: Findings) -> str | None:
    """What has changed since a discovery; None if nothing has, as far as a light sweep can see.

    One SMP for each switch, one for the Subnet Manager's own port, and one for each port that was silent.
    """

    async def own_port() -> str | None:
        try:
            info = await sma.port_info((), found.origin.port)
        except SmpError as error:
            return str(error)
        return None if info.port_state == found.state(found.origin) else "the state of the own port changed"

    async def switch(guid: int) -> str | None:
        try:
            info = await sma.switch_info(found.paths[End(guid, MANAGEMENT_PORT)])
        except SmpError as error:
            return str(error)
        return f"port state change at switch 0x{guid:016x}" if info.port_state_change else None

    async def silent_port(end: End) -> str | None:
        try:
            await sma.node_info((*found.path(end), end.port), retries=0)
        except SmpError:
            return None
        return f"the node behind {end} answers"

    own = [] if found.origin.port == MANAGEMENT_PORT else [own_port()]
    causes = await gather([*own, *map(switch, found.switches), *map(silent_port, found.silent)])
    return next((cause for cause in causes if cause is not None), None)


class Sweeper:
    """Sweeps forever, and answers traps."""

    def __init__(
        self,
        mads: MadClient,
        settings: SubnetSettings,
        tell: Tell,
        heavy: Callable[[], Coroutine[Any, None, HeavySweep]],
        change: Callable[[], Coroutine[Any, None, str | None]],
        period: Callable[[], int | None],
    ) -> None:
        """`heavy` sets the subnet right; `change` finds a cause to do so again, `period` cycles after the last look.

        There is no such look if that is None.
        """
        self.resting = False
        """Whether nothing is in progress: it waits for a trap or the next light sweep."""
        self._mads = mads
        self._settings = settings
        self._tell = tell
        self._heavy = heavy
        self._change = change
        self._period = period
        self._complete = False
        self._trap: str | None = None
        """The trap that asks for a sweep and has not had one."""
        self._sought: str | None = None
        """Who else asks for a heavy sweep and has not had one."""
        self._is_news = False
        """Whether one of those traps may be of a change that the last heavy sweep has not seen."""
        self._issuers: set[int] = set()
        """LIDs whose traps have come since before the last heavy sweep began."""
        self._seen: frozenset[int] = frozenset()
        """LIDs of switches whose change the last heavy sweep has seen, while their traps are yet to come."""
        self._rest: Future[bool] = Future()

    @property
    def has_trap(self) -> bool:
        """Whether a trap has come that asks for a sweep, since the sweep in progress began."""
        return self._trap is not None

    async def run(self) -> None:
        """Never ends."""
        cause = "start"
        while True:
            await self._sweep_heavily(cause)
            cause = await self._next_cause()

    def trap(self, trap: Record, own_lid: int) -> Record:
        """Takes a trap: TrapRepress goes back to its issuer, and a change asks for a sweep. Gives its notice."""
        notice = NOTICE.unpack(mad_data(trap))
        self._mads.repress(trap, own_lid, notice.issuer_lid)
        self._tell(trap_event(notice))
        if notice.is_generic and notice.trap_number in _CHANGES:
            self._trap = f"trap {notice.trap_number} from LID {notice.issuer_lid}"
            self._is_news |= notice.issuer_lid not in self._seen
            self._seen -= {notice.issuer_lid}
            self._issuers.add(notice.issuer_lid)
            self._rest.resolve(True)
        return notice

    def seek(self, cause: str) -> None:
        """Asks for a heavy sweep."""
        self._sought = cause
        self._rest.resolve(True)

    def look(self) -> None:
        """Makes the next look due now."""
        self._rest.resolve(False)

    async def _sweep_heavily(self, cause: str) -> None:
        for _attempt in range(self._settings.attempts):
            # It sees what the traps before it report.
            self._trap = None
            started, before = self._started(True, cause)
            self._complete, changed = await self._heavy()
            self._seen = changed - self._issuers
            self._issuers.clear()
            self._tell(SweepEnded(True, self._mads.now - started, self._mads.sent - before, self._complete))
            if self._complete:
                return
            cause = self._trap or "the one before was not complete"

    async def _next_cause(self) -> str:
        """Waits until there is a cause for a heavy sweep."""
        while True:
            if self._sought is not None:
                why, self._sought = self._sought, None
                return why
            if self._trap is not None:
                # It came during a sweep, which has perhaps seen the change already.
                why, self._trap = self._trap, None
            elif await self._pause():
                if self._is_sought():
                    continue
                await self._mads.timer(self._settings.trap_delay)
                why, self._trap = self._trap or "", None
                if self._is_news:
                    return why
            elif not self._complete:
                return "the last one was not complete"
            else:
                why = "timer"
            started, before = self._started(False, why)
            change = await self._change()
            self._tell(SweepEnded(False, self._mads.now - started, self._mads.sent - before, change is None))
            if change is not None:
                return change

    def _is_sought(self) -> bool:
        return self._sought is not None

    async def _pause(self) -> bool:
        """Waits for a trap, which yields True, or for the time of the next light sweep."""
        period = self._period()
        self._rest = Future() if period is None else self._mads.timer(period)
        self._is_news = False
        self.resting = True
        trapped = await self._rest
        self.resting = False
        return trapped

    def _started(self, heavy: bool, cause: str) -> tuple[int, Counter[tuple[MadMethod, SmaAttribute]]]:
        """Reports that a sweep begins; the cycle, and the SMPs sent before it."""
        self._tell(SweepStarted(heavy, cause))
        return self._mads.now, self._mads.sent.copy()
