"""`ironband run`: simulate a scenario and tell its story."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from cosim.cli.common import (
    STDOUT,
    input_errors,
    json_option,
    progress_bar,
    sim_option,
    waves_option,
    work_directory,
    write_json,
)
from cosim.compare import Comparison, Names
from cosim.delivery import DeliveryCheck
from cosim.event import Event, Telling
from cosim.experiment import CounterReadings, Experiment, perform, scenario_experiment
from cosim.output import output_directory, whole_file
from cosim.picture import Picture
from cosim.scenario import Scenario
from cosim.scenario_file import load_scenario, packaged_scenarios
from cosim.story import Story, Totals
from cosim.tail_drop import TailDrop, tail_drop
from wire.registers import Counter
from wire.trace import RECORD, Record

__all__ = ["run"]

_STYLES = {"stall": "bold red", "credit": "green", "drop": "bold magenta", "error": "bold magenta", "deliver": "cyan"}


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
def run(scenario: str, sim: str, waves: Path | None, out: Path | None, json_file: str | None, seed: int | None) -> int:
    """Simulate SCENARIO, a TOML file or the name of one that comes with Ironband, and tell what happened.

    The golden model runs beside the RTL, and every event of both is compared. Exit status 1 if they differ or
    a host got what it should not.
    """
    with input_errors():
        loaded = load_scenario(scenario)
        directory = output_directory(out or Path("out") / loaded.name)
        if waves is not None:
            output_directory(waves.parent)
        replay = shlex.join(["ironband", "run", scenario, "--sim", sim])
        if seed is not None:
            replay += f" --seed {seed}"
        console = Console(highlight=False, quiet=json_file == STDOUT, soft_wrap=True)
        results = _run(loaded, seed, sim, waves, directory, replay, console)
        if json_file is not None:
            write_json(json_file, results.json())
    return 0 if results.held else 1


@dataclass(frozen=True)
class _Results:
    """All that a run gives."""

    scenario: Scenario
    experiment: Experiment
    sim: str
    seed: int
    events: list[Event]
    left_out: int
    totals: Totals
    deliveries: DeliveryCheck
    comparison: Comparison | None
    report: str
    counters: CounterReadings
    without_credits: TailDrop
    files: tuple[Path, ...]

    @property
    def held(self) -> bool:
        return not self.deliveries.fault_count and (self.comparison is None or self.comparison.difference is None)

    @property
    def cycles_compared(self) -> int:
        if self.comparison is None:
            return 0
        difference = self.comparison.difference
        return self.experiment.cycles if difference is None else difference.cycle

    @property
    def mismatches(self) -> int | None:
        """None on the engine `model`, where there is nothing to compare."""
        return None if self.comparison is None else int(self.comparison.difference is not None)

    def json(self) -> dict[str, Any]:
        """Machine-readable, units in the keys."""
        symbol_time = self.scenario.symbol_time_ns
        return {
            "command": "run",
            "scenario": self.scenario.name,
            "sim": self.sim,
            "seed": self.seed,
            "held": self.held,
            "symbol_time_ns": symbol_time,
            "cycles": self.experiment.cycles,
            "traffic_start_cycle": self.experiment.start,
            "sent_packets": self.totals.sent,
            "delivered_packets": self.totals.delivered,
            "dropped_packets": self.totals.dropped,
            "lost_packets": self.deliveries.lost,
            "under_way_packets": self.deliveries.under_way,
            "injected_errors": self.totals.injected,
            "cycles_compared": self.cycles_compared,
            "records_compared": self.comparison.records if self.comparison else 0,
            "mismatches": self.mismatches,
            "difference": self.report or None,
            "faults": [str(fault) for fault in self.deliveries.faults],
            "without_credits": {
                "sent_packets": self.without_credits.sent,
                "delivered_packets": self.without_credits.delivered,
                "dropped_packets": self.without_credits.dropped,
            },
            "counters": {
                str(port): {counter.name.lower(): value for counter, value in values.items()}
                for port, values in self.counters.values.items()
            },
            "events": [_event_json(event, symbol_time) for event in self.events],
            "events_left_out": self.left_out,
            "files": [str(path) for path in self.files],
        }


def _event_json(event: Event, symbol_time_ns: float) -> dict[str, Any]:
    return {
        "cycle": event.cycle,
        "time_ns": event.cycle * symbol_time_ns,
        "place": str(event.place),
        "event": event.name,
        "text": event.text,
        "packet": event.packet,
        "vl": event.vl,
        "credits_left_blocks": event.credit_blocks,
        "credits_left_packets": event.credit_packets,
        "buffer_used_blocks": event.buffer_blocks,
        "last_row_cycle": event.until,
    }


def _run(
    scenario: Scenario, seed: int | None, sim: str, waves: Path | None, directory: Path, replay: str, console: Console
) -> _Results:
    experiment = scenario_experiment(scenario, seed)
    topology = experiment.topology
    teller = _Teller(console, scenario.symbol_time_ns, [str(port) for port in topology.linked_ports()])
    telling = Telling(scenario.record, teller.tell, teller.skip)
    picture = Picture(topology, scenario.title or scenario.name, scenario.symbol_time_ns, experiment.start)

    def tell(event: Event) -> None:
        telling(event)
        picture.add(event)

    flow_names = [scenario.flow_name(index) for index in range(len(scenario.flows))]
    story = Story(topology, experiment.packets(), experiment.start, tell, flow_names)
    deliveries = DeliveryCheck(topology, experiment.packets())
    counters = CounterReadings(experiment)
    teller.head(scenario, experiment)
    with ExitStack() as stack:
        keep: Callable[[bytes], Any] | None = None
        if scenario.record.trace:
            temporary = stack.enter_context(whole_file(directory / "trace.bin"))
            keep = stack.enter_context(temporary.open("wb")).write
        advance = stack.enter_context(progress_bar(f"{scenario.name} on {sim}", experiment.cycles, console))

        def observe(record: Record) -> None:
            advance(record.cycle)
            story.observe(record)
            counters.observe(record)
            if keep is not None:
                keep(RECORD.pack(*record))

        work_dir = stack.enter_context(work_directory())
        comparison = perform(experiment, sim, work_dir, observe=observe, on_delivery=deliveries.deliver, waves=waves)
    story.finish()
    telling.finish()
    deliveries.advance(experiment.end)
    drawings = directory / f"{scenario.name}.svg", directory / f"{scenario.name}.png"
    picture.save(*drawings)
    stalls: dict[str, list[tuple[int, int]]] = {}
    for stall in scenario.stalls:
        stalls.setdefault(stall.host, []).append((experiment.start + stall.start, experiment.start + stall.end))
    difference = comparison.difference if comparison else None
    results = _Results(
        scenario=scenario,
        experiment=experiment,
        sim=sim,
        seed=scenario.seed if seed is None else seed,
        events=teller.events,
        left_out=telling.skipped,
        totals=story.totals,
        deliveries=deliveries,
        comparison=comparison,
        report=difference.report(Names(topology.fabric), replay, seen_by=sim) if difference else "",
        counters=counters,
        without_credits=tail_drop(experiment.packets(), topology, stalls),
        files=(*drawings, *((directory / "trace.bin",) if scenario.record.trace else ()), *((waves,) if waves else ())),
    )
    teller.tail(results)
    return results


class _Teller:
    """Prints the story: coloured on a terminal, plain in a pipe."""

    def __init__(self, console: Console, symbol_time_ns: float, places: list[str]) -> None:
        self._console = console
        self._symbol_time_ns = symbol_time_ns
        self._width = max((len(place) for place in places), default=0)
        self.events: list[Event] = []

    def _print(self, text: str = "", style: str = "") -> None:
        self._console.print(Text(text, style=style))

    def head(self, scenario: Scenario, experiment: Experiment) -> None:
        """Title, fabric, and the heading of the columns."""
        self._print(scenario.title or scenario.name, "bold")
        start = self._nanoseconds(experiment.start)
        links = len(scenario.links)
        self._print(f"{links} links Active, traffic may start at cycle {experiment.start:,} ({start} ns).")
        self._print()
        self._print(f"{'cycle':>11}  {'ns':>13}  {'place':{self._width}}  {'credits left':>14}  event", "bold")

    def tell(self, event: Event) -> None:
        """One line."""
        self.events.append(event)
        left = ""
        if event.credit_blocks is not None:
            left = f"{event.credit_blocks:,} = {event.credit_packets:,} pkt"
        line = f"{event.cycle:>11,}  {self._nanoseconds(event.cycle):>13}  {event.place!s:{self._width}}  {left:>14}"
        self._print(f"{line}  {event.text}".rstrip(), _STYLES.get(event.name, ""))

    def skip(self, number: int) -> None:
        """A gap in a long story."""
        self._print(f"{'...':>11}  {number:,} events left out", "dim")

    def tail(self, results: _Results) -> None:
        """Totals, contrast, files, and what was wrong."""
        totals = results.totals
        self._print()
        self._total("packets sent", f"{totals.sent:,}")
        self._total("packets delivered", f"{totals.delivered:,}")
        self._total("packets dropped", f"{totals.dropped:,}")
        if results.deliveries.lost or results.deliveries.under_way:
            self._total("packets lost", f"{results.deliveries.lost:,}")
            self._total("packets not delivered at the end", f"{results.deliveries.under_way:,}")
        if totals.injected:
            self._total("errors injected", f"{totals.injected:,}")
        self._total(
            "cycles compared", f"{results.cycles_compared:,}" if results.comparison else "- (the golden model alone)"
        )
        self._total("mismatches", "-" if results.mismatches is None else f"{results.mismatches:,}")
        other = results.without_credits
        self._print()
        self._print(f"Without credits the same buffers would have dropped {other.dropped:,} of {other.sent:,} packets.")
        self._counters(results.counters)
        for path in results.files:
            self._print(f"wrote {path}")
        for fault in results.deliveries.faults:
            self._print(f"wrong delivery: {fault}", "bold red")
        if results.report:
            self._print()
            self._print(results.report, "bold red")

    def _total(self, name: str, value: str) -> None:
        self._print(f"{name:<34}{value}")

    def _counters(self, readings: CounterReadings) -> None:
        """What the ports counted besides data and packets, where it is not 0."""
        usual = (Counter.XMIT_DATA, Counter.RCV_DATA, Counter.XMIT_PKTS, Counter.RCV_PKTS)
        for port, values in readings.values.items():
            told = [
                f"{counter.name.lower()} {value:,}"
                for counter, value in values.items()
                if value and counter not in usual
            ]
            if told:
                self._print(f"counters of {port}: {', '.join(told)}")

    def _nanoseconds(self, cycle: int) -> str:
        return (
            f"{cycle * self._symbol_time_ns:,.0f}"
            if self._symbol_time_ns.is_integer()
            else f"{cycle * self._symbol_time_ns:,.1f}"
        )
