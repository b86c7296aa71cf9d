"""An experiment: a fabric brought up, traffic, errors, and the counters read at the end; and performing it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cosim import simulation
from cosim.bring_up import BUS_READ_CYCLES, bring_up, read_counters
from cosim.compare import Comparison, compare
from cosim.flows import scenario_packets
from cosim.injection import scenario_controls
from cosim.scenario import Scenario
from cosim.simulation import Delivery, RunSpec
from cosim.topology import Port, Topology
from cosim.traffic import Packet
from wire.registers import Counter
from wire.stimulus import Control
from wire.trace import Kind, Record

__all__ = ["CounterReadings", "Experiment", "perform", "scenario_experiment"]


@dataclass(frozen=True)
class Experiment:
    """What acts on a fabric. The callables make the same stimulus anew at each call.

    Attributes:
        topology: the fabric and how it is configured.
        start: the cycle from which traffic may start.
        end: the cycle in which the reading of the counters begins.
        cycles: length of the run.
        packets: the packets posted, by cycle.
        controls: the operations between `start` and `end`, by cycle, one a cycle.
    """

    topology: Topology
    start: int
    end: int
    cycles: int
    packets: Callable[[], Iterator[Packet]]
    controls: Callable[[], Iterator[Control]]

    def spec(self) -> RunSpec:
        """The stimulus for one run of an engine."""
        posts = (packet.post(self.topology) for packet in self.packets())
        return RunSpec(self.topology.fabric, self.controls(), posts, self.cycles)


def scenario_experiment(scenario: Scenario) -> Experiment:
    """The experiment of a scenario."""
    topology = Topology.of(scenario)
    settings = {}
    for port in topology.linked_ports():
        chosen = [table for table in scenario.ports if table.at == "*" or scenario.port_of(table.at) == port]
        settings[port] = {register: value for table in chosen for register, value in table.registers.items()}
    up = bring_up(topology, settings)
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
    on_delivery: Callable[[Delivery], None] | None = None,
    waves: Path | None = None,
) -> Comparison | None:
    """Run an experiment on an engine and compare it with the golden model, record by record.

    `observe` gets each record of the engine, up to the first difference. On the engine `model` there is nothing
    to compare, and the result is None.

    Raises:
        What the engines raise (cosim.simulation.run).
    """

    def observed(records: Iterable[Record]) -> Generator[Record, None, None]:
        for record in records:
            observe(record)
            yield record

    run = simulation.run(engine, experiment.spec(), work_dir / engine, waves=waves, on_delivery=on_delivery)
    with run as seen:
        if engine == "model":
            for record in seen:
                observe(record)
            return None
        with simulation.run("model", experiment.spec(), work_dir / "model") as expected:
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
            port = Port(self._nodes[record.source >> 8], record.a >> 16)
            self.values.setdefault(port, {})[Counter(record.a & 0xFFFF)] = record.b
