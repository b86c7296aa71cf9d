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
  reg never = 0, nor_this = 0;
  wire [1:0] both = a & b;
  wire [1:0] same = both & (a | kept[1:0]);
  wire [2:0] sum = {1'b0, both} + {2'b0, d & kept[0] & ~never};
  wire odd = kept[2] ^ d;
  reg [1:0] way;
  always @*
    case (a)
      2'd1: way = b;
      2'd2: way = ~b;
      2'd3: way = 2'd2;
      default: way = 2'd0;
    endcase
  always @(posedge clk) begin
    never <= nor_this & a[0];
    nor_this <= never | nor_this & d;
  end
  always @(posedge clk)
    if (load) kept <= {odd, a}; else if (a != b || d) kept <= {odd, sum[1:0]}; else kept <= {odd, both};
  assign y = {kept[1:0] ^ way, both | same};
endmodule
"""
"""`same` adds nothing to `both`; where `d` is 0 the two that `kept` may become are alike; nobody
reads its third bit; one register never changes; and where a mutant has two ways be taken, it is the first."""

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
    return drawn_mutants(DESIGN, "N", 80, 1)


def seen(drawn: DrawnMutants, folder: Path, bench: str) -> dict[int, str]:
    """By number of a mutant all that it does; 0 is none of them."""
    source, program = folder / "bench.v", folder / "bench"
    source.write_text(with_mutants(drawn, drawn.mutants).verilog + bench)
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
    by_number = seen(drawn, tmp_path, BENCH)
    alike = {number for number, does in by_number.items() if number and does == by_number[0]}
    clocks = {mutant.number for mutant in drawn.mutants if mutant.port.startswith("CLK")}
    assert proven == alike - clocks
    assert 2 < len(proven) < 30


FABRIC_OF_3 = """\
module fabric(clk, rst, load, a, y);
  input clk, rst, load, a;
  output [2:0] y;
  fabric_N N (
    .clk(clk),
    .rst(rst),
    .load(load),
    .a(a),
    .y(y)
  );
endmodule

"""

KEPT = Design(
    FabricPorts((), (), ()),
    FABRIC_OF_3
    + """\
module fabric_N(clk, rst, load, a, y);
  input clk, rst, load, a;
  output [2:0] y;
  reg valid = 0, data = 0, last = 0;
  reg memory [0:1];
  initial memory[0] = 0;
  initial memory[1] = 0;
  always @(posedge clk) begin
    valid <= load;
    if (load) data <= a;
    if (valid) memory[data] <= a;
    last <= memory[a];
    if (rst) begin
      valid <= 0;
      data <= 0;
    end
  end
  assign y = {last, valid & data, valid};
endmodule
""",
)
"""Nobody looks at `data` where it is not `valid`, nor does the memory."""

KEPT_BENCH = """\
module bench;
  reg clk = 0, rst, load, a;
  wire [2:0] y;
  integer n, at;
  fabric fabric (.clk(clk), .rst(rst), .load(load), .a(a), .y(y));
  initial begin
    {rst, load, a} = 4; #1; clk = 1; #1; clk = 0; #1;
    for (n = 0; n < 4096; n = n + 1)
      for (at = 0; at < 4; at = at + 1) begin
        {rst, load, a} = n >> 3 * at; #1;
        $write("%x", y);
        clk = 1; #1; clk = 0; #1;
      end
    $finish;
  end
endmodule
"""


@pytest.mark.slow
def test_what_is_kept_while_nobody_looks_at_it_is_proven_not_to_matter(tmp_path):
    """And nothing else is, of what is seen in some of 4,096 sequences of inputs."""
    drawn = drawn_mutants(KEPT, "N", 60, 1)
    proven = proven_equivalent(drawn, drawn.mutants)
    by_number = seen(drawn, tmp_path, KEPT_BENCH)
    assert proven == {number for number, does in by_number.items() if number and does == by_number[0]}
    places = {str(mutant) for mutant in drawn.mutants if mutant.number in proven}
    assert {"inv procmux A[0]", "const1 procmux B[0]", "const1 procmux S[0]"} <= places


TURNS = Design(
    FabricPorts((), (), ()),
    FABRIC_OF_3
    + """\
module fabric_N(clk, rst, load, a, y);
  input clk, rst, load, a;
  output [2:0] y;
  reg [1:0] turn = 0;
  reg [2:0] place = 1;
  always @(posedge clk) begin
    if (load) begin
      turn <= turn == 2 ? 0 : turn + 1;
      place <= {place[1:0], place[2]};
    end
    if (rst) begin
      turn <= 0;
      place <= 1;
    end
  end
  assign y = {place[0] & place[1] | a & place[2], turn == 3 ? a : turn[0], turn[1]};
endmodule
""",
)
"""The turns are three, and of the places there is one: what is given otherwise does not matter."""


@pytest.mark.slow
def test_what_is_given_in_states_that_never_come_is_proven_not_to_matter(tmp_path):
    """And nothing else is, of what is seen in some of 4,096 sequences of inputs, in which all others do."""
    drawn = drawn_mutants(TURNS, "N", 80, 1)
    proven = proven_equivalent(drawn, drawn.mutants)
    by_number = seen(drawn, tmp_path, KEPT_BENCH)
    assert proven == {number for number, does in by_number.items() if number and does == by_number[0]}
    places = {str(mutant) for mutant in drawn.mutants if mutant.number in proven}
    assert {"const0 eq A[0]", "const1 eq B[1]", "const0 add A[1]", "const0 ternary B[1]"} <= places
