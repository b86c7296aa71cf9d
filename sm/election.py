"""Which of several Subnet Managers is the master, and how one hands over to another (IBTA vol 1, 14.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from sm.discovery import Findings
from sm.events import HandedOver, StateEntered, Tell, Unsettled
from sm.mad_client import MadAddress, MadClient, SmpError
from sm.settings import SubnetSettings
from sm.sma_client import Path
from sm.tasks import gather, start
from wire.layout import Record
from wire.mad import MadMethod, MadStatus, mad_data
from wire.port_info import CapabilityMask
from wire.sma import SM_INFO, SmaAttribute, SMControl, SMState

__all__ = ["Election"]

_COUNTS: Final = 1 << 32
_LOOKS: Final = 64
_HIGHEST: Final = (1 << 64) - 1
_COMMANDS: Final = {
    (SMState.STANDBY, SMControl.DISABLE): SMState.NOT_ACTIVE,
    (SMState.STANDBY, SMControl.DISCOVER): SMState.DISCOVERING,
    (SMState.NOT_ACTIVE, SMControl.STANDBY): SMState.STANDBY,
    (SMState.STANDBY, SMControl.HANDOVER): SMState.MASTER,
    (SMState.MASTER, SMControl.HANDOVER): SMState.MASTER,
}
"""What a master's commands make of a Subnet Manager in a state; all others are refused."""


class _Other(NamedTuple):
    """Another Subnet Manager."""

    path: Path
    info: Record


class Election:
    """The state of a Subnet Manager among others.

    Attributes:
        state: its own.
    """

    def __init__(self, mads: MadClient, settings: SubnetSettings, tell: Tell, seek: Callable[[str], None]) -> None:
        """`seek` gets a cause for a heavy sweep that somebody else has given."""
        self.state = SMState.DISCOVERING
        self._mads = mads
        self._settings = settings
        self._tell = tell
        self._seek = seek
        self._guid = 0
        self._heir: _Other | None = None
        """The Subnet Manager that a master is to hand over to."""
        self._looks = 0
        """How often it is still asked whether it has looked round."""
        self._master: Path | None = None
        """How to reach the one that is looked after while it stands by."""
        self._missed = 0
        """How often that one was not the master, or did not answer."""
        mads.on_request = self._requested

    @property
    def sm_info(self) -> Record:
        """What it tells of itself."""
        return SM_INFO.record(
            guid=self._guid,
            sm_key=self._settings.sm_key,
            act_count=self._mads.activity % _COUNTS,
            priority=self._settings.priority,
            sm_state=self.state,
        )

    def begin(self, own_node: Record) -> None:
        """Takes the own port's NodeInfo: without a GUID it has no rank, and tells nothing of itself."""
        self._guid = own_node.port_guid

    @property
    def stands_by(self) -> bool:
        """Whether it leaves the subnet to another."""
        return self.state in (SMState.STANDBY, SMState.NOT_ACTIVE)

    async def is_won(self, found: Findings) -> bool:
        """Whether the subnet that was found is for this one to manage, as master."""
        others = await self._others(found)
        if self.state == SMState.DISCOVERING:
            ahead = [one for one in others if one.info.sm_state == SMState.MASTER or self._is_behind(one.info)]
            if ahead:
                # A master, if there is one, and it hands over if it is not the one to be.
                leader = max(ahead, key=lambda one: (one.info.sm_state == SMState.MASTER, *_rank(one.info)))
                self._stand_by(leader.path)
                return False
            if others:
                self._enter(SMState.MASTER)
            self.state = SMState.MASTER
        heirs = [one for one in others if self._is_behind(one.info)]
        self._heir = max(heirs, key=lambda one: _rank(one.info), default=None)
        self._looks = _LOOKS
        return self.state == SMState.MASTER

    @property
    def has_heir(self) -> bool:
        """Whether it is the master and has to hand over yet."""
        return self._heir is not None and self.state == SMState.MASTER

    async def hand_over(self) -> None:
        """Hands the subnet over to the one that is to have it, if there is one, and it has looked round itself."""
        heir = self._heir
        if heir is None or self.state != SMState.MASTER:
            return
        self._looks -= 1
        try:
            info = SM_INFO.unpack(await self._mads.get(heir.path, SmaAttribute.SM_INFO))
            if info.sm_state == SMState.DISCOVERING and self._looks:
                return
            self._heir = None
            await self._mads.set(heir.path, SmaAttribute.SM_INFO, self.sm_info.pack(), SMControl.HANDOVER)
        except SmpError as error:
            self._heir = None
            self._tell(Unsettled(str(error)))
            return
        self._tell(HandedOver(heir.info.guid))
        self._stand_by(heir.path)

    async def look_at_master(self) -> str | None:
        """Asks the master whether it still is that; a cause to look at the whole subnet if not."""
        if self._master is None or self.state != SMState.STANDBY:
            return None
        try:
            info = SM_INFO.unpack(await self._mads.get(self._master, SmaAttribute.SM_INFO))
            is_master = info.sm_state == SMState.MASTER
        except SmpError:
            is_master = False
        self._missed = 0 if is_master else self._missed + 1
        if self.state != SMState.STANDBY or self._missed < self._settings.polling_retries:
            return None
        self._enter(SMState.DISCOVERING)
        return "the master is silent"

    async def _others(self, found: Findings) -> list[_Other]:
        """The other Subnet Managers: ports say that they have one, and it answers."""

        async def ask(path: Path) -> _Other | None:
            try:
                info = SM_INFO.unpack(await self._mads.get(path, SmaAttribute.SM_INFO))
            except SmpError:
                return None
            return _Other(path, info) if info.sm_state != SMState.NOT_ACTIVE else None

        paths = [
            path
            for end, path in found.paths.items()
            if end != found.origin and found.ports[end].capability_mask & CapabilityMask.IS_SM
        ]
        return [other for other in await gather(map(ask, paths)) if other is not None]

    def _is_behind(self, other: Record) -> bool:
        """Whether another one comes before this one."""
        return _rank(other) > _rank(self.sm_info)

    def _stand_by(self, path: Path) -> None:
        self._master = path
        self._missed = 0
        self._enter(SMState.STANDBY)

    def _enter(self, state: SMState) -> None:
        if state != self.state:
            self.state = state
            self._tell(StateEntered(state))

    def _requested(self, smp: Record, source: MadAddress) -> None:
        """Answers what others ask, and does what a master commands."""
        if smp.attribute_id != SmaAttribute.SM_INFO or not self._guid:
            return
        if smp.method == MadMethod.GET:
            self._mads.respond(smp, source, self.sm_info.pack())
        elif smp.method == MadMethod.SET:
            refused = self._commanded(smp.attribute_modifier, SM_INFO.unpack(mad_data(smp)))
            status = MadStatus.INVALID_ATTRIBUTE_VALUE if refused else MadStatus.OK
            self._mads.respond(smp, source, self.sm_info.pack(), status)

    def _commanded(self, control: int, sender: Record) -> bool:
        """Does what another Subnet Manager commands; whether it is refused instead."""
        if control == SMControl.ACKNOWLEDGE:
            # What it acknowledges, its answer has said already.
            return False
        after = _COMMANDS.get((self.state, SMControl(control))) if control in SMControl.__members__.values() else None
        if after is None or sender.sm_state != SMState.MASTER:
            return True
        self._enter(after)
        if control == SMControl.HANDOVER:
            self._seek("another Subnet Manager has handed over")
            if self._master is not None:
                start(self._acknowledge(self._master))
        elif control == SMControl.DISCOVER:
            self._seek("the master says so")
        return False

    async def _acknowledge(self, former: Path) -> None:
        """Tells the former master that the subnet has one."""
        try:
            await self._mads.set(former, SmaAttribute.SM_INFO, self.sm_info.pack(), SMControl.ACKNOWLEDGE)
        except SmpError:
            # It has had the answer to its command.
            return


def _rank(info: Record) -> tuple[int, int]:
    """The higher priority comes first, of equal ones the lower GUID (IBTA vol 1, 14.4.1)."""
    return info.priority, _HIGHEST - info.guid
