"""`ironband curves`: throughput and latency over offered load, measured and in theory."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cosim.analysis.ideal_switch import head_of_line_limit
from cosim.experiments.curves import Curve, CurveError, Ideal, Load, Queueing, ideal_curve, measure_curve, time_alone
from cosim.pictures.curve_picture import curve_figure
from cosim.pictures.drawing import drawing_style, save_figure
from ironband.common import STDOUT, input_errors, json_option, progress_bar, sim_option, work_directory, write_json
from ironband.console import Console
from toolchain.atomic_files import output_directory

__all__ = ["curves"]

_LOADS = "0.1,0.2,0.3,0.4,0.5,0.55,0.6,0.65,0.7,0.75,0.8,0.85,0.9,0.95,0.98,1.0"
_NAMES = "throughput.svg", "throughput.png"


def _loads(context: click.Context, parameter: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        loads = tuple(float(one) for one in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected numbers with commas between them") from None
    for load in loads:
        if math.isnan(load) or not 0 < load <= 1:
            raise click.BadParameter(f"{load:g} is not in the range 0<x<=1.")
    return tuple(sorted(set(loads)))


@click.command()
@click.option("--ports", type=click.IntRange(2, 64), default=8, show_default=True, help="Ports of the switch.")
@click.option("--size", type=click.IntRange(0, 2048), default=256, show_default=True, help="Payload bytes of a packet.")
@click.option(
    "--buffer-blocks",
    type=click.IntRange(36, 4095),
    default=512,
    show_default=True,
    help="Input buffer of a port of the switch, in blocks of 64 bytes.",
)
@click.option(
    "--cycles",
    type=click.IntRange(4_000, 1 << 30),
    default=200_000,
    show_default=True,
    help="Length of each run; its first quarter is not measured.",
)
@click.option("--loads", default=_LOADS, show_default=True, callback=_loads, help="Offered loads.")
@click.option("--seed", type=click.IntRange(0, (1 << 64) - 1), default=1, show_default=True, help="Of the traffic.")
@sim_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    default=Path("out/curves"),
    show_default=True,
    help="Where the picture goes.",
)
@json_option
def curves(
    ports: int,
    size: int,
    buffer_blocks: int,
    cycles: int,
    loads: tuple[float, ...],
    seed: int,
    sim: str,
    out: Path,
    json_file: str | None,
) -> int:
    """Measure throughput and latency over offered load, with virtual output queues and with FIFOs.

    The load is uniform and random: each host sends to random others. The same packets also go through two ideal
    switches, one with output queues and one with input FIFOs, for comparison.
    """
    load = Load(ports, size, buffer_blocks, cycles, cycles // 4, seed)
    console = Console(highlight=False, quiet=json_file == STDOUT, soft_wrap=True)
    with input_errors():
        directory = output_directory(out)
        try:
            pairs, alone = _measure(load, loads, sim, console)
        except CurveError as error:
            print(f"ironband: {error}", file=sys.stderr)
            return 1
        limit = head_of_line_limit(ports)
        title = f"Uniform random traffic, {ports} ports, {size:,} bytes payload"
        with drawing_style():
            save_figure(curve_figure(title, pairs, limit, alone, load.rows), [directory / name for name in _NAMES])
        if json_file is not None:
            write_json(json_file, _json(load, sim, [curve for pair in pairs for curve in pair], limit, alone))
    for pair in pairs:
        _print(console, *pair)
    console.print(f"a packet alone takes {alone:,} cycles; the limit of input FIFOs in theory is {limit:.3f}")
    for name in _NAMES:
        console.print(f"wrote {directory / name}")
    return 0


def _measure(load: Load, loads: tuple[float, ...], sim: str, console: Console) -> tuple[list[tuple[Curve, Curve]], int]:
    """Each queueing measured and in theory, and the cycles that a packet takes if it is alone."""
    kinds: tuple[tuple[Queueing, Ideal], ...] = (("voq", "output queues"), ("fifo", "input FIFO"))
    done = 0
    with (
        work_directory() as work_dir,
        progress_bar(f"curves on {sim}", len(kinds) * len(loads) * load.cycles, console) as progress,
    ):

        def measured(rate: float) -> None:
            nonlocal done
            done += load.cycles
            progress(done)

        alone = time_alone(sim, "voq", load, work_dir)
        pairs = [
            (
                measure_curve(sim, queueing, load, loads, work_dir, progress=measured),
                ideal_curve(ideal, load, loads, alone),
            )
            for queueing, ideal in kinds
        ]
    return pairs, alone


def _print(console: Console, measured: Curve, theory: Curve) -> None:
    """A table of one queueing, beside its theory."""
    console.print(f"[bold]{measured.name:36}{theory.name}[/bold]")
    console.print("offered  delivered    mean     p99  delivered    mean     p99  (latency in cycles)")
    for one, other in zip(measured.points, theory.points, strict=True):
        ours, ideal = (
            f"{point.delivered:>9.3f}  {point.mean_cycles:>6,.0f}  {point.p99_cycles:>6,.0f}" for point in (one, other)
        )
        console.print(f"{one.offered:>7.2f}  {ours}  {ideal}")
    console.print()


def _json(load: Load, sim: str, drawn: list[Curve], limit: float, alone: int) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    return {
        "command": "curves",
        "sim": sim,
        "ports": load.ports,
        "size_bytes": load.size,
        "buffer_blocks": load.buffer_blocks,
        "cycles": load.cycles,
        "warm_up_cycles": load.warm_up,
        "seed": load.seed,
        "packet_alone_cycles": alone,
        "fifo_limit": limit,
        "curves": [asdict(curve) for curve in drawn],
    }
