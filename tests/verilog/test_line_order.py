"""A module is the same text in every design."""

import re

from verilog.emit import to_verilog
from verilog.line_order import in_order

from .components import Chain, Port

ORDERED = """\
module m(a, b, y);
  wire \\$auto$opt$Not$3 ;
  wire \\$auto$opt$Not$4 ;
  assign \\$auto$opt$Not$3  = ~ a;
  assign \\$auto$opt$Not$4  = ~ b;
  assign y = \\$auto$opt$Not$3  | \\$auto$opt$Not$4 ;
"""
SHUFFLED = """\
module m(a, b, y);
  wire \\$auto$opt$Not$4 ;
  wire \\$auto$opt$Not$3 ;
  assign y = \\$auto$opt$Not$4  | \\$auto$opt$Not$3 ;
  assign \\$auto$opt$Not$3  = ~ b;
  assign \\$auto$opt$Not$4  = ~ a;
"""


def test_assignments_are_sorted_and_nets_numbered_by_what_is_assigned_to_them():
    assert in_order(ORDERED) == ORDERED
    assert in_order(SHUFFLED) == ORDERED


def test_a_module_is_the_same_text_whatever_is_around_it():
    def first_port(text):
        name = re.search(r"^  (switch_\w+) port_0 \(", text, re.M)[1]
        return re.search(rf"^module {name}(\(.*?^endmodule)", text, re.M | re.S)[1]

    alone = first_port(to_verilog(Chain([Port()]), "switch"))
    assert first_port(to_verilog(Chain([Port(), Port(step=2), Port(init=3)]), "switch")) == alone
