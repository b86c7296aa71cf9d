"""A fabric that is reset while it works does from then on what the golden model does from cycle 0 on."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from heapq import merge
from itertools import chain
from operator import attrgetter
from pathlib import Path

import pytest

from cosim.engines.base import RunOptions
from cosim.engines.session import simulate
from cosim.engines.simulation import run
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.bus_bring_up import write
from cosim.stimulus.injection import one_a_cycle
from cosim.stimulus.run_spec import RunSpec
from cosim.trace.compare import compare
from tests.regression.smp_traffic import SmpTraffic, random_smps
from verilog.design import Design, fabric_design
from wire.parameters import SwitchParameters
from wire.registers import (
    HIGH_OF_COUNTER,
    Counter,
    CounterHigh,
    Detail,
    NodeRegister,
    PortRegister,
    lft_address,
    node_address,
    port_address,
    sl_to_vl_address,
)
from wire.stimulus import Control, Operation, Post
from wire.trace import Record

SEED = random.randrange(1 << 32)
EXPERIMENT = check_experiment(CheckOptions(ports=3, cycles=12_000, seed=7))
FABRIC = EXPERIMENT.topology.fabric
NODES = list(FABRIC.nodes.values())

LASTING = 20_000
"""Cycles of a reset: the deepest memory has fewer words, and what hosts have left to send, fewer words than that."""

NOWHERE = 0xFF_FFFF
"""An address that no node has. A write there is what resets the fabric."""


def with_reset(design: Design) -> Design:
    """A fabric that a write to NOWHERE resets, for as long as its value says.

    Meanwhile it takes from its hosts what they have left to send, and has no trace.
    """
    text = re.sub(r"^module fabric\b", "module resettable", design.verilog, count=1, flags=re.M)
    (names,) = re.findall(r"^module fabric\((.*?)\);", design.verilog, re.M | re.S)
    connections = {name: name for name in re.split(r"\s*,\s*", names.strip())}
    declared = []
    for direction, width, name in re.findall(r"^  (input|output) (\[\d+:0\] )?(\S+);", module_of(design.verilog), re.M):
        declared.append(f"  {direction} {width}{name};\n")
    streams = range(len(design.ports.streams))
    own = "".join(
        f"  wire ready_{i};\n  assign send__{i}__ready = lasts ? send__{i}__valid : ready_{i};\n" for i in streams
    )
    connections["rst"] = "rst || lasts"
    connections["trace_valid"] = "records"
    for i in streams:
        connections[f"send__{i}__ready"] = f"ready_{i}"
        connections[f"send__{i}__valid"] = f"send__{i}__valid && !lasts"
    inside = ", ".join(f".{name}({net})" for name, net in connections.items())
    wrapper = f"""
module fabric({names});
{"".join(declared)}\
  reg [31:0] left = 0;
  wire lasts = left != 0;
  wire [{len(design.ports.trace) - 1}:0] records;
  assign trace_valid = lasts ? 0 : records;
  always @(posedge clk)
    if (control__valid && control__operation == {int(Operation.BUS_WRITE)} && control__args[31:0] == {NOWHERE})
      left <= control__args[63:32];
    else if (lasts) left <= left - 1;
{own}\
  resettable same ({inside});
endmodule
"""
    return replace(design, verilog=text + wrapper)


def module_of(verilog: str) -> str:
    """The text of the module `fabric`."""
    return verilog[verilog.index("module fabric(") :].partition("endmodule")[0]


def addresses() -> Iterator[tuple[int, int]]:
    """(node, address) of every register, counter and table entry."""
    for index, node in enumerate(NODES):
        yield from ((index, node_address(register)) for register in NodeRegister)
        ports = node.ports if isinstance(node, SwitchParameters) else 1
        for port in range(1, ports + 1):
            registers = chain(PortRegister, Counter, CounterHigh, Detail)
            yield from ((index, port_address(port, register)) for register in registers)
        if isinstance(node, SwitchParameters):
            yield from ((index, lft_address(lid)) for lid in range(node.lft_size))
            for into in range(1, ports + 1):
                for out in range(1, ports + 1):
                    yield from ((index, sl_to_vl_address(into, out, sl)) for sl in range(16))


def reads() -> RunSpec:
    """All of it is read."""
    given = [
        Control(cycle, Operation.BUS_READ, node, (address, 0, 0, 0))
        for cycle, (node, address) in enumerate(addresses())
    ]
    return RunSpec(FABRIC, given, (), len(given) + 10)


def overwritten(seed: int, start: int) -> Iterator[Control]:
    """Tables, and counters up to their highest bits, get random values, a write in each cycle."""
    choose = random.Random(seed)
    high = [port_address(1, register) for register in HIGH_OF_COUNTER.values()]
    tables = [place for place in addresses() if place[1] > port_address(64, PortRegister.STATE)]
    for place, (node, address) in enumerate(
        tables + [(node, address) for node in range(len(NODES)) for address in high]
    ):
        yield write(start + place, node, address, choose.randrange(4))


def traffic(seed: int) -> RunSpec:
    """The fabric is brought up by its bus, then packets, errors, stalls, and SMPs of all kinds."""
    smps = random_smps(FABRIC, SmpTraffic(seed, EXPERIMENT.start + 1_000, 40, 300))
    spec = EXPERIMENT.spec()
    return replace(spec, posts=merge(spec.posts, smps, key=attrgetter("cycle")))


def after_reset(life: RunSpec, reset_at: int, following: RunSpec) -> RunSpec:
    """A life that ends with a reset, and what follows."""
    start = reset_at + LASTING + 1

    def controls() -> Iterator[Control]:
        yield from (control for control in life.controls if control.cycle < reset_at)
        yield write(reset_at, 0, NOWHERE, LASTING)
        yield from (control._replace(cycle=control.cycle + start) for control in following.controls)

    def posts() -> Iterator[Post]:
        yield from (post for post in life.posts if post.cycle < reset_at)
        yield from (post._replace(cycle=post.cycle + start) for post in following.posts)

    return RunSpec(FABRIC, controls(), posts(), start + following.cycles)


def check(life: RunSpec, reset_at: int, following: tuple[RunSpec, RunSpec], directory: Path) -> int:
    """What follows a reset is what the model makes of it (it is given twice, to be drawn twice); its records."""
    start = reset_at + LASTING + 1
    before = 0

    def second_life(records: Iterator[Record]) -> Iterator[Record]:
        nonlocal before
        for record in records:
            if record.cycle >= start:
                yield record._replace(cycle=record.cycle - start)
            else:
                before += 1

    hardware = simulate(
        "verilator", with_reset(fabric_design(FABRIC)), after_reset(life, reset_at, following[0]), RunOptions(directory)
    )
    with run("model", following[1], directory / "model") as model:
        comparison = compare(model, second_life(hardware))
    assert comparison.difference is None, comparison.difference
    assert before > 0
    return comparison.records


@pytest.mark.slow
def test_a_fabric_reset_in_traffic_does_what_a_new_one_does(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    choose = random.Random(SEED)
    for number in range(6):
        reset_at = choose.randrange(EXPERIMENT.start, EXPERIMENT.end)
        seeds = choose.randrange(1 << 32), choose.randrange(1 << 32)
        print(f"reset in cycle {reset_at}, SMPs of {seeds}")
        following = traffic(seeds[1]), traffic(seeds[1])
        assert check(traffic(seeds[0]), reset_at, following, tmp_path / str(number)) > 1_000


@pytest.mark.slow
def test_every_register_counter_and_table_reads_after_a_reset_what_it_read_before_all_writes(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    life = traffic(SEED)
    given = one_a_cycle(merge(life.controls, overwritten(SEED, EXPERIMENT.start), key=attrgetter("cycle")))
    found = check(replace(life, controls=given), EXPERIMENT.end, (reads(), reads()), tmp_path)
    assert found > len(list(addresses()))
