"""Port states (docs/pipeline.md, section 5)."""

import pytest

from model.management.agent import Agent
from wire.codes import PortPhysicalState, PortState
from wire.registers import Counter, PortRegister
from wire.trace import Kind, Verdict

DOWN, INITIALIZE, ARMED, ACTIVE, DEFER = (
    PortState.DOWN,
    PortState.INITIALIZE,
    PortState.ARMED,
    PortState.ACTIVE,
    PortState.ACTIVE_DEFER,
)


def states(bench, node, port=1, since=0):
    return [(record.cycle, record.a) for record in bench.of(Kind.STATE, node, port, since=since)]


def test_a_connected_port_leaves_down_in_cycle_1(star):
    bench = star(2, bring_up=False).run(100)
    assert states(bench, 0) == states(bench, 1) == [(1, INITIALIZE)]


def test_a_write_shows_two_cycles_later(star):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.STATE, ARMED, 50)
    bench.run(100)
    assert states(bench, 0) == [(1, INITIALIZE), (52, ARMED)]


def test_active_needs_an_op_0_packet_received_in_armed(star):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.STATE, ARMED, 50)
    bench.write_port(0, 1, PortRegister.STATE, ACTIVE, 80)  # the other end still says Op 1
    bench.run(200)
    assert states(bench, 0)[-1] == (52, ARMED)


def test_active_is_taken_once_activeenable_is_visible_where_the_write_is_looked_at(star):
    """Both armed at 52; flags 53, Op 0 granted 53, row 1 on the wire 58, here 59, visible 61."""
    for given, active in ((59, False), (60, True)):
        bench = star(2, bring_up=False)
        bench.write_port(0, 1, PortRegister.STATE, ARMED, 49)
        bench.write_port(1, 1, PortRegister.STATE, ARMED, 50)
        bench.write_port(0, 1, PortRegister.STATE, ACTIVE, given)
        bench.run(200)
        enabling = next(record for record in bench.of(Kind.RX_FCP, 0, since=50) if record.a == 0)
        assert enabling.cycle == 61
        assert (states(bench, 0)[-1] == (given + 2, ACTIVE)) is active


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
    assert received.a & 0xFF == Verdict.GOOD
    assert states(bench, 0)[-1] == (received.cycle + 1, ACTIVE)


def test_one_end_written_down_takes_the_other_down_by_remote_init(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.STATE, DOWN, ready)
    bench.run(2000)
    assert states(bench, 0, since=ready) == [(1002, DOWN), (1003, INITIALIZE)]
    # Initialize 1003, flags and grant 1004, row 1 on the wire 1009, there 1010, shows 1012. Then
    # the other end begins anew too, and its Op 1 finds a port in Initialize.
    assert states(bench, 1, since=ready) == [(1012, DOWN), (1013, INITIALIZE)]


def test_an_armed_port_whose_other_end_is_not_armed_yet_stays_armed(star, ready):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.STATE, ARMED, 50)
    for cycle in (100, 200):  # the other end says Op 1 again, as it does every period
        bench.write_port(1, 1, PortRegister.FCP_THRESHOLD, 0, cycle)
        bench.write_port(1, 1, PortRegister.FCP_PERIOD, 60, cycle + 1)
    bench.run(400)
    assert [record.a for record in bench.of(Kind.RX_FCP, 0, since=100)]
    assert states(bench, 0)[-1] == (52, ARMED)


@pytest.mark.parametrize("sent_before", range(1, 45, 4))
def test_a_packet_on_a_link_that_goes_down_is_lost_even_if_it_is_up_again_before_it_would_arrive(
    star, ready, sent_before
):
    bench = star(2, flight=40)
    for number in range(4):
        bench.post(ready + 900 * (number == 3), 1, 2, payload=100, seed=number)
    down = ready + 30 + sent_before
    bench.link(down, 0, False)
    bench.link(down + 8, 0, True)
    bench.run(3000)
    sent = [(r.c, r.cycle) for r in bench.of(Kind.TX_DATA, 1)]
    received = {record.cycle - 2: record.a & 0xFF for record in bench.of(Kind.RX_DATA, 0)}
    crossed = [last for first, last in sent if not first <= down + 8 or last + 40 <= down]
    assert [cycle - 40 for cycle, verdict in received.items() if verdict == Verdict.GOOD] == crossed
    # What was being received is cut as soon as the link is down.
    assert {cycle for cycle, verdict in received.items() if verdict != Verdict.GOOD} <= {down + 1}
    assert len(bench.delivered) == len(crossed) >= 1


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
    assert states(bench, 0, since=ready) == [
        (ready + 2, DEFER),
        (ready + 62, ACTIVE),
        (ready + 202, DEFER),
        (ready + 302, DOWN),
        (ready + 402, INITIALIZE),
    ]
    assert bench.values() == [1, 1]


def test_a_packet_cut_by_the_link_ends_early_and_the_rest_never_comes(star, ready):
    bench = star(2)
    bench.post(ready, 1, 2, payload=252)
    bench.link(ready + 120, 0, False)
    bench.link(ready + 130, 0, True)
    bench.post(ready + 500, 1, 2, payload=252, seed=1)
    bench.run(3000)
    n = len(bench.words(1, 2, payload=252))
    (sent,) = [record for record in bench.of(Kind.TX_DATA, 0, 2) if record.a >> 8 & 1]
    cut = bench.of(Kind.RX_DATA, 0, 1)[0]
    start = ready + 1 + n + 2 + 1 + 4 + 1
    assert (cut.a, cut.b, cut.cycle) == (Verdict.PHYSICAL, n | (ready + 121 - start) << 16, ready + 121 + 2)
    assert sent.b >> 16 == ready + 121 - start
    # The sender's port was ActiveDefer from row 1122 - (w_0 - 1) on.
    (discarded,) = bench.of(Kind.TX_DISCARD, 1)
    assert discarded.b == n | n << 16
    assert len(bench.delivered) == 1


def test_in_down_all_packets_are_swallowed(star, ready):
    bench = star(2)
    bench.link(ready, 1, False)
    bench.write_port(0, 2, PortRegister.STATE, DOWN, ready + 10)
    bench.post(ready + 100, 1, 2, payload=252)
    bench.run(2000)
    assert states(bench, 0, 2, since=ready)[-1] == (ready + 12, DOWN)
    assert len(bench.of(Kind.TX_DISCARD, 0, 2)) == 1


def test_in_activedefer_packets_wait(star, ready):
    bench = star(2)
    bench.link(ready, 1, False)
    bench.post(ready + 100, 1, 2, payload=252)
    bench.link(ready + 900, 1, True)
    bench.run(3000)
    (sent,) = bench.of(Kind.TX_DATA, 0, 2)
    # Active at 902, seen by the matching two later, on the wire four after that.
    assert sent.c == ready + 902 + 2 + 4
    assert len(bench.delivered) == 1


def test_a_row_is_refused_by_the_state_in_its_own_cycle_alone(star, ready):
    """A 1X flow control packet: Down for one cycle, around that of row 1 in the stage."""

    def sent(down):
        bench = star(2)
        bench.write_port(0, 1, PortRegister.WIDTH, 1, ready)
        bench.write_port(1, 1, PortRegister.WIDTH, 1, ready + 1)
        bench.write_port(0, 1, PortRegister.FCP_PERIOD, 200, ready + 2)
        if down:
            bench.write_port(0, 1, PortRegister.STATE, DOWN, down - 2)
        return [record.cycle for record in bench.run(ready + 300).of(Kind.TX_FCP, 0) if record.a == 0]

    (undisturbed,) = sent(None)
    in_stage = undisturbed - 1
    assert [sent(in_stage + shift) == [undisturbed] for shift in (-3, -1, 0, 1)] == [True, True, False, True]


@pytest.mark.parametrize("down", range(-1, 5))
def test_a_packet_refused_at_row_0_leaves_nothing_in_the_blocks_sent(star, ready, down):
    """Down about the grant, Initialize next, Armed next: FCTBS begins at 0 anew."""
    granted = ready + 101

    def run(*states):
        bench = star(2)
        bench.post(ready, 1, 2, payload=252)
        for shift, state in enumerate(states):
            bench.write_port(1, 1, PortRegister.STATE, state, granted + down - 2 + 2 * shift)
        bench.write_port(1, 1, PortRegister.FCP_PERIOD, 300, ready + 300)
        return bench.run(3000)

    (sent,) = run().of(Kind.TX_DATA, 1)
    granted = sent.c - 4
    bench = run(DOWN, ARMED)
    assert states(bench, 1, since=ready) == [
        (granted + down, DOWN),
        (granted + down + 1, INITIALIZE),
        (granted + down + 2, ARMED),
    ]
    (refused,) = bench.of(Kind.TX_DISCARD, 1)
    assert (refused.cycle, len(bench.of(Kind.TX_DATA, 1))) == (sent.cycle, 0)
    announced = [record.b >> 16 for record in bench.of(Kind.TX_FCP, 1)]
    assert len(announced) > 3
    assert set(announced) == {0}


def test_a_flow_control_packet_granted_in_the_cycle_of_down_passes_in_initialize(star, ready):
    """Its row 0 is in the stage three cycles later; the next packet is granted in between."""
    bench = star(2)
    bench.write_port(0, 1, PortRegister.FCP_PERIOD, 200, ready)
    granted = ready + 2 + 200 + 1
    bench.write_port(0, 1, PortRegister.STATE, DOWN, granted - 2)
    bench.run(ready + 220)
    assert states(bench, 0, since=ready) == [(granted, DOWN), (granted + 1, INITIALIZE)]
    sent = [(record.cycle, record.a & 0xFF) for record in bench.of(Kind.TX_FCP, 0)]
    received = [(record.cycle, record.a >> 8 & 0xFF) for record in bench.of(Kind.RX_FCP, 1)]
    assert sent[:2] == [(granted + 5, 0), (granted + 7, 1)]
    assert received[:2] == [(granted + 5 + 3, 0), (granted + 7 + 3, 1)]


@pytest.mark.parametrize("state", [PortPhysicalState.SLEEP, PortPhysicalState.DISABLED])
def test_a_link_is_down_in_the_cycle_after_a_port_that_does_not_poll(star, ready, state):
    """Visible two cycles after the write; both ends see the link down one cycle later, and say so in the next."""
    bench = star(2)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, state, ready)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING, ready + 100)
    bench.run(ready + 200)
    expected = [(ready + 4, DEFER), (ready + 104, ACTIVE)]
    assert states(bench, 0, since=ready) == states(bench, 1, since=ready) == expected


def test_a_link_is_up_only_if_the_cable_is_plugged_and_both_ports_poll(star, ready):
    """What holds it down is taken away one by one."""
    bench = star(2)
    bench.link(ready, 0, False)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.DISABLED, ready + 10)
    bench.write_port(1, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.SLEEP, ready + 20)
    bench.link(ready + 30, 0, True)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING, ready + 40)
    bench.write_port(1, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING, ready + 50)
    bench.run(ready + 200)
    assert states(bench, 0, since=ready) == [(ready + 2, DEFER), (ready + 54, ACTIVE)]


@pytest.mark.parametrize("plugged", [-1, 0, 1])
def test_a_cable_plugged_while_a_port_ceases_to_poll_is_up_until_then(star, ready, plugged):
    """Written Disabled at 1100: the link is down from 1103 on. It would be up from the cycle after the cable is."""
    bench = star(2)
    bench.link(ready, 0, False)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.DISABLED, ready + 100)
    bench.link(ready + 102 + plugged, 0, True)
    bench.run(ready + 200)
    expected = [(ready + 2, DEFER)]
    if plugged < 0:
        expected += [(ready + 103, ACTIVE), (ready + 104, DEFER)]
    assert states(bench, 0, since=ready) == expected


@pytest.fixture
def told(monkeypatch):
    """What the switch's agent is told from a cycle up to another: (old, new, by_write)."""
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
