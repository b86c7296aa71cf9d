"""Mutants that change nothing that is ever seen, though they change registers: proven by induction over cycles.

Of a mutant count the registers that what is broken may act on, within a cycle. Two copies of the node, of which one is
broken, have the same in all others and anything in these, which is more than can be. If nothing of what they differ in
is seen in a cycle, neither by another register, nor by a memory, nor at an output, and if it is then never seen in the
cycle after, for all states and inputs, it is never seen at all: they begin with the same in all.

So a register of data that nobody looks at, as another one says, is proven not to matter then. Memories give anything,
the same to both copies, as they are given the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final, NamedTuple

from verilog.flat_netlist import REGISTER, Bit, Cell, FlatNetlist, depends_on, is_state, outputs_of
from verilog.mutants import Mutant, Place, place_of

__all__ = ["SEEN", "two_copies"]

SEEN: Final = ("seen", "seen_after")
"""The outputs that say whether something is seen in a cycle, and in the one after it."""

_LARGEST: Final = 40_000
"""Cells: more are left alone."""

_WRITE: Final = "$memwr"


class _Key(NamedTuple):
    """A bit in a cycle of one copy; `is_broken`: of the broken one."""

    is_broken: bool
    cycle: int
    bit: Bit


def two_copies(netlist: FlatNetlist, mutant: Mutant) -> dict[str, Any] | None:
    """A module with the outputs `SEEN`: whether something that the copies differ in is seen.

    None if the mutant acts on more than registers, or too much depends on these.
    """
    place = place_of(mutant)
    cell, port = netlist.cells[place.cell], place.port
    is_output = cell["port_directions"][port] == "output"
    reached: set[Bit] = set()
    differ: set[Bit] | None
    if is_output or not is_state(cell):
        begun = cell["connections"][port][place.bit :][:1] if is_output else depends_on(cell, port, place.bit)
        reached = netlist.reached(begun)
        differ = _registers(netlist, reached)
    else:
        differ = {cell["connections"]["Q"][place.bit]} if port == "D" else None
    return None if differ is None else _Copies(netlist, place, reached, differ).module()


def _registers(netlist: FlatNetlist, reached: set[Bit]) -> set[Bit] | None:
    """Those that take some of these bits; None if something else does."""
    registers: set[Bit] = set()
    for bit in reached & netlist.ends:
        if bit in netlist.outputs:
            return None
        for name, at in netlist.takers(bit):
            cell = netlist.cells[name]
            if cell["type"] != REGISTER:
                return None
            registers.add(cell["connections"]["Q"][at])
    return registers


class _Copies:
    """Bits of the module are made as they are asked for."""

    def __init__(self, netlist: FlatNetlist, place: Place, reached: set[Bit], differ: set[Bit]) -> None:
        self._netlist = netlist
        self._place = place
        self._differ = differ
        self._touched = reached | netlist.reached(differ)
        cell = netlist.cells[place.cell]
        is_output = cell["port_directions"][place.port] == "output"
        self._broken_bit = cell["connections"][place.port][place.bit] if is_output else None
        self._ids: dict[_Key, Bit] = {}
        self._sources: dict[_Key, Bit] = {}
        self._waiting: list[tuple[bool, int, str]] = []
        self._inputs: list[int] = []
        self._cells: dict[str, Cell] = {}
        self._numbers = count(2)

    def module(self) -> dict[str, Any] | None:
        """It; None if it is too large."""
        outputs, seen = {}, [*self._seen()]
        for cycle, name in enumerate(SEEN):
            pairs = [[self._guarded(_Key(broken, cycle, 0), *one) for one in seen] for broken in (False, True)]
            outputs[name] = self._gate("$ne", *pairs)
        while self._waiting:
            self._make(*self._waiting.pop())
            if len(self._cells) > _LARGEST:
                return None
        ports = {name: {"direction": "output", "bits": [bit]} for name, bit in outputs.items()}
        ports |= {f"i{bit}": {"direction": "input", "bits": [bit]} for bit in self._inputs}
        return {"ports": ports, "cells": self._cells, "netnames": {}}

    def _seen(self) -> Iterator[tuple[Bit, list[Bit] | None]]:
        """What looks at what may differ, each with bits of which one has to be 1 for that."""
        memories = set()
        for bit in self._netlist.reached(self._differ) & self._netlist.ends:
            if bit in self._netlist.outputs:
                yield bit, None
            for name, at in self._netlist.takers(bit):
                cell = self._netlist.cells[name]
                if cell["type"] != REGISTER:
                    memories.add(name)
                elif cell["connections"]["Q"][at] not in self._differ:
                    yield bit, None
        for name in sorted(memories):
            yield from _seen_by_memory(self._netlist.cells[name])

    def _guarded(self, key: _Key, bit: Bit, guards: list[Bit] | None) -> Bit:
        value = self._id(key._replace(bit=bit)) if isinstance(bit, int) else bit
        if guards is None:
            return value
        enables = [self._id(key._replace(bit=one)) if isinstance(one, int) else one for one in guards]
        return self._gate("$and", [value], [self._gate("$reduce_or", enables)])

    def _id(self, key: _Key) -> Bit:
        """The bit's in the module."""
        if key.is_broken and key.bit not in self._touched:
            key = key._replace(is_broken=False)
        if key in self._ids:
            return self._ids[key]
        if key.is_broken and key.bit == self._broken_bit:
            driven = self._netlist.cells[self._place.cell]["connections"][self._place.port]
            self._ids[key] = self._broken([self._source(key._replace(bit=one)) for one in driven])
        else:
            self._ids[key] = self._source(key)
        return self._ids[key]

    def _source(self, key: _Key) -> Bit:
        """What drives it, were it not broken there."""
        if key in self._sources:
            return self._sources[key]
        taken = self._netlist.taken.get(key.bit)
        if taken is not None and key.cycle > 0:
            self._sources[key] = self._before(key, taken)
        elif self._is_free(key.bit):
            if key.is_broken and key.bit not in self._differ:
                self._sources[key] = self._source(key._replace(is_broken=False))
            elif not key.is_broken and key.bit in self._netlist.constant:
                self._sources[key] = self._netlist.constant[key.bit]
            else:
                self._sources[key] = made = next(self._numbers)
                self._inputs.append(made)
        else:
            # All outputs of its cell are made at once.
            name = self._netlist.driver[key.bit]
            for bit in outputs_of(self._netlist.cells[name]):
                self._sources[key._replace(bit=bit)] = next(self._numbers)
            self._waiting.append((key.is_broken, key.cycle, name))
        return self._sources[key]

    def _before(self, key: _Key, taken: Bit) -> Bit:
        """What a register took in the cycle before: of those that may differ by its own copy."""
        before = _Key(key.is_broken and key.bit in self._differ, key.cycle - 1, 0)
        place, cell = self._place, self._netlist.cells[self._place.cell]
        at_place = cell["type"] == REGISTER and place.port == "D" and cell["connections"]["Q"][place.bit] == key.bit
        if before.is_broken and at_place:
            return self._broken([self._of(before, one) for one in cell["connections"]["D"]])
        return self._of(before, taken)

    def _of(self, key: _Key, bit: Bit) -> Bit:
        return self._id(key._replace(bit=bit)) if isinstance(bit, int) else bit

    def _is_free(self, bit: Bit) -> bool:
        name = self._netlist.driver.get(bit)
        return name is None or is_state(self._netlist.cells[name])

    def _make(self, is_broken: bool, cycle: int, name: str) -> None:
        """A cell of a copy in a cycle."""
        cell, key = self._netlist.cells[name], _Key(is_broken, cycle, 0)
        connections: dict[str, list[Bit]] = {}
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                connections[port] = [self._sources[key._replace(bit=bit)] for bit in bits]
                continue
            connections[port] = [self._of(key, bit) for bit in bits]
            if is_broken and (name, port) == (self._place.cell, self._place.port):
                connections[port][self._place.bit] = self._broken(connections[port])
        self._cells[f"c{len(self._cells)}"] = {**cell, "attributes": {}, "hide_name": 0, "connections": connections}

    def _broken(self, bits: list[Bit]) -> Bit:
        """The bit of the port, broken."""
        bit = bits[self._place.bit]
        control = bits[self._place.control] if self._place.control is not None else bit
        match self._place.mode:
            case "const0" | "const1":
                return self._place.mode[-1]
            case "inv":
                return self._gate("$not", [bit])
            case "cnot1":
                return self._gate("$xor", [bit], [control])
            case _:
                return self._gate("$xnor", [bit], [control])

    def _gate(self, kind: str, *inputs: list[Bit]) -> Bit:
        output = next(self._numbers)
        widths = {f"{port}_WIDTH": f"{len(bits):032b}" for port, bits in zip("AB", inputs, strict=False)}
        self._cells[f"c{len(self._cells)}"] = {
            "hide_name": 0,
            "type": kind,
            "attributes": {},
            "parameters": {
                **dict.fromkeys(("A_SIGNED", "B_SIGNED")[: len(inputs)], "0"),
                **widths,
                "Y_WIDTH": f"{1:032b}",
            },
            "port_directions": {**dict.fromkeys("AB"[: len(inputs)], "input"), "Y": "output"},
            "connections": {**dict(zip("AB", inputs, strict=False)), "Y": [output]},
        }
        return output


def _seen_by_memory(cell: Cell) -> Iterator[tuple[Bit, list[Bit] | None]]:
    """What a memory is given: where nothing is written address and data are not looked at."""
    connections = cell["connections"]
    if not cell["type"].startswith(_WRITE):
        yield from ((bit, None) for bit in connections["ADDR"])
        return
    enables = connections["EN"]
    yield from ((bit, None) for bit in dict.fromkeys(enables))
    yield from ((bit, enables) for bit in connections["ADDR"])
    yield from ((bit, [enable]) for bit, enable in zip(connections["DATA"], enables, strict=True))
