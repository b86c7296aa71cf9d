"""Port states (docs/pipeline.md, section 5)."""

import pytest

from model.management.agent import Agent
from wire.codes import PortPhysicalState, PortState
from wire.registers import Counter, PortRegister
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData

DOWN, INITIALIZE, ARMED, ACTIVE, DEFER = (PortState(code) for code in range(1, 6))


def test_a_connected_port_leaves_down_in_cycle_1(star):
    bench = star(2, bring_up=False).run(100)
    assert bench.states(0) == bench.states(1) == [(1, INITIALIZE)]


def test_a_write_shows_two_cycles_later(star):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.STATE, ARMED, 50)
    bench.run(100)
    assert bench.states(0) == [(1, INITIALIZE), (52, ARMED)]


def test_active_needs_an_op_0_packet_received_in_armed(star):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.STATE, ARMED, 50)
    bench.write_port(0, 1, PortRegister.STATE, ACTIVE, 80)  # the other end still says Op 1
    bench.run(200)
    assert bench.states(0)[-1] == (52, ARMED)


def test_active_is_taken_once_activeenable_is_visible(star):
    """Both armed at 52; flags 53, Op 0 granted 53, row 1 on the wire 58, here 59, visible 61."""
    for given, active in ((51, 62), (59, 62), (60, 62), (61, 63)):
        bench = star(2, bring_up=False)
        bench.write_port(0, 1, PortRegister.STATE, ARMED, 49)
        bench.write_port(1, 1, PortRegister.STATE, ARMED, 50)
        bench.write_port(0, 1, PortRegister.STATE, ACTIVE, given)
        bench.run(200)
        enabling = next(record for record in bench.of(Kind.RX_FCP, 0, since=50) if record.a == 0)
        assert enabling.cycle == 61
        assert bench.states(0)[1:] == [(51, ARMED), (active, ACTIVE)]


def test_active_that_has_to_wait_is_forgotten_when_armed_is_left(star):
    bench = star(2, bring_up=False)
    for cycle, state in ((50, ARMED), (60, ACTIVE), (70, DOWN), (80, ARMED)):
        bench.write_port(0, 1, PortRegister.STATE, state, cycle)
    bench.write_port(1, 1, PortRegister.STATE, ARMED, 100)
    bench.run(300)
    assert bench.states(0)[-1] == (82, ARMED)
    assert 0 in [record.a for record in bench.of(Kind.RX_FCP, 0, since=100)]


def test_a_good_data_packet_makes_an_armed_port_active(star):
    bench = star(2, bring_up=False)
    for cycle, node, port, state in (
        (50, 0, 1, ARMED),
        (51, 1, 1, ARMED),
        (90, 1, 1, ACTIVE),
    ):
        bench.write_port(node, port, PortRegister.STATE, state, cycle)
    bench.post(200, 1, 2, payload=12)
    bench.run(500)
    (received,) = bench.of(Kind.RX_DATA, 0, since=0)
    assert RxData.verdict.read(received) == Verdict.GOOD
    assert bench.states(0)[-1] == (received.cycle + 1, ACTIVE)


def test_one_end_written_down_takes_the_other_down_by_remote_init(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.STATE, DOWN, ready)
    bench.run(2000)
    assert bench.states(0, since=ready) == [(1002, DOWN), (1003, INITIALIZE)]
    # Initialize 1003, flags and grant 1004, row 1 on the wire 1009, there 1010, shows 1012. Then
    # the other end begins again too, and its Op 1 finds a port in Initialize.
    assert bench.states(1, since=ready) == [(1012, DOWN), (1013, INITIALIZE)]


def test_a_timeout_that_ran_out_after_the_link_had_come_back_changes_nothing_when_the_other_end_begins_anew(
    star, ready
):
    """In that cycle the port is looked at for both."""
    for late in (-1, 0, 1):
        bench = star(2)
        deferred = ready + 2
        bench.write_port(1, 1, PortRegister.LINK_DOWN_TIMEOUT, 500)
        bench.link(ready, 0, False)
        bench.link(ready + 20, 0, True)
        # Written down, the other end's Op 1 shows ten cycles after its Down does.
        bench.write_port(0, 1, PortRegister.STATE, DOWN, deferred + 500 + late - 12)
        bench.run(ready + 1000)
        down = deferred + 500 + late
        assert bench.states(1, since=ready) == [
            (deferred, DEFER),
            (ready + 22, ACTIVE),
            (down, DOWN),
            (down + 1, INITIALIZE),
        ]


def test_an_armed_port_whose_other_end_is_not_armed_yet_stays_armed(star, ready):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.STATE, ARMED, 50)
    for cycle in (100, 200):  # the other end says Op 1 again, as it does every period
        bench.write_port(1, 1, PortRegister.FCP_THRESHOLD, 0, cycle)
        bench.write_port(1, 1, PortRegister.FCP_PERIOD, 60, cycle + 1)
    bench.run(400)
    assert [record.a for record in bench.of(Kind.RX_FCP, 0, since=100)]
    assert bench.states(0)[-1] == (52, ARMED)


def test_a_short_loss_of_the_link_is_deferred_and_a_long_one_takes_the_port_down(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_TIMEOUT, 100, ready - 1)
    bench.link(ready, 0, False)
    bench.link(ready + 60, 0, True)
    bench.link(ready + 200, 0, False)
    bench.link(ready + 400, 0, True)
    bench.read_port(0, 1, Counter.LINK_ERROR_RECOVERY, 1900)
    bench.read_port(0, 1, Counter.LINK_DOWNED, 1901)
    bench.run(2000)
    assert bench.states(0, since=ready) == [
        (ready + 2, DEFER),
        (ready + 62, ACTIVE),
        (ready + 202, DEFER),
        (ready + 302, DOWN),
        (ready + 402, INITIALIZE),
    ]
    assert bench.values() == [1, 1]


SLEEP, POLLING = PortPhysicalState.SLEEP, PortPhysicalState.POLLING


def cut(bench, node, down):
    """Its neighbour is disabled, so that a node's port 1 is Down from this cycle on."""
    bench.write_port(1 - node, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.DISABLED, down - 4)


def asleep(bench, node, *cycles):
    """Whether a node's port 1 is asleep, of each cycle of these in which it is visible."""
    for cycle in cycles:
        bench.read_port(node, 1, PortRegister.PHYSICAL_STATE, cycle - 2)
    return lambda: [value == SLEEP for value in bench.values()]


@pytest.mark.parametrize("node", [0, 1])
def test_a_port_that_is_to_sleep_by_default_does_when_its_link_failed_and_stays_asleep(star, node):
    """In Initialize; the other end, which polls again, cannot wake it."""
    bench = star(2, bring_up=False)
    bench.write_port(node, 1, PortRegister.LINK_DOWN_DEFAULT, SLEEP)
    cut(bench, node, 502)
    bench.write_port(1 - node, 1, PortRegister.PHYSICAL_STATE, POLLING, 510)
    seen = asleep(bench, node, 501, 502, 4999)
    bench.read_port(1 - node, 1, PortRegister.PHYSICAL_STATE, 5000)
    bench.write_port(node, 1, PortRegister.PHYSICAL_STATE, POLLING, 6000)
    bench.run(7000)
    assert seen()[:3] == [False, True, True]
    assert bench.values()[3] == POLLING
    # Visible at 6002 the port offers again, the link is up at 6003.
    assert bench.states(node) == [(1, INITIALIZE), (502, DOWN), (6004, INITIALIZE)]
    assert bench.states(1 - node)[-1] == (6004, INITIALIZE)


@pytest.mark.parametrize("back", [True, False])
def test_a_port_whose_link_comes_back_in_time_has_not_lost_it(star, ready, back):
    """Active, it sleeps when the time-out takes it down."""
    bench = star(2)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_TIMEOUT, 100, ready - 10)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_DEFAULT, SLEEP, ready - 9)
    bench.link(ready, 0, False)
    bench.link(ready + (50 if back else 500), 0, True)
    seen = asleep(bench, 0, ready + 101, ready + 102, ready + 1500)
    bench.run(ready + 2000)
    assert seen() == ([False] * 3 if back else [False, True, True])
    assert bench.states(0, since=ready)[1:] == ([(ready + 52, ACTIVE)] if back else [(ready + 102, DOWN)])


def test_neither_set_down_nor_remote_init_puts_a_port_to_sleep(star, ready):
    bench = star(2)
    for node in (0, 1):
        bench.write_port(node, 1, PortRegister.LINK_DOWN_DEFAULT, SLEEP, ready - 10 + node)
    bench.write_port(0, 1, PortRegister.STATE, DOWN, ready)
    seen = asleep(bench, 0, ready + 500)
    bench.read_port(1, 1, PortRegister.PHYSICAL_STATE, ready + 500)
    bench.run(ready + 1000)
    assert [state for _, state in bench.states(0, since=ready)] == [DOWN, INITIALIZE]
    assert [state for _, state in bench.states(1, since=ready)] == [DOWN, INITIALIZE]
    assert seen() == [False, False]


def test_a_port_that_is_disabled_stays_so_when_that_takes_its_link_down(star):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_DEFAULT, SLEEP, 400)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.DISABLED, 500)
    bench.read_port(0, 1, PortRegister.PHYSICAL_STATE, 600)
    bench.run(700)
    assert bench.states(0)[-1] == (504, DOWN)
    assert bench.values() == [PortPhysicalState.DISABLED]


@pytest.mark.parametrize(("shows", "sleeps"), [(501, False), (502, False), (503, False)])
def test_to_be_told_to_poll_when_the_link_is_lost_wins(star, shows, sleeps):
    """It was Polling before. Told in 501 or 502 it never sleeps, in 503 no longer."""
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_DEFAULT, SLEEP, 400)
    cut(bench, 0, 502)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, POLLING, shows - 2)
    seen = asleep(bench, 0, 504)
    bench.write_port(1, 1, PortRegister.PHYSICAL_STATE, POLLING, 505)
    bench.run(700)
    assert seen() == [sleeps]
    assert bench.states(0)[1:] == [(502, DOWN), *([] if sleeps else [(509, INITIALIZE)])]


@pytest.mark.parametrize("default", [SLEEP, POLLING])
def test_told_so_as_it_gives_its_link_up_it_starts_it_anew_for_it_was_polling(star, ready, default):
    """The link is found again in that cycle, ready + 102, in which the port offers no width: it is up one later."""
    bench = star(2)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_TIMEOUT, 100, ready - 10)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_DEFAULT, default, ready - 9)
    bench.link(ready, 0, False)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, POLLING, ready + 100)
    bench.link(ready + 102, 0, True)
    bench.run(ready + 200)
    assert bench.states(0, since=ready)[1:] == [(ready + 102, DOWN), (ready + 105, INITIALIZE)]


@pytest.mark.parametrize("default", [SLEEP, POLLING])
@pytest.mark.parametrize("active", [False, True])
def test_a_port_that_polls_and_is_told_to_starts_its_link_anew(star, ready, active, default):
    """Whatever its default state is: it is what it was told last."""
    bench = star(2, bring_up=active)
    start = ready + 100
    bench.write_port(0, 1, PortRegister.LINK_DOWN_DEFAULT, default, ready)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, POLLING, start)
    seen = asleep(bench, 0, start + 1000)
    bench.run(start + 2000)
    # It shows after two cycles, the link is down in the next, both its ports are behind it.
    lost, found = (DEFER, ACTIVE) if active else (DOWN, INITIALIZE)
    for node in (0, 1):
        assert bench.states(node, since=start) == [(start + 4, lost), (start + 5, found)]
    assert seen() == [False]


@pytest.mark.parametrize("ends", [(0, 0), (0, 1), (1, 0)])
def test_two_such_writes_in_adjacent_cycles_keep_it_down_for_two(star, ready, ends):
    bench = star(2)
    for cycle, node in enumerate(ends, ready + 100):
        bench.write_port(node, 1, PortRegister.PHYSICAL_STATE, POLLING, cycle)
    bench.run(ready + 1000)
    for node in (0, 1):
        assert bench.states(node, since=ready) == [(ready + 104, DEFER), (ready + 106, ACTIVE)]


def test_a_port_that_wakes_has_no_link_to_start_anew(star):
    bench = star(2, bring_up=False)
    for cycle, state in ((500, SLEEP), (600, POLLING)):
        bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, state, cycle)
    bench.run(700)
    assert bench.states(0)[1:] == [(504, DOWN), (604, INITIALIZE)]


@pytest.mark.parametrize(("shows", "sleeps"), [(501, True), (502, False)])
def test_a_port_goes_by_the_default_of_the_cycle_before(star, shows, sleeps):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_DEFAULT, SLEEP, shows - 2)
    cut(bench, 0, 502)
    seen = asleep(bench, 0, 510)
    bench.run(600)
    assert seen() == [sleeps]


@pytest.fixture
def told(monkeypatch):
    """What the switch's agent learns from a cycle up to another: (old, new, by_write)."""
    changes = []
    listen = Agent.port_state_changed

    def note(agent, old, new, *, by_write):
        changes.append((agent, (old, new, by_write)))
        listen(agent, old, new, by_write=by_write)

    def between(bench, first, last):
        bench.run(first)
        changes.clear()
        bench.run(last + 1)
        return [change for agent, change in changes if agent is bench.fabric.nodes[0].agent]

    monkeypatch.setattr(Agent, "port_state_changed", note)
    return between


def test_an_agent_is_told_that_a_port_is_down_by_a_write_and_that_it_comes_up_again(star, ready, told):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.STATE, DOWN, ready)
    assert told(bench, ready + 2, ready + 3) == [(ACTIVE, DOWN, True), (DOWN, INITIALIZE, False)]


@pytest.mark.parametrize(("shows", "by_write"), [(601, True), (602, False)])
def test_a_link_that_is_not_up_takes_a_port_down_before_a_write_does(star, told, shows, by_write):
    """Its neighbour is disabled, the link not up from 601 on: Down in 602."""
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.STATE, ARMED, 50)
    bench.write_port(1, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.DISABLED, 598)
    bench.write_port(0, 1, PortRegister.STATE, DOWN, shows - 2)
    assert told(bench, shows, shows) == [(ARMED, DOWN, by_write)]


@pytest.mark.parametrize(("shows", "by_write"), [(1021, True), (1022, False)])
def test_a_timeout_takes_a_port_down_before_a_write_does(star, ready, told, shows, by_write):
    """ActiveDefer from 1002 on, for 20 cycles."""
    bench = star(2)
    bench.write_port(0, 1, PortRegister.LINK_DOWN_TIMEOUT, 20, ready - 10)
    bench.link(ready, 0, False)
    bench.write_port(0, 1, PortRegister.STATE, DOWN, shows - 2)
    assert told(bench, shows, shows) == [(DEFER, DOWN, by_write)]
