"""The engines: one stimulus, one trace, whoever runs it; and nothing is left behind, however a run ends."""

import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import pywellen

from cosim.engines import amaranth, session
from cosim.engines.base import Engine, Run, WavesUnsupported
from cosim.engines.simulation import ENGINES, UnknownEngine, run
from cosim.simulators.cocotb_results import SimulationFailed
from cosim.stimulus.run_spec import RunSpec
from cosim.trace.compare import compare
from tests.cosim.drivers.echo import PARAMETERS, Echo
from tests.files import ROOT
from toolchain.process import running
from verilog.design import Design, export
from wire.packet import WORD_BYTES
from wire.stimulus import Control, Delivery, Operation, Post
from wire.trace import Kind, port_of_source

CYCLES = 6000
SEED = random.randrange(1 << 32)


def design() -> Design:
    return export(Echo, PARAMETERS, ["tests/cosim/drivers/echo.py", "rtl/fabric/ports.py"])


def on(name: str) -> Engine:
    if name == "amaranth":
        return partial(amaranth.simulate, Echo)
    return partial(session.simulate, name, design())


HARDWARE = [
    "amaranth",
    pytest.param("verilator", marks=pytest.mark.slow),
    pytest.param("icarus", marks=pytest.mark.slow),
]
SIMULATORS = [pytest.param(name, marks=pytest.mark.slow) for name in ("verilator", "icarus")]


def random_spec(seed: int, cycles: int = CYCLES) -> RunSpec:
    choose = random.Random(seed)

    def controls() -> Iterator[Control]:
        for cycle in sorted(choose.sample(range(cycles), cycles // 20)):
            operation = choose.choice([Operation.BUS_WRITE, Operation.BUS_READ])
            yield Control(cycle, operation, choose.randrange(2), tuple(choose.getrandbits(32) for _arg in range(4)))

    def posts() -> Iterator[Post]:
        cycle = 0
        while cycle < cycles:
            node = choose.randrange(2)
            words = tuple(choose.getrandbits(32) for _word in range(choose.choice([5, 6, 15, 16, 17, 159])))
            yield Post.of_words(cycle, node, choose.randrange(2 + node), words)
            cycle += choose.choice([0, 0, 1, 20, 150])

    return RunSpec(PARAMETERS, list(controls()), list(posts()), cycles)


def words_of(delivery: Delivery) -> tuple[int, ...]:
    return struct.unpack(f">{len(delivery.data) // WORD_BYTES}I", delivery.data)


class Ponger:
    """Sends back what is delivered to h1, `reaction` cycles later, and h0 sends that on; ends after some deliveries.

    It looks at what was asked of it: posts only for cycles that it has allowed, deliveries only of such.
    """

    def __init__(self, reaction: int, deliveries: int) -> None:
        self.posts = [Post.of_words(5, 0, 0, (1, 2, 3, 4, 5))]
        self.given = self.reach = 0
        self.end: int | None = None
        self.left = deliveries
        self.reaction = reaction

    def until(self, finished: int) -> int:
        reach = finished + self.reaction - 1
        self.reach = reach if self.end is None else min(reach, self.end)
        return self.reach

    def posts_until(self, cycle: int) -> Iterator[Post]:
        assert cycle <= self.reach
        while self.given < len(self.posts) and self.posts[self.given].cycle <= cycle:
            self.given += 1
            yield self.posts[self.given - 1]

    def delivered(self, delivery: Delivery) -> None:
        assert delivery.cycle < self.reach
        self.left -= 1
        cycle = delivery.cycle + self.reaction
        if self.left == 0:
            self.end = cycle
        self.posts.append(Post.of_words(cycle, delivery.node, 0, tuple(word + 1 for word in words_of(delivery))))


def result(engine: Engine, spec: RunSpec, work_dir: Path) -> tuple[list, list[Delivery]]:
    deliveries: list[Delivery] = []
    with Run(engine, spec, work_dir, None, deliveries.append) as records:
        return list(records), deliveries


@pytest.mark.parametrize("name", SIMULATORS)
def test_simulator_agrees_with_amaranth_in_every_record_and_word(name: str, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    expected, expected_deliveries = result(on("amaranth"), random_spec(SEED), tmp_path / "amaranth")
    seen, deliveries = result(on(name), random_spec(SEED), tmp_path / name)
    assert compare(expected, seen).difference is None
    assert deliveries == expected_deliveries
    kinds = {record.kind for record in seen}
    assert kinds == {Kind.SEND, Kind.DELIVER, Kind.INJECT}
    assert list((tmp_path / name).iterdir()) == []


@pytest.mark.parametrize("name", HARDWARE)
def test_stimulus_acts_in_its_cycle(name: str, tmp_path: Path) -> None:
    controls = [Control(cycle, Operation.LINK_UP, 0) for cycle in (0, 1, 2, 1025, 2999)]
    posts = [
        Post.of_words(0, 0, 0, (1, 2, 3, 4, 5)),
        Post.of_words(1023, 0, 0, (3, 4, 5, 6, 7)),
        Post.of_words(1024, 1, 2, (5, 6, 7, 8, 9)),
    ]
    records, deliveries = result(on(name), RunSpec(PARAMETERS, controls, posts, 3000), tmp_path)
    # The stand-in shows an operation, and a packet's first word, in the cycle after.
    assert [record.cycle for record in records if record.kind == Kind.INJECT] == [1, 2, 3, 1026]
    assert [record.cycle for record in records if record.kind == Kind.SEND] == [1, 1024, 1025]
    assert [delivery.data for delivery in deliveries] == [post.data for post in posts]


@pytest.mark.parametrize("name", HARDWARE)
@pytest.mark.parametrize("reaction", [2, 100, 1000])
def test_an_actor_answers_in_the_same_cycle_on_every_engine(name: str, reaction: int, tmp_path: Path) -> None:
    spec = RunSpec(PARAMETERS, [], [], 10**9, Ponger(reaction, 20))
    records, deliveries = result(on(name), spec, tmp_path)
    # The last of five words is delivered six cycles after the post, the first is taken one after it.
    times = [11 + (6 + reaction) * turn for turn in range(20)]
    assert [(delivery.cycle, delivery.node) for delivery in deliveries] == [(t, 1 - i % 2) for i, t in enumerate(times)]
    assert words_of(deliveries[-1]) == (20, 21, 22, 23, 24)
    assert [record.cycle for record in records if record.kind == Kind.SEND] == [time - 5 for time in times]


@pytest.mark.parametrize("name", HARDWARE)
def test_an_actor_posts_beside_other_packets(name: str, tmp_path: Path) -> None:
    posts = [Post.of_words(cycle, 1, 1, (7, 7, 7, 7, 7)) for cycle in range(0, 3000, 500)]
    records, _ = result(on(name), RunSpec(PARAMETERS, [], posts, 3000, Ponger(100, 10**9)), tmp_path)
    sent = [
        (record.cycle, port_of_source(record.source)[0], record.a) for record in records if record.kind == Kind.SEND
    ]
    assert sent == sorted(sent)
    assert [cycle for cycle, node, slot in sent if slot == 1] == [cycle + 1 for cycle in range(0, 3000, 500)]
    assert len(sent) > 40


@pytest.mark.parametrize("name", HARDWARE)
def test_packets_follow_each_other_without_a_gap(name: str, tmp_path: Path) -> None:
    sizes = [6, 5, 40, 5, 1055]
    posts = [Post.of_words(10, 0, 0, tuple(range(size))) for size in sizes]
    records, deliveries = result(on(name), RunSpec(PARAMETERS, [], posts, 1500), tmp_path)
    sent = [record.cycle for record in records if record.kind == Kind.SEND]
    # One word a cycle, and one cycle to choose the next stream.
    assert sent == [11 + sum(sizes[:place]) + place for place in range(len(sizes))]
    assert [len(delivery.data) // WORD_BYTES for delivery in deliveries] == sizes


@pytest.mark.parametrize("name", HARDWARE)
def test_delivery_is_told_before_its_record(name: str, tmp_path: Path) -> None:
    told: list[Delivery] = []
    with Run(on(name), random_spec(1, 2000), tmp_path, None, told.append) as records:
        for record in records:
            if record.kind == Kind.DELIVER:
                assert any(
                    (found.cycle, found.node) == (record.cycle, port_of_source(record.source)[0]) for found in told
                )
    assert told == sorted(told, key=lambda delivery: delivery[:2])


@pytest.mark.parametrize("name", HARDWARE)
def test_stimulus_is_drawn_as_time_goes_on(name: str, tmp_path: Path) -> None:
    drawn = 0

    def posts() -> Iterator[Post]:
        nonlocal drawn
        for drawn in range(10**9):
            yield Post.of_words(100 * drawn, 0, 0, (drawn,) * 5)

    with Run(on(name), RunSpec(PARAMETERS, [], posts(), 10**9), tmp_path, None, None) as records:
        assert next(iter(records)).kind == Kind.SEND
        assert drawn < 10_000


@pytest.mark.parametrize("name", SIMULATORS)
def test_run_that_is_left_leaves_nothing(name: str, tmp_path: Path) -> None:
    with Run(on(name), random_spec(1, 10**6), tmp_path, tmp_path / "waves.fst", None) as records:
        next(iter(records))
    assert list(tmp_path.iterdir()) == []
    assert children(os.getpid()) == []


def children(parent: int) -> list[Path]:
    """Processes of this parent, as folders of /proc."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may end while we look
            # The name, in parentheses, may hold anything; behind it come the state and the parent.
            if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(process)
    return found


@pytest.mark.parametrize("name", SIMULATORS)
def test_interrupt_ends_the_simulator_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    session.build_design(name, design())
    program = f"""
import itertools
from pathlib import Path
from tests.cosim.engines.test_engines import PARAMETERS, Post, Run, RunSpec, on
posts = (Post.of_words(100 * number, 0, 0, (1, 2, 3, 4, 5)) for number in itertools.count())
with Run(on({name!r}), RunSpec(PARAMETERS, [], posts, 10**12), Path({str(tmp_path / "work")!r}), None, None) as records:
    for number, record in enumerate(records):
        if number == 0:
            print("running", flush=True)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            running = children(process.pid)
            process.send_signal(signal.SIGINT)
            process.wait(10)
        finally:
            process.kill()
    deadline = time.monotonic() + 5
    assert running
    while any(path.exists() for path in running):
        assert time.monotonic() < deadline, "the simulator outlived its run"
        time.sleep(0.05)
    assert list((tmp_path / "work").iterdir()) == []


def test_simulator_that_does_not_end_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_EXIT_SECONDS", 0.1)
    (tmp_path / "sim.log").write_text("still busy\n")
    ends = [end for pipe in (os.pipe(), os.pipe()) for end in pipe]
    with running(["sleep", "60"], cwd=tmp_path, env=os.environ, log=tmp_path / "sim.log") as process:
        simulator = session._Simulator(process, ends[1], ends[2], tmp_path)
        with pytest.raises(SimulationFailed, match=r"did not end within 0\.1 s\nstill busy"):
            simulator.finish()
        simulator.close()
    for end in (ends[0], ends[3]):
        os.close(end)
    assert process.poll() is not None


@pytest.mark.slow
def test_files_of_a_run_take_no_more_disk_the_longer_it_is(tmp_path: Path) -> None:
    packets = 4_000
    words = tuple(range(500))  # 8 MB in all
    posts = (Post.of_words(510 * number, 0, 0, words) for number in range(packets))
    most = 0
    with Run(on("verilator"), RunSpec(PARAMETERS, [], posts, 510 * packets), tmp_path, None, None) as records:
        for number, _record in enumerate(records):
            if number % 1000 == 0:
                files = (tmp_path / ".simulation").iterdir()
                most = max(most, sum(file.stat().st_blocks * 512 for file in files))
    assert 0 < most < 4_000_000


@pytest.mark.parametrize("name", SIMULATORS)
def test_simulator_that_dies_is_reported_with_its_log(name: str, tmp_path: Path) -> None:
    with Run(on(name), random_spec(1, 10**6), tmp_path, None, None) as run_to_die:
        records = iter(run_to_die)
        next(records)
        (simulator,) = children(os.getpid())
        os.kill(int(simulator.name), signal.SIGKILL)
        with pytest.raises(SimulationFailed, match="the simulator ended early"):
            deque(records, maxlen=0)
    assert [path.name for path in tmp_path.iterdir()] == ["sim.log"]


@pytest.mark.parametrize("name", SIMULATORS)
def test_waves_show_the_fabric_by_name(name: str, tmp_path: Path) -> None:
    waves = tmp_path / "run.fst"
    spec = RunSpec(PARAMETERS, [], [Post.of_words(5, 0, 0, (7, 8, 9, 10, 11))], 50)
    with Run(on(name), spec, tmp_path / "work", waves, None) as records:
        assert len(list(records)) == 2
    variables = {variable.full_name for variable in pywellen.Waveform(str(waves)).all_vars()}
    assert {"ironband_top.cycle", "ironband_top.fabric.trace_valid", "ironband_top.recv_1_data"} <= variables


def test_amaranth_writes_vcd_waves(tmp_path: Path) -> None:
    waves = tmp_path / "run.vcd"
    spec = RunSpec(PARAMETERS, [], [Post.of_words(5, 0, 0, (7, 8, 9, 10, 11))], 50)
    with Run(on("amaranth"), spec, tmp_path, waves, None) as records:
        list(records)
    assert [path.name for path in tmp_path.iterdir()] == ["run.vcd"]
    assert len(pywellen.Waveform(str(waves)).all_vars()) > 0


@pytest.mark.parametrize(("name", "suffix"), [("amaranth", ".fst"), ("verilator", ".vcd"), ("icarus", ".vcd")])
def test_waves_of_another_format_are_refused(name: str, suffix: str, tmp_path: Path) -> None:
    engine = on("amaranth") if name == "amaranth" else partial(session.simulate, name, None)
    waves = tmp_path / f"w{suffix}"
    with pytest.raises(WavesUnsupported, match=name), Run(engine, random_spec(1), tmp_path, waves, None) as records:
        list(records)


def test_model_has_no_waves(tmp_path: Path) -> None:
    with (
        pytest.raises(WavesUnsupported, match="the model has no wires to record"),
        run("model", random_spec(1), tmp_path, waves=tmp_path / "w.fst") as records,
    ):
        list(records)


def test_unknown_engine_is_refused(tmp_path: Path) -> None:
    assert ENGINES == ("verilator", "icarus", "amaranth", "model")
    with pytest.raises(UnknownEngine, match="engine 'vcs': expected one of verilator, icarus, amaranth, model"):
        run("vcs", random_spec(1), tmp_path)


WORDS = (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("controls", "posts", "said"),
    [
        ([Control(5, 4, 0), Control(5, 5, 0)], [], "expected a cycle above that of the one before, 5"),
        ([Control(5, 9, 0)], [], "expected an operation of 1, 2, 3, 4, 5, 6, 7"),
        ([Control(5, Operation.BUS_WRITE, 2)], [], "expected a target below 2"),
        ([Control(5, Operation.LINK_DOWN, 1)], [], "expected a target below 1"),
        ([Control(5, Operation.INJECT, 2)], [], "expected a target below 2"),
        ([Control(5, Operation.BUS_WRITE, 0, (1 << 32, 0, 0, 0))], [], "expected arguments of 32 bits"),
        (
            [],
            [Post.of_words(5, 0, 0, WORDS), Post.of_words(4, 0, 0, WORDS)],
            "expected a cycle of at least that of the one before, 5",
        ),
        ([], [Post.of_words(5, 2, 0, WORDS)], "expected an adapter, nodes 0, 1"),
        ([], [Post.of_words(5, 0, 2, WORDS)], r"h0 has slots 0\.\.1"),
        ([], [Post.of_words(5, 0, 0, (1,))], r"1 words: expected 5\.\.1055 that fit h0's 128 blocks"),
        ([], [Post.of_words(5, 0, 1, (1,) * 160)], r"160 words: expected 5\.\.1055 that fit h0's 10 blocks"),
    ],
)
def test_stimulus_that_cannot_act_is_refused(
    controls: list[Control], posts: list[Post], said: str, tmp_path: Path
) -> None:
    spec = RunSpec(PARAMETERS, controls, posts, 100)
    with pytest.raises(ValueError, match=said), Run(on("amaranth"), spec, tmp_path, None, None) as records:
        list(records)


def test_run_of_no_cycles_is_refused() -> None:
    with pytest.raises(ValueError, match="cycles 0: expected 1 and above"):
        RunSpec(PARAMETERS, [], [], 0)
