"""What `ironband mutate` says, and the file that it goes on with."""

from __future__ import annotations

import json
from collections import Counter
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
    killed: Counter[str] = Counter()
    survived: Counter[str] = Counter()
    for outcome in outcomes:
        part = _part(outcome.mutant)
        counts = killed if outcome.verdict == "killed" else survived
        counts.update((part, _ALL))
    width = max(map(len, (*killed, *survived, "component"))) + 2
    yield f"{'component':<{width}}{'killed':>8}{'survived':>10}{'score':>8}"
    parts = sorted({*killed, *survived} - {_ALL})
    for part in (*parts, _ALL):
        count = killed[part] + survived[part]
        yield f"{part:<{width}}{killed[part]:>8,}{survived[part]:>10,}{killed[part] / max(count, 1):>8.1%}"
    left = [outcome.mutant for outcome in outcomes if outcome.verdict == "survived"]
    if left:
        yield ""
        yield "survived:"
        yield from (f"{mutant.number:>6}  {mutant}" for mutant in left)


def _part(mutant: Mutant) -> str:
    """The component of the node, without its number: that of all ports is one."""
    first = mutant.component.partition(".")[0]
    return first.rstrip("0123456789").rstrip("_") or "the node itself"
