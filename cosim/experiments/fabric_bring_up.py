"""What brings a fabric up in a run that is stepped: our own Subnet Manager, or register writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from cosim.experiments.managed_experiment import manager_hosts
from cosim.experiments.stepped_run import SteppedRun
from cosim.hosts.mad_carrier import MadCarrier
from cosim.hosts.manager_host import (
    ACTIVATION_WAIT,
    ManagerHost,
    first_controls,
    link_down_timeouts,
    manager_start,
)
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.topology.topology import Topology, forwarding_tables, neighbours
from sm.events import event_text
from sm.settings import SubnetSettings
from toolchain.errors import UserError
from wire.codes import SERVICE_LEVELS
from wire.parameters import AdapterParameters, FabricParameters, adapter_port
from wire.registers import PORT_RESET_VALUES, PortRegister
from wire.stimulus import Control

__all__ = ["BringUpMethod", "FabricBringUp", "NotBroughtUp"]

BringUpMethod = Literal["sm", "bus"]
"""By our own Subnet Manager, or by register writes."""

_MOST_CYCLES: Final = 1 << 32


class NotBroughtUp(UserError):
    """The Subnet Manager did not make everything as it should be."""


class FabricBringUp:
    """Brings a fabric up: a run is given its controls and carriers, and then `finish`ed.

    Attributes:
        controls: given from reset on.
        carriers: of the Subnet Managers, one in each connected part of the fabric.
        topology: the fabric as it is configured, once that is finished.
        sm_lids: by host, the LID of the port that its Subnet Manager is at; none if there is none.
    """

    def __init__(
        self,
        fabric: FabricParameters,
        widths: Sequence[int],
        method: BringUpMethod = "sm",
        link_down_timeout: int = PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT],
    ) -> None:
        """WIDTHS are those of the links; ports wait for LINK_DOWN_TIMEOUT cycles for a link to come back."""
        self._fabric = fabric
        self._widths = tuple(widths)
        self._managers: dict[str, ManagerHost] = {}
        self.sm_lids: dict[str, int] = {}
        lids: dict[str, int] = {}
        controls: list[Control]
        if method == "bus":
            lids = {name: lid for lid, name in enumerate(_linked_hosts(fabric), 1)}
            up = bus_bring_up(self._configured(lids))
            controls, start = list(up.controls), up.start
        else:
            hosts = manager_hosts(fabric)
            controls, start = first_controls(fabric, widths, hosts), manager_start(widths)
            settings = SubnetSettings(activation_wait=ACTIVATION_WAIT)
            self._managers = {host: ManagerHost(fabric, host, start, settings=settings) for host in hosts}
        last = controls[-1].cycle + 1 if controls else 0
        controls += link_down_timeouts(fabric, range(len(fabric.links)), link_down_timeout, last)
        self._start = max(start, controls[-1].cycle + 1) if controls else start
        self.topology = self._configured(lids)
        self.controls: Sequence[Control] = controls

    @property
    def carriers(self) -> list[MadCarrier]:
        """Those that lead the run."""
        return [manager.carrier for manager in self._managers.values()]

    def finish(self, run: SteppedRun) -> None:
        """Steps the run until the fabric is up.

        Raises:
            NotBroughtUp: the Subnet Manager says what is wrong.
            RunOver: RTL and golden model differ.
            What the engines raise.
        """
        while run.now < self._start or not all(host.manager.resting for host in self._managers.values()):
            run.step(_MOST_CYCLES)
        if self._managers:
            self.topology = self._configured(self._managed(self._managers))

    def _configured(self, lids: dict[str, int]) -> Topology:
        fabric = self._fabric
        return Topology(fabric, lids, forwarding_tables(fabric, lids), self._widths, tuple(range(SERVICE_LEVELS)))

    def _managed(self, managers: Mapping[str, ManagerHost]) -> dict[str, int]:
        """The LID of each host's port that has a link, by the fabric's names, as Subnet Managers gave them."""
        lids: dict[str, int] = {}
        near = neighbours(self._fabric)
        names = {self._fabric.identity(name).node_guid: adapter_port(name)[0] for name in self._fabric.nodes}
        for at, host in managers.items():
            if not host.complete:
                said = event_text(host.events[-1][1], names) if host.events else "it said nothing"
                raise NotBroughtUp(f"the Subnet Manager does not bring its part of the fabric up: {said}")
            given = {guid: taken.first for guid, taken in host.manager.lids.items()}
            for name, node in self._fabric.nodes.items():
                lid = given.get(self._fabric.identity(name).port_guid)
                if lid is not None and isinstance(node, AdapterParameters) and near[name]:
                    lids[name] = lid
                    self.sm_lids[adapter_port(name)[0]] = given[self._fabric.identity(at).port_guid]
        return lids


def _linked_hosts(fabric: FabricParameters) -> list[str]:
    near = neighbours(fabric)
    return [name for name, node in fabric.nodes.items() if isinstance(node, AdapterParameters) and near[name]]
