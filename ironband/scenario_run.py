"""A scenario simulated before all that reports of it: the story, the totals, the picture, the trace."""

from __future__ import annotations

from contextlib import ExitStack
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cosim.analysis.counter_readings import CounterReadings
from cosim.analysis.event import Event, EventFilter
from cosim.analysis.event_table import EventTable, save_events
from cosim.analysis.link_use import HostLinks
from cosim.analysis.measurement import Measurement
from cosim.analysis.message_measurement import MessageMeasurement
from cosim.analysis.message_story import MessageStory
from cosim.analysis.observer import CycleListener, Observer
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.analysis.story import Story
from cosim.analysis.tail_drop import TailDrop
from cosim.engines.base import Taps, Waves, waves_around
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.managed_experiment import managed_experiment
from cosim.experiments.perform import perform
from cosim.scenario.scenario import Scenario
from cosim.stimulus.flows import message_streams, scenario_streams
from cosim.stimulus.packet import is_unfollowed
from cosim.topology.topology import Port
from cosim.trace.compare import Names
from ironband.common import check_waves_begin, work_directory, write_json
from ironband.page.recording import run_head
from ironband.page.subject import EVENTS_FILE
from ironband.progress import Console, cycle_bar
from ironband.run_report import RunPrinter, RunResults
from toolchain.atomic_files import atomic_file, writing
from wire.trace import RECORD, Record

if TYPE_CHECKING:
    from cosim.pictures.run_picture import Picture

__all__ = ["run_scenario"]

_CHUNK_BYTES = 1 << 16


def run_scenario(
    scenario: Scenario,
    by: Literal["smp", "bus"],
    sim: str,
    waves: Waves | None,
    taps: Taps,
    directory: Path,
    replay: str,
    json_file: str | None,
    console: Console,
    draws: bool,
    keep: bool,
) -> RunResults:
    """Run a scenario, brought up `by` SMPs or register writes, and report it.

    If it draws pictures they go to `directory`. With `keep` all events do, too.

    They come last, so that a disk without room for them costs nothing else.

    Raises:
        ScenarioError: its Subnet Managers do not bring it up.
        click.UsageError: waves are to begin behind its end.
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    experiment = scenario_experiment(scenario) if by == "bus" else managed_experiment(scenario)
    check_waves_begin(waves, experiment.cycles)
    topology, start, end = experiment.topology, experiment.start, experiment.end
    streams, messages = scenario_streams(scenario), message_streams(scenario)
    names = [stream.name for stream in streams] + [stream.name for stream in messages]
    printer = RunPrinter(console, scenario.symbol_time_ns, [str(port) for port in topology.linked_ports()])
    events = EventFilter(scenario.record, printer.event, printer.skip)
    picture = _picture(scenario, experiment, names) if draws else None
    table = EventTable(topology.linked_ports()) if keep else None

    def report(event: Event) -> None:
        if table is not None:
            table.add(event)
        if event.cycle < start:
            printer.event(event)
        else:
            events.add(event)
            if picture is not None:
                picture.add(event)

    def before(event: Event) -> None:
        if table is not None:
            table.add(event)
        if picture is not None:
            picture.add(event)

    story = Story(topology, start, report, names, before)
    measurement = Measurement(topology, len(streams), start, end)
    message_measurement = MessageMeasurement(topology, len(streams), messages)
    left_out = is_unfollowed if messages or scenario.congestion else None
    deliveries = DeliveryCheck(topology, [measurement], managed=True, left_out=left_out)
    links = HostLinks(topology, start, end)
    counters = CounterReadings(topology, end)
    without_credits = TailDrop(topology, _stalls(scenario, start))
    observers = [MessageStory(names, story.later), story, events, deliveries, measurement, message_measurement]
    observers += [links, counters, without_credits]
    drawings = [directory / f"{scenario.name}.{kind}" for kind in ("svg", "png") if draws]
    trace = directory / "trace.bin"
    kept = (directory / EVENTS_FILE,) if table is not None else ()
    printer.head(scenario, experiment)
    with ExitStack() as stack:
        if scenario.record.trace:
            partial = stack.enter_context(atomic_file(trace))
            with writing(f"{trace}"):
                file = stack.enter_context(partial.open("wb", buffering=0))
            observers.append(_TraceWriter(file, trace))
        progress = stack.enter_context(cycle_bar(f"{scenario.name} on {sim}", experiment.cycles, console))
        work_dir = stack.enter_context(work_directory())
        comparison = perform(experiment, sim, work_dir, [CycleListener(progress), *observers], waves=waves, taps=taps)
    difference = comparison.difference if comparison else None
    results = RunResults(
        scenario=scenario,
        experiment=experiment,
        sim=sim,
        events=printer.events,
        left_out=events.skipped,
        totals=story.totals,
        deliveries=deliveries,
        streams=list(zip(streams, measurement.served, strict=True)),
        messages=message_measurement,
        links=links.uses,
        comparison=comparison,
        report=difference.report(Names(topology.fabric), replay, waves_around(sim, difference.cycle), seen_by=sim)
        if difference
        else "",
        counters=counters,
        without_credits=without_credits,
        files=(
            *drawings,
            *kept,
            *((trace,) if scenario.record.trace else ()),
            *((waves.file,) if waves and waves.file.exists() else ()),
        ),
    )
    printer.tail(results)
    if json_file is not None:
        write_json(json_file, results.json())
    if picture is not None:
        picture.save(*drawings)
    if table is not None:
        save_events(directory / EVENTS_FILE, run_head(scenario, experiment, names), table.columns())
    for path in results.files:
        printer.wrote(path)
    return results


class _TraceWriter(Observer):
    """Writes the trace to a file without a buffer of its own; errors name the place that it will be at."""

    def __init__(self, file: RawIOBase, place: Path) -> None:
        self._file = file
        self._place = place
        self._waiting = bytearray()

    def observe(self, record: Record) -> None:
        """Write a record, soon."""
        self._waiting += RECORD.pack(*record)
        if len(self._waiting) >= _CHUNK_BYTES:
            self.finish()

    def finish(self) -> None:
        """Write what waits."""
        with writing(f"{self._place}"):
            while self._waiting:
                written = self._file.write(self._waiting)
                del self._waiting[:written]


def _stalls(scenario: Scenario, start: int) -> dict[str, list[tuple[int, int]]]:
    """The first cycle of each stall and the one after its last, by host."""
    stalls: dict[str, list[tuple[int, int]]] = {}
    for stall in scenario.stalls:
        stalls.setdefault(scenario.host_of(stall.host), []).append((start + stall.start, start + stall.end))
    return stalls


def _picture(scenario: Scenario, experiment: Experiment, flow_names: list[str]) -> Picture:
    # What draws takes as long to import as a short run of the golden model.
    from cosim.pictures.run_picture import Picture, View

    drawing, start = scenario.picture, experiment.start

    def ports(ends: tuple[str, ...] | None) -> tuple[Port, ...] | None:
        return None if ends is None else tuple(Port(*scenario.port_of(end)) for end in ends)

    view = View(
        start=start + drawing.start,
        end=None if drawing.end is None else start + drawing.end,
        panels=drawing.panels,
        ports=ports(drawing.ports),
        credits=ports(drawing.credits),
        flow_names=flow_names,
    )
    title = scenario.title or scenario.name
    return Picture(experiment.topology, title, scenario.symbol_time_ns, start, view)
