"""A whole fabric: every engine gives the same trace, the golden model's, and a broken fabric is noticed."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cosim.engines.base import Run, UnknownEngine
from cosim.engines.simulation import build, run
from cosim.stimulus.run_spec import RunSpec
from cosim.trace.compare import Names, compare
from rtl.fabric.fabric import Fabric
from tests.regression.fabrics import STAR
from verilog.design import fabric_design
from verilog.emit import merged_rtlil
from verilog.nodes import KnownNodes
from wire.codes import PortPhysicalState, PortState
from wire.packet import build_ud_send
from wire.parameters import FabricParameters, LinkParameters, SwitchParameters
from wire.registers import Counter, NodeRegister, PortRegister, lft_address, node_address, port_address
from wire.stimulus import Control, Delivery, Injection, Operation, Post, Trigger
from wire.trace import Kind, Record, port_source

SEED = random.randrange(1 << 32)
HOSTS = ("h0", "h1", "h2")
PAIR = FabricParameters({"s": SwitchParameters(ports=2, mtu=256, buffer_blocks=8)}, (LinkParameters("s", 1, "s", 2),))
START = 100


def controls(seed: int, cycles: int) -> Iterator[Control]:
    choose = random.Random(seed)
    nodes = list(STAR.nodes)
    writes = [(nodes.index(host), node_address(NodeRegister.LID), 1 + i) for i, host in enumerate(HOSTS)]
    writes += [(0, lft_address(1 + i), 1 + i) for i in range(len(HOSTS))]
    ends = [end for i, host in enumerate(HOSTS) for end in ((nodes.index(host), 1), (0, i + 1))]
    for cycle, (node, address, value) in enumerate(writes):
        yield Control(cycle, Operation.BUS_WRITE, node, (address, value, 0, 0))
    for start, state in ((10, PortState.ARMED), (60, PortState.ACTIVE)):
        for place, (node, port) in enumerate(ends):
            address = port_address(port, PortRegister.STATE)
            yield Control(start + place, Operation.BUS_WRITE, node, (address, state, 0, 0))
    # Whatever the seed: one damaged idle row and one read.
    yield Control(START - 2, Operation.INJECT, 0, Injection(Trigger.IDLE, 0, flip=1).args())
    yield Control(START - 1, Operation.BUS_READ, 0, (port_address(1, Counter.SYMBOL_ERROR), 0, 0, 0))
    for cycle in range(START, cycles, 60):
        node, port = choose.choice(ends)
        stall = Control(cycle, Operation.RECV_STALL, nodes.index(choose.choice(HOSTS)), (choose.randrange(8), 0, 0, 0))
        damage = Injection(Trigger(choose.randrange(3)), choose.randrange(4), flip=1 << choose.randrange(36))
        yield choose.choice(
            [
                stall,
                stall._replace(args=(0, 0, 0, 0)),
                Control(cycle, Operation.INJECT, choose.randrange(6), damage.args()),
                Control(cycle, Operation.BUS_READ, node, (port_address(port, choose.choice(list(Counter))), 0, 0, 0)),
            ]
        )


def posts(seed: int, cycles: int) -> Iterator[Post]:
    choose = random.Random(seed)
    nodes = list(STAR.nodes)
    cycle = START
    while cycle < cycles:
        source, to = choose.sample(range(3), 2)
        vl = choose.randrange(2)
        payload = choose.randbytes(choose.choice([0, 4, 60, 256]))
        packet = build_ud_send(
            slid=1 + source, dlid=1 + to, sl=vl, vl=vl, dest_qp=2, src_qp=2, q_key=1, payload=payload
        )
        yield Post(cycle, nodes.index(HOSTS[source]), vl, packet.data)
        cycle += choose.choice([0, 10, 40])


def spec(seed: int, cycles: int) -> RunSpec:
    return RunSpec(STAR, controls(seed, cycles), posts(seed + 1, cycles), cycles)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "cycles"),
    [("verilator", 30_000), ("icarus", 500), pytest.param("amaranth", 500, marks=pytest.mark.deep)],
)
def test_engine_gives_the_golden_models_trace(engine: str, cycles: int, tmp_path: Path) -> None:
    """What the hardware does is shown by the quick engine; the slow ones show that they do the same with it."""
    print(f"seed {SEED}")
    expected: list[Delivery] = []
    seen: list[Delivery] = []
    kinds = set()

    def noted(records: Run) -> Iterator[Record]:
        for record in records:
            kinds.add(record.kind)
            yield record

    with (
        run("model", spec(SEED, cycles), tmp_path / "model", on_delivery=expected.append) as model,
        run(engine, spec(SEED, cycles), tmp_path / engine, on_delivery=seen.append) as hardware,
    ):
        comparison = compare(model, noted(hardware))
    assert comparison.difference is None
    assert comparison.records > cycles / 20
    assert expected == seen
    assert len(seen) > cycles / 200
    assert kinds >= {Kind.RX_DATA, Kind.RX_FCP, Kind.STATE, Kind.TX_DATA, Kind.TX_FCP, Kind.SEND, Kind.DELIVER}
    assert kinds >= {Kind.INJECT, Kind.BUS_READ}


@pytest.mark.slow
def test_a_wrong_buffer_is_noticed(tmp_path: Path) -> None:
    """The model with a switch one block smaller than the hardware's: the credits it grants give it away."""
    nodes = {name: replace(node, buffer_blocks=17) if name == "sw0" else node for name, node in STAR.nodes.items()}
    other = replace(spec(1, 400), parameters=FabricParameters(nodes, STAR.links))
    with (
        run("model", other, tmp_path / "model") as model,
        run("verilator", spec(1, 400), tmp_path / "verilator") as hardware,
    ):
        difference = compare(model, hardware).difference
    assert difference is not None
    assert difference.kind == Kind.TX_FCP
    report = difference.report(Names(STAR), "pytest")
    assert "differs in FCCL 17 / 16" in report


@pytest.mark.slow
def test_places_of_the_trace_are_in_order() -> None:
    slots = fabric_design(STAR).ports.trace
    assert list(slots) == sorted(set(slots))
    assert sum(kind == Kind.INJECT for _source, kind in slots) == 2 * len(STAR.links)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "parameters"), [("verilator", STAR), ("icarus", STAR), ("amaranth", PAIR), ("model", STAR)]
)
def test_build_ahead_makes_the_run_quick(engine: str, parameters: FabricParameters, tmp_path: Path) -> None:
    build(engine, parameters)
    with run(engine, RunSpec(parameters, (), (), 5), tmp_path) as records:
        assert [record.kind for record in records] == [Kind.STATE] * 2 * len(parameters.links)


def test_build_for_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UnknownEngine, match="engine 'vcs': expected one of verilator, icarus, amaranth, model"):
        build("vcs", STAR)


def states(parameters: FabricParameters, given: list[Control], cycles: int, directory: Path) -> list[Record]:
    """The ports' states as they change from cycle 2 on, when all links are up."""
    with run("amaranth", RunSpec(parameters, given, (), cycles), directory) as records:
        return [record for record in records if record.kind == Kind.STATE and record.cycle > 1]


FIRST, SECOND = port_source(0, 1), port_source(0, 2)


@pytest.mark.parametrize("state", [PortPhysicalState.SLEEP, PortPhysicalState.DISABLED])
def test_a_link_is_up_only_while_both_its_ports_poll(state: PortPhysicalState, tmp_path: Path) -> None:
    def write(cycle: int, port: int, value: PortPhysicalState) -> Control:
        return Control(cycle, Operation.BUS_WRITE, 0, (port_address(port, PortRegister.PHYSICAL_STATE), value, 0, 0))

    given = [
        write(10, 1, state),
        write(20, 2, state),
        write(30, 1, PortPhysicalState.POLLING),
        write(40, 2, PortPhysicalState.POLLING),
    ]
    # The register is visible after two cycles, the link down in the next, its ports behind it.
    seen = [(record.cycle, record.source, record.a) for record in states(PAIR, given, 60, tmp_path)]
    assert seen == [
        (14, FIRST, PortState.DOWN),
        (14, SECOND, PortState.DOWN),
        (44, FIRST, PortState.INITIALIZE),
        (44, SECOND, PortState.INITIALIZE),
    ]


def test_a_port_that_polls_and_is_told_to_starts_its_link_anew(tmp_path: Path) -> None:
    default, physical_state = PortRegister.LINK_DOWN_DEFAULT, PortRegister.PHYSICAL_STATE
    given = [
        control(10, Operation.BUS_WRITE, 1, default, PortPhysicalState.SLEEP),
        control(20, Operation.BUS_WRITE, 1, physical_state, PortPhysicalState.POLLING),
        control(40, Operation.BUS_READ, 1, physical_state),
    ]
    states, read = widths(given, tmp_path)
    down, up = PortState.DOWN, PortState.INITIALIZE
    assert states == [(cycle, end, to) for cycle, to in ((24, down), (25, up)) for end in (FIRST, SECOND)]
    assert read == [PortPhysicalState.LINK_UP]


def test_a_link_taken_down_stays_down_whoever_polls(tmp_path: Path) -> None:
    polling = (port_address(1, PortRegister.PHYSICAL_STATE), PortPhysicalState.POLLING, 0, 0)
    given = [
        Control(10, Operation.LINK_DOWN, 0),
        Control(20, Operation.BUS_WRITE, 0, polling),
        Control(30, Operation.BUS_READ, 0, polling),
        Control(40, Operation.LINK_UP, 0),
        Control(50, Operation.BUS_READ, 0, polling),
    ]
    with run("amaranth", RunSpec(PAIR, given, (), 60), tmp_path) as running:
        records = [record for record in running if record.cycle > 1]
    seen = [(record.cycle, record.a) for record in records if (record.source, record.kind) == (FIRST, Kind.STATE)]
    assert seen == [(12, PortState.DOWN), (42, PortState.INITIALIZE)]
    read = [record.b for record in records if record.kind == Kind.BUS_READ]
    assert read == [PortPhysicalState.POLLING, PortPhysicalState.LINK_UP]


def widths(given: list[Control], directory: Path) -> tuple[list[tuple[int, int, int]], list[int]]:
    """How both ports' states change, and what is read of WIDTH."""
    with run("amaranth", RunSpec(PAIR, given, (), 100), directory) as running:
        records = [record for record in running if record.cycle > 1]
    states = [(record.cycle, record.source, record.a) for record in records if record.kind == Kind.STATE]
    return states, [record.b for record in records if record.kind == Kind.BUS_READ]


def control(cycle: int, operation: Operation, port: int, register: PortRegister, value: int = 0) -> Control:
    return Control(cycle, operation, 0, (port_address(port, register), value, 0, 0))


@pytest.mark.parametrize(("first", "second"), [(1, 3), (3, 1), (1, 1)])
def test_a_link_comes_up_as_1x_where_an_end_enables_no_more_and_stays_so(
    first: int, second: int, tmp_path: Path
) -> None:
    width, enabled = PortRegister.WIDTH, PortRegister.LINK_WIDTH_ENABLED
    given = [
        control(10, Operation.BUS_WRITE, 1, enabled, first),
        control(11, Operation.BUS_WRITE, 2, enabled, second),
        control(20, Operation.BUS_READ, 1, width),
        Control(30, Operation.LINK_DOWN, 0),
        Control(35, Operation.LINK_UP, 0),
        *(control(40 + port, Operation.BUS_READ, port, width) for port in (1, 2)),
        control(50, Operation.BUS_WRITE, 1, enabled, 3),
        control(51, Operation.BUS_WRITE, 2, enabled, 3),
        control(60, Operation.BUS_READ, 1, width),
        Control(70, Operation.LINK_DOWN, 0),
        Control(75, Operation.LINK_UP, 0),
        *(control(80 + port, Operation.BUS_READ, port, width) for port in (1, 2)),
    ]
    states, read = widths(given, tmp_path)
    down, up = PortState.DOWN, PortState.INITIALIZE
    assert states == [
        (cycle, end, to) for cycle, to in ((32, down), (37, up), (72, down), (77, up)) for end in (FIRST, SECOND)
    ]
    assert read == [2, 1, 1, 1, 2, 2]


def test_a_link_whose_ends_enable_no_width_in_common_stays_down(tmp_path: Path) -> None:
    enabled = PortRegister.LINK_WIDTH_ENABLED
    given = [
        control(10, Operation.BUS_WRITE, 1, enabled, 1),
        control(11, Operation.BUS_WRITE, 2, enabled, 2),
        control(60, Operation.BUS_WRITE, 2, enabled, 255),
    ]
    # What is enabled is visible after two cycles, the link down in the next, its ports behind it.
    states, _ = widths(given, tmp_path)
    assert states == [
        (cycle, end, to) for cycle, to in ((15, PortState.DOWN), (64, PortState.INITIALIZE)) for end in (FIRST, SECOND)
    ]


def test_a_port_that_sleeps_by_default_does_so_once_its_link_is_lost(tmp_path: Path) -> None:
    given = [
        control(10, Operation.BUS_WRITE, 2, PortRegister.LINK_DOWN_DEFAULT, PortPhysicalState.SLEEP),
        # What is set Down starts anew.
        control(15, Operation.BUS_WRITE, 2, PortRegister.STATE, PortState.DOWN),
        Control(30, Operation.LINK_DOWN, 0),
        Control(35, Operation.LINK_UP, 0),
        control(50, Operation.BUS_WRITE, 2, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING),
    ]
    states, _ = widths(given, tmp_path)
    assert states == [
        (17, SECOND, PortState.DOWN),
        (18, SECOND, PortState.INITIALIZE),
        (32, FIRST, PortState.DOWN),
        (32, SECOND, PortState.DOWN),
        (54, FIRST, PortState.INITIALIZE),
        (54, SECOND, PortState.INITIALIZE),
    ]


def test_a_host_operation_on_a_switch_is_refused(tmp_path: Path) -> None:
    for operation in (Operation.RECV_STALL, Operation.HOST_SM, Operation.KEY_VIOLATION):
        spec = RunSpec(STAR, [Control(1, operation, 0, (1, 0, 0, 0))], (), 10)
        with (
            pytest.raises(ValueError, match="expected a target that is an adapter"),
            run("model", spec, tmp_path) as records,
        ):
            list(records)


def modules(nodes: int) -> list[str]:
    switch = next(iter(PAIR.nodes.values()))
    links = tuple(LinkParameters(f"s{i}", 1, f"s{i + 1}", 2) for i in range(nodes - 1))
    fabric = Fabric(FabricParameters({f"s{i}": switch for i in range(nodes)}, links))
    return re.findall(
        r"^module (\S+)", merged_rtlil(fabric, "fabric", nodes=KnownNodes("fabric", {"test": nodes})), re.MULTILINE
    )


@pytest.mark.slow
def test_like_switches_are_one_module_though_each_has_an_identity() -> None:
    assert modules(2) == modules(3)
