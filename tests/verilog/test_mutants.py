"""Mutants that Yosys draws."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rtl.fabric.ports import FabricPorts
from verilog.design import Design
from verilog.mutants import FLAT, Mutant, drawn_mutants, with_mutants

FABRIC = """\
module fabric(clk, a, b, y, trace_y);
  input clk;
  input [3:0] a;
  input [3:0] b;
  output [3:0] y;
  output [3:0] trace_y;
  fabric_N N (
    .clk(clk),
    .a(a),
    .b(b),
    .y(y),
    .trace_y(trace_y)
  );
endmodule

module fabric_N(clk, a, b, y, trace_y);
  input clk;
  input [3:0] a;
  input [3:0] b;
  output [3:0] y;
  output [3:0] trace_y;
  reg [3:0] told = 0;
  wire [3:0] sum;
  fabric_adder adder (
    .a(a),
    .b(b),
    .sum(sum)
  );
  always @(posedge clk) told <= a ^ b;
  assign trace_y = told;
  assign y = sum;
endmodule

module fabric_adder(a, b, sum);
  input [3:0] a;
  input [3:0] b;
  output [3:0] sum;
  assign sum = a + b;
endmodule
"""
DESIGN = Design(FabricPorts((), (), ()), FABRIC)

BENCH = """\
module bench;
  reg [3:0] a, b;
  wire [3:0] y;
  integer n;
  fabric fabric (.clk(1'b0), .a(a), .b(b), .y(y), .trace_y());
  initial begin
    for (n = 0; n < 256; n = n + 1) begin
      {a, b} = n; #1;
      $write("%x", y);
    end
    $finish;
  end
endmodule
"""


@pytest.fixture(scope="module")
def drawn():
    return drawn_mutants(DESIGN, "N", 12, 3)


def test_a_seed_draws_the_same_mutants_and_another_others(drawn):
    assert [mutant.number for mutant in drawn.mutants] == list(range(1, 13))
    assert drawn_mutants(DESIGN, "N", 12, 3).mutants == drawn.mutants
    assert drawn_mutants(DESIGN, "N", 12, 4).mutants != drawn.mutants


def test_what_only_the_trace_depends_on_is_left_out(drawn):
    """The register and the exclusive or that feed it."""
    assert {mutant.component for mutant in drawn.mutants} == {"adder"}
    assert {mutant.cell for mutant in drawn.mutants} == {"add"}


def test_the_plusarg_chooses_the_mutant(drawn, tmp_path: Path):
    """Without it none is broken; each of an adder's bits shows."""
    (tmp_path / "design.v").write_text(with_mutants(drawn, drawn.mutants).verilog + BENCH)
    subprocess.run(["iverilog", "-g2012", "-s", "bench", "-o", "bench", "design.v"], cwd=tmp_path, check=True)

    def said(*plusargs: str) -> str:
        run = subprocess.run(["vvp", "bench", *plusargs], cwd=tmp_path, check=True, capture_output=True, text=True)
        return run.stdout

    right = said()
    assert right == said("+mutant=0") == "".join(f"{(n // 16 + n) % 16:x}" for n in range(256))
    assert all(said(f"+mutant={mutant.number}") != right for mutant in drawn.mutants)


def with_body(body: str) -> Design:
    """A node whose output is of this."""
    start, _, rest = FABRIC.partition("  wire [3:0] sum;\n")
    return Design(FabricPorts((), (), ()), start + body + rest[rest.index("endmodule") :])


def test_what_is_written_twice_is_a_place_once():
    twice = with_body("  assign y = {2'b00, (a ^ b) == 4'd3, (a ^ b) == 4'd5};\n  assign trace_y = 0;\n")
    places = {
        re.search(r"-cell (\S+)", mutant.command)[1]
        for mutant in drawn_mutants(twice, "N", 60, 1).mutants
        if mutant.cell == "xor"
    }
    assert len(places) == 1


MEMORY = "  reg [3:0] memory [0:15];\n  always @(posedge clk) memory[a] <= b;\n  wire [3:0] found = memory[b];\n"
TABLE = (
    "  reg [3:0] found;\n  always @*\n    case (a)\n"
    + "".join(f"      {number}: found = {number * 7 % 16};\n" for number in range(16))
    + "    endcase\n"
)


@pytest.mark.parametrize("reads", [MEMORY, TABLE])
def test_clock_enable_and_resets_of_a_read_of_a_memory_are_no_places(reads):
    """They are in Yosys' netlist alone, also where it has made a memory of a table."""
    drawn = drawn_mutants(with_body(f"{reads}  assign y = found;\n  assign trace_y = 0;\n"), "N", 60, 1)
    (read,) = re.findall(r"^  cell \$memrd\S* (\S+)$", (drawn.directory / FLAT).read_text(), re.M)
    ports = {mutant.port.partition("[")[0] for mutant in drawn.mutants if f"-cell {read} " in mutant.command}
    assert ports == {"ADDR", "DATA"}
    assert len(drawn.mutants) < 60
    assert "module fabric_N(" in with_mutants(drawn, drawn.mutants).verilog


def test_a_mutant_is_called_by_its_place():
    mutant = Mutant(7, "inv", "port_2.packet_check", "procdff", "Q[0]", "was_on_credit[0]", "")
    assert str(mutant) == "inv port_2.packet_check.was_on_credit[0]"
    assert str(Mutant(8, "const1", "", "mux", "S[0]", "", "")) == "const1 mux S[0]"


def test_there_is_a_node_to_break():
    with pytest.raises(ValueError, match="M: no such node"):
        drawn_mutants(DESIGN, "M", 1, 1)
    with pytest.raises(ValueError, match=r"0 mutants: expected 1\.\.65535"):
        drawn_mutants(DESIGN, "N", 0, 1)
