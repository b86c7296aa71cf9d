"""That two designs do the same in all cycles, whatever comes in: by induction over their registers and memories.

Both become gates, with the same inputs. Registers and memories of one are matched with those of the other that are
called alike; matched ones begin alike. In a cycle in which they are alike all outputs have to be, all that matched
registers take and all that is written to matched memories: as functions of inputs, registers and words that are read,
whatever these are. Names only propose what is matched: where that is wrong, nothing is proven.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from verilog import tools
from verilog.export.interface import NetlistPort
from verilog.gate_graph import FALSE, Kind
from verilog.gates import TO_GATES, Bit, GateNetlist
from verilog.sat import Solver

__all__ = ["EXPORTED", "SIMULATED", "Compared", "compared"]

EXPORTED: Final = "exported"
SIMULATED: Final = "simulated"
"""What the two top modules are called."""

_SCRIPT: Final = (
    "read_verilog both.v; hierarchy -top both; proc; flatten; delete t:$scopeinfo; opt_clean; memory_collect; "
    f"write_json memories.json; {TO_GATES}; write_json gates.json"
)
_NETLISTS: Final = ("memories.json", "gates.json")
_NAME = re.compile(rf"\\?(?P<side>{EXPORTED}|{SIMULATED})\.(?P<path>(?!(?:.*\.)?_\d+_?$)[^$]+)")
"""Of a net that has its name from somebody."""
_NUMBER = re.compile(r"_(\d*)(?=\.|$)")
"""Of names that meet: behind keywords there is none."""
_OF_READS = re.compile("MEMID|ABITS|RD_.*")
_PATTERNS: Final = 256
_ALL: Final = (1 << _PATTERNS) - 1

_Thing = TypeVar("_Thing", Bit, str)
_Pair: TypeAlias = "tuple[str, Bit, Bit]"
"""What it is, in the exported design and in the simulated one."""


@dataclass(frozen=True)
class Compared:
    """What came of it.

    Attributes:
        outputs: bits of them.
        registers: bits of them that are matched.
        unknown: of these, how many begin with what nobody knows, which is taken to be the same.
        memories: that are matched.
        solved: functions that are the same not by their gates alone: by SAT.
        alone: bits of registers of the exported design that are matched with none.
        differences: what is not proven to be the same; if there is nothing, both do the same in all cycles.
        seconds: that it took.
    """

    outputs: int
    registers: int
    unknown: int
    memories: int
    solved: int
    alone: tuple[str, ...]
    differences: tuple[str, ...]
    seconds: float = 0


def compared(exported: str, simulated: str, ports: Sequence[NetlistPort], folder: Path) -> Compared:
    """Two designs in Verilog, the ports of the second being called as they were `before`.

    Raises:
        ToolMissing, ToolFailed: the solver is not there, or Yosys ended with an error.
        Undecided: the solver gave up.
    """
    began = time.monotonic()
    (folder / "both.v").write_text(f"{exported}\n{simulated}\n{_both(ports)}")
    tools.run(tools.YOSYS, ["-q", "-p", _SCRIPT], folder, lambda line: None)
    whole, gates = (json.loads((folder / file).read_text())["modules"]["both"] for file in _NETLISTS)
    for file in _NETLISTS:  # hundreds of megabytes
        (folder / file).unlink()
    memories = [cell["parameters"] for cell in whole["cells"].values() if cell["type"] == "$mem_v2"]
    assert not any("1" in memory["RD_CLK_ENABLE"] for memory in memories)
    netlist = GateNetlist(gates)
    with Solver(netlist.graph) as solver:
        return replace(_Comparison(netlist, solver, gates, memories).made(), seconds=time.monotonic() - began)


def _both(ports: Sequence[NetlistPort]) -> str:
    """A module with both, with the same inputs."""
    inputs = [port for port in ports if port.direction == "input"]
    outputs = [port for port in ports if port.direction == "output"]
    nets = [f"input [{port.width - 1}:0] {port.name}" for port in inputs]
    instances = ""
    for side in (EXPORTED, SIMULATED):
        nets += [f"output [{port.width - 1}:0] {side}_{port.name}" for port in outputs]
        to = [(port, port.name) for port in inputs] + [(port, f"{side}_{port.name}") for port in outputs]
        names = ((port.name if side == EXPORTED else port.before, net) for port, net in to)
        instances += f"  {side} {side} ({', '.join(f'.{name}({net})' for name, net in names)});\n"
    return f"module both ({', '.join(nets)});\n{instances}endmodule\n"


def _matched(names: Iterable[tuple[str, int, _Thing]]) -> dict[_Thing, _Thing]:
    """Things of the exported design by those of the simulated one that have the same place in what is called alike."""
    called: dict[tuple[bool, str, int], dict[str, dict[_Thing, list[int]]]] = defaultdict(
        lambda: {EXPORTED: {}, SIMULATED: {}}
    )
    for name, at, thing in names:
        if found := _NAME.fullmatch(name):
            side, path = found["side"], found["path"]
            numbers = [int(number or 0) for number in _NUMBER.findall(path)]
            # What has no name but a number may have another's.
            stems = {False: _NUMBER.sub("", path)} | ({} if "_signal_" in path else {True: path})
            for is_whole, stem in stems.items():
                plain = re.sub(r"\W+", "_", stem).rstrip("_")
                called[is_whole, plain, at][side].setdefault(thing, numbers)
    matched: dict[_Thing, _Thing] = {}
    done: set[_Thing] = set()
    # Whole names first. What is left has other numbers, in the same order.
    for _, sides in sorted(called.items(), key=lambda item: not item[0][0]):
        ones, others = (sorted(things.keys() - done, key=things.__getitem__) for things in sides.values())
        if len(ones) == len(others):
            matched.update(zip(others, ones, strict=True))
            done.update(ones, others)
    return matched


class _Comparison:
    """Of two designs in one netlist of gates, MODULE; MEMORIES are the parameters of these."""

    def __init__(
        self, netlist: GateNetlist, solver: Solver, module: Mapping[str, Any], memories: Iterable[Mapping[str, Any]]
    ) -> None:
        assert netlist.clocks <= {"x", *module["ports"]["clk"]["bits"]}, netlist.clocks
        self._netlist = netlist
        self._solver = solver
        self._module = module
        self._differences: dict[str, None] = {}
        self._names: dict[Bit, str] = {}
        self._registers = self._alike_registers(module["netnames"])
        self._memories = self._alike_memories({one["MEMID"]: one for one in memories})
        self._words: dict[str, dict[tuple[int, ...], list[int]]] = defaultdict(dict)
        self._patterns: list[int] = []
        self._random = random.Random(1)
        self._solved: set[int] = set()

    def made(self) -> Compared:
        """The comparison, made."""
        taken, differ = self._netlist.taken, self._netlist.graph.differ
        edges = self._evaluated()
        pairs = [(self._names[one], taken[one], taken[other]) for other, one in self._registers.items()]
        outputs = [*self._outputs()]
        initial = self._netlist.initial
        for other, one in self._registers.items():
            if initial.get(one) != initial.get(other):
                self._differences[f"{self._names[one]}: its value at first"] = None
        for what, one, other in (*pairs, *outputs):
            self._hold(what, differ(edges[one], edges[other]))
        for what, differs in self._written(edges):
            self._hold(what, differs)
        alone = self._names.keys() - {*self._registers, *self._registers.values()}
        return Compared(
            outputs=len(outputs),
            registers=len(pairs),
            unknown=sum(one not in initial for one in self._registers.values()),
            memories=len(self._memories),
            solved=len(self._solved),
            alone=tuple(sorted(self._names[bit] for bit in alone if self._names[bit].startswith(EXPORTED))),
            differences=(*self._differences,),
        )

    def _hold(self, what: str, differs: int) -> None:
        """There is a difference, if there may be one."""
        if not self._is_never(differs):
            self._differences[what] = None

    def _alike_registers(self, netnames: Mapping[str, Any]) -> dict[Bit, Bit]:
        """Registers that are matched."""
        netlist = self._netlist
        names = [
            (name, at, bit)
            for name, wire in netnames.items()
            for at, bit in enumerate(wire["bits"])
            if bit in netlist.taken
        ]
        self._names = {bit: f"{name}[{at}]" for name, at, bit in names}
        return _matched(names)

    def _alike_memories(self, memories: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Memories that are matched: they have the same words at first, and as many ports by which they are written."""
        written = {name: said for name, said in memories.items() if int(said["WR_PORTS"], 2)}
        matched = _matched((name, 0, name) for name in written)
        for name in written.keys() - matched.keys() - {*matched.values()}:
            if EXPORTED in name:
                self._differences[f"{name} has no match"] = None
        for names in matched.items():
            other, one = (
                {what: said for what, said in memories[name].items() if not _OF_READS.fullmatch(what)} for name in names
            )
            if one != other:
                self._differences[f"{names[1]}: its words at first, or its ports"] = None
        return matched

    def _outputs(self) -> Iterator[_Pair]:
        ports = self._module["ports"]
        for name in ports:
            if name.startswith(f"{EXPORTED}_"):
                bits = (ports[it]["bits"] for it in (name, name.replace(EXPORTED, SIMULATED, 1)))
                yield from ((name, one, other) for one, other in zip(*bits, strict=True))

    def _written(self, edges: Mapping[Bit, int]) -> Iterator[tuple[str, int]]:
        """Whether something else is written to memories that are matched."""
        graph = self._netlist.graph
        ports: dict[str, list[Any]] = defaultdict(list)
        for cell in self._module["cells"].values():
            if cell["type"].startswith("$memwr"):
                ports[cell["parameters"]["MEMID"]].append(cell)
        for memory in self._memories.items():
            other, one = (sorted(ports[it], key=lambda port: int(port["parameters"]["PORTID"], 2)) for it in memory)
            for at, both in enumerate(zip(one, other, strict=True)):
                differ: dict[str, list[int]] = {}
                for what in ("EN", "ADDR", "DATA"):
                    bits = zip_longest(*(port["connections"][what] for port in both), fillvalue="0")
                    differ[what] = [graph.differ(*map(edges.__getitem__, pair)) for pair in bits]
                elsewhere = FALSE
                for bit in differ["ADDR"]:
                    elsewhere = graph.either(elsewhere, bit)
                for enable, differs, data in zip(
                    both[0]["connections"]["EN"], differ["EN"], differ["DATA"], strict=True
                ):
                    written = graph.both(edges[enable], graph.either(elsewhere, data))
                    yield f"{memory[1]}: what is written, port {at}", graph.either(differs, written)

    def _evaluated(self) -> dict[Bit, int]:
        """Edges of all bits, where registers and memories are as those that they are matched with."""
        netlist = self._netlist
        edges = {bit: edge for bit, edge in netlist.edges.items() if bit != "x"}
        for both in self._registers.items():
            # A constant is less than what is free.
            edges.update(dict.fromkeys(both, min(map(edges.__getitem__, both))))

        def edge(bit: Bit) -> int:
            # What is unknown may be anything, and something else wherever it is used.
            return netlist.graph.free() if bit == "x" else edges[bit]

        for name in netlist.order:
            cell = netlist.cell(name)
            if netlist.is_read(name):
                read, data = cell["parameters"]["MEMID"], cell["connections"]["DATA"]
                word = self._word(
                    self._memories.get(read, read), [edge(it) for it in cell["connections"]["ADDR"]], len(data)
                )
                edges.update(zip(data, word, strict=True))
            else:
                edges[cell["connections"]["Y"][0]] = netlist.gate(name, edge)
        return edges

    def _word(self, memory: str, address: list[int], width: int) -> list[int]:
        """What a memory has at an address: anything, but the same for whoever reads it."""
        while address and address[-1] == FALSE:
            address.pop()
        words = self._words[memory]
        if tuple(address) in words:
            return words[tuple(address)]
        for known, word in words.items():
            if len(known) == len(address) and all(map(self._same, known, address)):
                return word
        return words.setdefault(tuple(address), [self._netlist.graph.free() for _ in range(width)])

    def _same(self, one: int, other: int) -> bool:
        """Whether two functions are the same."""
        return one == other or self._is_never(self._netlist.graph.differ(one, other))

    def _is_never(self, edge: int) -> bool:
        """Whether a function is 0, whatever comes."""
        if edge == FALSE or edge in self._solved:
            return True
        if self._pattern(edge) or self._solver.model([self._solver.literal(edge)]):
            return False
        self._solver.add([-self._solver.literal(edge)])
        self._solved.add(edge)
        return True

    def _pattern(self, edge: int) -> int:
        """What a function is for some values of free bits."""
        graph, values = self._netlist.graph, self._patterns
        for gate in range(len(values), len(graph.kinds)):
            inputs = [values[it >> 1] ^ (_ALL if it & 1 else 0) for it in graph.inputs[gate]]
            match graph.kinds[gate], inputs:
                case Kind.AND, [first, second]:
                    values.append(first & second)
                case Kind.DIFFER, [first, second]:
                    values.append(first ^ second)
                case Kind.CHOICE, [first, second, select]:
                    values.append(first ^ (first ^ second) & select)
                case _:
                    values.append(self._random.getrandbits(_PATTERNS) if gate else 0)
        return values[edge >> 1] ^ (_ALL if edge & 1 else 0)
