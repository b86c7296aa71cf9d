"""Scenarios of messages between hosts at one switch, run for what becomes of the messages."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from cosim.analysis.message_measurement import MessageMeasurement, ServedMessages
from cosim.analysis.observer import Observer
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.perform import perform
from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import parse_scenario
from cosim.stimulus.flows import message_streams, scenario_streams
from cosim.stimulus.message_events import MessageEvent
from cosim.trace.compare import Comparison


def star(*flows: str, hosts: int = 3, cycles: int = 100_000, more: str = "") -> Scenario:
    """H1, H2 and so on at a switch; flows are the keys of `[[flows]]`, from H1 to H2 unless they say otherwise."""
    names = range(1, hosts + 1)
    lines = [f"cycles = {cycles}", "[switches.S]", f"ports = {hosts}", *(f"[hosts.H{number}]" for number in names)]
    lines += [f'[[links]]\nends = ["H{number}", "S[{number}]"]' for number in names]
    for flow in flows:
        ends = "" if "from" in flow else 'from = "H1"\nto = "H2"\n'
        lines += ["[[flows]]", ends + flow]
    return parse_scenario("\n".join([*lines, more]), "star")


@dataclass
class MessageRun(Observer):
    """What came of a run.

    Attributes:
        served: by stream.
        events: all, in the order in which they were told.
    """

    measurement: MessageMeasurement
    events: list[MessageEvent]
    comparison: Comparison | None = None

    def follow_message(self, event: MessageEvent) -> None:
        self.events.append(event)
        self.measurement.follow_message(event)

    @property
    def served(self) -> list[ServedMessages]:
        return list(self.measurement.served.values())

    @property
    def faults(self) -> list[str]:
        return self.measurement.faults


def run(
    scenario: Scenario,
    work_dir: Path,
    engine: str = "model",
    *,
    rtl: Collection[str] | None = None,
    experiment: Experiment | None = None,
    observers: Collection[Observer] = (),
) -> MessageRun:
    """Brought up over the bus, and compared with the model unless that is the engine."""
    made = scenario_experiment(scenario) if experiment is None else experiment
    measurement = MessageMeasurement(made.topology, len(scenario_streams(scenario)), message_streams(scenario))
    result = MessageRun(measurement, [])
    result.comparison = perform(made, engine, work_dir, [result, *observers], rtl=rtl)
    return result
