"""A scenario run for what is captured of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from capture.erf_record import WHOLE
from cosim.analysis.counter_readings import CounterReadings
from cosim.analysis.message_measurement import MessageMeasurement
from cosim.analysis.observer import CycleListener
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.link_capture import link_capture
from cosim.experiments.perform import perform
from cosim.scenario.scenario import Scenario
from cosim.stimulus.flows import message_streams, scenario_streams
from cosim.stimulus.packet import is_unfollowed
from cosim.topology.topology import Port
from cosim.trace.compare import Comparison
from wire.registers import Counter

__all__ = ["CapturedRun", "captured_run"]


class CapturedRun(NamedTuple):
    """What a run gave besides its capture.

    Attributes:
        counters: of every port at the end.
        comparison: with the golden model; None if that ran alone.
        missing: packets, and messages, that were not delivered as they should.
    """

    counters: Mapping[Port, Mapping[Counter, int]]
    comparison: Comparison | None
    missing: int


def captured_run(
    scenario: Scenario,
    sim: str,
    file: str,
    places: Sequence[str],
    work_dir: Path,
    progress: Callable[[int], None],
    keep_bytes: int = WHOLE,
) -> CapturedRun:
    """Run a scenario, brought up by register writes, and capture at some places (cosim.experiments.link_capture).

    Raises:
        UserError: the capture cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    experiment = scenario_experiment(scenario)
    topology = experiment.topology
    streams, messages = scenario_streams(scenario), message_streams(scenario)
    deliveries = DeliveryCheck(topology, left_out=is_unfollowed if messages or scenario.congestion else None)
    followed = MessageMeasurement(topology, len(streams), messages)
    counters = CounterReadings(topology, experiment.end)
    observers = [CycleListener(progress), deliveries, followed, counters]
    with link_capture(topology.fabric, topology.widths, file, places, scenario.symbol_time_ns, keep_bytes) as taps:
        comparison = perform(experiment, sim, work_dir, observers, taps=taps)
    missing = deliveries.under_way + deliveries.lost + deliveries.fault_count + followed.missing
    return CapturedRun(counters.values, comparison, missing)
