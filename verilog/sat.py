"""A SAT solver for functions of a graph of gates, which learns of these what it is asked about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from verilog.gate_graph import Graph, Kind
from verilog.tools import ToolMissing

__all__ = ["Model", "Solver", "Undecided"]

_CONFLICTS: Final = 20_000
"""So many take seconds, and are the same on any machine."""


class Undecided(Exception):
    """The search was given up."""


class Model:
    """Values of free bits for which what was asked for is true."""

    def __init__(self, graph: Graph, values: dict[int, bool]) -> None:
        self._graph = graph
        self._values = values

    def __getitem__(self, edge: int) -> bool:
        """The value of an edge; free bits that nothing was asked of are 0."""
        waiting = [edge >> 1]
        while waiting:
            gate = waiting[-1]
            inputs = self._graph.inputs[gate]
            left = [one >> 1 for one in inputs if one >> 1 not in self._values]
            if gate in self._values or not left:
                waiting.pop()
                if gate not in self._values:
                    self._values[gate] = self._value(gate)
            else:
                waiting += left
        return self._values[edge >> 1] != bool(edge & 1)

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

    def model(self, one_of: Iterable[int], assumed: Iterable[int]) -> Model | None:
        """Values for which one of some literals is true, as are all that are ASSUMED; None if there are none.

        Raises:
            Undecided: it takes too long.
        """
        asked = self.new()
        self.add([-asked, *one_of])
        self._solver.conf_budget(self._conflicts)
        found = self._solver.solve_limited(assumptions=[*assumed, asked])
        if found is None:
            raise Undecided
        values: list[int] = self._solver.get_model() if found else []
        self.add([-asked])
        if not found:
            return None
        known = {gate: values[at - 1] > 0 for gate, at in self._literals.items() if at <= len(values)}
        return Model(self._graph, known)

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
