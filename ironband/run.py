"""`ironband run`: simulate a scenario and tell its story."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import click

from cosim.analysis.event import Event, EventFilter
from cosim.analysis.link_use import LinkUse
from cosim.analysis.measurement import Measurement
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.analysis.story import Story
from cosim.analysis.tail_drop import tail_drop
from cosim.experiments.experiment import CounterReadings, Experiment, perform, scenario_experiment
from cosim.experiments.managed_experiment import managed_experiment
from cosim.hosts.manager_text import QUIET_EVENTS, event_text
from cosim.pictures.run_picture import Picture, View
from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import load_scenario, packaged_scenarios
from cosim.stimulus.flows import scenario_streams
from cosim.topology.topology import Port
from cosim.trace.compare import Names
from ironband.common import (
    STDOUT,
    input_errors,
    json_option,
    progress_bar,
    sim_option,
    waves_option,
    work_directory,
    write_json,
)
from ironband.console import Console
from ironband.run_report import RunPrinter, RunResults
from sm.events import Event as ManagerEvent
from toolchain.atomic_files import atomic_file, output_directory
from wire.stimulus import Delivery
from wire.trace import RECORD, Kind, Record, port_of_source
from wire.trace_layout import Send

__all__ = ["run"]


@click.command(epilog=f"Scenarios that come with Ironband: {', '.join(packaged_scenarios())}.")
@click.argument("scenario")
@sim_option
@waves_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the picture (and the trace) go.  [default: out/SCENARIO]",
)
@json_option
@click.option("--seed", type=click.IntRange(0, (1 << 64) - 1), help="In place of the scenario's own seed.")
@click.option(
    "--bring-up",
    "by",
    type=click.Choice(("smp", "bus")),
    default="smp",
    show_default=True,
    help="What brings the fabric up: a Subnet Manager, or register writes, which take a fraction of the cycles.",
)
def run(
    scenario: str,
    sim: str,
    waves: Path | None,
    out: Path | None,
    json_file: str | None,
    seed: int | None,
    by: Literal["smp", "bus"],
) -> int:
    """Simulate SCENARIO, a TOML file or the name of one that comes with Ironband, and tell what happened.

    The Subnet Manager brings the fabric up. The golden model runs beside the RTL, and every event of both is
    compared. Exit status 1 if they differ or a host got what it should not.
    """
    with input_errors():
        loaded = load_scenario(scenario)
        directory = output_directory(out or Path("out") / loaded.name)
        if waves is not None:
            output_directory(waves.parent)
        replay = shlex.join(["ironband", "run", scenario, "--sim", sim])
        if seed is not None:
            loaded = loaded.model_copy(update={"seed": seed})
            replay += f" --seed {seed}"
        if by == "bus":
            replay += " --bring-up bus"
        console = Console(highlight=False, quiet=json_file == STDOUT, soft_wrap=True)
        experiment = scenario_experiment(loaded) if by == "bus" else managed_experiment(loaded)
        results = _run(loaded, experiment, sim, waves, directory, replay, console)
        if json_file is not None:
            write_json(json_file, results.json())
    return 0 if results.held else 1


def _run(
    scenario: Scenario,
    experiment: Experiment,
    sim: str,
    waves: Path | None,
    directory: Path,
    replay: str,
    console: Console,
) -> RunResults:
    topology = experiment.topology
    streams = scenario_streams(scenario)
    names = [stream.name for stream in streams]
    teller = RunPrinter(console, scenario.symbol_time_ns, [str(port) for port in topology.linked_ports()])
    telling = EventFilter(scenario.record, teller.tell, teller.skip)
    picture = _picture(scenario, experiment, names)

    def tell(event: Event) -> None:
        if event.cycle < experiment.start:
            teller.tell(event)
            return
        telling(event)
        picture.add(event)

    guids = {topology.fabric.identity(name).node_guid: name for name in topology.fabric.nodes}
    vls = [node.vls for node in topology.fabric.nodes.values()]

    def manage(host: str, cycle: int, event: ManagerEvent) -> None:
        if not isinstance(event, QUIET_EVENTS):
            story.manages(cycle, host, event_text(event, guids))

    def deliver(delivery: Delivery) -> None:
        if delivery.slot < vls[delivery.node]:
            deliveries.deliver(delivery)

    story = Story(topology, experiment.packets(), experiment.start, tell, names, before=picture.add)
    measurement = Measurement(topology, len(streams), experiment.start, experiment.end)
    deliveries = DeliveryCheck(topology, experiment.packets(), [measurement])
    counters = CounterReadings(experiment)
    into_hosts = [port for host in scenario.hosts if (port := topology.far_end(Port(host, 1))) is not None]
    links = {port: LinkUse(topology, [port], experiment.start, experiment.end) for port in into_hosts}
    uses = {topology.source(port): use for port, use in links.items()}
    teller.head(scenario, experiment)
    with ExitStack() as stack:
        keep: Callable[[bytes], Any] | None = None
        if scenario.record.trace:
            temporary = stack.enter_context(atomic_file(directory / "trace.bin"))
            keep = stack.enter_context(temporary.open("wb")).write
        advance = stack.enter_context(progress_bar(f"{scenario.name} on {sim}", experiment.cycles, console))

        def observe(record: Record) -> None:
            advance(record.cycle)
            story.observe(record)
            counters.observe(record)
            if (
                record.kind in (Kind.SEND, Kind.DELIVER)
                and Send.slot.read(record) < vls[port_of_source(record.source)[0]]
            ):
                deliveries.advance(record.cycle)
                measurement.observe(record)
            elif record.source in uses:
                uses[record.source].observe(record)
            if keep is not None:
                keep(RECORD.pack(*record))

        work_dir = stack.enter_context(work_directory())
        comparison = perform(
            experiment, sim, work_dir, observe=observe, on_delivery=deliver, on_manager=manage, waves=waves
        )
    story.finish()
    telling.finish()
    deliveries.advance(experiment.end)
    drawings = directory / f"{scenario.name}.svg", directory / f"{scenario.name}.png"
    picture.save(*drawings)
    stalls: dict[str, list[tuple[int, int]]] = {}
    for stall in scenario.stalls:
        stalls.setdefault(stall.host, []).append((experiment.start + stall.start, experiment.start + stall.end))
    difference = comparison.difference if comparison else None
    results = RunResults(
        scenario=scenario,
        experiment=experiment,
        sim=sim,
        events=teller.events,
        left_out=telling.skipped,
        totals=story.totals,
        deliveries=deliveries,
        streams=list(zip(streams, measurement.served, strict=True)),
        links=links,
        comparison=comparison,
        report=difference.report(Names(topology.fabric), replay, seen_by=sim) if difference else "",
        counters=counters,
        without_credits=tail_drop(experiment.packets(), topology, stalls),
        files=(*drawings, *((directory / "trace.bin",) if scenario.record.trace else ()), *((waves,) if waves else ())),
    )
    teller.tail(results)
    return results


def _picture(scenario: Scenario, experiment: Experiment, flow_names: list[str]) -> Picture:
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
