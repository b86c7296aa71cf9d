"""Pruning: what no output of the top needs goes, across instances; the rest stays."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from verilog.emit import merged_rtlil
from verilog.export.prune import prune
from verilog.export.rtlil import parse


class Stage(wiring.Component):
    """A sum, and a record of it that has a register and a memory to itself."""

    d: In(8)
    step: In(8)
    stamp: In(8)
    q: Out(8)
    record: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.kept = kept = memory.Memory(shape=8, depth=4, init=[])
        write, read = kept.write_port(), kept.read_port()
        total = Signal(8)
        m.d.sync += total.eq(self.d + self.step)
        m.d.comb += [self.q.eq(total), write.data.eq(total), write.en.eq(1), read.addr.eq(self.stamp)]
        m.d.comb += self.record.eq(read.data)
        return m


class Chain(wiring.Component):
    """Two stages; the step of both and the stamp of one are computed up here."""

    d: In(8)
    q: Out(8)
    record: Out(16)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = Stage()
        m.submodules.second = second = Stage()
        stamp = Signal(8)
        m.d.sync += stamp.eq(stamp + 1)
        m.d.comb += [first.d.eq(self.d), second.d.eq(first.q), self.q.eq(second.q)]
        m.d.comb += [first.step.eq(3), second.step.eq(~self.d), first.stamp.eq(stamp)]
        m.d.comb += [self.record[:8].eq(first.record), self.record[8:].eq(second.record)]
        return m


class Wrapped(wiring.Component):
    """A stage whose record is handed on."""

    d: In(8)
    q: Out(8)
    record: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.stage = stage = Stage()
        m.d.comb += [stage.d.eq(self.d), self.q.eq(stage.q), self.record.eq(stage.record)]
        return m


class Uneven(wiring.Component):
    """Two stages, one wrapped, and a use for the record of the other only."""

    d: In(8)
    q: Out(8)
    record: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.plain = plain = Stage()
        m.submodules.wrapped = wrapped = Wrapped()
        m.d.comb += [plain.d.eq(self.d), wrapped.d.eq(plain.q), self.q.eq(wrapped.q), self.record.eq(plain.record)]
        return m


@pytest.fixture
def chain():
    return parse(merged_rtlil(Chain(), "chain"))


def without_record(modules):
    modules["\\chain"].wires["\\record"].direction = ""
    prune(modules, "\\chain")
    return modules


def names(module):
    return {wire.name.split("$")[0].lstrip("\\") for wire in module.wires.values()}


def test_all_stays_if_every_output_is_wanted(chain):
    before = {name: (len(module.cells), len(module.memories)) for name, module in chain.items()}
    prune(chain, "\\chain")
    assert {name: (len(module.cells), len(module.memories)) for name, module in chain.items()} == before


def test_an_output_that_goes_takes_along_what_only_it_needs(chain):
    without_record(chain)
    stage = chain["\\chain_first"]
    assert not stage.memories
    assert not [cell for cell in stage.cells if "mem" in cell.type]
    ports = {wire.name for wire in stage.wires.values() if wire.direction}
    assert ports == {"\\d", "\\step", "\\q", "\\clk", "\\rst"}
    top = chain["\\chain"]
    assert "stamp" not in names(top)
    assert not [cell for cell in top.cells if cell.type == "$dff"]
    assert {"q", "d"} <= names(top)


def assert_instances_fit(modules):
    for module in modules.values():
        for cell in module.cells:
            if cell.is_instance:
                ports = {wire.name for wire in modules[cell.type].wires.values() if wire.direction}
                assert set(cell.connections) == ports


def test_instances_have_the_ports_of_their_modules(chain):
    assert_instances_fit(without_record(chain))


def test_an_output_that_only_one_instance_needs_goes_no_further_at_the_other():
    modules = parse(merged_rtlil(Uneven(), "uneven"))
    prune(modules, "\\uneven")
    assert "\\record" not in {wire.name for wire in modules["\\uneven_wrapped"].wires.values() if wire.direction}
    assert "\\record" in {wire.name for wire in modules["\\uneven_plain"].wires.values() if wire.direction}
    assert_instances_fit(modules)
