"""`ironband curves`: throughput and latency over offered load, measured and in theory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cosim.engines.base import ENGINES, MODEL
from cosim.scenario.pattern import PATTERNS, check_pattern
from ironband.common import DIRECTORY, PORTS, SEED, NumberRange, input_errors, json_option
from ironband.inputs import topology_asked
from toolchain.atomic_files import output_directory

if TYPE_CHECKING:
    from cosim.experiments.curves import Load

__all__ = ["curves", "default_engine", "load_asked"]

_PORTS = 8
_LOADS = "0.1,0.2,0.3,0.4,0.5,0.55,0.6,0.65,0.7,0.75,0.8,0.85,0.9,0.95,0.98,1.0"


def _loads(context: click.Context, parameter: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        loads = tuple(float(one) for one in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected numbers with commas between them") from None
    for load in loads:
        if not 0 < load <= 1:
            raise click.BadParameter(f"{load:g} is not in the range 0<x<=1.")
    return tuple(sorted(set(loads)))


@click.command()
@click.option("--ports", type=PORTS, help=f"Ports of the switch.  [default: {_PORTS}]")
@click.option("--topology", metavar="FILE|NAME", help="In place of one switch this fabric, all hosts to all others.")
@click.option("--size", type=click.IntRange(0, 2048), default=256, help="Payload bytes of a packet.")
@click.option(
    "--buffer-blocks",
    type=click.IntRange(36, 4095),
    default=512,
    help="Input buffer of a port of the switch, in blocks of 64 bytes.",
)
@click.option(
    "--cycles",
    type=click.IntRange(4_000, 1 << 30),
    default=200_000,
    help="Length of each run; its first quarter is not measured.",
)
@click.option("--pattern", type=click.Choice(PATTERNS), default="uniform", help="Who sends to whom.")
@click.option("--hot", metavar="HOST", help="Who gets more than the others, of the pattern hotspot; else the first.")
@click.option("--hot-share", type=NumberRange(0, 1, min_open=True), help="Probability that a packet goes there.")
@click.option("--burst", type=NumberRange(1, 1 << 20), default=1.0, help="Packets in a burst, on the mean.")
@click.option("--loads", default=_LOADS, callback=_loads, help="Offered loads.")
@click.option("--seed", type=SEED, default=1, help="Of the traffic.")
@click.option(
    "--sim",
    type=click.Choice(ENGINES),
    help=f"What simulates.  [default: {ENGINES[0]}; with --topology {MODEL}]",
)
@click.option("--out", type=DIRECTORY, metavar="DIR", default=Path("out/curves"), help="Where the picture goes.")
@json_option
def curves(
    loads: tuple[float, ...],
    ports: int | None,
    topology: str | None,
    sim: str | None,
    hot: str | None,
    hot_share: float | None,
    out: Path,
    json_file: str | None,
    **given: Any,
) -> int:
    """Throughput and latency over offered load, of VOQs and of FIFOs.

    Both kinds of switch, with virtual output queues and with FIFOs at its inputs, get the same load between all hosts:
    by default each sends to random others. The same packets also go through two ideal switches, one with output
    queues and one with input FIFOs, for comparison.

    TOPOLOGY is a file of ibsim or ibnetdiscover, or the name of one that comes with Ironband.
    """
    with input_errors():
        try:
            load = load_asked(ports, topology, hot, hot_share, **given)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        directory = output_directory(out)

        from ironband.curves_report import report_curves

        return report_curves(load, loads, sim or default_engine(topology), directory, json_file)


def default_engine(topology: str | None) -> str:
    """What simulates unless another is asked for."""
    return ENGINES[0] if topology is None else MODEL


def load_asked(ports: int | None, topology: str | None, hot: str | None, hot_share: float | None, **given: Any) -> Load:
    """The load as the options say; those that are GIVEN have the names of its attributes.

    Raises:
        ValueError: there can be none.
        UserError: there is no such topology, or packets so large have no way through it.
    """
    if given["pattern"] != "hotspot" and (hot, hot_share) != (None, None):
        raise ValueError(f"--hot, --hot-share: expected with --pattern hotspot, not {given['pattern']}")
    if topology is not None and ports is not None:
        raise ValueError("--ports, --topology: expected one of them")
    fabric = None
    if topology is None:
        check_pattern(given["pattern"], ports or _PORTS)
    else:
        file = topology_asked(topology)

        from cosim.scenario.scenario_file import scenario_of

        # Checked with some flow between all hosts: they have ways to each other that take packets so large.
        flow = {"from": "*", "to": "*", "rate": 1.0, "size": given["size"]}
        table = {"topology": str(file.resolve()), "cycles": given["cycles"], "flows": [flow]}
        fabric = scenario_of(table, file.name, file.stem, Path())

    from cosim.experiments.curves import Load

    load = Load(**given, ports=ports or _PORTS, fabric=fabric, hot=hot, warm_up=given["cycles"] // 4)
    return load if hot_share is None else replace(load, hot_share=hot_share)
