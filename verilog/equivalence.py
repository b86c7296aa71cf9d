"""Which mutants change nothing: proven by SAT, for every state and every input, reachable or not.

Of a mutant counts what its cell acts on within a cycle: next states, what memories are given, outputs of the node.
These are compared with and without it, as functions of all that they depend on within the cycle, each register and each
word that a memory gives being free. A mutant that differs only in states that never come is not proven this way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from toolchain.build_cache import cached
from verilog import tools
from verilog.mutants import FLAT, DrawnMutants, Mutant

__all__ = ["proven_equivalent"]

_STATE: Final = re.compile(r"\$dff|\$mem(rd|wr)(_v2)?")
"""Cells whose outputs are not functions of their inputs in the same cycle."""

_NOTHING: Final = ("CLK",)
"""Ports of such cells of which no mutant is looked at."""

_NETLIST: Final = "flat.json"
_CONES: Final = "cones.json"
_PROVEN: Final = "proven.json"
_LARGEST: Final = 6_000
"""Cells: a larger cone is left alone."""

_SECONDS: Final = 20
_SUCCESS: Final = "SAT proof finished - no model found: SUCCESS!"
_COMMAND: Final = re.compile(
    r"-mode (?P<mode>\w+) .*?-cell (?P<cell>\S+) -port (?P<port>\S+) (?P<rest>-portbit \d+(?: -ctrlbit \d+)?)"
)

_Bit: TypeAlias = "int | str"
_Cell: TypeAlias = dict[str, Any]


class _Netlist:
    """The flat netlist of a node, as Yosys writes it in JSON.

    Attributes:
        cells: by name.
        outputs: bits that leave the node.
        driver: the cell that drives a bit.
        readers: the cells that read it.
        unused: from this number on there are no bits.
    """

    def __init__(self, module: Mapping[str, Any]) -> None:
        self.cells: dict[str, _Cell] = module["cells"]
        ports: Iterable[Mapping[str, Any]] = module["ports"].values()
        self.outputs = {bit for port in ports if port["direction"] == "output" for bit in port["bits"]}
        self.driver: dict[_Bit, str] = {}
        self.readers: dict[_Bit, list[str]] = {}
        for name, cell in self.cells.items():
            for bit in _outputs_of(cell):
                self.driver[bit] = name
            for bit in _inputs_of(cell):
                self.readers.setdefault(bit, []).append(name)
        self.unused = 1 + max((bit for bit in (*self.driver, *self.readers) if isinstance(bit, int)), default=0)


def _outputs_of(cell: _Cell) -> list[_Bit]:
    return _bits_of(cell, "output")


def _inputs_of(cell: _Cell) -> list[_Bit]:
    return _bits_of(cell, "input")


def _bits_of(cell: _Cell, direction: str) -> list[_Bit]:
    directions = cell["port_directions"]
    return [
        bit
        for port, bits in cell["connections"].items()
        if directions[port] == direction
        for bit in bits
        if isinstance(bit, int)
    ]


def _is_state(cell: _Cell) -> bool:
    return _STATE.fullmatch(cell["type"]) is not None


def proven_equivalent(drawn: DrawnMutants, mutants: Sequence[Mutant]) -> frozenset[int]:
    """The numbers of those MUTANTS that are proven to change nothing.

    Raises:
        ToolFailed: Yosys ended with an error.
        BuildDirectoryError: the build output cannot be written.
    """

    def fill(directory: Path) -> None:
        # The tools see no other folder's files where that is a temporary one.
        (directory / FLAT).write_text((drawn.directory / FLAT).read_text())
        steps = f"read_rtlil {FLAT}; delete t:$meminit t:$meminit_v2; write_json {_NETLIST}"
        tools.run(tools.YOSYS, ["-q", "-p", steps], directory, lambda line: None)
        netlist = _Netlist(json.loads((directory / _NETLIST).read_text())["modules"][drawn.module])
        for file in (FLAT, _NETLIST):
            (directory / file).unlink()
        modules, script = {}, [f"read_json {_CONES}"]
        for mutant in mutants:
            if (cone := _cone(netlist, mutant)) is not None:
                modules[f"m{mutant.number}"], command = cone
                script += _proof(f"m{mutant.number}", command)
        (directory / _CONES).write_text(json.dumps({"creator": "", "modules": modules}))
        (directory / "prove.ys").write_text("\n".join(script))
        proven: list[int] = []
        tools.run(tools.YOSYS, ["-s", "prove.ys"], directory, _Listener(proven).hears)
        (directory / _PROVEN).write_text(json.dumps(proven))

    numbers = [mutant.number for mutant in mutants]
    key = {"netlist": drawn.netlist, "mutants": numbers, "largest": _LARGEST, "seconds": _SECONDS}
    directory = cached("equivalence", key, fill)
    return frozenset(json.loads((directory / _PROVEN).read_text()))


class _Listener:
    """Hears which proofs succeed."""

    def __init__(self, proven: list[int]) -> None:
        self._proven = proven
        self._number = 0

    def hears(self, line: str) -> None:
        """A line of the log."""
        if found := re.search(r"gate: m(\d+)$", line.strip()):
            self._number = int(found[1])
        if _SUCCESS in line:
            self._proven.append(self._number)


def _proof(module: str, command: str) -> list[str]:
    gate, both = f"{module}_gate", f"{module}_miter"
    return [
        f"log gate: {module}",
        f"copy {module} {gate}",
        f"mutate {command.format(module=gate)}",
        f"miter -equiv -flatten {module} {gate} {both}",
        f"sat -prove trigger 0 -timeout {_SECONDS} {both}",
        f"delete {module} {gate} {both}",
    ]


def _cone(netlist: _Netlist, mutant: Mutant) -> tuple[dict[str, Any], str] | None:
    """A module of what a mutant acts on and what that depends on, and how it is broken there."""
    found = _COMMAND.search(mutant.command)
    assert found, mutant.command
    name, port = found["cell"], found["port"].removeprefix("\\")
    if port in _NOTHING:
        return None
    cell = netlist.cells[name]
    cells = {name: cell}
    extra: tuple[_Bit, ...] = ()
    if _is_state(cell):
        # Of a register or a memory its port alone, as a wire.
        bits = cell["connections"][port]
        is_output = cell["port_directions"][port] == "output"
        others = list(range(netlist.unused, netlist.unused + len(bits)))
        cells = {name: _wire(others, bits) if is_output else _wire(bits, others)}
        extra = () if is_output else tuple(others)
        port = "Y" if is_output else "A"
    reached = _forward(netlist, cells)
    if reached is None:
        return None
    ends = {bit for one in reached.values() for bit in _outputs_of(one) if _is_end(netlist, bit)} | set(extra)
    kept = _backward(netlist, reached)
    if kept is None:
        return None
    driven = {bit for one in kept.values() for bit in _outputs_of(one)}
    free = {bit for one in kept.values() for bit in _inputs_of(one)} - driven
    module = {
        "ports": {
            **{f"i{bit}": {"direction": "input", "bits": [bit]} for bit in sorted(free, key=str)},
            **{f"o{bit}": {"direction": "output", "bits": [bit]} for bit in sorted(ends, key=str)},
        },
        "cells": {one: {**cell, "attributes": {}} for one, cell in kept.items()},
        "netnames": {},
    }
    return module, f"-mode {found['mode']} -module {{module}} -cell {name} -port \\{port} {found['rest']}"


def _wire(source: Sequence[_Bit], target: Sequence[_Bit]) -> _Cell:
    return {
        "hide_name": 0,
        "type": "$pos",
        "parameters": {"A_SIGNED": "0", "A_WIDTH": f"{len(source):032b}", "Y_WIDTH": f"{len(target):032b}"},
        "port_directions": {"A": "input", "Y": "output"},
        "connections": {"A": list(source), "Y": list(target)},
    }


def _is_end(netlist: _Netlist, bit: _Bit) -> bool:
    """Whether a state takes it, or it leaves the node."""
    return bit in netlist.outputs or any(_is_state(netlist.cells[one]) for one in netlist.readers.get(bit, ()))


def _forward(netlist: _Netlist, cells: dict[str, _Cell]) -> dict[str, _Cell] | None:
    """What depends on these cells in the same cycle, and they; None if that is too much."""
    reached = dict(cells)
    waiting = list(cells.values())
    while waiting:
        for bit in _outputs_of(waiting.pop()):
            for name in netlist.readers.get(bit, ()):
                cell = netlist.cells[name]
                if name not in reached and not _is_state(cell):
                    reached[name] = cell
                    waiting.append(cell)
        if len(reached) > _LARGEST:
            return None
    return reached


def _backward(netlist: _Netlist, cells: dict[str, _Cell]) -> dict[str, _Cell] | None:
    """What these cells depend on in the same cycle, and they; None if that is too much."""
    kept = dict(cells)
    waiting = list(cells.values())
    while waiting:
        for bit in _inputs_of(waiting.pop()):
            name = netlist.driver.get(bit)
            if name is not None and name not in kept and not _is_state(netlist.cells[name]):
                kept[name] = netlist.cells[name]
                waiting.append(kept[name])
        if len(kept) > _LARGEST:
            return None
    return kept
