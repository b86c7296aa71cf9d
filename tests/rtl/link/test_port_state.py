"""The port state machine: every transition with its cycle, and what wins over what."""

import pytest

from tests.rtl.link.bench import ACTIVE_FROM, PortBench, data_rows, link_rows
from wire.codes import PortState
from wire.registers import Counter, PortRegister
from wire.trace import Kind

DOWN, INITIALIZE, ARMED, ACTIVE, DEFER = (
    PortState.DOWN,
    PortState.INITIALIZE,
    PortState.ARMED,
    PortState.ACTIVE,
    PortState.ACTIVE_DEFER,
)


def states(port: PortBench, cycles: int) -> list[tuple[int, PortState]]:
    """The state at reset and its changes; the trace must say the same."""
    port.run(cycles)
    changes = port.changes("state")
    assert [(r.cycle, r.words) for r in port.of(Kind.STATE)] == [(c, (s, 0, 0, 0, 0)) for c, s in changes[1:]]
    return [(cycle, PortState(state)) for cycle, state in changes]


def test_the_way_up() -> None:
    port = PortBench()
    port.at(0, up=0)
    port.at(3, up=1)
    port.write(10, PortRegister.STATE, ARMED)
    port.receive(14, link_rows())  # row 1 at 15, ActiveEnable from 17 on
    port.write(16, PortRegister.STATE, ACTIVE)
    assert states(port, 25) == [(0, DOWN), (4, INITIALIZE), (12, ARMED), (18, ACTIVE)]


def test_active_has_to_wait_for_the_other_end_to_leave_initialize() -> None:
    for given, active in ((3, 18), (15, 18), (16, 18), (17, 19)):
        port = PortBench()
        port.write(1, PortRegister.STATE, ARMED)
        port.receive(14, link_rows())  # ActiveEnable from 17 on
        port.write(given, PortRegister.STATE, ACTIVE)
        assert states(port, 25)[2:] == [(3, ARMED), (active, ACTIVE)]


def test_active_that_has_to_wait_is_forgotten_when_armed_is_left() -> None:
    port = PortBench()
    port.write(1, PortRegister.STATE, ARMED)
    port.write(3, PortRegister.STATE, ACTIVE)
    port.write(6, PortRegister.STATE, DOWN)
    port.write(12, PortRegister.STATE, ARMED)
    port.receive(20, link_rows())
    assert states(port, 40)[2:] == [(3, ARMED), (8, DOWN), (9, INITIALIZE), (14, ARMED)]


def test_a_first_good_packet_activates_an_armed_port() -> None:
    port = PortBench()
    port.write(1, PortRegister.STATE, ARMED)
    after = port.receive(4, link_rows())
    port.receive(after, data_rows())
    ended = after + 10
    assert states(port, 40)[3:] == [(ended + 3, ACTIVE)]


@pytest.mark.parametrize("what", ["no FCP before", "Op 1 FCP in Initialize", "bad packet", "VL15"])
def test_what_does_not_activate_an_armed_port(what: str) -> None:
    port = PortBench()
    if what == "Op 1 FCP in Initialize":
        port.receive(2, link_rows(op=1))
    port.write(5, PortRegister.STATE, ARMED)
    if what in ("bad packet", "VL15"):
        port.receive(8, link_rows())
    port.receive(12, data_rows(good=what != "bad packet", vl=15 if what == "VL15" else 0))
    assert states(port, 40)[2:] == [(7, ARMED)]


def test_a_write_that_skips_a_state_changes_nothing() -> None:
    port = PortBench()
    port.write(2, PortRegister.STATE, ACTIVE)
    port.write(3, PortRegister.STATE, INITIALIZE)
    port.write(4, PortRegister.STATE, DEFER)
    assert states(port, 12) == [(0, DOWN), (1, INITIALIZE)]


@pytest.mark.parametrize("state", [INITIALIZE, ARMED, ACTIVE])
def test_down_lasts_one_cycle_while_the_link_is_up(state: PortState) -> None:
    port = PortBench()
    if state == ARMED:
        port.write(1, PortRegister.STATE, ARMED)
    if state == ACTIVE:
        port.activate()
    port.write(10, PortRegister.STATE, DOWN)
    found = states(port, 20)
    assert found[-3][1] == state
    assert found[-2:] == [(12, DOWN), (13, INITIALIZE)]


def test_the_link_failing_before_active_is_downed_at_once() -> None:
    for armed in (False, True):
        port = PortBench()
        port.watch = Counter.LINK_DOWNED
        if armed:
            port.write(1, PortRegister.STATE, ARMED)
        port.at(10, up=0)
        port.at(15, up=1)
        assert states(port, 25)[-2:] == [(11, DOWN), (16, INITIALIZE)]
        assert port.counts(Counter.LINK_DOWNED) == [(11, 1)]


def deferred(timeout: int) -> PortBench:
    """An Active port whose link fails in cycle 20: ActiveDefer from 21 on."""
    port = PortBench()
    port.activate()
    port.write(2, PortRegister.LINK_DOWN_TIMEOUT, timeout)
    port.at(20, up=0)
    return port


def test_an_active_port_waits_for_its_link_to_come_back() -> None:
    port = deferred(30)
    port.watch = Counter.LINK_ERROR_RECOVERY
    port.at(40, up=1)
    assert states(port, 60)[-2:] == [(21, DEFER), (41, ACTIVE)]
    assert port.counts(Counter.LINK_ERROR_RECOVERY) == [(41, 1)]


@pytest.mark.parametrize("timeout", [1, 2, 30])
def test_and_gives_up_after_the_time_out(timeout: int) -> None:
    port = deferred(timeout)
    port.watch = Counter.LINK_DOWNED
    assert states(port, 60)[-2:] == [(21, DEFER), (21 + timeout, DOWN)]
    assert port.counts(Counter.LINK_DOWNED) == [(21 + timeout, 1)]


def test_a_link_that_comes_back_in_the_last_moment_is_back() -> None:
    for up, state in ((49, ACTIVE), (50, ACTIVE), (51, DOWN)):
        port = deferred(30)
        port.at(up, up=1)
        assert states(port, 60)[5] == (min(up + 1, 51), state)


def test_writing_the_time_out_starts_it_anew() -> None:
    port = deferred(30)
    port.write(43, PortRegister.LINK_DOWN_TIMEOUT, 10)  # visible at 45
    assert states(port, 70)[-1] == (55, DOWN)


def test_down_written_in_active_defer_is_not_a_failed_link() -> None:
    port = deferred(30)
    port.watch = Counter.LINK_DOWNED
    port.write(25, PortRegister.STATE, DOWN)
    assert states(port, 60)[-1] == (27, DOWN)
    assert port.counts(Counter.LINK_DOWNED) == []


def test_the_link_coming_back_wins_over_a_write() -> None:
    port = deferred(30)
    port.at(26, up=1)
    port.write(25, PortRegister.STATE, DOWN)
    assert states(port, 60)[-1] == (27, ACTIVE)


def test_a_failed_link_wins_over_a_write() -> None:
    port = PortBench()
    port.watch = Counter.LINK_DOWNED
    port.write(9, PortRegister.STATE, DOWN)
    port.at(10, up=0)
    assert states(port, 20)[-1] == (11, DOWN)
    assert port.last_watched() == 1


@pytest.mark.parametrize("state", [ARMED, ACTIVE])
def test_remote_init_takes_the_port_down(state: PortState) -> None:
    port = PortBench()
    if state == ACTIVE:
        port.activate()
    else:
        port.write(1, PortRegister.STATE, ARMED)
        port.receive(4, link_rows())
    port.receive(20, link_rows(op=1))
    assert states(port, 30)[-2:] == [(23, DOWN), (24, INITIALIZE)]


def test_an_armed_port_that_has_not_heard_of_the_other_end_stays_armed() -> None:
    """The other end says Op 1 until it is armed too."""
    port = PortBench()
    port.write(1, PortRegister.STATE, ARMED)
    port.receive(10, link_rows(op=1))
    after = port.receive(20, link_rows(op=1))
    port.receive(after, link_rows())
    port.write(after + 10, PortRegister.STATE, ACTIVE)
    assert states(port, 60)[-2:] == [(3, ARMED), (after + 12, ACTIVE)]


def test_remote_init_wins_over_a_write_to_active() -> None:
    port = PortBench()
    port.write(1, PortRegister.STATE, ARMED)
    port.receive(4, link_rows())
    port.receive(20, link_rows(op=1))  # row 1 at 21, shows at 23
    port.write(21, PortRegister.STATE, ACTIVE)
    assert states(port, 30)[-2:] == [(23, DOWN), (24, INITIALIZE)]


def test_active_enable_is_lost_on_the_way_down() -> None:
    port = PortBench()
    port.activate()
    port.write(ACTIVE_FROM, PortRegister.STATE, DOWN)
    port.write(20, PortRegister.STATE, ARMED)
    port.write(25, PortRegister.STATE, ACTIVE)
    assert states(port, 35)[-1] == (22, ARMED)


def reported(port: PortBench, cycles: int) -> list[int]:
    """The cycles whose state is one that PortStateChange reports."""
    port.run(cycles)
    return [cycle for cycle, reports in enumerate(port.seen["state_reported"]) if reports]


def test_port_state_change_tells_of_initialize_and_not_of_the_way_to_active() -> None:
    port = PortBench()
    port.at(0, up=0)
    port.at(3, up=1)
    port.write(10, PortRegister.STATE, ARMED)
    port.receive(14, link_rows())
    port.write(16, PortRegister.STATE, ACTIVE)
    assert reported(port, 25) == [4]


def test_port_state_change_tells_of_a_lost_link_when_it_is_given_up() -> None:
    port = deferred(30)
    assert reported(port, 60)[1:] == [21 + 30]
    port = PortBench()
    port.at(10, up=0)
    assert reported(port, 20)[1:] == [11]


def test_port_state_change_tells_not_of_a_link_that_came_back() -> None:
    port = deferred(30)
    port.at(40, up=1)
    assert reported(port, 60)[1:] == []


def test_port_state_change_tells_not_of_down_by_a_write_but_of_initialize_after_it() -> None:
    port = PortBench()
    port.write(10, PortRegister.STATE, DOWN)  # Down at 12
    assert reported(port, 20)[1:] == [13]


def test_port_state_change_tells_of_a_link_that_failed_as_down_was_written() -> None:
    port = PortBench()
    port.write(9, PortRegister.STATE, DOWN)
    port.at(10, up=0)
    assert reported(port, 20)[1:] == [11]


@pytest.mark.parametrize("written", [False, True])
def test_port_state_change_tells_of_remote_init_unless_down_was_written(written: bool) -> None:
    port = PortBench()
    port.activate()
    port.receive(20, link_rows(op=1))  # row 1 at 21, Down at 23
    if written:
        port.write(21, PortRegister.STATE, DOWN)
    assert reported(port, 30)[1:] == ([24] if written else [23, 24])
