"""Links that come and go."""

from sm.flapping import LinkHistory
from sm.subnet import End, Link

ONE, OTHER = Link(End(1, 1), End(2, 1)), Link(End(1, 2), End(2, 2))


def test_a_link_flaps_while_it_was_lost_often_lately():
    history = LinkHistory(limit=3, period=100)
    assert [history.lost(ONE, now) for now in (10, 20)] == [1, 2]
    assert not history.flaps(ONE, 20)
    assert history.lost(ONE, 30) == 3
    assert history.flaps(ONE, 109)
    assert not history.flaps(ONE, 110)
    assert history.lost(ONE, 115) == 3


def test_each_link_has_its_own_history():
    history = LinkHistory(limit=2, period=100)
    history.lost(ONE, 1)
    history.lost(OTHER, 2)
    assert not history.flaps(ONE, 3)
    assert history.lost(OTHER, 3) == 2
    assert history.flaps(OTHER, 3)
    assert not history.flaps(ONE, 3)
