"""Functions of three bits, built of gates, beside the same by Python: as the graph has them, and as the solver does."""

from __future__ import annotations

import random
from itertools import product

import pytest

from verilog.gate_graph import FALSE, TRUE, Graph
from verilog.sat import Solver, Undecided

STATES = [*product((False, True), repeat=3)]


def functions(graph: Graph, rng: random.Random, count: int) -> dict[int, tuple[bool, ...]]:
    """Edges of drawn functions of three free bits, the first three, with what they are in each state of these."""
    bits = [graph.free() for _ in range(3)]
    known = {bit: tuple(state[at] for state in STATES) for at, bit in enumerate(bits)}
    known |= {FALSE: (False,) * 8, TRUE: (True,) * 8}
    for _ in range(count):
        edges = [rng.choice([*known]) ^ rng.randrange(2) for _ in range(3)]
        one, other, select = (known[edge] if edge in known else inverted(known[edge ^ 1]) for edge in edges)
        triples = [*zip(one, other, select, strict=True)]
        made, values = rng.choice(
            [
                (graph.both(*edges[:2]), tuple(a and b for a, b, _ in triples)),
                (graph.either(*edges[:2]), tuple(a or b for a, b, _ in triples)),
                (graph.differ(*edges[:2]), tuple(a != b for a, b, _ in triples)),
                (graph.choice(*edges), tuple(b if s else a for a, b, s in triples)),
            ]
        )
        assert known.get(made, values) == values, "one edge is one function"
        known[made] = values
    return known


def inverted(values: tuple[bool, ...]) -> tuple[bool, ...]:
    return tuple(not value for value in values)


def test_the_solver_finds_values_for_which_a_function_is_true_and_none_where_there_are_none():
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    graph = Graph()
    known = functions(graph, random.Random(seed), 200)
    bits = [*known][:3]
    with Solver(graph) as solver:
        for edge, values in known.items():
            for at, state in enumerate(STATES):
                assumed = [solver.literal(bit ^ (not value)) for bit, value in zip(bits, state, strict=True)]
                model = solver.model(assumed, [solver.literal(edge)])
                assert (model is not None) == values[at]
                if model is not None:
                    assert [model[bit] for bit in bits] == [*state]
                    assert all(model[other] == its[at] for other, its in known.items())
            found = solver.model([solver.literal(edge)])
            assert (found is not None) == any(values)


def test_what_causes_a_value_is_enough_for_it_whatever_other_bits_are():
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    graph = Graph()
    known = functions(graph, random.Random(seed), 200)
    places = {bit >> 1: at for at, bit in enumerate([*known][:3])}
    sizes = set()
    with Solver(graph) as solver:
        for edge, values in known.items():
            model = solver.model([solver.literal(edge)])
            if model is not None:
                cause = model.cause([edge])
                alike = [at for at, s in enumerate(STATES) if all(s[places[one]] == its for one, its in cause.items())]
                assert alike
                assert all(values[at] for at in alike)
                sizes.add(len(cause))
    assert {1, 2} <= sizes


def test_a_search_that_takes_too_long_is_given_up():
    graph = Graph()
    # Nine packets in eight places, none with another.
    places = [[graph.free() for _ in range(8)] for _ in range(9)]
    with Solver(graph, conflicts=10) as solver:
        for packet in places:
            solver.add(map(solver.literal, packet))
        for place in zip(*places, strict=True):
            for at, one in enumerate(place):
                for other in place[:at]:
                    solver.add([-solver.literal(one), -solver.literal(other)])
        with pytest.raises(Undecided):
            solver.model([solver.literal(TRUE)])
