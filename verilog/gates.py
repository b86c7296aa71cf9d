"""A node's flat netlist as gates, of which inputs choose a mutant: what it is with none, and copies that have one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from verilog.gate_graph import FALSE, TRUE, Graph
from verilog.liveness import Liveness, Part, Statement
from verilog.mutants import PLUSARG

__all__ = ["TO_GATES", "Bit", "Copy", "GateNetlist"]

Bit: TypeAlias = "int | str"
Cell: TypeAlias = dict[str, Any]

TO_GATES: Final = (
    "memory_collect; memory_map -rom-only; memory_unpack; delete t:$meminit t:$meminit_v2; "
    "opt_clean; pmuxtree; simplemap; techmap; simplemap; opt_clean"
)
"""Yosys' commands that make gates of a netlist, and of tables that nobody writes; words of memories begin unknown."""

_REGISTER: Final = "$_DFF_P_"
_READS: Final = ("$memrd", "$memrd_v2")
_WRITES: Final = ("$memwr", "$memwr_v2")
_MEMORY: Final = "MEMID"
_CLOCKS: Final = ("C", "CLK")
_OF_GRAPH: Final[dict[str, Callable[..., int]]] = {
    "$_NOT_": lambda graph, one: one ^ 1,
    "$_AND_": Graph.both,
    "$_OR_": Graph.either,
    "$_XOR_": Graph.differ,
    "$_XNOR_": lambda graph, one, other: graph.differ(one, other) ^ 1,
    "$_MUX_": Graph.choice,
}


class GateNetlist:
    """A netlist of gates, registers and memories, as Yosys writes it in JSON, with no mutant chosen.

    Attributes:
        graph: what bits are of each other within a cycle.
        order: gates and reads of memories, each behind those that it depends on.
        edges: of each bit. Inputs, what memories give and registers are free, but for those that never change.
        outputs: bits that leave the node.
        chooses: inputs that say by number which mutant there is, from the lowest; of this netlist they are 0.
        readers: gates and reads of memories that depend on a bit.
        taken: of each bit of a register what it takes, if what leaves the node may depend on that.
        writes: parts of memories that are written, of memories on which what leaves the node may depend.
        clocks: bits that are clocks.
        initial: values with which registers begin, of those of which that is known.
        constant: registers that never change, whatever comes: as wide as others need, or for what this node has not.
    """

    def __init__(self, module: Mapping[str, Any]) -> None:
        self._cells: Mapping[str, Cell] = module["cells"]
        ports: Mapping[str, Any] = module["ports"]
        self.outputs = [bit for port in ports.values() if port["direction"] == "output" for bit in port["bits"]]
        self.chooses: list[Bit] = ports[PLUSARG]["bits"] if PLUSARG in ports else []
        cells = self._cells.values()
        live = self._live()
        registers = [cell["connections"] for cell in cells if cell["type"] == _REGISTER]
        self.clocks = {
            cell["connections"][port][0] for cell in cells for port in _CLOCKS if port in cell["connections"]
        }
        self.taken: dict[Bit, Bit] = {one["Q"][0]: one["D"][0] for one in registers if one["Q"][0] in live}
        self.writes = [cell for cell in cells if cell["type"] in _WRITES and cell["parameters"][_MEMORY] in live]
        self.order = self._in_order()
        self._free = self._undriven()
        self._place = {name: at for at, name in enumerate(self.order)}
        self.readers: dict[Bit, list[str]] = {}
        for name in self.order:
            for bit in _inputs_of(self._cells[name]):
                self.readers.setdefault(bit, []).append(name)
        self.edges = self._evaluated({})
        # A mutant at a register's output stands between it and the wire that has its value.
        register = {self.edges[bit]: bit for bit in self.taken}
        initial = ((self.edges.get(bit), value) for bit, value in _initial(module))
        self.initial = {register[edge]: value for edge, value in initial if edge in register}
        self.constant = self._never_change()
        self.edges = self._evaluated(self.constant)

    def cell(self, name: str) -> Cell:
        """The cell of that name."""
        return self._cells[name]

    def is_read(self, name: str) -> bool:
        """Whether a cell is a read of a memory."""
        return self._cells[name]["type"] in _READS

    def gate(self, name: str, edge: Callable[[Bit], int]) -> int:
        """What a gate gives, of edges of its inputs."""
        cell = self._cells[name]
        inputs = [edge(cell["connections"][port][0]) for port in "ABS" if port in cell["connections"]]
        return _OF_GRAPH[cell["type"]](self.graph, *inputs)

    def follow(
        self,
        values: Mapping[Bit, int],
        put: Callable[[Bit, int], bool],
        given: Callable[[str], Iterable[tuple[Bit, int]]],
    ) -> None:
        """Gives bits other edges, and what depends on them within the cycle.

        PUT does so for a bit, and says whether it changes; GIVEN says what a gate or a read of a memory gives then.
        """
        waiting: list[tuple[int, str]] = []

        def changed(pairs: Iterable[tuple[Bit, int]]) -> None:
            for bit, edge in pairs:
                if put(bit, edge):
                    for name in self.readers.get(bit, ()):
                        heapq.heappush(waiting, (self._place[name], name))

        changed(values.items())
        last = ""
        while waiting:
            _, name = heapq.heappop(waiting)
            if name != last:
                last = name
                changed(given(name))

    def _output(self, name: str) -> Bit:
        """What a gate drives."""
        output: Bit = self._cells[name]["connections"]["Y"][0]
        return output

    def reached(self, bit: Bit) -> list[Bit]:
        """What depends on a bit by gates alone."""
        found = {bit: None}
        waiting = [bit]
        while waiting:
            for name in self.readers.get(waiting.pop(), ()):
                output = self._cells[name]["connections"].get("Y", [bit])[0]
                if output not in found:
                    found[output] = None
                    waiting.append(output)
        return [*found]

    def _live(self) -> set[Any]:
        """Bits and memories on which what leaves the node may depend, in this cycle or later."""
        statements: dict[Hashable, Part] = {}
        for name, cell in self._cells.items():
            memory = [cell["parameters"][_MEMORY]] if _MEMORY in cell.get("parameters", {}) else []
            driven, read = _outputs_of(cell), _inputs_of(cell)
            statements[name] = Statement(driven, read + memory) if driven else Statement(memory, read)
        return set(Liveness({"": statements}, {"": self.outputs}).nets[""])

    def _in_order(self) -> list[str]:
        """Gates and reads of memories, each behind those that it depends on."""
        driver = {
            bit: name
            for name, cell in self._cells.items()
            if cell["type"] in _OF_GRAPH or cell["type"] in _READS
            for bit in _outputs_of(cell)
        }
        ordered: dict[str, None] = {}
        for name in driver.values():
            waiting = [name]
            while waiting:
                inputs = (driver.get(bit) for bit in _inputs_of(self._cells[waiting[-1]]))
                before = [one for one in inputs if one is not None and one not in ordered]
                if before:
                    waiting += before
                else:
                    ordered.setdefault(waiting.pop())
        return [*ordered]

    def _never_change(self) -> dict[Bit, int]:
        """Of registers that begin with known values those that keep them, if all of these do, whatever comes."""
        known = dict(self.initial)
        edges = self._evaluated(known)

        def put(bit: Bit, edge: int) -> bool:
            before, edges[bit] = edges[bit], edge
            return edge != before

        def given(name: str) -> list[tuple[Bit, int]]:
            return [] if self.is_read(name) else [(self._output(name), self.gate(name, edges.__getitem__))]

        while changes := {bit for bit, value in known.items() if edges[self.taken[bit]] != value}:
            known = {bit: value for bit, value in known.items() if bit not in changes}
            self.follow({bit: self.graph.free() for bit in changes}, put, given)
        return known

    def _undriven(self) -> list[Bit]:
        """Bits that no gate drives."""
        bits = dict.fromkeys(["x", *self.outputs])
        for cell in self._cells.values():
            bits.update(dict.fromkeys((*_inputs_of(cell), *_outputs_of(cell))))
        driven = {bit for name in self.order if not self.is_read(name) for bit in _outputs_of(self._cells[name])}
        return [bit for bit in bits if bit not in driven and bit not in ("0", "1")]

    def _evaluated(self, constant: Mapping[Bit, int]) -> dict[Bit, int]:
        """Edges of all bits, in a graph of their own."""
        self.graph = graph = Graph()
        edges: dict[Bit, int] = {"0": FALSE, "1": TRUE, **{bit: graph.free() for bit in self._free}}
        edges.update(dict.fromkeys(self.chooses, FALSE))
        edges.update(constant)
        for name in self.order:
            if not self.is_read(name):
                edges[self._output(name)] = self.gate(name, edges.__getitem__)
        return edges


class Copy:
    """The same node with one of its mutants, as far as it differs: by `[]` the edge of a bit.

    Attributes:
        differs: edges of bits that are another function than in the node.
    """

    def __init__(self, netlist: GateNetlist, number: int) -> None:
        self.differs: dict[Bit, int] = {}
        self._netlist = netlist
        self._given: dict[Bit, int] = {}
        self.set({bit: number >> at & 1 for at, bit in enumerate(netlist.chooses)})

    def __getitem__(self, bit: Bit) -> int:
        return self.differs.get(bit, self._netlist.edges[bit])

    def set(self, values: Mapping[Bit, int]) -> None:
        """Gives bits other edges, and all that depends on them within the cycle."""
        self._netlist.follow(values, self._put, self._outputs)

    def _put(self, bit: Bit, edge: int) -> bool:
        is_new = edge != self[bit]
        if is_new:
            self.differs[bit] = edge
        return is_new

    def _outputs(self, name: str) -> Iterator[tuple[Bit, int]]:
        netlist = self._netlist
        connections = netlist.cell(name)["connections"]
        if not netlist.is_read(name):
            yield connections["Y"][0], netlist.gate(name, self.__getitem__)
            return
        # Memories have the same words, but another address has any other.
        elsewhere = self.differ(connections["ADDR"])
        for bit in connections["DATA"]:
            other = self._given.get(bit)
            if other is None:
                self._given[bit] = other = netlist.graph.free()
            yield bit, netlist.graph.choice(netlist.edges[bit], other, elsewhere)

    def differ(self, bits: Iterable[Bit]) -> int:
        """Whether any of some bits differs from the node's."""
        graph, found = self._netlist.graph, FALSE
        for bit in bits:
            found = graph.either(found, graph.differ(self[bit], self._netlist.edges[bit]))
        return found

    def seen(self) -> Iterator[int]:
        """What outputs and memories may see of the difference; a clock that differs may always be seen."""
        netlist, graph = self._netlist, self._netlist.graph
        yield from (TRUE for bit in netlist.clocks if bit in self.differs)
        yield from (self.differ([bit]) for bit in netlist.outputs if bit in self.differs)
        for cell in netlist.writes:
            connections = cell["connections"]
            elsewhere = self.differ(connections["ADDR"])
            for enable, bit in zip(connections["EN"], connections["DATA"], strict=True):
                written = graph.both(netlist.edges[enable], graph.either(elsewhere, self.differ([bit])))
                yield graph.either(self.differ([enable]), written)


def _initial(module: Mapping[str, Any]) -> Iterator[tuple[Bit, int]]:
    """Initial values of bits, as far as they have some."""
    for wire in module["netnames"].values():
        digits = wire.get("attributes", {}).get("init", "")
        yield from (
            (bit, int(digit)) for bit, digit in zip(wire["bits"], reversed(digits), strict=False) if digit in "01"
        )


def _outputs_of(cell: Cell) -> list[Bit]:
    return _bits_of(cell, "output")


def _inputs_of(cell: Cell) -> list[Bit]:
    return _bits_of(cell, "input")


def _bits_of(cell: Cell, direction: str) -> list[Bit]:
    """Bits that it drives or reads, without constants."""
    directions = cell["port_directions"]
    return [
        bit
        for port, bits in cell["connections"].items()
        if directions[port] == direction
        for bit in bits
        if isinstance(bit, int)
    ]
