"""A run that stands still between steps: time, control operations, ends and errors."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import greenlet
import pytest

from cosim.analysis.observer import Observer
from cosim.experiments.stepped_run import RunOver, SteppedRun, SteppedTask
from cosim.stimulus.actors import Shared
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import find_topology, read_topology
from wire.codes import PortState
from wire.stimulus import Control, Operation, Post
from wire.trace import Kind
from wire.trace_layout import State

STEP = 100


class Clock:
    """A leader that lets the fabric run for a while each time, and does nothing."""

    def __init__(self, run: SteppedRun) -> None:
        self.run = run
        self.reach = 0
        self.posted: Shared[Post] = Shared()
        self.asked: list[int] = []

    def until(self, finished: int) -> int:
        self.asked.append(finished)
        self.reach = finished + STEP if self.run.stand_still(finished) else finished
        return self.reach

    def posts_until(self, cycle: int) -> Iterator[Post]:
        return iter(())

    def delivered(self, delivery) -> None: ...
    def taken(self, taking) -> None: ...


class States(Observer):
    """Cycles and states of ports that change theirs."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def observe(self, record) -> None:
        if record.kind == Kind.STATE:
            self.seen.append((record.cycle, State.state.read(record)))


def started(tmp_path, *, engine="model", **more) -> tuple[SteppedRun, Clock]:
    fabric = fabric_of(read_topology(find_topology("star"))).fabric
    run = SteppedRun(SteppedTask(fabric, tmp_path, engine=engine, **more))
    clock = Clock(run)
    run.begin([clock])
    return run, clock


def test_time_goes_on_only_in_steps_as_far_as_leaders_and_the_caller_let_it(tmp_path):
    run, clock = started(tmp_path)
    stops = []
    for most in (1, 7, 1000, 30, 100):
        run.step(most)
        stops.append(run.now)
    # The first step leads to cycle 0, the next to the first cycle that may have a control operation.
    assert stops == clock.asked == [0, 1, 101, 131, 231]
    run.end()


def test_several_runs_are_stepped_in_turns(tmp_path):
    runs = [started(tmp_path / str(number))[0] for number in range(3)]
    for _ in range(5):
        for run in runs:
            run.step(50)
    assert len({run.now for run in runs}) == 1
    for run in runs:
        run.end()


@pytest.mark.parametrize(
    ("engine", "compared"), [("model", False), pytest.param("verilator", True, marks=pytest.mark.slow)]
)
def test_control_operations_act_soon_after_they_are_given(tmp_path, engine, compared):
    states = States()
    run, _clock = started(tmp_path, engine=engine, compared=compared, observers=[states])
    while run.now < 2_000:
        run.step(STEP)
    states.seen.clear()
    given = run.now
    run.control(Operation.LINK_DOWN, 0)
    assert run.has_wanted
    while not any(state == PortState.DOWN for _cycle, state in states.seen):
        run.step(STEP)
    assert not run.has_wanted
    assert given < states.seen[0][0] < given + 1_100
    run.end()
    assert run.difference == ""
    assert (run.comparison is not None) is compared


def test_first_control_operations_are_given_as_they_were_asked_for(tmp_path):
    states = States()
    run, _clock = started(tmp_path, controls=[Control(500, Operation.LINK_DOWN, 0)], observers=[states])
    while run.now < 700:
        run.step(STEP)
    assert {cycle for cycle, state in states.seen if state == PortState.DOWN} <= set(range(500, 510))
    run.end()


def test_a_run_that_is_over_cannot_be_stepped(tmp_path):
    run, _clock = started(tmp_path)
    run.step(10)
    run.end()
    run.end()
    with pytest.raises(RunOver, match="the run is over"):
        run.step(10)


def test_a_run_that_never_began_ends(tmp_path):
    run, clock = started(tmp_path)
    run.end()
    assert clock.asked == []


def test_what_goes_wrong_in_an_engine_reaches_who_steps(tmp_path):
    run, _clock = started(tmp_path, controls=[Control(0, Operation.LINK_DOWN, 99)])
    with pytest.raises(ValueError, match="expected a target below 2"):
        run.step(10)
    with pytest.raises(RunOver):
        run.step(10)


def test_only_the_thread_that_began_a_run_steps_it(tmp_path):
    run, _clock = started(tmp_path)
    run.step(10)
    raised: list[Exception] = []

    def step() -> None:
        try:
            run.step(10)
        except RunOver as over:
            raised.append(over)

    thread = Thread(target=step)
    thread.start()
    thread.join()
    assert "expected the thread that began it" in str(raised[0])
    run.end()


def test_coroutines_of_the_caller_s_own_may_step_it_each(tmp_path):
    run, _clock = started(tmp_path)
    run.step(10)
    others = [greenlet.greenlet(lambda: run.step(10)) for _ in range(2)]
    before = run.now
    for other in others:
        other.switch()
    assert run.now > before
    assert all(other.dead for other in others)
    run.end()
