"""`ironband play`: captured packets sent into a fabric."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

import click

from cosim.engines.base import ENGINES, MODEL
from ironband.common import (
    STDOUT,
    NumberRange,
    check_waves_begin,
    check_waves_file,
    input_errors,
    json_option,
    waves_asked,
    waves_options,
    work_directory,
    write_json,
)
from toolchain.atomic_files import is_special

__all__ = ["play"]

_TIMES = {"kept": True, "shifted": False, "auto": None}


def _ports(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, port = text.rpartition("=")
        if not sign or not name or name in found:
            raise click.BadParameter(f"{text!r}: expected NAME=PORT, each NAME once")
        found[name] = port
    return found


@click.command()
@click.argument("capture", metavar="CAPTURE", type=click.Path(dir_okay=False))
@click.option(
    "--into", metavar="SCENARIO|TOPOLOGY", help="The fabric.  [default: a switch with what the capture needs]"
)
@click.option(
    "--at",
    multiple=True,
    metavar="NAME=PORT",
    callback=_ports,
    help="The direction NAME of the capture enters PORT, NODE[PORT] or HOST. Repeatable; others are not played.",
)
@click.option(
    "--bring-up",
    "by",
    type=click.Choice(("smp", "bus")),
    default="smp",
    help="What brings the fabric of --into up: a Subnet Manager, or register writes.",
)
@click.option(
    "--times",
    type=click.Choice(tuple(_TIMES)),
    default="auto",
    help="Keep the capture's times, as those of a run of this fabric, or begin when the fabric is up.",
)
@click.option("--gbps", type=NumberRange(0.1, 10_000), help="Rate of a 4X link.  [default: the scenario's, or 10]")
@click.option("--sim", type=click.Choice(ENGINES), default=MODEL, help="What simulates the nodes that are played into.")
@click.option("--lines", type=click.IntRange(0, 10_000), default=20, help="Packets told, of the first and of the last.")
@waves_options
@json_option
def play(
    capture: str,
    into: str | None,
    at: dict[str, str],
    by: Literal["smp", "bus"],
    times: str,
    gbps: float | None,
    sim: str,
    lines: int,
    waves: Path | None,
    waves_cycles: range | None,
    json_file: str | None,
) -> int:
    """Send the packets of CAPTURE into a fabric; tell what it does.

    What each port makes of them is told, and what it sends back. CAPTURE is an ERF, pcap or pcapng file. Exit status 1
    if ports do not send back what the capture of a run of the same fabric has, or if RTL and golden model differ.
    """
    if capture == STDOUT or is_special(Path(capture)):
        raise click.UsageError(f"{capture}: a pipe, and a capture is read more than once: expected a file")
    with input_errors():
        recorded = waves_asked(sim, waves, waves_cycles)
        check_waves_file(sim, waves)

        from capture.survey import survey

        # What simulates takes a second to import, and a capture that is none is told at once.
        surveyed = survey(capture)

        from cosim.experiments.play import play as perform_play
        from cosim.experiments.play_fabric import given_fabric
        from cosim.experiments.play_plan import plan_play
        from ironband.play_report import PlayReport
        from ironband.progress import cycle_bar, text_console

        given = None if into is None else given_fabric(into, by == "bus")
        plan = plan_play(capture, surveyed, given, at, _TIMES[times], gbps)
        check_waves_begin(recorded, plan.cycles)
        options = [("--into", into), ("--bring-up", by), ("--times", times), ("--gbps", gbps), ("--sim", sim)]
        options += [("--at", f"{name}={port}") for name, port in at.items()]
        words = [word for name, value in options if value is not None for word in (name, str(value))]
        console = text_console(json_file)
        report = PlayReport(plan, sim, lines, shlex.join(["ironband", "play", capture, *words]))
        report.head(console)
        with (
            work_directory() as work_dir,
            cycle_bar(f"play on {sim}", plan.cycles, console) as progress,
        ):
            result = perform_play(plan, sim, work_dir, tell=report.tell, progress=progress, waves=recorded)
        report.tail(console, result)
        if json_file is not None:
            write_json(json_file, report.json(result))
        if surveyed.damage is not None:
            raise surveyed.damage
    return 0 if result.held else 1
