"""A run of which all events are kept, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from cosim.analysis.event_table import EventTable
from cosim.analysis.message_story import MessageStory
from cosim.analysis.observer import CycleListener
from cosim.analysis.story import Story
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.managed_experiment import managed_experiment
from cosim.experiments.perform import perform
from cosim.scenario.scenario import Scenario
from cosim.stimulus.flows import message_streams, scenario_streams
from ironband.common import work_directory
from ironband.page.fabric_map import fabric_head
from ironband.progress import Console, cycle_bar

__all__ = ["record", "run_head"]


def run_head(scenario: Scenario, experiment: Experiment, flows: Sequence[str]) -> dict[str, Any]:
    """What the page needs to know besides the events, as JSON."""
    topology = experiment.topology
    return fabric_head(topology.fabric, topology.widths) | {
        "title": scenario.title or scenario.name,
        "symbol_time_ns": scenario.symbol_time_ns,
        "start": experiment.start,
        "flows": list(flows),
    }


def record(
    scenario: Scenario, by: Literal["smp", "bus"], sim: str, console: Console
) -> tuple[dict[str, Any], EventTable]:
    """Run a scenario; its head and all of its events.

    Raises:
        ScenarioError: its Subnet Managers do not bring it up.
        What the engines raise (cosim.engines.simulation.run).
    """
    experiment = scenario_experiment(scenario) if by == "bus" else managed_experiment(scenario)
    names = [stream.name for stream in scenario_streams(scenario)]
    names += [stream.name for stream in message_streams(scenario)]
    table = EventTable(experiment.topology.linked_ports())
    story = Story(experiment.topology, experiment.start, table.add, names, before=table.add)
    with work_directory() as work_dir, cycle_bar(f"{scenario.name} on {sim}", experiment.cycles, console) as progress:
        perform(experiment, sim, work_dir, [CycleListener(progress), MessageStory(names, story.later), story])
    return run_head(scenario, experiment, names), table
