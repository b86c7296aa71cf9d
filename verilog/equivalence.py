"""Which mutants change nothing that is ever seen: proven by SAT, for every input and all but every state.

Of a mutant counts what its cell acts on within a cycle: next states, what memories are given, outputs of the node; but
for bits on which nothing that leaves the node ever depends. These are compared with and without it, as functions of all
that they depend on within the cycle, each word that a memory gives and each register being free, but for those that
never change (`verilog.constants`). Of the others those that change registers alone are looked at for a cycle more
(`verilog.induction`). A mutant that differs only in other states that never come is not proven.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from toolchain.build_cache import cached, code_of
from toolchain.temporary_directory import temporary_directory
from verilog import constants, flat_netlist, induction, liveness, tools
from verilog.constants import TO_GATES, constant_registers
from verilog.flat_netlist import Bit, Cell, FlatNetlist, inputs_of, is_state, outputs_of
from verilog.induction import SEEN, two_copies
from verilog.mutants import FLAT, DrawnMutants, Mutant, place_of

__all__ = ["proven_equivalent"]

_NOTHING: Final = ("CLK",)
"""Ports of such cells of which no mutant is looked at."""

_NETLIST: Final = "flat.json"
_GATES: Final = "gates.json"
_CONES: Final = "cones.json"
_SCRIPT: Final = "prove.ys"
_PROVEN: Final = "proven.json"
_LARGEST: Final = 6_000
"""Cells: a larger cone is left alone."""

_SECONDS: Final = 20
_SUCCESS: Final = "SAT proof finished - no model found: SUCCESS!"


def proven_equivalent(drawn: DrawnMutants, mutants: Sequence[Mutant]) -> frozenset[int]:
    """The numbers of those MUTANTS that are proven to change nothing.

    Raises:
        ToolFailed: Yosys ended with an error.
        BuildDirectoryError: the build output cannot be written.
    """

    def fill(directory: Path) -> None:
        # The tools see no other folder's files where that is a temporary one.
        (directory / FLAT).write_text((drawn.directory / FLAT).read_text())
        netlist = _netlist(directory, drawn.module)
        proven: list[int] = []
        modules, script = {}, [f"read_json {_CONES}"]
        for mutant in mutants:
            cone = _cone(netlist, mutant)
            if cone is not None and not cone.is_seen:
                proven.append(mutant.number)
            elif cone is not None:
                modules[f"m{mutant.number}"] = cone.module
                script += _proof(f"m{mutant.number}", cone.command)
        (directory / _CONES).write_text(json.dumps({"creator": "", "modules": modules}))
        _prove(directory, script, proven)
        _prove_unseen(directory, netlist, [mutant for mutant in mutants if mutant.number not in proven], proven)
        (directory / _PROVEN).write_text(json.dumps(proven))

    numbers = [mutant.number for mutant in mutants]
    code = code_of(constants, flat_netlist, induction, liveness, sys.modules[__name__])
    key = {"netlist": drawn.netlist, "mutants": numbers, "code": code}
    directory = cached("equivalence", key, fill)
    return frozenset(json.loads((directory / _PROVEN).read_text()))


def _netlist(directory: Path, module: str) -> FlatNetlist:
    """That of the file there, which is not needed any more."""
    steps = (
        f"read_rtlil {FLAT}; delete t:$meminit t:$meminit_v2; write_json {_NETLIST}; {TO_GATES}; write_json {_GATES}"
    )
    tools.run(tools.YOSYS, ["-q", "-p", steps], directory, lambda line: None)
    netlist, gates = (json.loads((directory / file).read_text())["modules"][module] for file in (_NETLIST, _GATES))
    for file in (FLAT, _NETLIST, _GATES):
        (directory / file).unlink()
    return FlatNetlist(netlist, constant_registers(netlist, gates))


def _prove(directory: Path, script: Sequence[str], proven: list[int]) -> None:
    (directory / _SCRIPT).write_text("\n".join(script))
    tools.run(tools.YOSYS, ["-s", _SCRIPT], directory, _Listener(proven).hears)


def _prove_unseen(directory: Path, netlist: FlatNetlist, mutants: Sequence[Mutant], proven: list[int]) -> None:
    """Those of which by induction nothing is ever seen, one after the other, as each has thousands of cells."""
    with temporary_directory() as folder:
        script: list[str] = []
        for mutant in mutants:
            module, file = f"m{mutant.number}", f"copies_{mutant.number}.json"
            if (copies := two_copies(netlist, mutant)) is not None:
                (folder / file).write_text(json.dumps({"creator": "", "modules": {module: copies}}))
                script += [f"log gate: {module}", f"read_json {file}", f"pmuxtree {module}", *_merged(module)]
                script += [f"sat -set {SEEN[0]} 0 -prove {SEEN[1]} 0 -timeout {_SECONDS} {module}", f"delete {module}"]
        _prove(folder, script, proven)


def _merged(module: str) -> list[str]:
    """What two copies have in common is one: few proofs take longer than a second, and some would take half an hour."""
    return [f"opt_merge {module}", f"opt_clean {module}"]


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
        f"pmuxtree {module} {gate}",  # of several matches the first counts, as where it is simulated
        f"miter -equiv -flatten {module} {gate} {both}",
        *_merged(both),
        f"sat -prove trigger 0 -timeout {_SECONDS} {both}",
        f"delete {module} {gate} {both}",
    ]


class _Cone(NamedTuple):
    """What a mutant acts on within a cycle.

    Attributes:
        is_seen: something that leaves the node may ever depend on it.
        module: with what that depends on, whatever may be seen being an output.
        command: Yosys' command that breaks it, without the module's name.
    """

    is_seen: bool
    module: dict[str, Any]
    command: str


def _cone(netlist: FlatNetlist, mutant: Mutant) -> _Cone | None:
    """That of a mutant; None if it is too large."""
    place = place_of(mutant)
    name, port = place.cell, place.port
    if port in _NOTHING:
        return None
    cell = netlist.cells[name]
    cells = {name: cell}
    extra: set[Bit] = set()
    if is_state(cell):
        # Of a register or a memory its port alone, as a wire.
        bits = cell["connections"][port]
        is_output = cell["port_directions"][port] == "output"
        others = list(range(netlist.unused, netlist.unused + len(bits)))
        given = [netlist.constant.get(bit, other) for bit, other in zip(bits, others, strict=True)]
        cells = {name: _wire(given, bits) if is_output else _wire(bits, others)}
        extra = set() if is_output else {bit for at, bit in enumerate(others) if netlist.takes(name, at)}
        port = "Y" if is_output else "A"
    reached = _forward(netlist, cells)
    if reached is None:
        return None
    ends = extra.union(*map(outputs_of, reached.values())) & (netlist.ends | extra)
    kept = _backward(netlist, reached)
    if kept is None:
        return None
    driven = {bit for one in kept.values() for bit in outputs_of(one)}
    free = {bit for one in kept.values() for bit in inputs_of(one)} - driven
    tied = {bit: netlist.constant[bit] for bit in free & netlist.constant.keys()}
    free -= tied.keys()
    module = {
        "ports": {
            **{f"i{bit}": {"direction": "input", "bits": [bit]} for bit in sorted(free, key=str)},
            **{f"o{bit}": {"direction": "output", "bits": [bit]} for bit in sorted(ends, key=str)},
        },
        "cells": {one: _with(cell, tied) for one, cell in kept.items()},
        "netnames": {},
    }
    control = "" if place.control is None else f" -ctrlbit {place.control}"
    command = f"-mode {place.mode} -module {{module}} -cell {name} -port \\{port} -portbit {place.bit}{control}"
    return _Cone(bool(ends), module, command)


def _with(cell: Cell, tied: Mapping[Bit, str]) -> Cell:
    """A cell of which some bits have values."""
    connections = {port: [tied.get(bit, bit) for bit in bits] for port, bits in cell["connections"].items()}
    return {**cell, "attributes": {}, "connections": connections}


def _wire(source: Sequence[Bit], target: Sequence[Bit]) -> Cell:
    return {
        "hide_name": 0,
        "type": "$pos",
        "parameters": {"A_SIGNED": "0", "A_WIDTH": f"{len(source):032b}", "Y_WIDTH": f"{len(target):032b}"},
        "port_directions": {"A": "input", "Y": "output"},
        "connections": {"A": list(source), "Y": list(target)},
    }


def _forward(netlist: FlatNetlist, cells: dict[str, Cell]) -> dict[str, Cell] | None:
    """What depends on these cells in the same cycle, and they; None if that is too much."""
    reached = dict(cells)
    waiting = list(cells.values())
    while waiting:
        for bit in outputs_of(waiting.pop()):
            for name in netlist.readers.get(bit, ()):
                cell = netlist.cells[name]
                if name not in reached and not is_state(cell):
                    reached[name] = cell
                    waiting.append(cell)
        if len(reached) > _LARGEST:
            return None
    return reached


def _backward(netlist: FlatNetlist, cells: dict[str, Cell]) -> dict[str, Cell] | None:
    """What these cells depend on in the same cycle, and they; None if that is too much."""
    kept = dict(cells)
    waiting = list(cells.values())
    while waiting:
        for bit in inputs_of(waiting.pop()):
            name = netlist.driver.get(bit)
            if name is not None and name not in kept and not is_state(netlist.cells[name]):
                kept[name] = netlist.cells[name]
                waiting.append(kept[name])
        if len(kept) > _LARGEST:
            return None
    return kept
