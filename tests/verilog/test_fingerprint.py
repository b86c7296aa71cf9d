"""What distinguishes components before they are converted."""

import re

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verilog.emit import to_verilog

from .components import Chain, modules_of


class Hidden(wiring.Component):
    """What it computes is in a closure: neither its class nor its attributes show it."""

    d: In(8)
    q: Out(8)

    def __init__(self, compute):
        self.compute = compute
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        same_name = [Signal(8, name="part"), Signal(8, name="part")]
        m.d.sync += [same_name[0].eq(self.d), same_name[1].eq(~self.d)]
        m.d.comb += self.q.eq(self.compute(*same_name))
        return m


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda a, b: a - b, lambda a, b: b - a),
        (lambda a, b: a + b, lambda a, b: a + a),
        (lambda a, b: a[0:4], lambda a, b: a[1:5]),
        (lambda a, b: a + 2, lambda a, b: a + 3),
        (lambda a, b: a >> 1, lambda a, b: a.as_signed() >> 1),
    ],
    ids=["order", "one for both", "slice", "constant", "sign"],
)
def test_components_that_differ_only_inside_stay_apart(one, other):
    text = to_verilog(Chain([Hidden(one), Hidden(other), Hidden(one)]), "switch")
    assert modules_of(text) == ["switch", "switch_port", "switch_port_2"]
    types = {instance: module for module, instance in re.findall(r"^  (switch_\w+) (port_\d) \(", text, re.M)}
    assert types["port_0"] == types["port_2"] != types["port_1"]
