"""An experiment: a fabric brought up, traffic, errors, and the counters read at the end; and performing it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cosim.engines import simulation
from cosim.hosts.mad_carrier import ActorGroup, Replay
from cosim.hosts.manager_host import ManagerHost
from cosim.scenario.scenario import Scenario
from cosim.stimulus.bus_bring_up import BUS_READ_CYCLES, BringUp, bus_bring_up, read_counters
from cosim.stimulus.flows import scenario_packets
from cosim.stimulus.injection import scenario_controls
from cosim.stimulus.packet import Packet
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.topology.topology import Port, Topology
from cosim.trace.compare import Comparison, compare
from sm.events import Event
from wire.registers import Counter, PortRegister, place_of_address
from wire.stimulus import Control, Delivery
from wire.trace import Kind, Record, port_of_source
from wire.trace_layout import BusRead

__all__ = [
    "CounterReadings",
    "Experiment",
    "ManagerListener",
    "chosen_settings",
    "experiment_from",
    "perform",
    "scenario_experiment",
]

ManagerListener = Callable[[str, int, Event], None]
"""Is told of the host of a Subnet Manager, a cycle, and what happened there."""


@dataclass(frozen=True)
class Experiment:
    """What acts on a fabric. The callables make the same stimulus anew at each call.

    Attributes:
        topology: the fabric and how it is configured; its LIDs and tables are those at `start`.
        start: the cycle from which traffic may start.
        end: the cycle in which the reading of the counters begins.
        cycles: length of the run.
        packets: the packets posted, by cycle.
        controls: the operations from reset on, by cycle, one a cycle.
        managers: the hosts at which Subnet Managers run, made anew at each call.
    """

    topology: Topology
    start: int
    end: int
    cycles: int
    packets: Callable[[], Iterator[Packet]]
    controls: Callable[[], Iterator[Control]]
    managers: Callable[[ManagerListener], list[ManagerHost]] = lambda listener: []

    def spec(self, actor: Actor | None = None) -> RunSpec:
        """The stimulus for one run of an engine; `actor` is what the Subnet Managers do."""
        posts = (packet.post(self.topology) for packet in self.packets())
        return RunSpec(self.topology.fabric, self.controls(), posts, self.cycles, actor)


def scenario_experiment(scenario: Scenario) -> Experiment:
    """The experiment of a scenario."""
    topology = scenario.topology
    return experiment_from(scenario, topology, bus_bring_up(topology, chosen_settings(scenario, topology)))


def chosen_settings(scenario: Scenario, topology: Topology) -> dict[Port, dict[PortRegister, int]]:
    """The registers that a scenario sets, by port."""
    settings = {}
    for port in topology.linked_ports():
        chosen = [table for table in scenario.ports if table.at == "*" or scenario.port_of(table.at) == port]
        settings[port] = {register: value for table in chosen for register, value in table.registers.items()}
    return settings


def experiment_from(scenario: Scenario, topology: Topology, up: BringUp) -> Experiment:
    """A scenario's experiment, once it is known what brings the fabric up."""
    end = up.start + scenario.cycles
    reads = read_counters(topology, end)

    def controls() -> Iterator[Control]:
        between = (one for one in scenario_controls(scenario, topology, up.start) if one.cycle < end)
        return chain(up.controls, between, reads)

    return Experiment(
        topology,
        up.start,
        end,
        end + len(reads) + BUS_READ_CYCLES + 1,
        lambda: scenario_packets(scenario, topology, up.start, scenario.seed),
        controls,
    )


def perform(
    experiment: Experiment,
    engine: str,
    work_dir: Path,
    *,
    observe: Callable[[Record], None],
    rtl: Collection[str] | None = None,
    on_delivery: Callable[[Delivery], None] | None = None,
    on_manager: ManagerListener = lambda host, cycle, event: None,
    waves: Path | None = None,
) -> Comparison | None:
    """Run an experiment on an engine and compare it with the golden model, record by record.

    `observe` gets each record of the engine, up to the first difference; `rtl` names the nodes that it simulates, all
    without it; `on_manager` is told what Subnet Managers do in it, which is then posted in the golden model too. On the
    engine `model` there is nothing to compare, and the result is None.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """

    def observed(records: Iterable[Record]) -> Generator[Record, None, None]:
        for record in records:
            observe(record)
            yield record

    carriers = [manager.carrier for manager in experiment.managers(on_manager)]
    managers = ActorGroup(carriers) if carriers else None
    spec = experiment.spec(managers)
    run = simulation.run(engine, spec, work_dir / engine, rtl=rtl, waves=waves, on_delivery=on_delivery)
    with run as seen:
        if engine == "model":
            for record in seen:
                observe(record)
            return None
        replay = ActorGroup([Replay(carrier) for carrier in carriers]) if carriers else None
        with simulation.run("model", experiment.spec(replay), work_dir / "model") as expected:
            return compare(expected, observed(seen))


class CounterReadings:
    """The counters of every port as read at the end, collected from the trace."""

    def __init__(self, experiment: Experiment) -> None:
        self._nodes = list(experiment.topology.fabric.nodes)
        self._from = experiment.end
        self.values: dict[Port, dict[Counter, int]] = {}

    def observe(self, record: Record) -> None:
        """Take note of a record if it is a reading."""
        if record.kind == Kind.BUS_READ and record.cycle >= self._from + BUS_READ_CYCLES:
            page, offset = place_of_address(BusRead.address.read(record))
            port = Port(self._nodes[port_of_source(record.source)[0]], page)
            self.values.setdefault(port, {})[Counter(offset)] = BusRead.value.read(record)
