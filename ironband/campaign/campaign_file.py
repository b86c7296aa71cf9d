"""A campaign's TOML file: the database that it names, and the runs that its tables stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from cosim.experiments.check_experiment import CheckOptions
from cosim.experiments.check_shape import RANDOM_FABRIC
from cosim.experiments.curves import Load
from cosim.experiments.mutation_task import MutationTask
from cosim.scenario.scenario_file import first_error, read_table, read_toml
from cosim.scenario.sweep import Setting, combinations
from ironband.campaign.runs import CheckRun, CurveRun, MutantRun, Run, SweepRun, digest
from ironband.campaign.tables import KINDS, TABLES, CampaignTable
from ironband.curves import default_engine, load_asked
from ironband.inputs import scenario_asked, topology_asked
from toolchain.errors import UserError

__all__ = ["Campaign", "read_campaign"]

_RANGE: Final = re.compile(r"(\d{1,20})\.\.(\d{1,20})")
_MOST_RUNS: Final = 100_000
_DEFAULT_LISTS: Final[dict[str, dict[str, Any]]] = {"curves": {"queueing": ["voq", "fifo"]}}


class CampaignError(UserError):
    """A campaign that cannot be run; the text is one line: file, place in it, value, what was allowed."""


@dataclass(frozen=True)
class Campaign:
    """A file's.

    Attributes:
        database: where results go.
        runs: no two of them the same.
    """

    database: Path
    runs: Sequence[Run]


def read_campaign(path: Path) -> Campaign:
    """The campaign of a file; other files that it names are looked for beside it.

    Raises:
        UserError: it cannot be read, or is none.
    """
    table = read_toml(path, "campaign", str(path))
    try:
        whole = CampaignTable.model_validate(table)
    except ValidationError as error:
        raise CampaignError(f"{path}: {first_error(error)}") from None
    runs: dict[str, Run] = {}
    for kind in KINDS:
        for number, given in enumerate(getattr(whole, kind)):
            place = f"{path}: {kind}[{number}]"
            try:
                for run in _runs(kind, given, path.parent):
                    runs.setdefault(run.key(""), run)
            except ValidationError as error:
                raise CampaignError(f"{place}.{first_error(error)}") from None
            except (UserError, ValueError, click.UsageError) as error:
                raise CampaignError(f"{place}: {error}") from None
    if not runs:
        raise CampaignError(f"{path}: no runs: expected {', '.join(f'[[{kind}]]' for kind in KINDS)}, one or more")
    return Campaign(path.parent / whole.database, list(runs.values()))


def _runs(kind: str, given: dict[str, Any], folder: Path) -> Iterator[Run]:
    """All combinations of what the keys of a table list."""
    lists = {key: _values(key, value) for key, value in (_DEFAULT_LISTS.get(kind, {}) | given).items()}
    if (count := prod(map(len, lists.values()))) > _MOST_RUNS:
        raise ValueError(f"{count:,} combinations of values: expected at most {_MOST_RUNS:,}")
    for values in product(*lists.values()):
        table = TABLES[kind].model_validate(dict(zip(lists, values, strict=True)))
        yield from _MAKERS[kind](table.model_dump(exclude_none=True), table.model_fields_set, folder)


def _values(key: str, value: Any) -> Sequence[Any]:
    """What a key lists; a range in place of a list of seeds."""
    found: list[Any] | range = value if isinstance(value, list) else [value]
    if key == "seeds" and isinstance(value, str):
        ends = _RANGE.fullmatch(value)
        if not ends:
            raise ValueError(f'seeds: {value!r}: expected a number, a list of them, or a range such as "1701..1720"')
        found = range(int(ends[1]), int(ends[2]) + 1)
    if not found:
        raise ValueError(f"{key}: {value!r}: expected one value or more")
    return found


def _checks(given: dict[str, Any], keys: set[str], folder: Path) -> Iterator[Run]:
    options = {key: value for key, value in given.items() if key != "coverage"}
    inputs = ""
    if "fabric" in given:
        if "ports" in keys:
            raise ValueError("ports, fabric: expected one of them")
        del given["ports"], options["ports"]
        drawn = given["fabric"] == RANDOM_FABRIC
        options["fabric"], text = (RANDOM_FABRIC, "") if drawn else _topology(given["fabric"], folder)
        inputs = digest(text)
    yield CheckRun(given, inputs, CheckOptions(**options), coverage=given["coverage"])


def _topology(name: str, folder: Path) -> tuple[str, str]:
    """What any process on this machine calls a topology, and its text."""
    file = topology_asked(_beside(name, folder))
    return str(file.resolve()) if (folder / name).is_file() else name, file.read_text(errors="replace")


def _beside(name: str, folder: Path) -> str:
    """The path of a file that is there, or else a name."""
    return str(folder / name) if (folder / name).is_file() else name


def _mutants(given: dict[str, Any], keys: set[str], folder: Path) -> Iterator[Run]:
    task = MutationTask(**given)
    for numbers in task.builds:
        for number in numbers:
            yield MutantRun(given | {"number": number}, "", task, numbers, number)


def _sweeps(given: dict[str, Any], keys: set[str], folder: Path) -> Iterator[Run]:
    file = scenario_asked(_beside(given["scenario"], folder))
    table, path = read_table(file)
    settings = [Setting(key, tuple(_values(f"set.{key}", value))) for key, value in given["set"].items()]
    for values, scenario in combinations(table, settings, given["scenario"], path.stem, path.parent):
        chosen = dict(zip(given["set"], values, strict=True))
        yield SweepRun(given | {"set": chosen}, digest(scenario.model_dump(mode="json")), file, scenario)


def _points(given: dict[str, Any], keys: set[str], folder: Path) -> Iterator[Run]:
    options = {key: value for key, value in given.items() if key not in ("loads", "queueing", "sim")}
    topology, text = _topology(given["topology"], folder) if "topology" in given else (None, "")
    named = {name: options.pop(name, None) for name in ("ports", "hot", "hot_share")}
    load = _load(text, **named, **options | {"topology": topology})
    parameters = given | {"sim": given.get("sim", default_engine(topology))}
    yield CurveRun(parameters, digest(text), load, given["queueing"], given["loads"])


@cache
def _load(text: str, **options: Any) -> Load:
    """A fabric, of whose file this is the text, is checked once for all its points."""
    return load_asked(**options)


_MAKERS: Final[Mapping[str, Callable[[dict[str, Any], set[str], Path], Iterator[Run]]]] = {
    "check": _checks,
    "mutate": _mutants,
    "sweep": _sweeps,
    "curves": _points,
}
