"""Nets have names in waves that can be typed, and what has no name is hidden."""

from verilog.plain_names import with_plain_names

MODULE = """\
module top(clk, \\port$3 );
  input clk;
  input \\port$3 ;
  wire busy_1;
  wire \\busy$1 ;
  wire [3:0] \\busy$2 ;
  wire \\busy$2.last ;
  wire \\$signal$7 ;
  wire \\$signal$7.hop ;
  wire \\header.dlid ;
  assign \\busy$1  = \\port$3  & \\$signal$7 ;
  part \\part$4 (
    .\\port$3 (\\busy$2.last ),
    .clk(clk)
  );
"""


def test_numbers_stay_in_names_and_dollars_do_not():
    named = with_plain_names(MODULE)
    assert "  wire busy_1;\n  wire \\busy_1_ ;\n  wire [3:0] \\busy_2 ;\n  wire \\busy_2.last ;\n" in named
    assert "part \\part_4 (" in named
    assert "wire \\header.dlid ;" in named


def test_what_has_no_name_begins_with_an_underscore():
    assert "  wire \\_signal_7 ;\n  wire \\_signal_7_hop ;\n" in with_plain_names(MODULE)


def test_ports_keep_their_names_outside_and_inside():
    named = with_plain_names(MODULE)
    assert "    .\\port$3 (\\busy_2.last ),\n" in named
    assert "  input \\port$3 ;\n" in named
    assert "  assign \\busy_1_  = \\port$3  & \\_signal_7 ;\n" in named
