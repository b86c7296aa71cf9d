"""How slow a flow is follows from the BECNs that it got, and from time (IBTA vol 1, A10.2.2)."""

import pytest

from tests.verbs.congestion_control.settings import LIMIT, NS, UNIT, settings_with
from verbs.congestion_control.flows import Flows
from verbs.congestion_control.settings import SlEntry, TableEntry

QP, OTHER, SL = 7, 8, 3


def flows_with(**settings: int) -> Flows:
    flows = Flows(NS)
    flows.change(settings_with(**settings), 0)
    return flows


def test_nothing_is_slow_at_first_and_without_settings_nothing_ever_is() -> None:
    flows = Flows(NS)
    flows.slow_down(QP, SL, 0)
    flows.sent(QP, SL, 100, 0)
    assert (flows.ccti(QP, SL, 0), flows.free(QP, SL)) == (0, 0)


def test_each_becn_adds_the_increase_up_to_the_limit() -> None:
    flows = flows_with(ccti_increase=50)
    found = []
    for now in range(4):
        flows.slow_down(QP, SL, now)
        found.append(flows.ccti(QP, SL, now))
    assert found == [50, 100, LIMIT, LIMIT]
    assert (flows.ccti(OTHER, SL, 4), flows.ccti(QP, SL + 1, 4)) == (0, 0)


@pytest.mark.parametrize(
    ("timer", "minimum", "found"), [(2, 0, [3, 3, 2, 0, 0]), (2, 2, [3, 3, 2, 2, 2]), (0, 0, [3] * 5)]
)
def test_each_timer_takes_one_back_down_to_the_minimum(timer: int, minimum: int, found: list[int]) -> None:
    flows = flows_with(ccti_increase=3 - minimum, ccti_timer=timer, ccti_min=minimum)
    flows.slow_down(QP, SL, 0)
    times = [0, 2 * UNIT - 1, 2 * UNIT, 6 * UNIT, 100 * UNIT]
    assert [flows.ccti(QP, SL, now) for now in times] == found


def test_the_minimum_holds_for_flows_that_got_no_becn() -> None:
    flows = flows_with(ccti_min=2)
    assert flows.ccti(QP, SL, 0) == 2
    flows.sent(QP, SL, 100, 0)
    assert flows.free(QP, SL) == 300


def test_by_sl_all_queue_pairs_of_an_sl_are_one_flow() -> None:
    flows = Flows(NS)
    flows.change(settings_with(by_sl=True), 0)
    flows.slow_down(QP, SL, 0)
    flows.sent(QP, SL, 100, 10)
    assert (flows.ccti(OTHER, SL, 10), flows.free(OTHER, SL)) == (1, 210)
    assert flows.ccti(OTHER, SL + 1, 10) == 0


def test_other_settings_leave_a_flow_where_it_is() -> None:
    flows = flows_with(ccti_increase=9, ccti_timer=1)
    flows.slow_down(QP, SL, 0)
    flows.change(settings_with(ccti_timer=4), 2 * UNIT)
    assert [flows.ccti(QP, SL, now * UNIT) for now in (3, 4, 8)] == [7, 6, 5]
    flows.change(settings_with(limit=3), 8 * UNIT)
    assert flows.ccti(QP, SL, 8 * UNIT) == 3


def test_a_flow_that_gets_to_the_threshold_says_so_once() -> None:
    flows = flows_with(ccti_increase=2, trigger_threshold=3)
    assert [flows.slow_down(QP, SL, 0) for _ in range(4)] == [False, True, False, False]
    flows = flows_with(trigger_threshold=0)
    assert not flows.slow_down(QP, SL, 0)


def test_what_has_ended_is_forgotten() -> None:
    flows = flows_with()
    flows.slow_down(QP, SL, 0)
    flows.slow_down(OTHER, SL, 0)
    flows.forget(QP)
    assert (flows.ccti(QP, SL, 0), flows.ccti(OTHER, SL, 0)) == (0, 1)


def test_a_delay_is_a_multiple_of_the_packets_time_shifted() -> None:
    assert TableEntry(2, 5).delay(1003) == 250 * 5


def test_timers_run_in_step_with_time_stamps() -> None:
    assert SlEntry(ccti_timer=3).ticks(UNIT * 2, UNIT * 3, NS) == 1
    assert SlEntry(ccti_timer=3).ticks(UNIT * 3, UNIT * 5, NS) == 0
