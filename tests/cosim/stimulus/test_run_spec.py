"""Stimulus that no engine can take is refused, and an actor is asked at the ends of its own steps."""

from collections.abc import Iterator

import pytest

from cosim.stimulus.run_spec import RunSpec, Stimulus
from tests.cosim.drivers.echo import PARAMETERS
from wire.stimulus import Control, Delivery, Operation, Post, Taking

WORDS = (1, 2, 3, 4, 5)


def drawn(stimulus: Stimulus) -> list[Control | Post]:
    return [*stimulus.controls_until(100), *stimulus.posts_until(100)]


@pytest.mark.parametrize(
    ("controls", "posts", "said"),
    [
        ([Control(5, 4, 0), Control(5, 5, 0)], [], "expected a cycle above that of the one before, 5"),
        ([Control(5, 10, 0)], [], "expected an operation of 1, 2, 3, 4, 5, 6, 7, 8, 9"),
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
        ([], [Post.of_words(5, 0, 1, (1,) * 480)], r"480 words: expected 5\.\.1055 that fit h0's 30 blocks"),
    ],
)
def test_stimulus_that_cannot_act_is_refused(controls: list[Control], posts: list[Post], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        drawn(Stimulus(RunSpec(PARAMETERS, controls, posts, 100)))


def test_run_of_no_cycles_is_refused() -> None:
    with pytest.raises(ValueError, match="cycles 0: expected 1 and above"):
        RunSpec(PARAMETERS, [], [], 0)


class Stepping:
    """An actor with steps of 30 cycles, which ends the run at the end of the fourth one."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def until(self, finished: int) -> int:
        self.asked.append(finished)
        return min(finished + 30, max(finished, 120))

    def posts_until(self, cycle: int) -> Iterator[Post]:
        return iter(())

    def delivered(self, delivery: Delivery) -> None: ...
    def taken(self, taking: Taking) -> None: ...


@pytest.mark.parametrize("window", [1, 7, 10, 30, 45, 1000])
def test_an_actor_is_asked_at_the_ends_of_its_own_steps_wherever_an_engine_asks(window: int) -> None:
    actor = Stepping()
    stimulus = Stimulus(RunSpec(PARAMETERS, [], [], 1000, actor))
    finished = 0
    while (reach := stimulus.until(finished)) > finished:
        finished = min(reach, finished + window)
    assert finished == 120
    assert actor.asked == [0, 30, 60, 90, 120]


def test_an_actor_is_asked_no_more_when_the_run_ends_in_a_step() -> None:
    actor = Stepping()
    stimulus = Stimulus(RunSpec(PARAMETERS, [], [], 50, actor))
    assert [stimulus.until(finished) for finished in (0, 29, 30, 49)] == [30, 30, 50, 50]
    assert actor.asked == [0, 30]
