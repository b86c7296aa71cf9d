"""Ironband's own Subnet Manager at a host of a fabric that is served: a program like others, but in the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from doors.mads.agents import SMI_CLASSES, Agent, is_response
from doors.mads.host_port import HostPort
from doors.mads.mad_layer import Moment
from doors.mads.user_mad import Address, Registration
from sm.events import (
    ClientsToldToReregister,
    CongestionControlSet,
    CongestionControlUnavailable,
    Event,
    HandedOver,
    StateEntered,
    SweepEnded,
    event_text,
)
from sm.mad_client import MadAddress, MadClient
from sm.settings import SubnetSettings
from sm.subnet_manager import SubnetManager
from sm.trap_events import WrongKeyReported
from wire.codes import QP_GSI, QP_SMI
from wire.congestion_control import CC_CLASS_VERSION
from wire.mad import CLASS_VERSION, MadMethod, MgmtClass
from wire.sa import SA_CLASS_VERSION, SA_RESPONSES
from wire.sma import SMState

__all__ = ["OwnManager"]

_SMP_REQUESTS: Final = 1 << MadMethod.TRAP | 1 << MadMethod.GET | 1 << MadMethod.SET
_SA_REQUESTS: Final = sum(1 << method for method in SA_RESPONSES)
_CC_REQUESTS: Final = 1 << MadMethod.TRAP
_NEVER: Final = 1 << 60
"""Cycles. What has no answer the port's agents find out."""

_POLLING_NS: Final = 1_000_000_000
_TIMEOUT_MS: Final = 1_000
_RETRIES: Final = 3
_TOLD: Final = (
    StateEntered,
    HandedOver,
    ClientsToldToReregister,
    CongestionControlSet,
    CongestionControlUnavailable,
    WrongKeyReported,
)
_HIGH_TID: Final = slice(8, 12)


class OwnManager:
    """A Subnet Manager that sweeps when it starts, and when a trap says that something has changed.

    It has no timer for sweeps: while nothing happens in the fabric, nothing has to be looked at. Where another Subnet
    Manager is the master, it asks every second of the programs' time whether that is still there.

    Attributes:
        port: where it runs.
        manager: the Subnet Manager.
        now: kept right by the owner.
        complete: whether the last sweep has left everything as it should be; None before the first one.
    """

    def __init__(
        self,
        port: HostPort,
        *,
        window: int,
        settings: SubnetSettings,
        swept: Callable[[], None] = lambda: None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        """It runs at PORT, with up to WINDOW SMPs at once; SWEPT is called after each heavy sweep, TELL takes lines."""
        self.now = Moment(0, 0)
        self.complete: bool | None = None
        self.port = port
        self._swept = swept
        self._tell = tell
        self._look_at: int | None = None
        self._mads = MadClient(window=window, timeout=_NEVER, retries=0)
        self.manager = SubnetManager(self._mads, settings, listener=self._listen)
        registrations = [Registration(QP_SMI, one, CLASS_VERSION, _SMP_REQUESTS) for one in SMI_CLASSES]
        # What it tells in segments it takes apart itself, as it does in every simulation.
        registrations.append(Registration(QP_GSI, MgmtClass.SUBN_ADM, SA_CLASS_VERSION, _SA_REQUESTS))
        registrations.append(Registration(QP_GSI, MgmtClass.CONGESTION_CONTROL, CC_CLASS_VERSION, _CC_REQUESTS))
        self._agents = {one.mgmt_class: port.mads.register(self, one) for one in registrations}

    def start(self) -> None:
        """Begin, and look at the whole subnet."""
        self._mads.poll(self.now.cycle)
        self.manager.start()

    def work(self) -> None:
        """All that there is to do at this point in time."""
        if self.manager.state is not SMState.STANDBY:
            self._look_at = None
        elif self._look_at is None or self._look_at <= self.now.time:
            if self._look_at is not None:
                self.manager.look()
            self._look_at = self.now.time + _POLLING_NS
        if (wake := self._mads.wake) is not None and wake <= self.now.cycle:
            for mad, slid, dlid, qpn, sl in self._mads.poll(self.now.cycle):
                agent = self._agents[mad[1]]
                address = Address(dlid, qpn, sl, max(0, slid - self.port.info.lid) if qpn else 0)
                waits = (_TIMEOUT_MS, _RETRIES) if not is_response(mad) else (0, 0)
                self.port.mads.send(agent, address, mad, *waits, self.now)

    def retire(self) -> None:
        """Leave the fabric to another Subnet Manager."""
        for agent in self._agents.values():
            self.port.mads.unregister(agent)

    @property
    def deadline(self) -> int | None:
        """When it asks the master next, in the time of programs; None while there is none to be asked."""
        return self._look_at

    @property
    def wake(self) -> int | None:
        """The cycle in which it has something to do, if nothing arrives before; None if it waits for nothing."""
        wake = self._mads.wake
        return None if wake is None or wake >= _NEVER else wake

    def arrived(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Takes an answer, a trap, or a request."""
        if is_response(mad):
            # The port's agents have put their own number there.
            mad = mad[: _HIGH_TID.start] + bytes(4) + mad[_HIGH_TID.stop :]
        own_lid = self.port.info.lid + address.path_bits
        self._mads.received(mad, self.now.cycle, MadAddress(address.lid, own_lid, address.qpn, address.sl))

    def unanswered(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Hears that an SMP will have no answer."""
        self._mads.unanswered(mad[: _HIGH_TID.start] + bytes(4) + mad[_HIGH_TID.stop :], self.now.cycle)

    def _listen(self, _cycle: int, event: Event) -> None:
        if isinstance(event, SweepEnded) and event.heavy:
            self.complete = event.complete
            self._swept()
        elif isinstance(event, _TOLD):
            names = {node.guid: node.description for node in self.manager.subnet.nodes.values()}
            self._tell(f"{self.port}: Ironband's own Subnet Manager {event_text(event, names)}")
