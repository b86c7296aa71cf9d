"""`ironband run`: simulate a scenario and report its story."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

import click

from cosim.scenario.find_scenario import packaged_scenarios
from ironband.capture_options import capture_options
from ironband.common import (
    DIRECTORY,
    SEED,
    check_waves_file,
    input_errors,
    json_option,
    sim_option,
    waves_asked,
    waves_options,
)
from ironband.inputs import scenario_asked
from toolchain.atomic_files import output_directory

__all__ = ["run"]


@click.command(epilog=f"Scenarios that come with Ironband: {', '.join(packaged_scenarios())}.")
@click.argument("scenario")
@sim_option
@waves_options
@capture_options
@click.option(
    "--out", type=DIRECTORY, metavar="DIR", help="Where the picture (and the trace) go.  [default: out/SCENARIO]"
)
@click.option("--picture/--no-picture", "draws", default=True, help="Draw what happened.")
@click.option("--keep", is_flag=True, help="Keep all events, too, for `ironband view`.")
@json_option
@click.option("--seed", type=SEED, help="In place of the scenario's own seed.")
@click.option(
    "--bring-up",
    "by",
    type=click.Choice(("smp", "bus")),
    default="smp",
    help="What brings the fabric up: a Subnet Manager, or register writes, which take a fraction of the cycles.",
)
def run(
    scenario: str,
    sim: str,
    waves: Path | None,
    waves_cycles: range | None,
    capture_file: str | None,
    capture_at: tuple[str, ...],
    out: Path | None,
    draws: bool,
    keep: bool,
    json_file: str | None,
    seed: int | None,
    by: Literal["smp", "bus"],
) -> int:
    """Simulate SCENARIO and tell what happened.

    SCENARIO is a TOML file, or the name of one that comes with Ironband. The Subnet Manager brings the fabric up. The
    golden model runs beside the RTL, and every event of both is compared. Exit status 1 if they differ or a host got
    what it should not.
    """
    with input_errors():
        recorded = waves_asked(sim, waves, waves_cycles)
        asked = scenario_asked(scenario)

        from cosim.scenario.scenario_file import load_scenario

        loaded = load_scenario(asked)
        check_waves_file(sim, waves)
        directory = out or Path("out") / loaded.name
        if draws or keep or loaded.record.trace:
            output_directory(directory)
        replay = shlex.join(["ironband", "run", scenario, "--sim", sim])
        if seed is not None:
            loaded = loaded.model_copy(update={"seed": seed})
            replay += f" --seed {seed}"
        if by == "bus":
            replay += " --bring-up bus"

        from cosim.experiments.link_capture import link_capture

        topology = loaded.topology
        with link_capture(topology.fabric, topology.widths, capture_file, capture_at, loaded.symbol_time_ns) as taps:
            from ironband.progress import text_console
            from ironband.scenario_run import run_scenario

            console = text_console(json_file, capture_file)
            results = run_scenario(loaded, by, sim, recorded, taps, directory, replay, json_file, console, draws, keep)
    return 0 if results.held else 1
