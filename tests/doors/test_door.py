"""The door as an actor, without a fabric: when it lets time pass, what it posts, and what it gives."""

from itertools import islice

import pytest

from doors.door import NS_PER_CYCLE, STEP_CYCLES, Door, NoAgent
from doors.mads.host_port import ATTRIBUTES
from wire.mad_packet import smp_of
from wire.packet import parse
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.smp import unpack_smp
from wire.stimulus import Control, Operation

START, PATIENCE = 50, 4_000

FABRIC = FabricParameters(
    {"S": SwitchParameters(ports=2), "A": AdapterParameters(), "B": AdapterParameters()},
    (LinkParameters("S", 1, "A", 1), LinkParameters("S", 2, "B", 1)),
)
FIRST_CONTROLS = [Control(3, Operation.LINK_DOWN, 0), Control(9, Operation.LINK_UP, 0)]


@pytest.fixture
def door(tmp_path):
    told: list[str] = []
    made = Door(
        FABRIC,
        tmp_path,
        start=START,
        patience=PATIENCE,
        window=3,
        controls=FIRST_CONTROLS,
        ready=lambda: None,
        tell=told.append,
    )
    yield made
    made.close()


def posted(door: Door, finished: int) -> list:
    return list(door.posts_until(door.until(finished)))


def test_before_its_start_nothing_is_posted(door):
    assert posted(door, 0) == []
    assert door.reach == START
    assert door.until(20) == START


def test_first_every_host_asks_its_own_agent_what_it_is(door):
    door.until(0)
    posts = posted(door, START)
    smps = [unpack_smp(smp_of(parse(post.data))) for post in posts]
    assert sorted((post.node, smp.attribute_id) for post, smp in zip(posts, smps, strict=True)) == sorted(
        (node, attribute) for node in (1, 2) for attribute in ATTRIBUTES
    )
    assert {(post.cycle, smp.hop_count) for post, smp in zip(posts, smps, strict=True)} == {(START + 1, 0)}


def test_what_is_posted_is_for_a_later_cycle_than_any_that_was_asked_for(door):
    finished = door.until(0)
    for _step in range(15):
        reach = door.until(finished)
        assert reach > finished
        assert all(finished < post.cycle <= reach for post in door.posts_until(reach))
        finished = reach


def test_while_something_is_on_its_way_programs_count_the_fabrics_time(door):
    finished = door.until(0)
    began = door.now.time
    for _step in range(5):
        finished = door.until(finished)
    assert door.now.time - began == (door.now.cycle - START) * NS_PER_CYCLE


def test_what_nothing_answers_is_sent_again_and_given_up(door):
    finished = door.until(0)
    tries = []
    while door.management.time_outs == 0:
        posts = posted(door, finished)
        if posts:
            tries.append((finished - START, len(posts)))
        finished = door.reach
    asked = 2 * len(ATTRIBUTES)
    assert tries == [(attempt * PATIENCE, asked) for attempt in range(4)]
    assert door.management.time_outs == asked
    with pytest.raises(NoAgent, match=r"A\[1\]: its agent does not answer its own host"):
        _run_for_ever(door, finished)


def _run_for_ever(door: Door, finished: int) -> None:
    while True:
        finished = door.until(finished)


def test_it_lets_the_fabric_go_a_step_further_each_time(door):
    door.until(0)
    assert door.until(START) == START + STEP_CYCLES
    assert door.until(START + STEP_CYCLES) == START + 2 * STEP_CYCLES


def test_every_run_gets_the_same_control_operations(door):
    first, second = door.controls(), door.controls()
    finished = door.until(0)
    assert list(islice(first, 2)) == FIRST_CONTROLS
    drawn = [next(first)]
    for step in range(4):
        if step == 1:
            door.control(Operation.LINK_DOWN, 1)
            door.control(Operation.BUS_READ, 0, (1, 0, 0, 0))
        finished = door.until(finished)
        while drawn[-1].cycle <= finished:
            drawn.append(next(first))
    cycles = [control.cycle for control in drawn]
    assert cycles == sorted(set(cycles))
    assert [control.operation for control in drawn if control.operation != Operation.RECV_STALL] == [
        Operation.LINK_DOWN,
        Operation.BUS_READ,
    ]
    assert list(islice(second, 2 + len(drawn))) == FIRST_CONTROLS + drawn


def test_a_door_that_ends_ends_the_run(door):
    finished = door.until(door.until(0))
    door.end()
    assert door.until(finished) == finished
