"""Control operations that are wanted while a fabric runs."""

from itertools import takewhile

import pytest

from cosim.stimulus.late_controls import LateControls
from wire.stimulus import Control, Operation

HOST, KNOWN = 4, 20
FIRST = [Control(3, Operation.LINK_DOWN, 0), Control(9, Operation.LINK_UP, 0)]
NOTHING = (Operation.RECV_STALL, HOST, (0, 0, 0, 0))


@pytest.fixture
def controls() -> LateControls:
    return LateControls(FIRST, host=HOST, known=KNOWN)


def drawn_until(drawing, cycle: int) -> list[Control]:
    """Those for CYCLE or before, and the next one, which who runs the fabric draws, too."""
    drawn = [next(drawing)]
    while drawn[-1].cycle <= cycle:
        drawn.append(next(drawing))
    return drawn


def test_the_first_are_followed_by_one_that_changes_nothing_where_no_more_are_known(controls):
    assert drawn_until(controls.draw(), KNOWN) == [*FIRST, Control(KNOWN + 1, *NOTHING)]


def test_what_is_wanted_is_given_after_what_was_known_one_a_cycle_in_order(controls):
    drawing = controls.draw()
    drawn_until(drawing, KNOWN)
    controls.want(Operation.LINK_DOWN, 1)
    controls.want(Operation.BUS_READ, 0, (1, 2, 3, 4))
    assert controls.has_wanted
    assert controls.give(KNOWN, 100) == controls.known == 100
    assert not controls.has_wanted
    assert drawn_until(drawing, 100) == [
        Control(KNOWN + 2, Operation.LINK_DOWN, 1),
        Control(KNOWN + 3, Operation.BUS_READ, 0, (1, 2, 3, 4)),
        Control(101, *NOTHING),
    ]


def test_where_more_are_wanted_than_there_are_cycles_more_cycles_are_known(controls):
    drawing = controls.draw()
    drawn_until(drawing, KNOWN)
    for link in range(5):
        controls.want(Operation.LINK_DOWN, link)
    assert controls.give(KNOWN, KNOWN + 3) == KNOWN + 7
    given = drawn_until(drawing, KNOWN + 7)
    assert [control.target for control in takewhile(lambda one: one.operation != NOTHING[0], given)] == [*range(5)]
    assert given[-1] == Control(KNOWN + 8, *NOTHING)


def test_no_two_are_in_a_cycle_however_short_the_steps_are(controls):
    drawing = controls.draw()
    drawn, finished = drawn_until(drawing, KNOWN), KNOWN
    for step in range(6):
        for link in range(step % 3):
            controls.want(Operation.LINK_UP, link)
        finished = controls.give(finished, finished + 1)
        drawn += drawn_until(drawing, finished)
    cycles = [control.cycle for control in drawn]
    assert cycles == sorted(set(cycles))
    assert [control.target for control in drawn if control.operation == Operation.LINK_UP] == [0, 0, 0, 1, 0, 0, 1]


def test_every_run_draws_the_same(controls):
    ahead, behind = controls.draw(), controls.draw()
    drawn = drawn_until(ahead, KNOWN)
    controls.want(Operation.LINK_DOWN, 1)
    drawn += drawn_until(ahead, controls.give(KNOWN, 50))
    assert drawn_until(behind, 50) == drawn
