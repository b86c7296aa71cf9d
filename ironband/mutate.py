"""`ironband mutate`: mutants of the RTL that Yosys draws, each run through checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cosim.scenario.limits import MAX_CYCLES
from ironband.common import input_errors

__all__ = ["mutate"]

_MOST = 65_535


@click.command()
@click.option("--node", type=click.Choice(("switch", "adapter")), default="switch", help="What is broken.")
@click.option("--count", type=click.IntRange(1, _MOST), default=1_000, help="Mutants to draw.")
@click.option("--seed", type=click.IntRange(0, (1 << 31) - 1), default=1, help="They are drawn from this.")
@click.option("--checks", type=click.IntRange(1, 1_000), help="Checks that a mutant goes through at most, if not all.")
@click.option("--cycles", type=click.IntRange(1, MAX_CYCLES - 1), default=20_000, help="Length of a check.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what became of each mutant to FILE; go on with what it has.",
)
def mutate(json_file: Path | None, checks: int | None, **given: Any) -> int:
    """Break the RTL in drawn places, and count what check finds.

    Yosys draws the places in the netlist of a switch with three ports and two data VLs, or of an adapter. Exit status 1
    if a mutant survives all checks. Needs the extra `synth`.
    """
    with input_errors():
        from cosim.experiments.mutation import draw, outcomes
        from cosim.experiments.mutation_task import MutationTask
        from ironband.mutate_report import describe, keep, kept
        from ironband.progress import stages, text_console
        from toolchain.errors import UserError
        from verilog.tools import YOSYS, require

        require("mutate", YOSYS)
        task = MutationTask(**given) if checks is None else MutationTask(**given, checks=checks)
        netlist, done = (None, {}) if json_file is None else kept(json_file, task)
        console = text_console(None)
        with stages("mutate", console) as stage:
            stage("drawing mutants")
            try:
                drawn = draw(task)
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            if netlist not in (None, drawn.netlist):
                raise UserError(f"{json_file}: is of a netlist that is no longer: expected a new file")
            found = [done[mutant.number] for mutant in drawn.mutants if mutant.number in done]

            def compiling(count: int) -> None:
                stage(f"compiling {count} mutants")

            for outcome in outcomes(task, drawn, done, compiling):
                found.append(outcome)
                killed = sum(one.verdict == "killed" for one in found)
                stage(f"{len(found)} of {len(drawn.mutants)} mutants, {killed} killed")
                if json_file is not None:
                    keep(json_file, task, drawn.netlist, found)
    found.sort(key=lambda one: one.mutant.number)
    for line in describe(found):
        console.print_line(line)
    return 0 if all(one.verdict != "survived" for one in found) else 1
