"""A fabric with a transport at every host, brought up and then stepped by its consumers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cosim.analysis.observer import Observer
from cosim.experiments.fabric_bring_up import BringUpMethod, FabricBringUp
from cosim.experiments.link_control import CounterReader, LinkControl
from cosim.experiments.stepped_run import SteppedRun, SteppedTask
from cosim.hosts.manager_host import smp_timeout
from cosim.hosts.verbs_carrier import VerbsCarrier
from cosim.topology.topology import Port as TopologyPort
from cosim.topology.topology import Topology
from sm.settings import GID_PREFIX_DEFAULT
from verbs.adapter import Adapter
from verbs.hosts import VerbsPort
from verbs.port import Port
from wire.codes import SERVICE_LEVELS, PortState
from wire.parameters import AdapterParameters, adapter_port
from wire.registers import PORT_RESET_VALUES, PortRegister
from wire.stimulus import Operation
from wire.trace import Kind, Record
from wire.trace_layout import State

__all__ = ["VerbsRun", "VerbsTask"]

_GUID_BITS: Final = 64
_QUIET_TIMES: Final = 2
"""A packet takes no longer than so many times what an SMP and its answer may, unless a link is away for a while."""


@dataclass(frozen=True)
class VerbsTask:
    """What is to be run, and how.

    Attributes:
        stepped: the fabric and what simulates it; control operations that bring it up are added.
        widths: of each link.
        bring_up: what brings the fabric up.
        seed: draws errors.
        link_down_timeout: cycles that ports wait for a link to come back.
        skips: where nothing in the fabric can answer any more, a time-out that is waited for comes at once.
    """

    stepped: SteppedTask
    widths: Sequence[int]
    bring_up: BringUpMethod = "sm"
    seed: int = 0
    link_down_timeout: int = PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT]
    skips: bool = False


class VerbsRun:
    """The fabric, brought up, and the transports of its hosts.

    Attributes:
        adapters: by host.
        sm_lids: by host, the LID of the port that its Subnet Manager is at; 0 if there is none.
        links: hands on the cables.
    """

    def __init__(self, task: VerbsTask) -> None:
        """Brings the fabric up.

        Raises:
            NotBroughtUp: the Subnet Manager says what is wrong.
            What the engines raise (cosim.engines.simulation.run).
        """
        fabric = self._fabric = task.stepped.fabric
        self._task = task
        self.adapters: dict[str, Adapter] = {}
        self._waits = _WaitingPorts()
        self._quiet_cycles = _QUIET_TIMES * smp_timeout(fabric)
        reader = CounterReader(fabric)
        up = FabricBringUp(fabric, task.widths, task.bring_up, task.link_down_timeout)
        observers = [*task.stepped.observers, self._waits, reader]
        self._run = SteppedRun(replace(task.stepped, controls=up.controls, observers=observers))
        self.links = LinkControl(fabric, self._run, reader, task.seed)
        self._carrier = VerbsCarrier(consume=self._run.stand_still)
        self._run.begin([self._carrier, *up.carriers])
        try:
            up.finish(self._run)
        except BaseException:
            self._run.end()
            raise
        self.sm_lids = up.sm_lids
        self._make_adapters(up.topology)

    def close(self) -> None:
        """Ends the run.

        Raises:
            What the engines raise.
        """
        self._run.end()

    @property
    def difference(self) -> str:
        """Where RTL and golden model differed, once the run is over."""
        return self._run.difference

    @property
    def now(self) -> int:
        """The cycle below which all is over in the fabric."""
        return self._run.now

    @property
    def skipped(self) -> int:
        """Cycles that have passed for transports beside those of the fabric."""
        return self._carrier.hosts.skipped

    def step(self, most: int) -> None:
        """Lets a little time pass, not more than so many cycles.

        Raises:
            RunOver: RTL and golden model differ.
            What the engines raise.
        """
        hosts = self._carrier.hosts
        if self._task.skips and self._is_quiet and (wake := hosts.wake) is not None:
            hosts.skip_to(wake)
        self.links.draw()
        for node, wrong in hosts.wrong_keys():
            self._run.control(Operation.KEY_VIOLATION, node, wrong.args())
        self._run.step(most)

    @property
    def is_idle(self) -> bool:
        """True if no transport has anything to do or waits for anything, and none of their packets can be anywhere."""
        return self._is_quiet and self._carrier.hosts.wake is None

    @property
    def _is_quiet(self) -> bool:
        """True if nothing but a timer of a transport can make something happen."""
        hosts = self._carrier.hosts
        has_settled = not hosts.in_flight or self.now - hosts.active > self._quiet_cycles
        return has_settled and not (hosts.waits or self._waits.ports or self._run.has_wanted)

    def _make_adapters(self, topology: Topology) -> None:
        """A transport for each host, with all its ports."""
        ports: dict[str, list[tuple[str, int, Port]]] = {}
        for index, (name, node) in enumerate(self._fabric.nodes.items()):
            if isinstance(node, AdapterParameters):
                gid = GID_PREFIX_DEFAULT << _GUID_BITS | self._fabric.identity(name).port_guid
                mtu = topology.mtu(TopologyPort(name, 1)) if name in topology.lids else node.mtu
                port = Port(topology.lids.get(name, 0), [gid], mtu=mtu)
                ports.setdefault(adapter_port(name)[0], []).append((name, index, port))
        for host, own in ports.items():
            own.sort(key=lambda one: self._fabric.identity(one[0]).port)
            adapter = self.adapters[host] = Adapter([port for _name, _index, port in own])
            for number, (name, index, port) in enumerate(own, 1):
                if port.lid:
                    self._add(adapter, number, index, name, topology)

    def _add(self, adapter: Adapter, number: int, index: int, name: str, topology: Topology) -> None:
        place = TopologyPort(name, 1)
        vls = self._fabric.nodes[name].vls
        sl_to_vl = [topology.vl(place, sl) for sl in range(SERVICE_LEVELS)]
        self._carrier.hosts.add(VerbsPort(index, adapter, number, vls, sl_to_vl))


class _WaitingPorts(Observer):
    """Ports that wait for their link to come back: packets wait with them.

    Attributes:
        ports: sources of their records.
    """

    kinds = frozenset({Kind.STATE})

    def __init__(self) -> None:
        self.ports: set[int] = set()

    def observe(self, record: Record) -> None:
        """Takes a record."""
        if State.state.read(record) == PortState.ACTIVE_DEFER:
            self.ports.add(record.source)
        else:
            self.ports.discard(record.source)
