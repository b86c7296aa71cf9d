"""States that never come, of a small module, beside those that a walk through all of them finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Final

import pytest

from verilog import tools
from verilog.gates import TO_GATES, GateNetlist
from verilog.unreachable import Unreachable

MODULE: Final = """\
module node(clk, go, halt, y);
  input clk, go, halt;
  output [7:0] y;
  reg [2:0] step = 0;
  reg [1:0] ring = 1;
  reg went = 0, before = 0, late = 1;
  always @(posedge clk) begin
    if (go) step <= step == 5 ? 0 : step + 1;
    if (step == 4) ring <= {ring[0], ring[1]};
    went <= go & ~halt;
    before <= halt;
    late <= step != 3;
  end
  assign y = {late, before, went, ring, step};
endmodule
"""
"""Six steps; a ring of which one is 1; what went was not halted; where it is late, the step before was not 3."""

State = tuple[int, ...]


def come() -> set[State]:
    """Bits of all states that come, as `y` has them, from the lowest."""
    reached = {(0, 1, 0, 0, 1)}
    waiting = [*reached]
    while waiting:
        step, ring, *_ = waiting.pop()
        for go, halt in product((0, 1), repeat=2):
            after = (step + 1) % 6 if go else step
            turned = ring ^ 3 if step == 4 else ring
            state = (after, turned, go & ~halt, halt, int(step != 3))
            if state not in reached:
                reached.add(state)
                waiting.append(state)
    widths = (3, 2, 1, 1, 1)
    return {tuple(v >> at & 1 for v, width in zip(s, widths, strict=True) for at in range(width)) for s in reached}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> GateNetlist:
    folder: Path = tmp_path_factory.mktemp("node")
    (folder / "node.v").write_text(MODULE)
    steps = f"read_verilog node.v; proc; flatten; {TO_GATES}; write_json gates.json"
    tools.run(tools.YOSYS, ["-q", "-p", steps], folder, lambda line: None)
    return GateNetlist(json.loads((folder / "gates.json").read_text())["modules"]["node"])


def parts(most: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Places in `y` and values, of up to so many bits."""
    for size in range(1, most + 1):
        for places in combinations(range(8), size):
            for values in product((0, 1), repeat=size):
                yield tuple(zip(places, values, strict=True))


def never(node: GateNetlist, part: tuple[tuple[int, int], ...]) -> bool:
    gates = [node.edges[bit] for bit in node.outputs]
    assert all(not edge & 1 for edge in gates), "registers"
    return Unreachable(node).includes({gates[place] >> 1: bool(value) for place, value in part})


def test_of_each_few_registers_what_never_comes_is_found_and_nothing_that_does(node):
    states = come()
    for part in parts(2):
        comes = any(all(state[place] == value for place, value in part) for state in states)
        assert never(node, part) is not comes, part


def test_of_whole_states_too(node):
    states = come()
    for state in product((0, 1), repeat=8):
        assert never(node, tuple(enumerate(state))) is (state not in states), state
