"""What a scenario delivers, in a few numbers, for many of them one beside the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cosim.analysis.latency import Latencies
from cosim.analysis.link_use import HostLinks
from cosim.analysis.measurement import Measurement
from cosim.analysis.message_measurement import MessageMeasurement
from cosim.analysis.observer import Observer
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.engines.base import MODEL
from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.perform import perform
from cosim.scenario.scenario import Scenario
from cosim.stimulus.flows import message_streams, scenario_streams
from cosim.stimulus.packet import Packet, is_unfollowed
from toolchain.parallel import in_parallel

__all__ = ["Outcome", "outcome", "outcomes"]


@dataclass(frozen=True)
class Outcome:
    """What a run of a scenario came to, from the end of its warm-up to its end.

    Attributes:
        offered: packets and messages that hosts had to send.
        delivered: of them, those that arrived.
        gbit_per_s: payload that arrived.
        busiest_share: data's share of the fullest link to a host, of the rows that flow control leaves.
        mean_cycles, p99_cycles: from being offered to being delivered.
        faults: deliveries that were wrong, and differences between RTL and model.
    """

    offered: int
    delivered: int
    gbit_per_s: float
    busiest_share: float
    mean_cycles: float
    p99_cycles: int
    faults: int


def outcomes(
    scenarios: Sequence[Scenario],
    engine: str,
    work_dir: Path,
    progress: Callable[[Scenario], None] = lambda scenario: None,
    *,
    warm_up: float = 0.0,
) -> list[Outcome]:
    """Run scenarios, brought up by register writes; `progress` gets each one when it is done.

    Of the cycles of each from that in which traffic may start, the share `warm_up` is not measured.

    The golden model runs every second one in a process of its own, beside the others.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """
    step = 2 if engine == MODEL and len(scenarios) > 1 else 1
    here, apart = scenarios[::step], scenarios[1::step] if step > 1 else []
    calls = [partial(_outcomes, apart, engine, work_dir / "apart", warm_up)] if apart else []
    with in_parallel(calls) as results:
        found = _outcomes(here, engine, work_dir, warm_up, progress)
        others = [outcome for several in results() for outcome in several]
    for scenario in apart:
        progress(scenario)
    numbers = range(len(scenarios))
    numbered = dict(zip([*numbers[::step], *numbers[1::step]], [*found, *others], strict=False))
    return [numbered[number] for number in numbers]


def _outcomes(
    scenarios: Sequence[Scenario],
    engine: str,
    work_dir: Path,
    warm_up: float,
    progress: Callable[[Scenario], None] = lambda scenario: None,
) -> list[Outcome]:
    found = []
    for number, scenario in enumerate(scenarios):
        found.append(outcome(scenario, engine, work_dir / str(number), warm_up))
        progress(scenario)
    return found


class _Offered(Observer):
    """Counts the packets of flows that hosts have to send; a transport's are parts of messages."""

    def __init__(self) -> None:
        self.count = 0

    def offer(self, packet: Packet) -> None:
        """A host has a packet to send."""
        self.count += not is_unfollowed(packet.data)


def outcome(scenario: Scenario, engine: str, work_dir: Path, warm_up: float = 0.0) -> Outcome:
    """Run one scenario; the arguments are those of `outcomes`.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """
    experiment = scenario_experiment(scenario)
    topology, end = experiment.topology, experiment.end
    begin = experiment.start + round(warm_up * scenario.cycles)
    streams, messages = scenario_streams(scenario), message_streams(scenario)
    measurement = Measurement(topology, len(streams), begin, end)
    message_measurement = MessageMeasurement(topology, len(streams), messages)
    left_out = is_unfollowed if messages or scenario.congestion else None
    deliveries = DeliveryCheck(topology, [measurement], left_out=left_out)
    links, offered = HostLinks(topology, begin, end), _Offered()
    observers: list[Observer] = [offered, deliveries, measurement, message_measurement, links]
    comparison = perform(experiment, engine, work_dir, observers)
    times, arrived, payload = Latencies(), 0, 0
    for served in measurement.served:
        times.merge(served.times)
        arrived += served.packets
        payload += served.payload_bytes
    posted = 0
    for of_messages in message_measurement.served.values():
        times.merge(of_messages.latencies)
        posted += of_messages.posted
        arrived += of_messages.arrived
        payload += of_messages.payload_bytes
    differs = comparison is not None and comparison.difference is not None
    return Outcome(
        offered=offered.count + posted,
        delivered=arrived,
        gbit_per_s=payload * 8 / ((end - begin) * scenario.symbol_time_ns),
        busiest_share=max(use.of_capacity for use in links.uses.values()),
        mean_cycles=times.mean,
        p99_cycles=times.percentile(99),
        faults=deliveries.fault_count + message_measurement.fault_count + differs,
    )
