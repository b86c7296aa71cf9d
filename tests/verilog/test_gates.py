"""Registers that never change, of a small module."""

from __future__ import annotations

import json
from pathlib import Path

from verilog import tools
from verilog.gates import TO_GATES, GateNetlist

MODULE = """\
module node(clk, rst, a, y);
  input clk, rst;
  input [3:0] a;
  output [9:0] y;
  reg one = 1, none = 0, follows = 0, set = 0, free = 0;
  reg [1:0] ring = 2'b10;
  reg [3:0] wide = 4'b0100;
  reg unknown;
  always @(posedge clk) begin
    one <= one | a[0];
    none <= follows & a[1];
    follows <= none;
    set <= a[2] & set;
    free <= a[3];
    ring <= {ring[0], ring[1]};
    wide <= {wide[3] & a[0], wide[2], wide[1:0] + {1'b0, a[1]}};
    unknown <= unknown;
    if (rst) set <= 1;
  end
  assign y = {unknown, wide, ring, free, set ^ follows, one ^ none};
endmodule
"""


def test_what_never_changes_whatever_comes_is_found_with_its_value(tmp_path: Path):
    (tmp_path / "node.v").write_text(MODULE)
    steps = f"read_verilog node.v; proc; write_json word.json; {TO_GATES}; write_json gates.json"
    tools.run(tools.YOSYS, ["-q", "-p", steps], tmp_path, lambda line: None)
    word, gates = (json.loads((tmp_path / file).read_text())["modules"]["node"] for file in ("word.json", "gates.json"))
    constant = GateNetlist(gates).constant

    def of(name: str) -> str:
        assert len(word["netnames"][name]["bits"]) == len(gates["netnames"][name]["bits"])
        return "".join(str(constant.get(bit, "x")) for bit in reversed(gates["netnames"][name]["bits"]))

    assert [of(name) for name in ("one", "none", "follows")] == ["1", "0", "0"]
    assert of("wide") == "01xx", "an adder's bits change"
    assert of("set") == "x", "a reset gives it another value than the first"
    assert of("ring") == of("free") * 2 == "xx"
    assert of("unknown") == "x", "nobody knows what it begins with"
