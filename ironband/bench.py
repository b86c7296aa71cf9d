"""`ironband bench`: the performance table, measured here and now."""

from __future__ import annotations

import click

from bench.figures import FIGURES
from bench.settings import NOT_QUICK, WIDTHS, Settings
from ironband.common import PORTS, SEED, input_errors, json_option

__all__ = ["bench"]


@click.command()
@click.option(
    "--quick",
    is_flag=True,
    help="Within a minute on four cores: shorter runs, fewer of them, no 36 ports, no large fabrics.",
)
@click.option(
    "--only",
    type=click.Choice(tuple(FIGURES)),
    multiple=True,
    metavar="NAME",
    help="Measure this figure and not the others; may be given more than once. Names are those of the table.",
)
@click.option("--ports", type=PORTS, default=8, help="Ports of the switch.")
@click.option("--seed", type=SEED, default=1, help="All traffic follows from it.")
@click.option(
    "--growth",
    "growing",
    is_flag=True,
    help=f"Instead: Verilog, build and speed of switches of {', '.join(map(str, WIDTHS))} ports, all made anew.",
)
@json_option
def bench(quick: bool, only: tuple[str, ...], ports: int, seed: int, growing: bool, json_file: str | None) -> int:
    """Latency, throughput, speed and memory, each beside its target.

    Speed is that of the simulators and of the golden model. Builds of simulators that are not there yet are made first.
    Exit status 1 if a figure misses its target. What has been measured when
    it is interrupted is told.
    """
    if growing and (quick or only):
        raise click.UsageError("--growth: measures something else, so neither --quick nor --only goes with it")
    for name in only:
        if quick and name in NOT_QUICK:
            raise click.UsageError(f"--only {name}: --quick does not measure it")
    with input_errors():
        from ironband.bench_report import report_benchmark, report_growth

        if growing:
            return report_growth(seed, json_file)
        return report_benchmark(Settings(ports=ports, seed=seed, quick=quick), only or tuple(FIGURES), json_file)
