"""What is reset while it works, a whole fabric or one node, does from then on what the golden model does."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from heapq import merge
from itertools import chain, count, islice, product
from operator import attrgetter
from pathlib import Path

import pytest

from cosim.engines.base import RunOptions
from cosim.engines.session import simulate
from cosim.engines.simulation import run
from cosim.experiments.check_experiment import check_experiment
from cosim.simulators.precompiled_modules import split
from cosim.stimulus.bus_bring_up import bus_bring_up, node_writes, write
from cosim.stimulus.injection import one_a_cycle, random_controls
from cosim.stimulus.random_packets import RandomTraffic, random_packets
from cosim.stimulus.run_spec import RunSpec
from cosim.topology.topology import Topology
from cosim.trace.compare import Names, compare
from rtl.management.attribute_memory import AttributeMap
from rtl.switch.switch import restoration_cycles
from tests.cosim.loads import HOSTS_ALIKE
from tests.regression.smp_traffic import SmpTraffic, random_smps
from verilog.design import Design, fabric_design
from wire.codes import LinkWidth
from wire.headers import LRH
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters, reset_cycles
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
EXPERIMENT = check_experiment(replace(HOSTS_ALIKE, cycles=12_000))
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
    inside = ",\n".join(f"    .{name}({net})" for name, net in connections.items())
    # In the forms that Yosys writes: then the modules inside are found, and compiled once for other tests, too.
    wrapper = f"""
module fabric({names});
{"".join(declared)}\
  reg [31:0] left = 0;
  wire lasts;
  wire [{len(design.ports.trace) - 1}:0] records;
  assign lasts = left != 0;
  assign trace_valid = lasts ? 0 : records;
  always @(posedge clk) begin
    if (control__valid && control__operation == {int(Operation.BUS_WRITE)} && control__args[31:0] == {NOWHERE})
      left <= control__args[63:32];
    else if (lasts) left <= left - 1;
  end
{own}\
  resettable same (
{inside}
  );
endmodule
"""
    return replace(design, verilog=text + wrapper)


def module_of(verilog: str) -> str:
    """The text of the module `fabric`."""
    return verilog[verilog.index("module fabric(") :].partition("endmodule")[0]


@pytest.mark.slow
def test_the_fabric_that_can_be_reset_has_the_compiled_modules_of_the_one_inside() -> None:
    design = fabric_design(FABRIC)
    _rest, modules = split(design.verilog)
    assert modules
    assert split(with_reset(design).verilog)[1] == modules


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
@pytest.mark.deep
def test_a_fabric_reset_in_traffic_does_what_a_new_one_does(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    choose = random.Random(SEED)
    for number in range(12):
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


# One node.


def resets_of_nodes(seed: int, cycles: int) -> RunSpec:
    """Traffic, errors and SMPs, and nodes that are reset, one after the other."""
    topology = EXPERIMENT.topology
    last = cycles - 2_000
    up = bus_bring_up(topology)
    between = random_controls(topology, seed, up.start, last, errors=True, reset_share=0.9)
    packets = random_packets(topology, RandomTraffic(seed, up.start, last, 0.7, strays=True))
    smps = random_smps(FABRIC, SmpTraffic(seed, up.start, 60, 300))
    posts = merge((packet.post(topology) for packet in packets), smps, key=attrgetter("cycle"))
    return RunSpec(FABRIC, chain(up.controls, between), posts, cycles)


@pytest.mark.slow
def test_a_node_reset_in_traffic_and_its_neighbours_do_what_the_model_says(tmp_path: Path) -> None:
    """A fabric that is not reset as a whole is the one inside."""
    design = with_reset(fabric_design(FABRIC))

    def has_resets(seed: int) -> bool:
        return any(one.operation == Operation.RESET for one in resets_of_nodes(seed, 60_000).controls)

    for number, seed in enumerate(islice(filter(has_resets, count(SEED)), 5)):
        print(f"seed {seed}")
        spec, again = resets_of_nodes(seed, 60_000), resets_of_nodes(seed, 60_000)
        hardware = simulate("verilator", design, spec, RunOptions(tmp_path / str(number)))
        with run("model", again, tmp_path / "model") as model:
            comparison = compare(model, hardware)
        assert comparison.difference is None, comparison.difference.report(Names(FABRIC), f"seed {seed}")
        assert comparison.records > 2_000


SMALL = AdapterParameters(mtu=256, receive_blocks=8, send_blocks=8)
PAIR = Topology(
    FabricParameters({"a": SMALL, "b": SMALL}, (LinkParameters("a", 1, "b", 1, 3),)),
    {"a": 1, "b": 2},
    {},
    (LinkWidth.X4,),
    (0,) * 16,
)


def edges(seed: int) -> RunSpec:
    """A host of two is reset, perhaps again at once or meanwhile, in traffic; what acts on it before, meanwhile and
    just after."""
    choose = random.Random(seed)
    up = bus_bring_up(PAIR)
    lasts = reset_cycles(SMALL)
    given = up.start + choose.randrange(100, 400)
    again = given + choose.choice((0, 1, 2, choose.randrange(lasts), lasts, lasts + 1))
    back = again + lasts + 1
    counter = port_address(1, Counter.RCV_PKTS)
    controls = [Control(given, Operation.RESET, 0)]
    if again > given:
        controls.append(Control(again, Operation.RESET, 0))
    for edge in (given, again, back):
        for cycle in range(edge - 6, edge + 7):
            act = choose.choice(
                (
                    Control(cycle, Operation.BUS_READ, 0, (counter, 0, 0, 0)),
                    write(cycle, 0, counter, 7),
                    Control(cycle, Operation.RECV_STALL, 0, (choose.randrange(2), 0, 0, 0)),
                    Control(cycle, Operation.HOST_SM, 0, (choose.randrange(2), 0, 0, 0)),
                )
            )
            controls.append(act)
    controls.sort(key=attrgetter("cycle"))
    controls += node_writes(PAIR, "a", back + 20)
    controls += [
        write(back + 600, node, port_address(1, PortRegister.STATE), state) for state in (3, 4) for node in (0, 1)
    ]
    controls += [
        Control(back + 900, Operation.RECV_STALL, 0),
        Control(back + 900, Operation.BUS_READ, 0, (counter, 0, 0, 0)),
    ]
    packets = random_packets(PAIR, RandomTraffic(seed, up.start, back + 900, 0.9, strays=False))
    posts = (packet.post(PAIR) for packet in packets)
    return RunSpec(PAIR.fabric, one_a_cycle(chain(up.controls, controls)), posts, back + 1_200)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "rtl", "times"),
    [
        ("icarus", "a", 1),
        ("icarus", "b", 1),
        pytest.param("amaranth", None, 1, marks=pytest.mark.deep),
        pytest.param("icarus", None, 6, marks=pytest.mark.deep),
    ],
)
def test_every_engine_resets_a_node_in_the_same_cycle(engine: str, rtl: str | None, times: int, tmp_path: Path) -> None:
    """Also where only this node is RTL, or only its neighbour."""
    for seed in range(SEED, SEED + times):
        print(f"seed {seed}")
        with (
            run(engine, edges(seed), tmp_path / engine, rtl=rtl and [rtl]) as seen,
            run("model", edges(seed), tmp_path / "model") as model,
        ):
            comparison = compare(model, seen)
        assert comparison.difference is None, comparison.difference.report(Names(PAIR.fabric), f"seed {seed}")
        assert comparison.records > 50


def test_a_reset_lasts_as_long_as_memories_and_packets_of_hosts_take() -> None:
    for ports, lft_size, buffer_blocks, vls in product((2, 3, 8, 36, 64), (2, 1024, 0xC000), (40, 4095), (1, 8)):
        node = SwitchParameters(ports, vls, buffer_blocks=buffer_blocks, lft_size=lft_size)
        assert reset_cycles(node) >= restoration_cycles(node)
    for vls in (1, 8):
        adapter = AdapterParameters(vls, receive_blocks=4095)
        pools = [adapter.receive_blocks + 1] * vls + [adapter.vl15_blocks + 1]
        assert reset_cycles(adapter) >= max(sum(pools), len(AttributeMap(adapter).init), LRH["pkt_len"].max)
