"""Verilog export: like modules merge, unlike ones do not."""

import itertools
import re

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from rtl.adapter.adapter import Adapter
from rtl.switch.switch import Switch
from verilog import boundaries
from verilog.boundaries import convert_apart
from verilog.emit import merge_modules, to_verilog
from wire.parameters import AdapterParameters, SwitchParameters


class Port(wiring.Component):
    """A memory in front of a counter that STEP may change."""

    d: In(8)
    q: Out(8)

    def __init__(self, init=0, step=1):
        self.init = init
        self.step = step
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = memory.Memory(shape=8, depth=4, init=[self.init])
        write, read = store.write_port(), store.read_port()
        total = Signal(8)
        m.d.comb += [write.data.eq(self.d), write.en.eq(1), read.addr.eq(self.d), self.q.eq(read.data ^ total)]
        m.d.sync += total.eq(total + self.step)
        return m


class Pair(wiring.Component):
    """Two ports under one name, so that merging has to work through a level of hierarchy."""

    d: In(8)
    q: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = Port()
        m.submodules.second = second = Port()
        m.d.comb += [first.d.eq(self.d), second.d.eq(first.q), self.q.eq(second.q)]
        return m


class Chain(wiring.Component):
    """Any stages in a row, so that each sees nets of its own."""

    d: In(8)
    q: Out(8)

    def __init__(self, stages, name="port"):
        self.stages = stages
        self.name = name
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        value = self.d
        for index, stage in enumerate(self.stages):
            m.submodules[f"{self.name}_{index}"] = stage
            m.d.comb += stage.d.eq(value)
            value = stage.q
        m.d.comb += self.q.eq(value)
        return m


def modules_of(text):
    return sorted(re.findall(r"^module (\S+?)\s*\(", text, re.M))


def test_eight_like_ports_are_one_module():
    text = to_verilog(Chain([Port() for _ in range(8)]), "switch")
    assert modules_of(text) == ["switch", "switch_port"]
    assert len(re.findall(r"^\s*switch_port port_\d \(", text, re.M)) == 8


def test_like_modules_merge_through_levels():
    text = to_verilog(Chain([Pair() for _ in range(4)], "pair"), "fabric")
    assert modules_of(text) == ["fabric", "fabric_first", "fabric_pair"]


def test_ports_that_differ_stay_apart():
    text = to_verilog(Chain([Port(step=1), Port(step=2), Port(step=1)]), "switch")
    assert modules_of(text) == ["switch", "switch_port", "switch_port_2"]


def test_memories_with_different_contents_stay_apart():
    text = to_verilog(Chain([Port(init=1), Port(init=2), Port(init=2)]), "switch")
    assert len(modules_of(text)) == 3


def test_tied_and_open_ports_do_not_tell_like_ports_apart():
    class Tied(wiring.Component):
        q: Out(8)

        def elaborate(self, platform):
            m = Module()
            m.submodules.port_0 = first = Port()
            m.submodules.port_1 = second = Port()
            m.submodules.port_2 = Port()
            m.d.comb += [first.d.eq(3), second.d.eq(5), self.q.eq(first.q)]
            return m

    assert modules_of(to_verilog(Tied(), "switch")) == ["switch", "switch_port"]


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


def test_component_with_more_outputs_than_an_instance_can_have_is_converted_with_its_parent(monkeypatch, converted):
    monkeypatch.setattr(boundaries, "_MOST_OUTPUT_BITS", 7)
    text = to_verilog(Chain([Port()]), "switch")
    assert converted == ["switch"]
    assert modules_of(text) == ["switch", "switch_port"]


def without_likeness(monkeypatch):
    """Have every component converted, whatever it is like."""
    numbers = itertools.count()
    monkeypatch.setattr(boundaries, "_fingerprint", lambda fragment, ports: (str(next(numbers)).encode(), ()))


@pytest.fixture
def converted(monkeypatch):
    """Paths of the modules that Amaranth was made to convert."""
    paths = []
    convert = boundaries._text

    def recorded(design):
        paths.append(".".join(design.hierarchy))
        return convert(design)

    monkeypatch.setattr(boundaries, "_text", recorded)
    return paths


def test_like_components_are_converted_once(converted):
    convert_apart(Chain([Pair() for _ in range(4)], "pair"), "fabric")
    assert converted == ["fabric.pair_0.first", "fabric.pair_0", "fabric"]


@pytest.mark.parametrize(
    ("node", "parameters"),
    [
        (Switch, SwitchParameters(ports=3, vls=2, mtu=256, buffer_blocks=8)),
        (Switch, SwitchParameters(ports=2, mtu=256, buffer_blocks=8, queueing="fifo", readers=1)),
        (Adapter, AdapterParameters(mtu=256, receive_blocks=8, send_blocks=8)),
    ],
    ids=["switch", "fifo switch", "adapter"],
)
def test_node_is_the_same_as_with_each_of_its_components_converted(node, parameters, monkeypatch, converted):
    quick = merge_modules(convert_apart(node(parameters), "node"))
    assert len(converted) == len(re.findall(r"^module ", quick, re.M))
    without_likeness(monkeypatch)
    assert merge_modules(convert_apart(node(parameters), "node")) == quick


class Hidden(wiring.Component):
    """What it computes is in a closure: neither its class nor its attributes tell."""

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


def test_components_on_different_clock_edges_stay_apart():
    class TwoEdges(wiring.Component):
        d: In(8)
        q: Out(16)

        def elaborate(self, platform):
            m = Module()
            m.domains.falling = ClockDomain(clk_edge="neg")
            m.d.comb += ClockSignal("falling").eq(ClockSignal())
            stages = [Port(), Port()]
            m.submodules.rising_port = stages[0]
            m.submodules.falling_port = DomainRenamer("falling")(stages[1])
            m.d.comb += [stage.d.eq(self.d) for stage in stages]
            m.d.comb += [self.q[:8].eq(stages[0].q), self.q[8:].eq(stages[1].q)]
            return m

    text = to_verilog(TwoEdges(), "top")
    assert len(modules_of(text)) == 3
    assert "always @(negedge falling_clk)" in text


def test_net_names_stay_readable_and_no_source_paths_leak():
    text = to_verilog(Chain([Port()]), "switch")
    assert re.search(r"reg \[7:0\] total\b", text)
    assert "src" not in text
    assert not re.search(r"^module \\", text, re.M)


def test_text_without_modules_is_an_error():
    with pytest.raises(ValueError, match="no module in the RTLIL text"):
        merge_modules("")


def initialised(contents):
    """Verilog of a memory with these contents, and the values that its `initial` gives the words."""

    class Stored(wiring.Component):
        address: In(8)
        q: Out(8)

        def elaborate(self, platform):
            m = Module()
            m.submodules.words = words = memory.Memory(shape=8, depth=len(contents), init=contents)
            read = words.read_port()
            m.d.comb += [read.addr.eq(self.address), self.q.eq(read.data)]
            return m

    text = to_verilog(Stored(), "stored")
    words = {}
    loop = r"for \(\S+ = (\d+); \S+ < (\d+); .*\)\n\s+\S+\[\S+\] = (?:8'h([0-9a-f]+)|\S+(?: (\+|-) (\d+))?);"
    for first, end, same, sign, ahead in re.findall(loop, text):
        for place in range(int(first), int(end)):
            words[place] = int(same, 16) if same else place + int(f"{sign}{ahead or 0}")
    words |= {int(place): int(value, 16) for place, value in re.findall(r"\[(\d+)\] = 8'h([0-9a-f]+);", text)}
    return text, [words[place] for place in range(len(contents))]


@pytest.mark.parametrize(
    "contents",
    [
        [0] * 200,
        [*range(1, 200), 0],
        [7, 7, 7, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 0, 0],
        [200 - 3 + place for place in range(20)],
        [5, 4, 3, 2, 1],
        list(range(100, 0, -7)),
    ],
)
def test_contents_of_memories_are_kept(contents):
    assert initialised(contents)[1] == contents


def test_large_memories_are_filled_in_loops():
    assert len(initialised([0] * 250)[0].splitlines()) < 50


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


def test_nets_that_nobody_named_are_left_out_of_verilators_waves():
    text = to_verilog(Switch(SwitchParameters(ports=2, mtu=256, buffer_blocks=8)), "switch")
    assert not re.search(r"\\\$\d", text)


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
