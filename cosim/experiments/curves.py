"""Throughput curves: delivered load and latency over offered load, measured and in theory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Literal

from cosim.analysis.channel_load import busiest_link
from cosim.analysis.ideal_switch import Arrival, Departure, input_queued, output_queued
from cosim.analysis.latency import Latencies
from cosim.analysis.link_use import LinkUse
from cosim.analysis.measurement import Measurement
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.engines.base import MODEL
from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.perform import observed
from cosim.scenario.pattern import PatternName, check_pattern
from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import ANY_HOST, Flow
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.destinations import destination_shares
from cosim.stimulus.flows import pattern_seed, scenario_streams
from cosim.topology.topology import Port
from toolchain.parallel import in_parallel
from wire.parameters import node_text

__all__ = [
    "Curve",
    "CurveError",
    "Ideal",
    "Load",
    "Point",
    "Queueing",
    "ideal_curve",
    "measure_curve",
    "measure_point",
    "time_alone",
]

Queueing = Literal["voq", "fifo"]
Ideal = Literal["output queues", "input FIFO"]


class CurveError(Exception):
    """A measurement in which something was not delivered as it should; the text says what."""


@dataclass(frozen=True)
class Load:
    """Random traffic between all hosts of a switch or of a fabric, and how long it is measured.

    Attributes:
        ports: of the switch, each with a host, `H1` and so on.
        size: payload bytes of each packet.
        buffer_blocks: input buffer of a port.
        cycles: length of a run, from the cycle in which traffic may start.
        warm_up: cycles of it that are not measured.
        seed: of the traffic.
        pattern: who sends to whom.
        hot, hot_share: of the pattern with a hot spot; the first host unless it is named.
        burst: packets in a burst, on the mean.
        fabric: in place of the one switch; of the scenario only the nodes and links count.

    Raises:
        ValueError: the pattern is not defined for so many hosts, or there is no host `hot`.
    """

    ports: int = 8
    size: int = 256
    buffer_blocks: int = 512
    cycles: int = 200_000
    warm_up: int = 50_000
    seed: int = 1
    pattern: PatternName = "uniform"
    hot: str | None = None
    hot_share: float = 0.1
    burst: float = 1.0
    fabric: Scenario | None = None

    def __post_init__(self) -> None:
        one = self.scenario("voq", 1.0)
        check_pattern(self.pattern, len(one.lids))
        if self.hot is not None:
            one.host_of(self.hot)

    @property
    def shares(self) -> dict[tuple[str, str], float]:
        """Of the packets of each host the share that each other gets, where it gets any."""
        scenario = self.scenario("voq", 1.0)
        return destination_shares(scenario, scenario.packet_flows[0], pattern_seed(self.seed, 0))

    @property
    def busiest_link(self) -> tuple[Port, float]:
        """The link that is full first, by the port that it leaves, and the offered load at which it is."""
        return busiest_link(self.scenario("voq", 1.0).topology, self.shares)

    @property
    def receivers(self) -> list[str]:
        """The hosts that packets go to, in the order of the scenario; as many send."""
        receive = {destination for _, destination in self.shares}
        return [host for host in self.scenario("voq", 1.0).lids if host in receive]

    @property
    def rows(self) -> int:
        """Rows of a packet."""
        packet = next(scenario_experiment(self.scenario("voq", 1.0)).packets())
        return packet.rows

    def scenario(self, queueing: Queueing, rate: float) -> Scenario:
        """The scenario at an offered load."""
        if self.fabric is None:
            made = uniform_load(self.ports, cycles=self.cycles, queueing=queueing, buffer_blocks=self.buffer_blocks)
        else:
            chosen = {"queueing": queueing, "readers": None, "buffer_blocks": self.buffer_blocks}
            switches = {name: one.model_copy(update=chosen) for name, one in self.fabric.switches.items()}
            made = self.fabric.model_copy(update={"switches": switches})
        flow = {"from": ANY_HOST, "to": ANY_HOST, "size": self.size, "rate": rate, "arrivals": "random"}
        flow |= {"pattern": self.pattern, "burst": self.burst}
        if self.pattern == "hotspot":
            flow |= {"hot": self.hot, "hot_share": self.hot_share}
        flows = (Flow.model_validate(flow),)
        return made.model_copy(update={"cycles": self.cycles, "seed": self.seed, "flows": flows})


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes:
        offered: share of its time that each host would keep its link busy.
        delivered: rows of data on the links to the hosts, as a share of those that flow control packets leave.
        mean_cycles, p99_cycles: from a packet being offered to its last word being with its host.
        packets: delivered in the measured time.
        keeps_up: the offered load is below 1, and as much was delivered as was offered, but for 2 %; otherwise
            packets pile up in the hosts, and latency grows for as long as the run lasts.
    """

    offered: float
    delivered: float
    mean_cycles: float
    p99_cycles: float
    packets: int
    keeps_up: bool


@dataclass(frozen=True)
class Curve:
    """Points by offered load.

    Attributes:
        name: for the legend.
        theory: computed, not measured.
    """

    name: str
    points: tuple[Point, ...]
    theory: bool = False


def measure_curve(
    engine: str,
    queueing: Queueing,
    load: Load,
    rates: Iterable[float],
    work_dir: Path,
    *,
    progress: Callable[[float], None] = lambda rate: None,
) -> Curve:
    """Run an engine at each offered load; `progress` gets each one when it is done.

    The golden model measures every second one in a process of its own, beside the others.

    Raises:
        CurveError: a packet was lost, or delivered wrong.
        What the engines raise (cosim.engines.simulation.run).
    """
    asked = list(rates)
    apart = asked[1::2] if engine == MODEL else []
    here = [rate for rate in asked if rate not in apart]
    with in_parallel([partial(_points, engine, queueing, load, apart, work_dir / "apart")] if apart else []) as results:
        points = _points(engine, queueing, load, here, work_dir, progress)
        for others in results():
            points += others
    for rate in apart:
        progress(rate)
    what = "golden model" if engine == MODEL else f"RTL on {engine}"
    return Curve(f"{queueing.upper()}, {what}", tuple(sorted(points, key=attrgetter("offered"))))


def _points(
    engine: str,
    queueing: Queueing,
    load: Load,
    rates: Iterable[float],
    work_dir: Path,
    progress: Callable[[float], None] = lambda rate: None,
) -> list[Point]:
    points = []
    for rate in rates:
        points.append(measure_point(engine, queueing, load, rate, work_dir))
        progress(rate)
    return points


def measure_point(engine: str, queueing: Queueing, load: Load, rate: float, work_dir: Path) -> Point:
    """Run an engine at one offered load.

    Raises:
        As `measure_curve`.
    """
    return _measure(engine, load.scenario(queueing, rate), load.receivers, load.warm_up, rate, work_dir)


def _measure(
    engine: str, scenario: Scenario, receivers: Iterable[str], warm_up: int, rate: float, work_dir: Path
) -> Point:
    """One run; what is delivered is measured on the links to `receivers`."""
    experiment = scenario_experiment(scenario)
    topology = experiment.topology
    begin, end = experiment.start + warm_up, experiment.end
    measurement = Measurement(topology, len(scenario_streams(scenario)), begin, end)
    deliveries = DeliveryCheck(topology, [measurement])
    links = [port for host in receivers if (port := topology.far_end(Port(host, 1))) is not None]
    use = LinkUse(topology, links, begin, end)
    with observed(experiment, engine, work_dir, [deliveries, measurement, use]) as records:
        deque(records, maxlen=0)
    if deliveries.fault_count or deliveries.lost:
        wrong = f", the first: {deliveries.faults[0]}" if deliveries.faults else ""
        raise CurveError(
            f"offered load {rate:g}: {deliveries.lost} packets lost, {deliveries.fault_count} delivered wrong{wrong}"
        )
    times = Latencies()
    for served in measurement.served:
        times.merge(served.times)
    return _point(rate, use.of_capacity, times, measurement.offered)


def _point(rate: float, share: float, times: Latencies, offered: int) -> Point:
    """A measurement; `offered` is how many packets were in the measured time."""
    keeps_up = rate < 1 and times.count >= 0.98 * offered
    return Point(rate, share, times.mean, times.percentile(99), times.count, keeps_up)


def time_alone(engine: str, queueing: Queueing, load: Load, work_dir: Path) -> int:
    """Cycles from offer to delivery of a packet that has the fabric for itself.

    It goes from the first host to the one that is furthest from it.
    """
    scenario = load.scenario(queueing, 1.0)
    topology, (first, *others) = scenario.topology, scenario.lids
    furthest = max(others, key=lambda host: len(topology.path(first, host) or ()))
    ends = {"from": node_text(first), "to": node_text(furthest)}
    flow = Flow.model_validate({**ends, "size": load.size, "count": 1})
    hops = len(topology.path(first, furthest) or ())
    alone = scenario.model_copy(update={"flows": (flow,), "cycles": (10 * load.size + 1_000) * hops})
    return int(_measure(engine, alone, [furthest], 0, 0.0, work_dir).mean_cycles)


def ideal_curve(kind: Ideal, load: Load, rates: Iterable[float], alone: int) -> Curve:
    """The same packets through the one switch as theory has it; a packet alone takes `alone` cycles."""
    return Curve(f"{kind}, theory", tuple(_ideal(kind, load, rate, alone) for rate in rates), theory=True)


def _ideal(kind: Ideal, load: Load, rate: float, alone: int) -> Point:
    experiment = scenario_experiment(load.scenario("voq", rate))
    number = {name: place for place, name in enumerate(experiment.topology.lids)}
    begin, end = experiment.start + load.warm_up, experiment.end
    times, rows, offered = Latencies(), 0, 0

    def arrivals() -> Iterator[Arrival]:
        nonlocal offered
        for packet in experiment.packets():
            offered += begin <= packet.cycle < end
            yield Arrival(packet.cycle, number[packet.source], number[packet.destination or ""], packet.rows)

    departures: Iterable[Departure] = (
        output_queued(arrivals()) if kind == "output queues" else input_queued(arrivals(), load.ports)
    )
    for departure in departures:
        if begin <= departure.cycle < end:
            times.add(alone + departure.waited)
            rows += departure.rows
    share = rows / (len(load.receivers) * (end - begin))
    return _point(rate, share, times, offered)
