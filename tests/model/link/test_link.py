"""Links that go down and up, and what is on them then (docs/pipeline.md, section 2)."""

import pytest

from wire.codes import LinkWidth, PortPhysicalState, PortState
from wire.registers import PortRegister
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData, TxData

DOWN, INITIALIZE, ARMED, ACTIVE, DEFER = (PortState(code) for code in range(1, 6))


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
    received = {record.cycle - 2: RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0)}
    crossed = [last for first, last in sent if not first <= down + 8 or last + 40 <= down]
    assert [cycle - 40 for cycle, verdict in received.items() if verdict == Verdict.GOOD] == crossed
    # What was being received is cut as soon as the link is down.
    assert {cycle for cycle, verdict in received.items() if verdict != Verdict.GOOD} <= {down + 1}
    assert len(bench.delivered) == len(crossed) >= 1


def test_a_packet_cut_by_the_link_ends_early_and_the_rest_never_comes(star, ready):
    bench = star(2)
    bench.post(ready, 1, 2, payload=252)
    bench.link(ready + 120, 0, False)
    bench.link(ready + 130, 0, True)
    bench.post(ready + 500, 1, 2, payload=252, seed=1)
    bench.run(3000)
    n = len(bench.words(1, 2, payload=252))
    (sent,) = [record for record in bench.of(Kind.TX_DATA, 0, 2) if TxData.marked_bad.read(record)]
    cut = bench.of(Kind.RX_DATA, 0, 1)[0]
    start = ready + 1 + n + 2 + 1 + 4 + 1
    assert (cut.a, cut.b, cut.cycle) == (Verdict.PHYSICAL, n | (ready + 121 - start) << 16, ready + 121 + 2)
    assert TxData.end_row.read(sent) == ready + 121 - start
    # The sender's port was ActiveDefer from row 1122 - (w_0 - 1) on.
    (discarded,) = bench.of(Kind.TX_DISCARD, 1)
    assert discarded.b == n | n << 16
    assert len(bench.delivered) == 1


@pytest.mark.parametrize("state", [PortPhysicalState.SLEEP, PortPhysicalState.DISABLED])
def test_a_link_is_down_in_the_cycle_after_a_port_that_does_not_poll(star, ready, state):
    """Visible two cycles after the write; both ends see the link down one cycle later, and say so in the next."""
    bench = star(2)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, state, ready)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING, ready + 100)
    bench.run(ready + 200)
    expected = [(ready + 4, DEFER), (ready + 104, ACTIVE)]
    assert bench.states(0, since=ready) == bench.states(1, since=ready) == expected


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
    assert bench.states(0, since=ready) == [(ready + 2, DEFER), (ready + 54, ACTIVE)]


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
    assert bench.states(0, since=ready) == expected


@pytest.mark.parametrize("cycle", [1, 2, 3])
def test_rows_of_a_packet_that_a_narrower_width_overtakes_are_not_on_the_wires(star, cycle):
    """The first flow control packet is due there in cycles 6 and 7, in which a 1X port has no valid row."""
    bench = star(2, bring_up=False)
    bench.controls.clear()
    bench.write_port(0, 1, PortRegister.WIDTH, LinkWidth.X1, cycle)
    bench.write_port(1, 1, PortRegister.WIDTH, LinkWidth.X1, cycle + 1)
    assert not bench.run(40).of(Kind.RX_FCP, 1, since=0)
