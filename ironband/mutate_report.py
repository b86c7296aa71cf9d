"""What `ironband mutate` says, and the file that it goes on with."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cosim.experiments.mutation import Outcome
from cosim.experiments.mutation_task import MutationTask
from ironband.common import write_json
from toolchain.errors import UserError
from verilog.mutants import Mutant

__all__ = ["describe", "keep", "kept"]

_ALL = "all"


def keep(file: Path, task: MutationTask, netlist: str, outcomes: Sequence[Outcome]) -> None:
    """Write what is known of the mutants of a netlist, all at once."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    results: dict[str, Any] = {
        "command": "mutate",
        "task": asdict(task),
        "netlist": netlist,
        "killed": counts["killed"],
        "survived": counts["survived"],
        "equivalent": counts["equivalent"],
        "mutants": [asdict(outcome) for outcome in sorted(outcomes, key=lambda one: one.mutant.number)],
    }
    write_json(str(file), results)


def kept(file: Path, task: MutationTask) -> tuple[str | None, dict[int, Outcome]]:
    """Of which netlist a file is, and what it has of a task, by number of the mutant; nothing if there is no file.

    Raises:
        UserError: it cannot be read, or is of another task.
    """
    try:
        results = json.loads(file.read_text())
        if results["task"] != asdict(task):
            raise UserError(f"{file}: is of another task, {results['task']}: expected {asdict(task)}")
        netlist = str(results["netlist"])
        outcomes = [Outcome(**one | {"mutant": Mutant(**one["mutant"])}) for one in results["mutants"]]
    except FileNotFoundError:
        return None, {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{file}: {error}: expected a file that mutate wrote") from None
    return netlist, {outcome.mutant.number: outcome for outcome in outcomes}


def describe(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The lines: a table by component, and the mutants that survived."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        for part in (_part(outcome.mutant), _ALL):
            counts[part][outcome.verdict] += 1
    width = max(map(len, (*counts, "component"))) + 2
    yield f"{'component':<{width}}{'killed':>8}{'survived':>10}{'equivalent':>12}{'score':>8}"
    for part in (*sorted(counts.keys() - {_ALL}), _ALL):
        killed, survived, equivalent = (counts[part][verdict] for verdict in ("killed", "survived", "equivalent"))
        score = f"{killed / (killed + survived):.1%}" if killed + survived else "-"
        yield f"{part:<{width}}{killed:>8,}{survived:>10,}{equivalent:>12,}{score:>8}"
    left = [outcome.mutant for outcome in outcomes if outcome.verdict == "survived"]
    if left:
        yield ""
        yield "survived:"
        yield from (f"{mutant.number:>6}  {mutant}" for mutant in left)


def _part(mutant: Mutant) -> str:
    """The component of the node, without its number: that of all ports is one."""
    first = mutant.component.partition(".")[0]
    return first.rstrip("0123456789").rstrip("_") or "the node itself"
