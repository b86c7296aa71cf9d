"""Widths that ports offer, and links that come up narrow (docs/pipeline.md, section 2)."""

import random

import pytest

from wire.codes import LinkWidth, PortPhysicalState, PortState
from wire.parameters import reset_cycles
from wire.registers import PortRegister
from wire.row_crc import PERIOD
from wire.stimulus import Control, Operation
from wire.trace import Kind

DOWN, INITIALIZE, ARMED, ACTIVE, DEFER = (PortState(code) for code in range(1, 6))
X1, X4 = LinkWidth.X1, LinkWidth.X4
BOTH = X1 | X4
ENABLED = PortRegister.LINK_WIDTH_ENABLED


def width(bench, node, *cycles):
    """WIDTH of a node's port 1 as visible in these cycles."""
    for cycle in cycles:
        bench.read_port(node, 1, PortRegister.WIDTH, cycle - 2)


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("end", [0, 1])
def test_a_link_of_which_one_end_enables_1x_alone_comes_up_narrow(star, ready, end, node):
    """Not before it has been down: LINK_DOWN at 1101, it is down at 1102, narrow at 1103, and both ends 1X at 1104."""
    bench = star(2)
    bench.write_port(end, 1, ENABLED, X1, ready)
    bench.link(ready + 100 + 1, 0, False)
    bench.link(ready + 150, 0, True)
    width(bench, node, ready + 50, ready + 102, ready + 104, ready + 200)
    bench.post(ready + 400, 1, 2)
    bench.post(ready + 400, 2, 1)
    bench.run(ready + 2000)
    assert bench.values() == [X4, X4, X1, X1]
    assert len(bench.delivered) == 2


def test_a_link_that_is_up_stays_as_wide_as_it_is(star, ready):
    """Whatever its ends enable, as long as they have a width in common."""
    bench = star(2)
    bench.write_port(0, 1, ENABLED, X1, ready)
    bench.write_port(1, 1, ENABLED, X1, ready + 10)
    width(bench, 0, ready + 100)
    bench.link(ready + 110, 0, False)
    bench.link(ready + 120, 0, True)
    width(bench, 0, ready + 150)
    # No longer 1X at both, but up it stays narrow.
    bench.write_port(0, 1, ENABLED, BOTH, ready + 160)
    bench.write_port(1, 1, ENABLED, X4, ready + 170)
    width(bench, 0, ready + 200)
    bench.link(ready + 210, 0, False)
    bench.link(ready + 220, 0, True)
    width(bench, 0, ready + 250)
    bench.run(ready + 1000)
    assert bench.values() == [X4, X1, X1, X4]
    assert bench.states(0, since=ready) == [
        (ready + 112, DEFER),
        (ready + 122, ACTIVE),
        (ready + 212, DEFER),
        (ready + 222, ACTIVE),
    ]


def test_a_link_whose_ends_have_no_width_in_common_is_down_until_they_have(star, ready):
    """1X at one, visible at 1002, and 4X at the other, at 1102: the link is down from 1103 on, and narrow from 1153."""
    bench = star(2)
    bench.write_port(0, 1, ENABLED, X1, ready)
    bench.write_port(1, 1, ENABLED, X4, ready + 100)
    bench.read_port(0, 1, PortRegister.PHYSICAL_STATE, ready + 120)
    bench.read_port(1, 1, PortRegister.PHYSICAL_STATE, ready + 121)
    width(bench, 0, ready + 140)
    bench.write_port(1, 1, ENABLED, 255, ready + 150)
    width(bench, 0, ready + 153, ready + 154)
    bench.run(ready + 1000)
    assert bench.states(0, since=ready) == bench.states(1, since=ready) == [(ready + 104, DEFER), (ready + 154, ACTIVE)]
    recovers = PortPhysicalState.LINK_ERROR_RECOVERY
    assert bench.values() == [recovers, recovers, X4, X4, X1]


def test_a_link_that_both_ends_may_have_wide_is(star):
    bench = star(2, bring_up=False)
    bench.link(50, 0, False)
    bench.link(60, 0, True)
    width(bench, 0, 100)
    width(bench, 1, 101)
    assert bench.run(200).values() == [X4, X4]


@pytest.mark.parametrize("written", [X1, X4])
def test_what_was_written_to_width_holds_again_when_the_link_is_not_narrow(star, written):
    """It stands for the lanes of the cable. Written while the link is narrow, it does not show."""
    bench = star(2, bring_up=False)
    bench.write_port(1, 1, ENABLED, X1, 40)
    bench.link(50, 0, False)
    bench.link(60, 0, True)
    bench.write_port(0, 1, PortRegister.WIDTH, X1, 70)
    bench.write_port(0, 1, PortRegister.WIDTH, written, 80)
    width(bench, 0, 90)
    bench.write_port(1, 1, ENABLED, BOTH, 100)
    bench.link(110, 0, False)
    bench.link(120, 0, True)
    width(bench, 0, 150)
    assert bench.run(200).values() == [X1, written]


def test_a_link_that_is_down_for_one_cycle_may_come_up_narrow(star, ready):
    """A port sleeps in 1102 alone: down in 1103, in which its ends have 1X in common, it is narrow from 1104 on."""
    bench = star(2)
    bench.write_port(1, 1, ENABLED, X1, ready)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.SLEEP, ready + 100)
    bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING, ready + 101)
    width(bench, 0, ready + 104, ready + 105)
    bench.run(ready + 200)
    assert bench.values() == [X4, X1]
    assert bench.states(0, since=ready) == [(ready + 104, DEFER), (ready + 105, ACTIVE)]


def test_the_width_that_counts_is_that_of_the_cycle_before_the_link_comes_up(star):
    """LINK_UP at 100: up at 101. Enabled to 1X, visible at 100, it is narrow at 101; a cycle later it is not."""
    for late, expected in ((0, X1), (1, X4)):
        bench = star(2, bring_up=False)
        bench.link(50, 0, False)
        bench.write_port(0, 1, ENABLED, X1, 98 + late)
        bench.link(100, 0, True)
        width(bench, 0, 150)
        assert bench.run(200).values() == [expected]


def traffic(bench, ready):
    for number in range(24):
        bench.post(ready, 1 + number % 2, 2 - number % 2, payload=4 * (number * 7 % 60), seed=number)
    return bench


def since(bench, cycle):
    """Records from a cycle on, ROWS of each period that begins then or later among them."""
    return [record for record in bench.records if record.cycle >= cycle]


@pytest.mark.parametrize("forwarding", ["cut-through", "store-and-forward"])
@pytest.mark.parametrize("flight", [1, 7])
@pytest.mark.parametrize("up", range(200, 204))
def test_a_narrow_link_is_one_whose_ends_were_written_1x(star, ready, up, flight, forwarding):
    """Everything is the same, row for row."""
    benches = []
    for narrow in (True, False):
        bench = traffic(star(2, flight=flight, forwarding=forwarding), ready + 400)
        if narrow:
            bench.write_port(0, 1, ENABLED, X1, ready)
        else:
            for node in (0, 1):
                bench.write_port(node, 1, PortRegister.WIDTH, X1, ready + 101 + node)
        bench.link(ready + 100, 0, False)
        bench.link(ready + up, 0, True)
        bench.run(0)
        bench.fabric.sum_rows(PERIOD)
        benches.append(bench.run(ready + 5000))
    one, other = (since(bench, ready + 110) for bench in benches)
    assert one == other
    assert sum(record.kind == Kind.TX_DATA for record in one) == 48
    assert sum(record.kind == Kind.ROWS for record in one) > 4 * 10


@pytest.mark.parametrize("seed", range(8))
def test_a_link_that_was_narrow_for_a_while_is_as_one_that_never_was(star, ready, seed):
    """It was while nothing was on it, and comes up wide."""
    print(f"seed {seed}")
    choose = random.Random(seed)
    changes = sorted(choose.sample(range(ready + 10, ready + 90, 2), 2))
    end = choose.randrange(2)
    benches = []
    for narrow in (True, False):
        bench = traffic(star(2, forwarding="cut-through"), ready + 400)
        bench.link(ready, 0, False)
        for cycle, value in zip(changes, (X1, 255), strict=True) if narrow else ():
            bench.write_port(end, 1, ENABLED, value, cycle)
        width(bench, 1 - end, changes[1] + 3)
        bench.link(ready + 100, 0, True)
        bench.run(0)
        bench.fabric.sum_rows(PERIOD)
        benches.append(bench.run(ready + 5000))
    assert [bench.values() for bench in benches] == [[X1], [X4]]
    one, other = (since(bench, ready + 100) for bench in benches)
    assert one == other


@pytest.mark.parametrize("node", [0, 1])
def test_a_narrow_link_is_a_pace(star, node):
    """Down from 101 on, narrow from 102, 1X from 103; up from 121 on."""
    bench = star(2, bring_up=False)
    bench.write_port(node, 1, ENABLED, X1, 50)
    bench.link(100, 0, False)
    bench.link(120, 0, True)
    bench.run(0)
    entering, driven = bench.fabric.keep_logs(0, 0)
    bench.run(200)
    assert entering.paces(200) == [(0, 1), (101, 0), (121, 4)]
    assert driven.paces(200) == [(0, 1), (103, 4)]


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("enabled", [X1, X4, BOTH])
def test_a_node_that_was_reset_offers_all_widths(star, node, enabled):
    """It has forgotten what it was enabled to and where its link was to go; its neighbour has not."""
    bench = star(2, bring_up=False)
    other = 1 - node
    bench.write_port(node, 1, ENABLED, X1, 40)
    bench.link(50, 0, False)
    bench.link(60, 0, True)
    bench.write_port(other, 1, ENABLED, enabled if enabled != X4 else BOTH, 70)
    bench.write_port(node, 1, PortRegister.LINK_DOWN_DEFAULT, PortPhysicalState.SLEEP, 71)
    at = 100
    lasts = reset_cycles(list(bench.parameters.nodes.values())[node])
    begins = at + lasts + 1
    bench.controls.append(Control(at, Operation.RESET, node))
    if enabled == X4:
        bench.write_port(other, 1, ENABLED, X4, at + 5)
    bench._next = begins
    for register in (ENABLED, PortRegister.LINK_DOWN_DEFAULT, PortRegister.WIDTH):
        bench.read_port(node, 1, register, bench._next)
    bench.read_port(other, 1, PortRegister.WIDTH, bench._next)
    bench.run(0)
    _, driven = bench.fabric.keep_logs(0, 1 - node)
    bench.run(begins + 100)
    expected = X1 if enabled == X1 else X4
    assert bench.values() == [BOTH, PortPhysicalState.POLLING, expected, expected]
    assert bench.states(node)[-1] == bench.states(other)[-1] == (begins + 2, INITIALIZE)
    # 4X in cycle 0, and 1X in the next as long as the link, narrow until then, may be wide.
    paces = [
        (0, 1),
        (63 - 10, 4),
        (at + 1, 0),
        (begins, 1),
        (begins + 1, 4),
        *([] if expected == X1 else [(begins + 2, 1)]),
    ]
    assert driven.paces(begins + 100) == paces
