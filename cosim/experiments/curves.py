"""Throughput curves: delivered load and latency over offered load, measured and in theory, and their picture."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cosim.analysis.ideal_switch import Arrival, Departure, input_queued, output_queued
from cosim.analysis.latency import Latencies
from cosim.analysis.link_use import LinkUse
from cosim.analysis.measurement import Measurement
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.perform import observed
from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import Flow
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.flows import scenario_streams
from cosim.topology.topology import Port

__all__ = ["Curve", "CurveError", "Ideal", "Load", "Point", "Queueing", "ideal_curve", "measure_curve", "time_alone"]

Queueing = Literal["voq", "fifo"]
Ideal = Literal["output queues", "input FIFO"]


class CurveError(Exception):
    """A measurement in which something was not delivered as it should; the text says what."""


@dataclass(frozen=True)
class Load:
    """Uniform random traffic through one switch (cosim.scenario.uniform_load), and how long it is measured.

    Attributes:
        ports: of the switch, each with a host.
        size: payload bytes of each packet.
        buffer_blocks: input buffer of a port.
        cycles: length of a run, from the cycle in which traffic may start.
        warm_up: cycles of it that are not measured.
        seed: of the traffic.
    """

    ports: int = 8
    size: int = 256
    buffer_blocks: int = 512
    cycles: int = 200_000
    warm_up: int = 50_000
    seed: int = 1

    @property
    def rows(self) -> int:
        """Rows of a packet."""
        packet = next(scenario_experiment(self.scenario("voq", 1.0)).packets())
        return packet.rows

    def scenario(self, queueing: Queueing, rate: float) -> Scenario:
        """The scenario at an offered load."""
        return uniform_load(
            self.ports,
            cycles=self.cycles,
            size=self.size,
            queueing=queueing,
            buffer_blocks=self.buffer_blocks,
            rate=rate,
            seed=self.seed,
        )


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

    Raises:
        CurveError: a packet was lost, or delivered wrong.
        What the engines raise (cosim.engines.simulation.run).
    """
    points = []
    for rate in rates:
        points.append(_measure(engine, load, load.scenario(queueing, rate), rate, work_dir))
        progress(rate)
    what = "golden model" if engine == "model" else f"RTL on {engine}"
    return Curve(f"{queueing.upper()}, {what}", tuple(points))


def _measure(engine: str, load: Load, scenario: Scenario, rate: float, work_dir: Path) -> Point:
    experiment = scenario_experiment(scenario)
    topology = experiment.topology
    begin, end = experiment.start + load.warm_up, experiment.end
    measurement = Measurement(topology, len(scenario_streams(scenario)), begin, end)
    deliveries = DeliveryCheck(topology, [measurement])
    switch_ports = [Port("S", number) for number in range(1, load.ports + 1)]
    use = LinkUse(topology, switch_ports, begin, end)
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
    """Cycles from offer to delivery of a packet that has the fabric for itself."""
    flow = Flow.model_validate({"from": "H1", "to": "H2", "size": load.size, "count": 1})
    alone = load.scenario(queueing, 1.0).model_copy(update={"flows": (flow,), "cycles": 10 * load.size + 1_000})
    return int(_measure(engine, Load(load.ports, warm_up=0), alone, 0.0, work_dir).mean_cycles)


def ideal_curve(kind: Ideal, load: Load, rates: Iterable[float], alone: int) -> Curve:
    """The same packets through a switch as theory has it; one alone takes `alone` cycles."""
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
    share = rows / (load.ports * (end - begin))
    return _point(rate, share, times, offered)
