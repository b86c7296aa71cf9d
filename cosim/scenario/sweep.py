"""Sweeps: a scenario with other values in place of some of its keys, in all combinations.

A key is written as errors name it: `seed`, `flows[0].rate`, `switches.S.buffer_blocks`; `*` in place of a name or a
number stands for all of them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final

from cosim.scenario.find_scenario import ScenarioError
from cosim.scenario.message_flow import MessageFlow
from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import scenario_of
from cosim.scenario.tables import (
    Drawing,
    Flow,
    Host,
    InjectedError,
    Link,
    PortSettings,
    Recording,
    Stall,
    Switch,
    Table,
)

__all__ = ["Setting", "combinations", "parse_setting"]

_STEP: Final = re.compile(r"(\w+|\*)(?:\[(\d{1,6}|\*)\])?")
_NAMED: Final[dict[str, type[Table]]] = {"switches": Switch, "hosts": Host}
_LISTED: Final[dict[str, type[Table]]] = {
    "links": Link,
    "stalls": Stall,
    "errors": InjectedError,
    "ports": PortSettings,
}
_SINGLE: Final[dict[str, type[Table]]] = {"record": Recording, "picture": Drawing}
_TABLES: Final = (*_NAMED, "flows", *_LISTED, *_SINGLE)
_NO_KEYS: Final = ("name", "identities", "notes")
_ALL: Final = "*"
_MOST_RUNS: Final = 1_000


@dataclass(frozen=True)
class Setting:
    """A key and the values that it shall have, one after the other."""

    key: str
    values: tuple[Any, ...]


def parse_setting(text: str) -> Setting:
    """The setting of `KEY=VALUE,VALUE,...`; values are written as in TOML, texts also without quotes.

    Raises:
        ScenarioError: it is not written so.
    """
    key, sign, listed = text.partition("=")
    key, listed = key.strip(), listed.strip()
    if not key or not sign or not listed:
        raise ScenarioError(f"{text!r}: expected KEY=VALUE,VALUE,...")
    try:
        values = tomllib.loads(f"values = [{listed}]")["values"]
    except ValueError:
        values = [one.strip() for one in listed.split(",")]
    if not values or "" in values:
        raise ScenarioError(f"{text!r}: expected KEY=VALUE,VALUE,...")
    return Setting(key, tuple(values))


def combinations(
    table: dict[str, Any], settings: Sequence[Setting], file: str, name: str, folder: Path
) -> list[tuple[tuple[Any, ...], Scenario]]:
    """All combinations of values, each with its scenario; the last key's values change first.

    Args:
        table: of the scenario, as its file has it.
        settings: keys and values.
        file, name, folder: as in cosim.scenario.scenario_file.scenario_of.

    Raises:
        ScenarioError: a key that is not there, or twice; a value that is not allowed; too many combinations.
        TopologyError: a topology file that is wrong.
    """
    keys = [setting.key for setting in settings]
    for key in keys:
        if keys.count(key) > 1:
            raise ScenarioError(f"{key}: given twice, expected once with all its values")
    runs = prod(len(setting.values) for setting in settings)
    if runs > _MOST_RUNS:
        raise ScenarioError(f"{runs:,} combinations of values: expected at most {_MOST_RUNS:,}")
    scenario = scenario_of(table, file, name, folder)
    found = []
    for values in product(*(setting.values for setting in settings)):
        changed = deepcopy(table)
        for key, value in zip(keys, values, strict=True):
            for place, leaf in _places(changed, scenario, key):
                place[leaf] = value
        found.append((values, scenario_of(changed, file, name, folder)))
    return found


def _places(table: dict[str, Any], scenario: Scenario, key: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The tables of a scenario that have the key, each with what the key is called in it."""
    (kind, number), *rest = map(_step, key.split("."))
    top = [_called(name, one.alias) for name, one in Scenario.model_fields.items() if name not in _NO_KEYS]
    if kind in _TABLES:
        yield from _in_table(table, scenario, key, kind, number, rest)
    elif kind in (*top, "topology") and number is None and not rest:
        yield table, kind
    else:
        raise ScenarioError(f"{key}: no such key; there are {', '.join([*top, 'topology'])}")


def _step(text: str) -> tuple[str, str | None]:
    """A part of a key, and what stands in brackets behind it; nothing that there is if it is not written so."""
    step = _STEP.fullmatch(text)
    return (step[1], step[2]) if step else ("", None)


def _in_table(
    table: dict[str, Any],
    scenario: Scenario,
    key: str,
    kind: str,
    number: str | None,
    rest: Sequence[tuple[str, str | None]],
) -> Iterator[tuple[dict[str, Any], str]]:
    if kind in _NAMED:
        names = list(getattr(scenario, kind))
        form = f"{kind}.NAME.KEY or {kind}.*.KEY; there are {', '.join(names) or 'none'}"
        if number is not None or len(rest) != 2 or rest[0][0] not in (*names, _ALL) or rest[0][1] is not None:
            raise ScenarioError(f"{key}: expected {form}")
        own = table.setdefault(kind, {})
        found = [own.setdefault(name, {}) for name in names if rest[0][0] in (name, _ALL)]
    elif kind in _SINGLE:
        if number is not None or len(rest) != 1:
            raise ScenarioError(f"{key}: expected {kind}.KEY")
        found = [table.setdefault(kind, {})]
    else:
        listed = table.get(kind, [])
        numbers = range(len(listed))
        form = f"{kind}[NUMBER].KEY or {kind}[*].KEY; there are {len(listed)} of them, from 0 on"
        if number is None or len(rest) != 1 or not listed or (number != _ALL and int(number) not in numbers):
            raise ScenarioError(f"{key}: expected {form}")
        found = [listed[one] for one in numbers if number in (_ALL, str(one))]
    leaf, index = rest[-1]
    for place in found:
        keys = _keys(kind, place)
        if index is not None or leaf not in keys:
            raise ScenarioError(f"{key}: no such key; there are {', '.join(keys)}")
        yield place, leaf


def _keys(kind: str, place: dict[str, Any]) -> list[str]:
    """What keys a table may have."""
    if kind == "flows":
        model: type[Table] = MessageFlow if "transport" in place else Flow
    else:
        model = (_NAMED | _LISTED | _SINGLE)[kind]
    return [_called(name, field.alias) for name, field in model.model_fields.items()]


def _called(name: str, alias: str | None) -> str:
    """What a field is called in a file."""
    return alias or name
