"""`ironband check`: random traffic, the RTL against the golden model."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import ValidationError
from rich.text import Text

from cosim.experiments.check import CheckOptions, CheckResult, Widths, check_experiment
from cosim.experiments.check import check as perform_check
from cosim.scenario.scenario import MAX_CYCLES
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
from toolchain.atomic_files import output_directory
from wire.codes import MTU, mtu_bytes

__all__ = ["check"]

_MTUS = tuple(str(mtu_bytes(code)) for code in MTU)


@click.command()
@click.option("--ports", type=click.IntRange(2, 64), default=4, show_default=True, help="Ports of the switch.")
@click.option("--vls", type=click.Choice(("1", "2", "4", "8")), default="2", show_default=True, help="Data VLs.")
@click.option("--mtu", type=click.Choice(_MTUS), default="256", show_default=True, help="MTU in bytes.")
@click.option("--queueing", type=click.Choice(("voq", "fifo")), default="voq", show_default=True, help="Of the switch.")
@click.option(
    "--cycles", type=click.IntRange(1, MAX_CYCLES - 1), default=20_000, show_default=True, help="Length of the run."
)
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 64) - 1),
    default=1,
    show_default=True,
    help="All that is random follows from it.",
)
@click.option(
    "--widths", type=click.Choice(("mixed", "4X", "1X")), default="mixed", show_default=True, help="Of the links."
)
@click.option("--errors/--no-errors", default=True, show_default=True, help="Inject errors.")
@click.option(
    "--load",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.7,
    show_default=True,
    help="Share of its time that a link is asked to carry.",
)
@sim_option
@waves_option
@json_option
def check(
    ports: int,
    vls: str,
    mtu: str,
    queueing: Literal["voq", "fifo"],
    cycles: int,
    seed: int,
    widths: Widths,
    errors: bool,
    load: float,
    sim: str,
    waves: Path | None,
    json_file: str | None,
) -> int:
    """Random traffic through one switch: the RTL against the golden model, event by event.

    Sizes, VLs, destinations, pauses of the hosts, buffers, cables, timers and errors are random and follow from
    the seed. Exit status 1 at the first difference, or if a host got what it should not.
    """
    if math.isnan(load):
        raise click.UsageError("Invalid value for '--load': nan is not in the range 0<x<=1.")
    options = CheckOptions(
        ports=ports,
        vls=int(vls),
        mtu=int(mtu),
        queueing=queueing,
        cycles=cycles,
        seed=seed,
        widths=widths,
        errors=errors,
        load=load,
        sim=sim,
    )
    console = Console(highlight=False, quiet=json_file == STDOUT, soft_wrap=True)
    with input_errors():
        if waves is not None:
            output_directory(waves.parent)
        try:
            check_experiment(options)
        except ValidationError as error:
            raise click.UsageError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        with work_directory() as work_dir, progress_bar(f"check on {sim}", cycles, console) as progress:
            result = perform_check(options, work_dir, progress=progress, waves=waves)
        if json_file is not None:
            write_json(json_file, _json(options, result))
    _tell(console, options, result)
    return 0 if result.held else 1


def _json(options: CheckOptions, result: CheckResult) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    given = asdict(options)
    return {
        "command": "check",
        "replay": options.command,
        "held": result.held,
        **{{"cycles": "cycles", "mtu": "mtu_bytes"}.get(name, name): value for name, value in given.items()},
        "cycles_compared": result.cycles_compared,
        "records_compared": result.records_compared,
        "mismatches": None if options.sim == "model" else int(result.difference is not None),
        "sent_packets": result.packets_sent,
        "delivered_packets": result.packets_delivered,
        "lost_packets": result.packets_lost,
        "under_way_packets": result.packets_under_way,
        "errors_given": result.errors_given,
        "injections_acted": result.injections_acted,
        "packets_refused": result.verdicts,
        "faults": list(result.faults),
        "difference": result.report or None,
    }


def _tell(console: Console, options: CheckOptions, result: CheckResult) -> None:
    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style=style))

    def total(name: str, value: str) -> None:
        line(f"{name:<22}{value}")

    line(options.command, "bold")
    compared = f"{result.cycles_compared:,}" if options.sim != "model" else "- (the golden model alone)"
    total("cycles compared", compared)
    total("events compared", f"{result.records_compared:,}")
    total("packets sent", f"{result.packets_sent:,}")
    total("packets delivered", f"{result.packets_delivered:,}")
    total("packets lost", f"{result.packets_lost:,}")
    total("not delivered yet", f"{result.packets_under_way:,}")
    if options.errors:
        total("errors given", f"{sum(result.errors_given.values()):,}, {result.injections_acted:,} changed a row")
        for kind, count in result.errors_given.items():
            line(f"  {kind:<22}{count:,}")
    if result.verdicts:
        total("packets refused", f"{sum(result.verdicts.values()):,}")
        for kind, count in result.verdicts.items():
            line(f"  {kind:<22}{count:,}")
    total("mismatches", "-" if options.sim == "model" else str(int(result.difference is not None)))
    for fault in result.faults:
        line(f"wrong: {fault}", "bold red")
    if result.report:
        line(result.report, "bold red")
