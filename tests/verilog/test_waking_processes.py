"""Combinational processes run at time 0."""

from verilog.emit import with_waking_processes

MODULE = """\
module top(q);
  reg \\$auto$verilog_backend.cc:2083:dump_module$1  = 0;
  output [7:0] q;
  reg [7:0] q;
  always @* begin
    if (\\$auto$verilog_backend.cc:2083:dump_module$1 ) begin end
    q = 8'h01;
  end
  always @*
    r = 8'h02;
"""


def test_all_processes_read_one_register_that_changes_after_time_0():
    text = with_waking_processes(MODULE)
    assert "  reg _wake = 0;\n  initial _wake <= 1;\n" in text
    assert text.count("  always @* begin\n    if (_wake ) begin end\n") == 2
    assert "verilog_backend" not in text


def test_a_module_without_such_processes_is_left_as_it_is():
    module = "module top(a, q);\n  assign q = a;\n"
    assert with_waking_processes(module) == module
