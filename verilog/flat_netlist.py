"""The flat netlist of a node, bit by bit: what drives what, and what of it can ever be seen from outside."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from verilog.liveness import Liveness, Statement

__all__ = ["REGISTER", "Bit", "Cell", "FlatNetlist", "depends_on", "inputs_of", "is_state", "outputs_of"]

Bit: TypeAlias = "int | str"
Cell: TypeAlias = dict[str, Any]

REGISTER: Final = "$dff"
_STATE: Final = re.compile(r"\$dff|\$mem(rd|wr)(_v2)?")
"""Cells whose outputs are not functions of their inputs in the same cycle."""

_MEMORY: Final = "MEMID"
_BY_BIT: Final = {
    **dict.fromkeys(("$not", "$pos"), ("Y", "A")),
    **dict.fromkeys(("$and", "$or", "$xor", "$xnor", "$mux"), ("Y", "AB")),
    REGISTER: ("Q", "D"),
}
"""Cells of which a bit of the output depends on the same bit of these inputs, and on all of the others."""


class FlatNetlist:
    """A netlist without hierarchy, as Yosys writes it in JSON.

    Attributes:
        cells: by name.
        driver: the cell that drives a bit.
        readers: the cells that read it.
        outputs: bits that leave the node.
        taken: of each bit of a register, what it takes.
        ends: bits that leave the node; and those that a register or a memory takes, if what leaves the node may depend
            on them in a later cycle.
        unused: from this number on there are no bits.
        constant: of bits of registers that never change, their values, "0" or "1".
    """

    def __init__(self, module: Mapping[str, Any], constant: Mapping[Bit, str] | None = None) -> None:
        self.constant: Mapping[Bit, str] = {} if constant is None else constant
        self.cells: dict[str, Cell] = module["cells"]
        ports: Iterable[Mapping[str, Any]] = module["ports"].values()
        self.outputs = outputs = {bit for port in ports if port["direction"] == "output" for bit in port["bits"]}
        self.driver: dict[Bit, str] = {}
        self.readers: dict[Bit, list[str]] = {}
        statements: dict[Hashable, Statement] = {}
        taken: dict[tuple[str, int | None], list[Bit]] = {}
        for name, cell in self.cells.items():
            for bit in outputs_of(cell):
                self.driver[bit] = name
            for bit in inputs_of(cell):
                self.readers.setdefault(bit, []).append(name)
            for at, statement in _statements(cell):
                statements[name, at] = statement
                if is_state(cell):
                    taken[name, at] = [bit for bit in statement.read if isinstance(bit, int)]
        self.taken: dict[Bit, Bit] = {
            bit: given
            for cell in self.cells.values()
            if cell["type"] == REGISTER
            for bit, given in zip(cell["connections"]["Q"], cell["connections"]["D"], strict=True)
        }
        self.unused = 1 + max((bit for bit in (*self.driver, *self.readers) if isinstance(bit, int)), default=0)
        self._live = Liveness({"": statements}, {"": outputs}).parts
        self.ends = outputs.union(*(bits for place, bits in taken.items() if place in self._live))

    def takes(self, state: str, at: int) -> bool:
        """Whether what leaves the node may depend on this bit of a port of a register or memory."""
        return not self._live.isdisjoint({(state, at), (state, None)})

    def uses(self, bit: Bit) -> Iterator[tuple[str, str, int]]:
        """Cells that read a bit, with the port and its bit."""
        for name in dict.fromkeys(self.readers.get(bit, ())):
            cell = self.cells[name]
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "input":
                    yield from ((name, port, at) for at, one in enumerate(bits) if one == bit)

    def takers(self, bit: Bit) -> Iterator[tuple[str, int]]:
        """Registers and memories that take a bit, if what leaves the node may depend on that, and the port's bit."""
        for name, port, at in self.uses(bit):
            if port != "CLK" and is_state(self.cells[name]) and self.takes(name, at):
                yield name, at

    def reached(self, bits: Iterable[Bit]) -> set[Bit]:
        """These, and what depends on them in the same cycle."""
        waiting = [bit for bit in bits if isinstance(bit, int)]
        found: set[Bit] = set(waiting)
        while waiting:
            for name, port, at in self.uses(waiting.pop()):
                cell = self.cells[name]
                if is_state(cell):
                    continue
                new = [bit for bit in depends_on(cell, port, at) if isinstance(bit, int) and bit not in found]
                found.update(new)
                waiting += new
        return found


def is_state(cell: Cell) -> bool:
    """Whether it is a register, or a part of a memory."""
    return _STATE.fullmatch(cell["type"]) is not None


def depends_on(cell: Cell, port: str, at: int) -> list[Bit]:
    """What of the outputs of a cell that is no state depends on a bit of an input."""
    if cell["type"] == "$pmux" and port in "AB":
        return [cell["connections"]["Y"][at % len(cell["connections"]["Y"])]]
    output, by_bit = _BY_BIT.get(cell["type"], ("", ""))
    if port not in by_bit:
        return outputs_of(cell)
    bits: list[Bit] = cell["connections"][output]
    # The last bit of a shorter input may stand for those above it.
    return bits[at:] if at == len(cell["connections"][port]) - 1 else bits[at : at + 1]


def outputs_of(cell: Cell) -> list[Bit]:
    """Bits that it drives."""
    return _bits_of(cell, "output")


def inputs_of(cell: Cell) -> list[Bit]:
    """Bits that it reads, without constants."""
    return _bits_of(cell, "input")


def _bits_of(cell: Cell, direction: str) -> list[Bit]:
    directions = cell["port_directions"]
    return [
        bit
        for port, bits in cell["connections"].items()
        if directions[port] == direction
        for bit in bits
        if isinstance(bit, int)
    ]


def _statements(cell: Cell) -> Iterator[tuple[int | None, Statement]]:
    """What a cell decides: of each bit by itself, by its place, or of all at once. A memory is a net."""
    if cell["type"] not in _BY_BIT:
        memory = [cell["parameters"][_MEMORY]] if _MEMORY in cell["parameters"] else []
        driven, read = outputs_of(cell), inputs_of(cell)
        yield None, Statement(driven, read + memory) if driven else Statement(memory, read)
        return
    output, by_bit = _BY_BIT[cell["type"]]
    connections: dict[str, list[Bit]] = cell["connections"]
    others = [bit for port, bits in connections.items() if port not in (output, *by_bit) for bit in bits]
    for at, bit in enumerate(connections[output]):
        # A shorter input is extended, by its last bit or by 0.
        own = [bits[min(at, len(bits) - 1)] for bits in map(connections.__getitem__, by_bit)]
        yield at, Statement([bit], [one for one in (*own, *others) if isinstance(one, int)])
