"""Which mutants change nothing that is ever seen: proven by SAT, by induction over cycles, for every input.

Two copies of the node, one broken, begin alike. Which registers may come to differ, and what others say whenever one
does, is found from examples: at first none differs; where a solver finds a state and inputs behind which one does, that
may differ from then on, while all is so that the example says; where it finds another, what both say is left. If no
more are found, and neither an output nor a memory sees anything of it, this holds in all cycles. So a register of data
does not matter while another says that there is none.

Each register may have any value, and each word of a memory, but that some never change, and that of each example it is
asked whether its state is found never to come (`verilog.unreachable`): others that never come either may be taken for
reasons not to prove a mutant.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from toolchain.build_cache import cached, code_of
from verilog import gate_graph, gates, sat, tools, unreachable
from verilog.gate_graph import Kind
from verilog.gates import TO_GATES, Bit, Copy, GateNetlist
from verilog.mutants import FLAT, DrawnMutants, Mutant
from verilog.sat import Model, Solver, Undecided
from verilog.unreachable import Unreachable

__all__ = ["proven_equivalent"]

_GATES: Final = "gates.json"
_SCRIPT: Final = "mutants.ys"
_PROVEN: Final = "proven.json"
_MOST: Final = 20
"""Registers that differ: with more a mutant is left alone."""

_EXAMPLES: Final = 2
"""Whose state may come, for all that is found: behind these it is asked of none more."""


def proven_equivalent(drawn: DrawnMutants, mutants: Sequence[Mutant]) -> frozenset[int]:
    """The numbers of those MUTANTS that are proven to change nothing.

    Raises:
        ToolMissing, ToolFailed: the solver is not there, or Yosys ended with an error.
        BuildDirectoryError: the build output cannot be written.
    """

    def fill(directory: Path) -> None:
        # The tools see no other folder's files where that is a temporary one.
        (directory / FLAT).write_text((drawn.directory / FLAT).read_text())
        (directory / _SCRIPT).write_text("".join(f"{mutant.command}\n" for mutant in mutants))
        steps = f"read_rtlil {FLAT}; script {_SCRIPT}; {TO_GATES}; write_json {_GATES}"
        tools.run(tools.YOSYS, ["-q", "-p", steps], directory, lambda line: None)
        netlist = GateNetlist(json.loads((directory / _GATES).read_text())["modules"][drawn.module])
        for file in (FLAT, _GATES):
            (directory / file).unlink()
        proven = [mutant.number for mutant in mutants if _is_proven(netlist, mutant.number)]
        (directory / _PROVEN).write_text(json.dumps(proven))

    numbers = [mutant.number for mutant in mutants]
    code = code_of(gate_graph, gates, sat, unreachable, sys.modules[__name__])
    directory = cached("equivalence", {"netlist": drawn.netlist, "mutants": numbers, "code": code}, fill)
    return frozenset(json.loads((directory / _PROVEN).read_text()))


def _is_proven(netlist: GateNetlist, number: int) -> bool:
    with Solver(netlist.graph) as solver:
        try:
            return _Proof(netlist, solver, number).succeeds()
        except Undecided:
            return False


class _Proof:
    """That nothing is ever seen of a mutant.

    Of registers that may differ, `_says` has what others say whenever it does: those have the same in both copies.
    """

    def __init__(self, netlist: GateNetlist, solver: Solver, number: int) -> None:
        self._netlist = netlist
        self._unreachable = Unreachable(netlist)
        self._told = 0
        self._examples = _EXAMPLES
        self._solver = solver
        self._copy = Copy(netlist, number)
        self._says: dict[Bit, dict[Bit, bool]] = {}
        self._assumed: dict[tuple[Bit, Bit], int] = {}

    def succeeds(self) -> bool:
        """Whether it does.

        Raises:
            Undecided: the solver gave up.
        """
        while not self._is_seen():
            if self._grows():
                if len(self._says) > _MOST:
                    return False
            elif not self._is_weakened():
                return True
        return False

    def _is_seen(self) -> bool:
        return self._model(edge for edge in self._copy.seen() if edge) is not None

    def _grows(self) -> bool:
        """Whether registers may come to differ that did not; all that do in an example may from now on."""
        new = {bit: edge for bit, edge in self._differences() if bit not in self._says}
        model = self._model(new.values())
        if model is None:
            return False
        found = [bit for bit, edge in new.items() if model[edge]]
        graph = self._netlist.graph
        self._copy.set({bit: graph.free() for bit in found})
        for bit in found:
            self._says[bit] = {}
        for says in self._says.values():
            for bit in found:
                says.pop(bit, None)
        for bit in found:
            self._begin(bit, model)
        return True

    def _begin(self, differs: Bit, model: Model) -> None:
        """A register may differ: what do others say then, of those that decide what becomes of it?"""
        differ = self._solver.literal(self._copy.differ([differs]))
        for bit in self._beside(differs):
            says = model[self._netlist.edges[self._netlist.taken[bit]]]
            self._says[differs][bit] = says
            self._assumed[differs, bit] = assumed = self._solver.new()
            literal = self._solver.literal(self._netlist.edges[bit])
            self._solver.add([-assumed, -differ, literal if says else -literal])

    def _beside(self, differs: Bit) -> list[Bit]:
        """Registers on which depends what depends on one, of those that have the same in both copies."""
        netlist = self._netlist
        reached = {netlist.edges[bit] >> 1 for bit in netlist.reached(differs)}
        waiting = [*reached]
        while waiting:
            new = {edge >> 1 for edge in netlist.graph.inputs[waiting.pop()]} - reached
            reached |= new
            waiting += new
        kinds = netlist.graph.kinds
        free = {gate for gate in reached if kinds[gate] is Kind.FREE}
        return [bit for bit in netlist.taken if netlist.edges[bit] >> 1 in free and self._may_say(bit)]

    def _may_say(self, bit: Bit) -> bool:
        return bit not in self._says and bit not in self._netlist.constant

    def _is_weakened(self) -> bool:
        """Whether some of what is said of registers that differ does not stay true; the rest is left."""
        edges, taken = self._netlist.edges, self._netlist.taken
        differences = {bit: edge for bit, edge in self._differences() if bit in self._says}
        is_weakened = False
        for differs, difference in differences.items():
            while True:
                broken = [edges[taken[bit]] ^ says for bit, says in self._says[differs].items()]
                model = self._model(broken, difference)
                if model is None:
                    break
                is_weakened = True
                for bit in (one for one, edge in differences.items() if model[edge]):
                    says = self._says[bit]
                    self._says[bit] = {one: value for one, value in says.items() if model[edges[taken[one]]] == value}
        return is_weakened

    def _differences(self) -> list[tuple[Bit, int]]:
        """Registers that may differ after a cycle, each with the edge that says whether it does."""
        copy, taken = self._copy, self._netlist.taken
        found = ((bit, copy.differ([given])) for bit, given in taken.items() if given in copy.differs)
        return [(bit, edge) for bit, edge in found if edge]

    def _model(self, edges: Iterable[int], *also: int) -> Model | None:
        """Values for which one of some edges is true and all of ALSO are, in a state that may come for all we know."""
        assumed = [self._assumed[differs, bit] for differs, says in self._says.items() for bit in says]
        edges, literal = [*edges], self._solver.literal
        while True:
            self._tell_unreachable()
            model = self._solver.model([*assumed, *map(literal, also)], map(literal, edges))
            if model is None or not self._examples:
                return model
            causes = (model.cause([edge, *also]) for edge in edges if model[edge])
            if not self._unreachable.includes(min(causes, key=len)):
                self._examples -= 1
                return model

    def _tell_unreachable(self) -> None:
        """Tells the solver of states that never come, as far as they are found since."""
        for state in self._unreachable.found[self._told :]:
            self._solver.add(self._solver.literal(self._netlist.edges[bit] ^ value) for bit, value in state)
        self._told = len(self._unreachable.found)
