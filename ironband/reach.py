"""`ironband reach`: throughput over cable length, beside the buffer that it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import click

from cosim.engines.base import ENGINES, MODEL
from cosim.scenario.limits import LONGEST_M
from ironband.common import DIRECTORY, NumberRange, input_errors, json_option
from toolchain.atomic_files import output_directory
from wire.parameters import MAX_BLOCKS, largest_blocks

__all__ = ["reach"]

_MTU: Final = 2048


class _List(click.ParamType[tuple[float, ...]]):
    """Values of a type with commas between them; ascending, each once."""

    name = "list"

    def __init__(self, one: click.ParamType[Any]) -> None:
        self._one = one

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[float, ...]:
        """All of them."""
        return tuple(sorted({self._one.convert(text.strip(), parameter, context) for text in value.split(",")}))


@click.command()
@click.option(
    "--lengths",
    type=_List(NumberRange(0, LONGEST_M, min_open=True)),
    metavar="M,...",
    default="10,100,300,1000,3000,10000,12500,15000,20000",
    help=f"Of the cable, in metres: up to {LONGEST_M:,.0f}.",
)
@click.option(
    "--buffers",
    type=_List(click.IntRange(largest_blocks(_MTU), MAX_BLOCKS)),
    metavar="BLOCKS,...",
    default="64,128,512,1024,2048,4095",
    help="Behind the cable, in blocks of 64 bytes.",
)
@click.option("--width", type=click.Choice(("4X", "1X")), default="4X", help="Of the links.")
@click.option("--size", type=click.IntRange(0, _MTU), default=_MTU, help="Payload bytes of a packet.")
@click.option("--sim", type=click.Choice(ENGINES), default=MODEL, help="What simulates.")
@click.option(
    "--out", type=DIRECTORY, metavar="DIR", default=Path("out/reach"), help="Where the table and the picture go."
)
@json_option
def reach(
    lengths: tuple[float, ...],
    buffers: tuple[int, ...],
    width: Literal["1X", "4X"],
    size: int,
    sim: str,
    out: Path,
    json_file: str | None,
) -> int:
    """Throughput over cable length, beside the buffer that it needs.

    A host sends to another without a pause, over a cable of each length between two switches, with each buffer at its
    far end. Beside what is measured stands what credits allow in theory. Exit status 1 if the host got what it should
    not, or if RTL and golden model differ.
    """
    with input_errors():
        directory = output_directory(out)

        from cosim.experiments.reach import Reach
        from ironband.reach_report import report_reach

        return report_reach(Reach(width, size), lengths, buffers, sim, directory, json_file)
