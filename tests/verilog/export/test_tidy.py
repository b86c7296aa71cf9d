"""The written Verilog: registers where they are clocked."""

import re

from verilog.export.tidy import tidy


def test_a_register_computes_its_next_value_where_it_is_clocked(pair):
    assert "output reg [7:0] value = 8'h05" in pair
    assert (
        """
  always @(posedge clk) begin
    if (up) begin
      value <= value + step;
    end
    if (rst) begin
      value <= 8'h05;
    end
  end
"""
        in pair
    )


def test_a_memory_that_counts_up_is_filled_with_words_of_its_width(pair):
    assert re.search(r"for \((\w+) = 0; \1 < 16; \1 = \1 \+ 1\)\n +store\[\1\] = \1\[7:0\] \+ 8'd3;", pair)


def test_a_register_that_is_held_after_another_assignment_is_held():
    """Only a process's first line may say nothing."""
    yosys = """\
module top(clk, d, hold, q);
  reg [7:0] \\$1 ;
  input clk;
  wire clk;
  input [7:0] d;
  wire [7:0] d;
  input hold;
  wire hold;
  output [7:0] q;
  reg [7:0] q = 8'h00;
  always @(posedge clk)
    q <= \\$1 ;
  always @* begin
    \\$1  = d;
    if (hold) begin
      \\$1  = q;
    end
  end
endmodule
"""
    assert "q <= d;" in tidy(yosys)
    assert "if (hold) begin\n      q <= q;" in tidy(yosys)


def test_a_register_whose_name_begins_as_a_keyword_is_no_case():
    yosys = """\
module top(clk, d, default_port);
  input clk;
  wire clk;
  input [7:0] d;
  wire [7:0] d;
  output [7:0] default_port;
  reg [7:0] default_port = 8'h00;
  always @(posedge clk)
    default_port <= d;
endmodule
"""
    assert "default_port <= d;" in tidy(yosys)
