"""`ironband check`: random traffic, the RTL against the golden model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from cosim.scenario.limits import MAX_CYCLES
from ironband.capture_options import capture_options
from ironband.common import (
    MTUS,
    PORTS,
    QUEUEINGS,
    SEED,
    VLS,
    NumberRange,
    check_waves_begin,
    check_waves_file,
    input_errors,
    json_option,
    sim_option,
    waves_asked,
    waves_options,
    work_directory,
    write_json,
)
from ironband.inputs import topology_asked

__all__ = ["check"]

_TYPED: Final = ParameterSource.COMMANDLINE


@click.command()
@click.option("--ports", type=PORTS, default=4, help="Ports of the switch.")
@click.option(
    "--fabric",
    metavar="random|NAME|FILE",
    help="In place of the switch: a fabric drawn at random, a packaged topology, or a topology file.",
)
@click.option("--vls", type=VLS, default=2, help="Data VLs.")
@click.option("--mtu", type=MTUS, default=256, help="MTU in bytes.")
@click.option("--queueing", type=QUEUEINGS, default="voq", help="Of the switch.")
@click.option("--cycles", type=click.IntRange(1, MAX_CYCLES - 1), default=20_000, help="Length of the run.")
@click.option("--seed", type=SEED, default=1, help="All that is random follows from it.")
@click.option("--widths", type=click.Choice(("mixed", "4X", "1X")), default="mixed", help="Of the links.")
@click.option("--errors/--no-errors", default=True, help="Inject errors.")
@click.option(
    "--load",
    type=NumberRange(0, 1, min_open=True),
    default=0.7,
    help="Share of its time that a link is asked to carry.",
)
@click.option(
    "--coverage",
    "coverage_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Add which decisions and counters of the golden model the run reaches to FILE.",
)
@sim_option
@waves_options
@capture_options
@json_option
def check(
    coverage_file: Path | None,
    waves: Path | None,
    waves_cycles: range | None,
    capture_file: str | None,
    capture_at: tuple[str, ...],
    json_file: str | None,
    **given: Any,
) -> int:
    """Random traffic in a switch or a fabric: RTL against golden model.

    They are compared event by event. Sizes, VLs, destinations, pauses of the hosts, buffers, cables, timers and errors
    are random and follow from the seed. Exit status 1 at the first difference, or if a host got what it should not.
    """

    with input_errors():
        recorded = waves_asked(given["sim"], waves, waves_cycles)
    check_waves_begin(recorded, given["cycles"])

    from pydantic import ValidationError

    from cosim.experiments.check_experiment import CheckOptions, check_experiment
    from cosim.experiments.check_shape import RANDOM_FABRIC

    options = CheckOptions(**given)
    if options.fabric is not None and click.get_current_context().get_parameter_source("ports") is _TYPED:
        raise click.UsageError("--ports with --fabric: expected one of the two")
    with input_errors():
        check_waves_file(options.sim, waves)
        if options.fabric not in (None, RANDOM_FABRIC):
            topology_asked(options.fabric)
        try:
            topology = check_experiment(options).topology
        except ValidationError as error:
            raise click.UsageError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
        except ValueError as error:
            raise click.UsageError(str(error)) from None

        from cosim.experiments.check import check as perform_check
        from cosim.experiments.check_coverage import add_to_file, check_file
        from cosim.experiments.link_capture import link_capture
        from ironband.check_report import check_json, print_check
        from ironband.progress import cycle_bar, text_console

        if coverage_file is not None:
            check_file(coverage_file)
        console = text_console(json_file, capture_file)
        with (
            link_capture(topology.fabric, topology.widths, capture_file, capture_at) as taps,
            work_directory() as work_dir,
            cycle_bar(f"check on {options.sim}", options.cycles, console) as progress,
        ):
            result = perform_check(options, work_dir, progress=progress, waves=recorded, taps=taps)
        coverage = add_to_file(coverage_file, options) if coverage_file is not None and result.held else None
        if json_file is not None:
            write_json(json_file, check_json(options, result, coverage))
    print_check(console, options, result, coverage)
    if waves is not None and waves.exists():
        console.print_line(f"wrote {waves}")
    return 0 if result.held and not (coverage and coverage.refuted) else 1
