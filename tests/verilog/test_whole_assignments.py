"""Nets driven in parts are driven whole."""

import re

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verilog.emit import to_verilog


def test_nets_driven_in_parts_are_driven_whole():
    class Parts(wiring.Component):
        a: In(4)
        b: In(4)
        q: Out(12)

        def elaborate(self, platform):
            m = Module()
            m.d.comb += [self.q[:4].eq(self.a), self.q[4:6].eq(3), self.q[6:10].eq(self.b), self.q[10:].eq(self.b[2:])]
            return m

    text = to_verilog(Parts(), "parts")
    (assignment,) = re.findall(r"assign q = \{(.*)\};", text)
    assert [part.strip() for part in assignment.split(",")] == ["b[3:2]", "b", "2'h3", "a"]
