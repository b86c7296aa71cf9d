"""What `ironband sweep` runs and says: a table, the same as CSV and JSON, and a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from cosim.experiments.sweep import Outcome, outcomes
from cosim.pictures.drawing import drawing_style, save_figure
from cosim.pictures.sweep_picture import sweep_figure
from cosim.scenario.scenario import Scenario
from ironband.common import work_directory, write_json
from ironband.progress import cycle_bar, text_console
from toolchain.atomic_files import write_atomically

__all__ = ["report_sweep"]

_COLUMNS = "offered", "delivered", "Gbit/s", "busiest link", "mean", "p99"


def report_sweep(
    keys: Sequence[str],
    runs: Sequence[tuple[tuple[Any, ...], Scenario]],
    sim: str,
    directory: Path,
    json_file: str | None,
) -> int:
    """Run, print, write and draw; the exit status.

    Raises:
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    console = text_console(json_file)
    scenarios = [scenario for _values, scenario in runs]
    values = [chosen for chosen, _scenario in runs]
    done = 0
    with (
        work_directory() as work_dir,
        cycle_bar(f"sweep on {sim}", sum(one.cycles for one in scenarios), console) as progress,
    ):

        def ran(scenario: Scenario) -> None:
            nonlocal done
            done += scenario.cycles
            progress(done)

        found = outcomes(scenarios, sim, work_dir, ran)
    for line in _table(keys, values, found):
        console.print(line)
    faults = sum(outcome.faults for outcome in found)
    if faults:
        console.print(f"[bold red]{faults} faults: `ironband run` tells what they are[/bold red]")
    written = [directory / f"sweep.{suffix}" for suffix in ("csv", "svg", "png")]
    write_atomically(written[0], _csv(keys, values, found))
    if json_file is not None:
        write_json(json_file, _json(scenarios[0].name, sim, keys, values, found))
    title = scenarios[0].title or scenarios[0].name
    with drawing_style():
        save_figure(sweep_figure(title, keys, values, found), written[1:])
    for path in written:
        console.print(f"wrote {path}")
    return 1 if faults else 0


def _table(keys: Sequence[str], values: Sequence[tuple[Any, ...]], found: Sequence[Outcome]) -> list[str]:
    """Lines of columns as wide as they need be; latencies are in cycles."""
    rows = [(*keys, *_COLUMNS)]
    for chosen, outcome in zip(values, found, strict=True):
        numbers = (
            f"{outcome.offered:,}",
            f"{outcome.delivered:,}",
            f"{outcome.gbit_per_s:.3f}",
            f"{outcome.busiest_share:.3f}",
            f"{outcome.mean_cycles:,.0f}",
            f"{outcome.p99_cycles:,}",
        )
        rows.append((*map(str, chosen), *numbers))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{one:>{width}}" for one, width in zip(row, widths, strict=True)) for row in rows]
    return [f"{lines[0]}  (latency in cycles)", *lines[1:], ""]


def _csv(keys: Sequence[str], values: Sequence[tuple[Any, ...]], found: Sequence[Outcome]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*keys, *(field.name for field in fields(Outcome))])
    for chosen, outcome in zip(values, found, strict=True):
        writer.writerow([*chosen, *asdict(outcome).values()])
    return text.getvalue()


def _json(
    name: str, sim: str, keys: Sequence[str], values: Sequence[tuple[Any, ...]], found: Sequence[Outcome]
) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    runs = [
        {"values": dict(zip(keys, chosen, strict=True)), **asdict(outcome)}
        for chosen, outcome in zip(values, found, strict=True)
    ]
    return {"command": "sweep", "scenario": name, "sim": sim, "runs": runs}
