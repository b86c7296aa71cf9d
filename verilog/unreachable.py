"""States of a node that never come: values that a few registers never have together.

Which values a few registers come to, whatever the inputs and all other registers are, is found one by one, beginning
with those that they have first. What is not among them never comes. Where it is among them, it is asked of the state
that led to it whether that ever comes.
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
"""Of the solver, for one state and depth."""

_MOST_REGISTERS: Final = {1: 200, 2: 80, 3: 12}
"""Of a state of which each one is looked at, each two together, or three; ..."""

_FEW: Final = 10
"""... all are, if there are no more."""

_DEEPEST: Final = 2
_CAUSES: Final = 6
"""That are looked into, of a state's parts, those of the fewest registers, ..."""

_TIMES: Final = 2
_MOST_OF_CAUSE: Final = 15
"""... so often, and no more than so many."""


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
        state = _state(self._register, values)
        return any(self._never_comes(state, depth) for depth in range(_DEEPEST + 1))

    def _never_comes(self, state: State, depth: int) -> bool:
        with Solver(self._netlist.graph, _CONFLICTS) as solver:
            try:
                return _Search(self._netlist, self._register, self.found, solver).never_comes(state, depth)
            except Undecided:
                return False


class _Search:
    """For why one state never comes; what is FOUND before helps, and more is added."""

    def __init__(self, netlist: GateNetlist, register: Mapping[int, Bit], found: list[State], solver: Solver) -> None:
        self._netlist = netlist
        self._register = register
        self._found = found
        self._solver = solver
        self._left = _QUESTIONS
        for state in found:
            solver.add(self._breaks(state))

    def never_comes(self, state: State, depth: int) -> bool:
        """Whether a state is found never to come, with what leads to it looked into as deep.

        Raises:
            Undecided: too much was asked, or too hard.
        """
        for size, most in _MOST_REGISTERS.items():
            if len(state) > most:
                return False
            causes: list[tuple[State, State]] = []
            for part in combinations(state, size):
                if not self._may_begin(part):
                    cause = self._cause(part)
                    if cause is None:
                        return True
                    causes.append((cause, part))
            causes.sort(key=lambda pair: len(pair[0]))
            if depth and any(self._never_causes(*pair, depth) for pair in causes[:_CAUSES]):
                return True
        return len(state) <= _FEW and not self._may_begin(state) and self._cause(state) is None

    def _never_causes(self, cause: State | None, part: State, depth: int) -> bool:
        """Whether no state that leads to PART comes, as CAUSE does."""
        for _ in range(_TIMES):
            if cause is None:
                return True
            if len(cause) > _MOST_OF_CAUSE or not self.never_comes(cause, depth - 1):
                return False
            cause = self._cause(part)
        return cause is None

    def _may_begin(self, state: State) -> bool:
        initial = self._netlist.initial
        return all(initial.get(bit, value) == value for bit, value in state)

    def _cause(self, state: State) -> State | None:
        """Another that leads to it; None if it is found never to come."""
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
                    return _state(self._register, model.cause(after))
                comes(values_then)
        self._is_found(state, come)
        return None

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


def _state(register: Mapping[int, Bit], values: Mapping[int, bool]) -> State:
    """What registers have, of values of free bits."""
    return tuple((register[gate], value) for gate, value in values.items() if gate in register)
