"""The engines: one stimulus, one trace, whoever runs it."""

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from cosim.engines.base import Engine, Run, RunOptions, Waves, WavesUnsupported
from cosim.engines.simulation import run
from cosim.stimulus.run_spec import RunSpec
from cosim.trace.compare import compare
from tests.cosim.drivers.echo import PARAMETERS
from tests.cosim.engines.echo_engines import HARDWARE, SIMULATORS, on, random_spec
from wire.packet import WORD_BYTES
from wire.stimulus import Control, Delivery, Operation, Post, Taking
from wire.trace import Kind, port_of_source

SEED = random.randrange(1 << 32)


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
        self.takings: list[Taking] = []

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

    def taken(self, taking: Taking) -> None:
        assert taking.cycle < self.reach
        self.takings.append(taking)


def result(engine: Engine, spec: RunSpec, work_dir: Path) -> tuple[list, list[Delivery]]:
    deliveries: list[Delivery] = []
    with Run(engine, spec, RunOptions(work_dir, on_delivery=deliveries.append)) as records:
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
    ponger = Ponger(reaction, 20)
    records, deliveries = result(on(name), RunSpec(PARAMETERS, [], [], 10**9, ponger), tmp_path)
    # The last of five words is delivered six cycles after the post, the first is taken one after it.
    times = [11 + (6 + reaction) * turn for turn in range(20)]
    assert [(delivery.cycle, delivery.node) for delivery in deliveries] == [(t, 1 - i % 2) for i, t in enumerate(times)]
    assert words_of(deliveries[-1]) == (20, 21, 22, 23, 24)
    assert [record.cycle for record in records if record.kind == Kind.SEND] == [time - 5 for time in times]
    # It hears of each before it is asked how far the fabric may run after it.
    assert [(one.cycle, one.node, one.slot) for one in ponger.takings] == [
        (t - 5, i % 2, 0) for i, t in enumerate(times)
    ]


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
    delivered: list[Delivery] = []
    with Run(on(name), random_spec(1, 2000), RunOptions(tmp_path, on_delivery=delivered.append)) as records:
        for record in records:
            if record.kind == Kind.DELIVER:
                assert any(
                    (found.cycle, found.node) == (record.cycle, port_of_source(record.source)[0]) for found in delivered
                )
    assert delivered == sorted(delivered, key=lambda delivery: delivery[:2])


@pytest.mark.parametrize("name", HARDWARE)
def test_stimulus_is_drawn_as_time_goes_on(name: str, tmp_path: Path) -> None:
    drawn = 0

    def posts() -> Iterator[Post]:
        nonlocal drawn
        for drawn in range(10**9):
            yield Post.of_words(100 * drawn, 0, 0, (drawn,) * 5)

    with Run(on(name), RunSpec(PARAMETERS, [], posts(), 10**9), RunOptions(tmp_path)) as records:
        assert next(iter(records)).kind == Kind.SEND
        assert drawn < 10_000


@pytest.mark.parametrize(("name", "suffix"), [("amaranth", ".fst"), ("verilator", ".vcd"), ("icarus", ".vcd")])
def test_waves_of_another_format_are_refused(name: str, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(WavesUnsupported, match=name):
        run(name, random_spec(1), tmp_path, waves=Waves(tmp_path / f"w{suffix}"))
