"""`ironband sweep`: a scenario with other values in place of some of its keys."""

from __future__ import annotations

from pathlib import Path

import click

from cosim.engines.base import ENGINES, MODEL
from cosim.scenario.find_scenario import packaged_scenarios
from ironband.common import DIRECTORY, input_errors, json_option
from ironband.inputs import scenario_asked
from toolchain.atomic_files import output_directory

__all__ = ["sweep"]


@click.command(epilog=f"Scenarios that come with Ironband: {', '.join(packaged_scenarios())}.")
@click.argument("scenario")
@click.option(
    "--set",
    "set_to",
    metavar="KEY=VALUE,...",
    multiple=True,
    required=True,
    help="A key and its values. With several keys all combinations are run.",
)
@click.option("--sim", type=click.Choice(ENGINES), default=MODEL, help="What simulates.")
@click.option(
    "--out", type=DIRECTORY, metavar="DIR", help="Where the table and the picture go.  [default: out/SCENARIO-sweep]"
)
@json_option
def sweep(scenario: str, set_to: tuple[str, ...], sim: str, out: Path | None, json_file: str | None) -> int:
    """Run SCENARIO with other values of any of its keys.

    KEY is written as errors name it: seed, flows[0].rate, switches.S.buffer_blocks; * stands for all, as in
    links[*].length_m. Register writes bring the fabric up. Exit status 1 if a host got what it should not, or if RTL
    and golden model differ.
    """
    with input_errors():
        asked = scenario_asked(scenario)

        from cosim.scenario.scenario_file import read_table
        from cosim.scenario.sweep import combinations, parse_setting

        settings = [parse_setting(text) for text in set_to]
        table, path = read_table(asked)
        runs = combinations(table, settings, scenario, path.stem, path.parent)
        directory = output_directory(out or Path("out") / f"{path.stem}-sweep")

        from ironband.sweep_report import report_sweep

        return report_sweep([setting.key for setting in settings], runs, sim, directory, json_file)
