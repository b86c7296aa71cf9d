"""A SAT solver for functions of a graph of gates, which learns of these what it is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from verilog.gate_graph import Graph, Kind
from verilog.tools import ToolMissing

__all__ = ["Model", "Solver", "Undecided"]

_CONFLICTS: Final = 20_000
"""So many take seconds, and are the same on any machine."""


class Undecided(Exception):
    """The search was given up."""


class Model:
    """Values of free bits for which what was asked for is true.

    Args:
        graph: whose bits they are.
        literals: of gates, what stands for them.
        values: of literals, from the first; a positive number where it is true.
    """

    def __init__(self, graph: Graph, literals: Mapping[int, int], values: Sequence[int]) -> None:
        self._graph = graph
        self._literals = literals
        self._given = values
        self._values: dict[int, bool] = {}

    def __getitem__(self, edge: int) -> bool:
        """The value of an edge; free bits that nothing was asked of are 0."""
        waiting = [edge >> 1]
        while waiting:
            gate = waiting[-1]
            at = self._literals.get(gate, 0)
            if gate not in self._values and 0 < at <= len(self._given):
                self._values[gate] = self._given[at - 1] > 0
            left = [one >> 1 for one in self._graph.inputs[gate] if one >> 1 not in self._values]
            if gate in self._values or not left:
                waiting.pop()
                if gate not in self._values:
                    self._values[gate] = self._value(gate)
            else:
                waiting += left
        return self._values[edge >> 1] != bool(edge & 1)

    def cause(self, edges: Iterable[int]) -> dict[int, bool]:
        """Free bits, by gate, whose values in this model are enough for the values that EDGES have in it."""
        gates = dict.fromkeys(edge >> 1 for edge in edges)
        needs = self._needs(gates)
        waiting = [*gates]
        while waiting:
            new = [one for one in needs[waiting.pop()] if one not in gates]
            gates.update(dict.fromkeys(new))
            waiting += new
        return {gate: self[2 * gate] for gate in gates if gate and self._graph.kinds[gate] is Kind.FREE}

    def _needs(self, gates: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """Of gates, and those that they depend on, the inputs that are enough for what they have, by few free bits."""
        needs: dict[int, tuple[int, ...]] = {}
        costs: dict[int, int] = {}
        waiting = [*gates]
        while waiting:
            gate = waiting.pop()
            left = [one >> 1 for one in self._graph.inputs[gate] if one >> 1 not in costs]
            if left:
                waiting += [gate, *left]
            elif gate not in costs:
                ways = [(sum(costs[one] for one in way), way) for way in self._enough(gate)]
                costs[gate], needs[gate] = min(ways, default=(int(gate > 0), ()))
        return needs

    def _enough(self, gate: int) -> list[tuple[int, ...]]:
        """Inputs of a gate, in one way or another, whose values are enough for what it has."""
        edges = self._graph.inputs[gate]
        gates = tuple(edge >> 1 for edge in edges)
        match self._graph.kinds[gate]:
            case Kind.AND if not self[2 * gate]:
                return [(one,) for one, edge in zip(gates, edges, strict=True) if not self[edge]]
            case Kind.AND | Kind.DIFFER:
                return [gates]
            case Kind.CHOICE:
                first, second, select = gates
                chosen = (second if self[edges[2]] else first, select)
                return [chosen, (first, second)] if self[edges[0]] == self[edges[1]] else [chosen]
            case _:
                return []

    def _value(self, gate: int) -> bool:
        values = [self._values[one >> 1] != bool(one & 1) for one in self._graph.inputs[gate]]
        match self._graph.kinds[gate]:
            case Kind.AND:
                return values[0] and values[1]
            case Kind.DIFFER:
                return values[0] != values[1]
            case Kind.CHOICE:
                return values[1] if values[2] else values[0]
            case _:
                return False


class Solver:
    """Of functions of a graph.

    Args:
        graph: it may grow.
        conflicts: wrong guesses behind which the search for an answer is given up.

    Raises:
        ToolMissing: python-sat is not installed.
    """

    def __init__(self, graph: Graph, conflicts: int = _CONFLICTS) -> None:
        # Here, as what needs no solver has to work without the extra that it comes with.
        try:
            from pysat.solvers import Glucose4
        except ModuleNotFoundError as error:
            raise ToolMissing(
                "mutate cannot run: python-sat is missing, it comes with: pip install 'ironband[synth]'"
            ) from error

        self._graph = graph
        self._conflicts = conflicts
        self._solver = Glucose4()
        self._literals = {0: 1}
        self._last = 1
        self._solver.add_clause([-1])

    def __enter__(self) -> Solver:
        return self

    def __exit__(self, *_: object) -> None:
        self._solver.delete()

    def literal(self, edge: int) -> int:
        """What stands for an edge in clauses."""
        waiting = [edge >> 1]
        while waiting:
            gate = waiting[-1]
            left = [one >> 1 for one in self._graph.inputs[gate] if one >> 1 not in self._literals]
            if gate in self._literals or not left:
                waiting.pop()
                if gate not in self._literals:
                    self._tell(gate)
            else:
                waiting += left
        return self._of(edge)

    def new(self) -> int:
        """A literal that stands for nothing yet."""
        self._last += 1
        return self._last

    def add(self, clause: Iterable[int]) -> None:
        """One of these is true."""
        self._solver.add_clause(list(clause))

    def model(self, assumed: Iterable[int], one_of: Iterable[int] | None = None) -> Model | None:
        """Values for which all literals are true that are ASSUMED, and one of some more; None if there are none.

        Raises:
            Undecided: it takes too long.
        """
        assumed = [*assumed]
        if one_of is not None:
            asked = self.new()
            self.add([-asked, *one_of])
            assumed.append(asked)
        self._solver.conf_budget(self._conflicts)
        found = self._solver.solve_limited(assumptions=assumed)
        if found is None:
            raise Undecided
        values: list[int] = self._solver.get_model() if found else []
        if one_of is not None:
            self.add([-asked])
        return Model(self._graph, self._literals, values) if found else None

    def _of(self, edge: int) -> int:
        literal = self._literals[edge >> 1]
        return -literal if edge & 1 else literal

    def _tell(self, gate: int) -> None:
        """Clauses that say what a gate is of its inputs."""
        self._literals[gate] = gives = self.new()
        inputs = [self._of(edge) for edge in self._graph.inputs[gate]]
        clauses: list[list[int]] = []
        match self._graph.kinds[gate]:
            case Kind.AND:
                one, other = inputs
                clauses = [[-gives, one], [-gives, other], [gives, -one, -other]]
            case Kind.DIFFER:
                one, other = inputs
                clauses = [[-gives, one, other], [-gives, -one, -other], [gives, -one, other], [gives, one, -other]]
            case Kind.CHOICE:
                first, second, select = inputs
                clauses = [[-select, -second, gives], [-select, second, -gives]]
                clauses += [[select, -first, gives], [select, first, -gives]]
                clauses += [[-first, -second, gives], [first, second, -gives]]
            case _:
                pass
        for clause in clauses:
            self.add(clause)
