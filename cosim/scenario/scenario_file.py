"""Scenario files: reading them, and saying in one line what is wrong with one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from cosim.scenario.find_scenario import ScenarioError, find_scenario
from cosim.scenario.scenario import FLOW_KINDS, Scenario
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import read_topology
from wire.meaning import label
from wire.parameters import NodeIdentity, SwitchParameters, adapter_port, port_text

__all__ = ["first_error", "load_scenario", "parse_scenario", "read_table", "read_toml", "scenario_of"]


def load_scenario(name_or_path: str) -> Scenario:
    """The scenario in a file, or the packaged one of that name.

    Raises:
        ScenarioError: there is none, it cannot be read, or it is not a scenario.
        TopologyError: it names a topology file that is wrong.
    """
    table, path = read_table(name_or_path)
    return scenario_of(table, name_or_path, path.stem, path.parent)


def read_table(name_or_path: str) -> tuple[dict[str, Any], Path]:
    """What a scenario file holds, or the packaged one of that name, before it is checked; and where it is.

    Raises:
        ScenarioError: there is none, it cannot be read, or it is not TOML.
    """
    path = find_scenario(name_or_path)
    return read_toml(path, "scenario", name_or_path), path


def read_toml(path: Path, what: str, file: str) -> dict[str, Any]:
    """What a TOML file holds; `what` it is to be and `file` are what errors call it.

    Raises:
        ScenarioError: it cannot be read, or it is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{what} {file!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{file}: byte {error.start} is not UTF-8, expected a TOML file") from None
    return _toml(text, what, file)


def parse_scenario(text: str, file: str, name: str = "scenario", folder: Path = Path()) -> Scenario:
    """The scenario of a TOML text; `file` is what errors call it, `folder` is where it looks for a topology file.

    Raises:
        ScenarioError: malformed TOML, or not a scenario.
        TopologyError: it names a topology file that is wrong.
    """
    return scenario_of(_toml(text, "scenario", file), file, name, folder)


def _toml(text: str, what: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        # Most often a TOMLDecodeError; an integer of thousands of digits is a plain ValueError.
        raise ScenarioError(f"{file}: {error}") from None
    except RecursionError:
        raise ScenarioError(f"{file}: nested too deeply, expected a {what}") from None


def scenario_of(table: dict[str, Any], file: str, name: str, folder: Path) -> Scenario:
    """The scenario of a file's table; the arguments are those of parse_scenario.

    Raises:
        ScenarioError: it is none.
        TopologyError: it names a topology file that is wrong.
    """
    for key in ("name", "identities", "notes"):
        if key in table:
            raise ScenarioError(f"{file}: {key}: unknown key")
    identities: dict[str, NodeIdentity] = {}
    notes: tuple[str, ...] = ()
    if "topology" in table:
        try:
            table, identities, notes = _with_topology(table, folder)
        except ScenarioError as error:
            raise ScenarioError(f"{file}: {error}") from None
    try:
        # As JSON, for a strict validation takes an array for a tuple there.
        scenario = Scenario.model_validate_json(json.dumps({"name": name, **table}, default=str))
    except ValidationError as error:
        raise ScenarioError(f"{file}: {first_error(error)}") from None
    return scenario.model_copy(update={"identities": identities, "notes": notes})


def _with_topology(
    table: dict[str, Any], folder: Path
) -> tuple[dict[str, Any], dict[str, NodeIdentity], tuple[str, ...]]:
    """A scenario's table with the nodes and links of the topology file that it names, who the nodes are, and notes."""
    file = table["topology"]
    if not isinstance(file, str):
        raise ScenarioError(f"topology: {file!r}: expected the name of a file")
    if "links" in table:
        raise ScenarioError(f"links: expected none beside those of {file}")
    topology = read_topology(folder / file)
    made = fabric_of(topology)
    nodes: dict[str, dict[str, Any]] = {"switches": {}, "hosts": {}}
    for name, node in made.fabric.nodes.items():
        if isinstance(node, SwitchParameters):
            nodes["switches"][name] = {"ports": node.ports}
        else:
            nodes["hosts"][adapter_port(name)[0]] = {"ports": made.fabric.identity(name).ports}
    for kind, described in nodes.items():
        given = table.get(kind, {})
        if not isinstance(given, dict):
            raise ScenarioError(f"{kind}: {given!r}: expected tables")
        for name, own in given.items():
            if name not in described:
                raise ScenarioError(f"{kind}.{name}: {file} has none of this name")
            if not isinstance(own, dict) or "ports" in own:
                raise ScenarioError(f"{kind}.{name}: expected a table without ports, which are those of {file}")
            described[name] |= own
    links = [
        {"ends": [port_text(link.a, link.a_port), port_text(link.b, link.b_port)], "width": label(width)}
        for link, width in zip(made.fabric.links, made.widths, strict=True)
    ]
    rest = {key: value for key, value in table.items() if key != "topology"}
    return {**rest, **nodes, "links": links}, made.fabric.identities, topology.notes


def first_error(error: ValidationError) -> str:
    """The first of pydantic's errors in one line: place, value, what was allowed."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    place = _place(first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "missing":
        text = f"{place}: missing, it must be given"
    elif first["type"] == "extra_forbidden":
        text = f"{place}: unknown key"
    elif isinstance(first["input"], dict | BaseModel):
        text = f"{place}: {message}" if place else message
    else:
        text = f"{place}: {first['input']!r}: {message[:1].lower()}{message[1:]}"
    return " ".join(f"{text}{more}".split())


def _place(loc: Sequence[int | str]) -> str:
    """`links[0].width` for ("links", 0, "width")."""
    place = ""
    for step in loc:
        if isinstance(step, int):
            place += f"[{step}]"
        elif step not in ("int", "float", *FLOW_KINDS) and not step.startswith("tuple["):
            place += f".{step}" if place else step
    return place
