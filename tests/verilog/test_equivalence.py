"""Mutants that are proven to change nothing, beside all states and inputs tried one by one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rtl.fabric.ports import FabricPorts
from verilog.design import Design
from verilog.equivalence import proven_equivalent
from verilog.mutants import DrawnMutants, drawn_mutants, with_mutants

FABRIC = """\
module fabric(clk, load, a, b, d, y);
  input clk, load;
  input [1:0] a, b;
  input d;
  output [3:0] y;
  fabric_N N (
    .clk(clk),
    .load(load),
    .a(a),
    .b(b),
    .d(d),
    .y(y)
  );
endmodule

module fabric_N(clk, load, a, b, d, y);
  input clk, load;
  input [1:0] a, b;
  input d;
  output [3:0] y;
  reg [2:0] kept = 0;
  wire [1:0] both = a & b;
  wire [1:0] same = both & (a | kept[1:0]);
  wire [2:0] sum = {1'b0, both} + {2'b0, d & kept[0]};
  wire odd = kept[2] ^ d;
  reg [1:0] way;
  always @*
    case (a)
      2'd1: way = b;
      2'd2: way = ~b;
      2'd3: way = 2'd2;
      default: way = 2'd0;
    endcase
  always @(posedge clk)
    if (load) kept <= {odd, a}; else if (a != b || d) kept <= {odd, sum[1:0]}; else kept <= {odd, both};
  assign y = {kept[1:0] ^ way, both | same};
endmodule
"""
"""`same` adds nothing to `both`; where `d` is 0 the two that `kept` may become are alike; nobody
reads its third bit; and where a mutant has two ways be taken, it is the first."""

DESIGN = Design(FabricPorts((), (), ()), FABRIC)

BENCH = """\
module bench;
  reg clk = 0, load, d;
  reg [1:0] a, b;
  wire [3:0] y;
  integer n;
  fabric fabric (.clk(clk), .load(load), .a(a), .b(b), .d(d), .y(y));
  initial begin
    for (n = 0; n < 256; n = n + 1) begin
      load = 1; a = n[7:6]; b = 0; d = 0; #1;
      clk = 1; #1; clk = 0; #1;
      {load, a, b, d} = n[5:0]; #1;
      $write("%x", y);
      clk = 1; #1; clk = 0; #1;
      $write("%x", y);
    end
    $finish;
  end
endmodule
"""
"""From each state each input."""


@pytest.fixture(scope="module")
def drawn() -> DrawnMutants:
    return drawn_mutants(DESIGN, "N", 60, 1)


def seen(drawn: DrawnMutants, folder: Path) -> dict[int, str]:
    """By number of a mutant all that it does; 0 is none of them."""
    source, program = folder / "bench.v", folder / "bench"
    source.write_text(with_mutants(drawn, drawn.mutants).verilog + BENCH)
    subprocess.run(["iverilog", "-o", program, source], check=True)
    numbers = (0, *(mutant.number for mutant in drawn.mutants))
    return {
        number: subprocess.run(
            ["vvp", program, f"+mutant={number}"], check=True, capture_output=True, text=True
        ).stdout.split()[0]
        for number in numbers
    }


@pytest.mark.slow
def test_what_is_proven_is_true_of_every_state_and_input_and_nothing_else_is_left_out(drawn, tmp_path):
    proven = proven_equivalent(drawn, drawn.mutants)
    by_number = seen(drawn, tmp_path)
    alike = {number for number, does in by_number.items() if number and does == by_number[0]}
    clocks = {mutant.number for mutant in drawn.mutants if mutant.port.startswith("CLK")}
    assert proven == alike - clocks
    assert 2 < len(proven) < 30
