"""Fabrics of which some nodes are RTL and the others the golden model: nobody notices, whichever they are."""

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cosim.engines import mixed
from cosim.engines.simulation import WholeFabricsOnly, build, run
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.experiments.perform import perform
from cosim.experiments.subnet_bring_up import SubnetBringUpResult, bring_up_subnet
from cosim.experiments.subnet_task import LinkFailure, SubnetTask
from cosim.harness.stream_files import IDLE_FILE, write_surroundings
from cosim.stimulus.run_spec import RunSpec
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import packaged_topologies, read_topology
from cosim.trace.compare import Names, compare
from sm.events import TablesWritten
from tests.cosim.recorder import Recorder
from tests.regression.fabrics import STAR
from wire.codes import PortPhysicalState, PortState
from wire.registers import PortRegister, port_address
from wire.stimulus import Control, Delivery, Operation
from wire.trace import Kind, Record, port_source

FAT_TREE = packaged_topologies()["fat_tree"]
MANAGER = "H1"
ALIKE = [("L1", "L2"), ("L3", "L4"), ("S1", "S2"), (MANAGER, "H5")]
"""Each switch and two hosts, in pairs without a link: a node of which there are two is compiled apart, once for these
and for the fabrics that are RTL as a whole."""


def brought_up(topology: Path, tmp_path: Path, *rtl: str, failure: LinkFailure | None = None) -> SubnetBringUpResult:
    made = fabric_of(read_topology(topology))
    engine = "verilator" if rtl else "model"
    return bring_up_subnet(
        SubnetTask(made.fabric, made.widths, MANAGER, engine=engine, rtl=rtl or None, failure=failure), tmp_path
    )


def check_same(result: SubnetBringUpResult, alone: SubnetBringUpResult, least: int = 4_000) -> None:
    """The trace is the golden model's, and so is all that the Subnet Manager did and saw."""
    assert result.comparison.difference is None
    assert result.comparison.records == result.records == alone.records > least
    assert (result.posts, result.events, result.cycles) == (alone.posts, alone.events, alone.cycles)
    assert result.complete


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[LinkFailure | None], SubnetBringUpResult]:
    """The golden model's bring-up, with and without a failure, once for all."""
    return cache(lambda failure: brought_up(FAT_TREE, tmp_path_factory.mktemp("alone"), failure=failure))


@pytest.mark.slow
@pytest.mark.parametrize(
    "rtl",
    # More of the same: fabrics come up before links fail, too.
    [pytest.param(names, marks=pytest.mark.deep) for names in (("L1", "S1"), *ALIKE)],
    ids="+".join,
)
def test_a_fat_tree_comes_up_the_same_whatever_is_rtl(
    rtl: tuple[str, ...], alone: Callable[[LinkFailure | None], SubnetBringUpResult], tmp_path: Path
) -> None:
    check_same(brought_up(FAT_TREE, tmp_path, *rtl), alone(None))


@pytest.mark.slow
def test_a_cable_of_two_that_fails_at_rtl_is_dealt_with_the_same(tmp_path: Path) -> None:
    """Most of the switch, as that of a star, is compiled for others."""
    topology = packaged_topologies()["parallel"]
    links = fabric_of(read_topology(topology)).fabric.links
    between = next(index for index, link in enumerate(links) if {link.a, link.b} == {"SW1", "SW2"})
    failure = LinkFailure(between, 100_000, 5_000)
    result, alone = (brought_up(topology, tmp_path, *rtl, failure=failure) for rtl in (["SW2"], []))
    check_same(result, alone, 1_000)
    # It fails when all is up, and is heard of.
    assert [event for cycle, event in result.events if cycle > failure.cycle and isinstance(event, TablesWritten)]


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("rtl", [("L3", "L4"), ("S1", "S2")], ids="+".join)
def test_a_link_that_fails_at_rtl_is_dealt_with_the_same(
    rtl: tuple[str, ...], alone: Callable[[LinkFailure | None], SubnetBringUpResult], tmp_path: Path
) -> None:
    links = fabric_of(read_topology(FAT_TREE)).fabric.links
    (between,) = (index for index, link in enumerate(links) if {link.a, link.b} == {"L3", "S1"})
    failure = LinkFailure(between, 260_000, 5_000)
    check_same(brought_up(FAT_TREE, tmp_path, *rtl, failure=failure), alone(failure))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "rtl", "cycles"),
    [pytest.param("verilator", ("S", "H2"), 20_000, marks=pytest.mark.deep), ("icarus", ("H1",), 3_000)],
)
def test_random_traffic_and_errors_do_the_same(engine: str, rtl: tuple[str, ...], cycles: int, tmp_path: Path) -> None:
    """Widths, flight times, links that go down, and damaged rows are those of a check.

    Of the switch's links one leads to RTL and two lead out, so all is seen that a switch alone could show.
    """
    expected: list[Delivery] = []
    for _draw in range(10):
        # In one of thirty, links are down so much that hosts hardly get anything.
        options = CheckOptions(ports=3, vls=2, cycles=cycles, seed=random.randrange(1 << 32), sim=engine)
        print(f"{options.command}, but only {rtl} are RTL")
        experiment = check_experiment(options)
        expected.clear()
        with run("model", experiment.spec(), tmp_path / "model", on_delivery=expected.append) as model:
            records = list(model)
        if len(expected) > cycles / 200:
            break
    seen = Recorder()
    comparison = perform(experiment, engine, tmp_path, [seen], rtl=rtl)
    difference = comparison.difference
    assert difference is None, difference.report(Names(experiment.topology.fabric), options.command)
    assert seen.records == records
    assert seen.deliveries == expected
    assert len(expected) > cycles / 200


def unrest() -> RunSpec:
    """Link 1, of h1, is taken down and brought back, and its ports sleep and wake, in every order."""
    choose = random.Random(5)
    places = [(list(STAR.nodes).index("h1"), 1), (0, 2)]
    controls = []
    for cycle in range(50, 1000, 10):
        if choose.random() < 0.3:
            controls.append(Control(cycle, choose.choice((Operation.LINK_DOWN, Operation.LINK_UP)), 1))
            continue
        node, port = choose.choice(places)
        state = choose.choice((PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED))
        address = port_address(port, PortRegister.PHYSICAL_STATE)
        controls.append(Control(cycle, Operation.BUS_WRITE, node, (address, state, 0, 0)))
        controls.append(Control(cycle + 5, Operation.BUS_READ, node, (address, 0, 0, 0)))
    return RunSpec(STAR, controls, (), 1100)


@pytest.mark.slow
@pytest.mark.parametrize("rtl", ["h1", pytest.param("sw0", marks=pytest.mark.deep)])
def test_a_link_is_up_while_rtl_and_model_poll_and_nobody_cuts_it(rtl: str, tmp_path: Path) -> None:
    with run("icarus", unrest(), tmp_path / rtl, rtl=[rtl]) as seen, run("model", unrest(), tmp_path) as expected:
        records = list(expected)
        assert list(seen) == records
    states = [record.a for record in records if (record.source, record.kind) == (port_source(0, 2), Kind.STATE)]
    assert states.count(PortState.INITIALIZE) > 5


def quiet(cycles: int) -> RunSpec:
    return RunSpec(STAR, [Control(20, Operation.LINK_DOWN, 0)], (), cycles)


@pytest.mark.slow
def test_a_row_that_is_another_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_another_idle_row(run_dir: Path, identities: list) -> None:
        write_surroundings(run_dir, identities)
        idle = bytearray((run_dir / IDLE_FILE).read_bytes())
        idle[150] ^= 1
        (run_dir / IDLE_FILE).write_bytes(idle)

    monkeypatch.setattr(mixed, "write_surroundings", with_another_idle_row)
    h1 = list(STAR.nodes).index("h1")
    with (
        run("icarus", quiet(400), tmp_path / "mixed", rtl=["h1"]) as seen,
        run("model", quiet(400), tmp_path / "model") as expected,
    ):
        difference = compare(expected, seen).difference
    assert (difference.cycle, difference.source, difference.kind) == (150, port_source(h1, 1), Kind.ROW)
    assert difference.expected is None
    report = difference.report(Names(STAR), "again")
    assert "first difference: cycle 150, h1[1]" in report
    with run("icarus", quiet(400), tmp_path / "mixed", rtl=["h1"]) as seen:
        records: list[Record] = []
        with pytest.raises(mixed.ShadowMismatch, match=r"cycle 150: h1\[1\] sends another row than its golden model"):
            records.extend(seen)
    assert records[-1].kind == Kind.ROW


def test_nodes_that_are_not_there_are_refused(tmp_path: Path) -> None:
    for names, said in ((["sw0", "h7"], "RTL node h7: no such node; there are sw0, h0, h1, h2"), ([], "no nodes are")):
        with pytest.raises(ValueError, match=said):
            run("verilator", quiet(9), tmp_path, rtl=names)
        with pytest.raises(ValueError, match=said):
            build("verilator", STAR, rtl=names)


@pytest.mark.parametrize("engine", ["amaranth", "model"])
def test_an_engine_that_simulates_whole_fabrics_says_so(engine: str, tmp_path: Path) -> None:
    with pytest.raises(WholeFabricsOnly, match=f"{engine} simulates whole fabrics only: expected verilator or icarus"):
        run(engine, quiet(9), tmp_path, rtl=["sw0"])
