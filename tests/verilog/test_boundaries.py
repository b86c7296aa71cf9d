"""Components are converted by themselves, identical ones once, where their signature is all that connects them."""

import itertools
import re

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.adapter.adapter import Adapter
from rtl.switch.switch import Switch
from verilog.boundaries import convert_apart
from verilog.emit import to_verilog
from verilog.merging import merge_modules
from wire.parameters import AdapterParameters, SwitchParameters

from .components import Chain, Pair, Port, modules_of


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path))


@pytest.fixture
def converted(monkeypatch):
    """Paths of the modules that Amaranth was made to convert."""
    paths = []
    convert = rtlil.convert_fragment

    def recorded(design, **options):
        paths.append(".".join(design.hierarchy))
        return convert(design, **options)

    monkeypatch.setattr(rtlil, "convert_fragment", recorded)
    return paths


class Peek(wiring.Component):
    """Reads a signal that it was handed, past its signature."""

    q: Out(8)

    def __init__(self, secret):
        self.secret = secret
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.q.eq(self.secret)
        return m


def test_component_that_reaches_past_its_signature_still_gets_its_signals():
    class Reaching(wiring.Component):
        q: Out(8)

        def elaborate(self, platform):
            m = Module()
            secret = Signal(8)
            m.submodules.peek = peek = Peek(secret)
            m.d.sync += secret.eq(secret + 1)
            m.d.comb += self.q.eq(peek.q)
            return m

    text = to_verilog(Reaching(), "top")
    assert re.search(r"\.secret\(secret\)", text) or modules_of(text) == ["top"]


class Broad(wiring.Component):
    """More bits than an instance of Amaranth's can drive."""

    d: In(8)
    q: Out(1 << 16)

    def elaborate(self, platform):
        m = Module()
        kept = Signal(8)
        m.d.sync += kept.eq(self.d)
        m.d.comb += self.q.eq(kept)
        return m


def test_component_with_more_outputs_than_an_instance_can_have_is_converted_with_its_parent(converted):
    text = to_verilog(Chain([Broad()]), "switch")
    assert converted == ["switch"]
    assert modules_of(text) == ["switch", "switch_port"]


def without_likeness(monkeypatch):
    """Have every component converted, whatever it is."""
    numbers = itertools.count()
    monkeypatch.setattr("verilog.boundaries.fingerprint", lambda fragment, ports: (str(next(numbers)).encode(), ()))


def test_like_components_are_converted_once(converted):
    convert_apart(Chain([Pair() for _ in range(4)], "pair"), "fabric")
    assert converted == ["fabric.pair_0.first", "fabric.pair_0", "fabric"]


def test_what_has_no_bits_is_no_port(converted):
    class Narrow(wiring.Component):
        def __init__(self):
            super().__init__({"d": In(8), "nothing": In(0), "none": Out(0), "q": Out(8)})

        def elaborate(self, platform):
            m = Module()
            m.d.sync += [self.q.eq(self.d), self.none.eq(self.nothing)]
            return m

    class Around(wiring.Component):
        d: In(8)
        q: Out(8)

        def elaborate(self, platform):
            m = Module()
            m.submodules.narrow = narrow = Narrow()
            m.d.comb += [narrow.d.eq(self.d), narrow.nothing.eq(narrow.none), self.q.eq(narrow.q)]
            return m

    text = convert_apart(Around(), "around")
    assert converted == ["around.narrow", "around"]
    assert not re.search(r"width 0 (in|out)put", text)


def test_what_did_not_change_is_not_converted_again(converted):
    before = convert_apart(Chain([Port(step=1), Port(step=2)]), "fabric")
    assert converted == ["fabric.port_0", "fabric.port_1", "fabric"]
    converted.clear()
    assert convert_apart(Chain([Port(step=1), Port(step=2)]), "fabric") == before
    assert converted == ["fabric"]
    converted.clear()
    convert_apart(Chain([Port(step=1), Port(step=3)]), "fabric")
    assert converted == ["fabric.port_1", "fabric"]


def selector(source: str) -> type[wiring.Component]:
    """A component with a submodule and a switch statement, whose source is this file's."""
    names = {"Module": Module, "Port": Port, "wiring": wiring, "In": In, "Out": Out}
    text = """
class Selector(wiring.Component):
    d: In(8)
    q: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.port = port = Port()
        m.d.comb += port.d.eq(self.d)
        with m.Switch(self.d):
            with m.Case(1):
                m.d.comb += self.q.eq(port.q)
            with m.Default():
                m.d.comb += self.q.eq(self.d)
        return m
"""
    exec(compile(text, source, "exec"), names)
    component: type[wiring.Component] = names["Selector"]
    return component


def test_what_only_has_another_place_in_the_source_is_not_converted_again(converted):
    before = convert_apart(Chain([selector("here.py")()]), "fabric")
    converted.clear()
    assert convert_apart(Chain([selector("there.py")()]), "fabric") == before
    assert converted == ["fabric"]


@pytest.mark.parametrize(
    ("node", "parameters"),
    [
        (Switch, SwitchParameters(ports=2, vls=2, mtu=256, buffer_blocks=8)),
        pytest.param(
            Switch,
            SwitchParameters(ports=2, mtu=256, buffer_blocks=8, queueing="fifo", readers=1),
            marks=pytest.mark.deep,
        ),
        (Adapter, AdapterParameters(mtu=256, receive_blocks=8, send_blocks=8)),
    ],
    ids=["switch", "fifo switch", "adapter"],
)
def test_node_is_the_same_as_with_each_of_its_components_converted(node, parameters, monkeypatch, converted):
    quick = merge_modules(convert_apart(node(parameters), "node"))
    assert len(converted) == len(re.findall(r"^module ", quick, re.M))
    without_likeness(monkeypatch)
    assert merge_modules(convert_apart(node(parameters), "node")) == quick


def test_signals_of_many_fields_have_no_net_for_each():
    class Wide(wiring.Component):
        def __init__(self, elements):
            super().__init__({"d": In(data.ArrayLayout(data.StructLayout({"x": 3, "y": 5}), elements)), "q": Out(8)})

        def elaborate(self, platform):
            m = Module()
            m.d.comb += self.q.eq(self.d[1])
            return m

    assert r"\d[1].x" in to_verilog(Wide(4), "wide")
    assert r"\d[1].x" not in to_verilog(Wide(40), "wide")
