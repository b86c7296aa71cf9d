"""States of a node that never come: values that a few registers never have together.

Which values a few registers come to, whatever the inputs and all other registers are, is found one by one, beginning
with those that they have first. What is not among them never comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Final, TypeAlias

from verilog.gates import Bit, GateNetlist
from verilog.sat import Model, Solver, Undecided

__all__ = ["Unreachable"]

State: TypeAlias = tuple[tuple[Bit, bool], ...]
"""Registers, and what each has; any others may have any value."""

_CONFLICTS: Final = 1_000
_QUESTIONS: Final = 2_000
"""Of the solver, for one state."""

_MOST_REGISTERS: Final = {1: 200, 2: 80, 3: 12}
"""Of a state of which each one is looked at, each two together, or three; ..."""

_FEW: Final = 10
"""... all are, if there are no more."""


class Unreachable:
    """What is found of a netlist.

    Attributes:
        found: states that never come.
    """

    def __init__(self, netlist: GateNetlist) -> None:
        self.found: list[State] = []
        self._netlist = netlist
        self._register = {netlist.edges[bit] >> 1: bit for bit in netlist.taken if bit not in netlist.constant}

    def includes(self, values: Mapping[int, bool]) -> bool:
        """Whether some of these values of free bits, by gate, are found never to come together."""
        state = tuple((self._register[gate], value) for gate, value in values.items() if gate in self._register)
        with Solver(self._netlist.graph, _CONFLICTS) as solver:
            try:
                return _Search(self._netlist, self.found, solver).finds(state)
            except Undecided:
                return False


class _Search:
    """For why a state never comes; what is FOUND before helps, and more is added."""

    def __init__(self, netlist: GateNetlist, found: list[State], solver: Solver) -> None:
        self._netlist = netlist
        self._found = found
        self._solver = solver
        self._left = _QUESTIONS
        for state in found:
            solver.add(self._breaks(state))

    def finds(self, state: State) -> bool:
        """Whether part of a state never comes, of few registers.

        Raises:
            Undecided: too much was asked, or too hard.
        """
        sizes = [size for size, most in _MOST_REGISTERS.items() if size < len(state) <= most]
        parts = (part for size in sizes for part in combinations(state, size))
        return any(map(self._is_never, parts)) or (len(state) <= _FEW and self._is_never(state))

    def _is_never(self, state: State) -> bool:
        return not self._may_begin(state) and not self._comes(state)

    def _may_begin(self, state: State) -> bool:
        initial = self._netlist.initial
        return all(initial.get(bit, value) == value for bit, value in state)

    def _comes(self, state: State) -> bool:
        """Whether it may, for all that its own registers tell; if not, it is found."""
        edges, taken, initial = self._netlist.edges, self._netlist.taken, self._netlist.initial
        now = [edges[bit] for bit, _ in state]
        after = [edges[taken[bit]] for bit, _ in state]
        wanted = tuple(value for _, value in state)
        is_new = self._solver.new()
        come: list[tuple[bool, ...]] = []

        def comes(values: tuple[bool, ...]) -> None:
            come.append(values)
            self._solver.add([-is_new, *self._literals(after, (not value for value in values))])

        for values in product(*((bool(initial[bit]),) if bit in initial else (False, True) for bit, _ in state)):
            comes(values)
        for values in come:  # It grows.
            while model := self._asked([is_new, *self._literals(now, values)]):
                values_then = tuple(model[edge] for edge in after)
                if values_then == wanted:
                    return True
                comes(values_then)
        self._is_found(state, come)
        return False

    def _is_found(self, state: State, come: Sequence[tuple[bool, ...]]) -> None:
        """Adds as little of a state as none of the values have that come."""
        places = list(range(len(state)))
        for place in range(len(state)):
            fewer = [one for one in places if one != place]
            if not any(all(values[one] == state[one][1] for one in fewer) for values in come):
                places = fewer
        found = tuple(state[place] for place in places)
        self._found.append(found)
        self._solver.add(self._breaks(found))

    def _asked(self, assumed: Iterable[int]) -> Model | None:
        if self._left == 0:
            raise Undecided
        self._left -= 1
        return self._solver.model(assumed)

    def _breaks(self, state: State) -> list[int]:
        return self._literals((self._netlist.edges[bit] for bit, _ in state), (not value for _, value in state))

    def _literals(self, edges: Iterable[int], values: Iterable[bool]) -> list[int]:
        return [self._solver.literal(edge ^ (not value)) for edge, value in zip(edges, values, strict=True)]
