"""Whether `check` finds what is broken in the RTL of a node: mutants drawn by Yosys, each run through some checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final, Literal

from cosim.engines import session, simulation
from cosim.engines.base import MODEL, Run, RunOptions
from cosim.experiments.check_experiment import check_experiment
from cosim.experiments.mutation_task import MutationTask
from cosim.simulators.cocotb_results import SimulationFailed
from cosim.trace.compare import Names, compare
from toolchain.errors import UserError
from toolchain.parallel import in_parallel
from toolchain.temporary_directory import temporary_directory
from verilog.design import Design, fabric_design
from verilog.equivalence import proven_equivalent
from verilog.mutants import PLUSARG, DrawnMutants, Mutant, drawn_mutants, with_mutants
from wire.parameters import SwitchParameters
from wire.row_crc import PERIOD
from wire.trace import Kind, Record

__all__ = ["Outcome", "Verdict", "built", "draw", "mutants_of_build", "outcome", "outcomes"]

Verdict = Literal["killed", "survived", "equivalent"]

_CHUNK: Final = 32
"""Mutants that a process runs before it says what became of them; what the model says of a check it finds once."""


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        verdict: killed by a check, or by none; equivalent is proven, and put through none.
        check: the first that found it, 0 if none.
        cycle: of the difference that it found.
        by: the record that differs and where, or what the simulation ended with.
    """

    mutant: Mutant
    verdict: Verdict
    check: int = 0
    cycle: int = 0
    by: str = ""


def draw(task: MutationTask) -> DrawnMutants:
    """The mutants of a task.

    Raises:
        ValueError: fewer cycles than a check takes.
        What `verilog.mutants.drawn_mutants` raises.
    """
    fabric = check_experiment(task.options(1)).topology.fabric
    is_switch = task.node == "switch"
    node = next(name for name, one in fabric.nodes.items() if isinstance(one, SwitchParameters) == is_switch)
    return drawn_mutants(fabric_design(fabric, rows=True), node, task.count, task.seed)


def outcomes(
    task: MutationTask, drawn: DrawnMutants, done: Collection[int], building: Callable[[int], None]
) -> Iterator[Outcome]:
    """What becomes of the mutants, but for those whose numbers are DONE, as it becomes known.

    `building` hears how many are compiled, before they are.

    Raises:
        UserError: RTL and model differ where nothing is broken.
        What compiling a simulation raises.
    """
    for numbers in task.builds:
        group = mutants_of_build(drawn, numbers)
        left = [mutant for mutant in group if mutant.number not in done]
        if not left:
            continue
        building(len(group))
        design, equivalent = built(task, drawn, group)
        yield from (Outcome(mutant, "equivalent") for mutant in left if mutant.number in equivalent)
        left = [mutant for mutant in left if mutant.number not in equivalent]
        processes = os.cpu_count() or 1
        for chunk in _batches(left, _CHUNK * processes):
            shares = (chunk[number::processes] for number in range(processes))
            with in_parallel([partial(_outcomes, task, design, share) for share in shares]) as results:
                for found in results():
                    yield from found


def mutants_of_build(drawn: DrawnMutants, numbers: range) -> list[Mutant]:
    """Those of one of a task's builds."""
    return [mutant for mutant in drawn.mutants if mutant.number in numbers]


def built(task: MutationTask, drawn: DrawnMutants, group: Sequence[Mutant]) -> tuple[Design, frozenset[int]]:
    """The design with these mutants, compiled, and the numbers of those that are proven to change nothing.

    Raises:
        UserError: RTL and model differ where nothing is broken.
        What compiling a simulation raises.
    """
    design = with_mutants(drawn, group)
    # Compiles, and shows that it is the netlist of before, where none is broken.
    if (difference := _difference(task, design, 1, 0)) is not None:
        raise UserError(f"check 1 finds a difference where nothing is broken: cycle {difference[0]}, {difference[1]}")
    return design, proven_equivalent(drawn, group)


def _batches(mutants: Sequence[Mutant], size: int) -> Iterator[Sequence[Mutant]]:
    return (mutants[start : start + size] for start in range(0, len(mutants), size))


def _outcomes(task: MutationTask, design: Design, mutants: Sequence[Mutant]) -> list[Outcome]:
    return [outcome(task, design, mutant) for mutant in mutants]


def outcome(task: MutationTask, design: Design, mutant: Mutant) -> Outcome:
    """What becomes of one mutant of a design that was built with it.

    Raises:
        What compiling a simulation raises.
    """
    for number in task.checks_of(mutant.component):
        found = _difference(task, design, number, mutant.number)
        if found is not None:
            cycle, text = found
            return Outcome(mutant, "killed", number, cycle, text)
    return Outcome(mutant, "survived")


def _difference(task: MutationTask, design: Design, number: int, mutant: int) -> tuple[int, str] | None:
    """Cycle and kind of the first difference of a check of a mutant; of none if that is 0."""
    experiment = check_experiment(task.options(number))
    with temporary_directory() as folder:
        options = RunOptions(folder, rows=PERIOD, plusargs=(f"+{PLUSARG}={mutant}",))
        engine = partial(session.simulate, "verilator", design)
        try:
            with Run(engine, experiment.spec(), options) as run:
                found = compare(_expected(task, number), run).difference
        except SimulationFailed as error:
            return 0, str(error).splitlines()[0]
    if found is None:
        return None
    return found.cycle, f"{Kind(found.kind).name} at {Names(experiment.topology.fabric).place(found.source)}"


@cache
def _expected(task: MutationTask, number: int) -> tuple[Record, ...]:
    """What the golden model says of a check."""
    with simulation.run(MODEL, check_experiment(task.options(number)).spec(), Path(), rows=PERIOD) as records:
        return tuple(records)
