"""Time limits in the golden model (docs/pipeline.md, section 7.2)."""

from itertools import pairwise

import pytest

from wire.codes import LinkWidth, PortState
from wire.parameters import reset_cycles
from wire.registers import Counter, Detail, NodeRegister, PortRegister, lft_address, node_address, port_address
from wire.stimulus import Control, Injection, Operation, Trigger
from wire.trace import Discard, Kind
from wire.trace_layout import TxData, TxDiscard

TICK = 256
"""Of exponent 0, whose limit is four of them."""
GRANT_TO_RECORD = 4
EXPIRED_TO_GRANT = 3
"""Cycles from the tick that makes a head expired."""
PAYLOAD = 252
ARRIVAL = (8 + 12 + 8 + PAYLOAD + 4) // 4 - 1
"""Cycles from when such a packet is a visible head until it can be swallowed, as it begins to arrive."""


def fourth_tick(since: int) -> int:
    """The fourth of exponent 0 from a cycle on."""
    return -(-since // TICK) * TICK + 3 * TICK


def discards(bench, port=2):
    """(cycle of the grant, reason) of what was swallowed for a port of the switch."""
    records = bench.of(Kind.TX_DISCARD, 0, port)
    return [(record.cycle - GRANT_TO_RECORD, Discard(TxDiscard.reason.read(record))) for record in records]


def counts(bench, cycle, port=2):
    """To be read in a cycle: PortXmitDiscards and its details."""
    for number, counter in enumerate((Counter.XMIT_DISCARDS, *DETAILS)):
        bench.read_port(0, port, counter, cycle + number)


DETAILS = [
    Detail.INACTIVE_DISCARDS,
    Detail.NEIGHBOR_MTU_DISCARDS,
    Detail.LIFE_TIME_DISCARDS,
    Detail.HOQ_LIFE_DISCARDS,
]


@pytest.fixture
def latency(star, ready):
    """Cycles from a packet's post until it is a visible head."""
    idle = star(2)
    idle.post(ready + 100, 1, 2, payload=PAYLOAD)
    (sent,) = idle.run(ready + 1000).of(Kind.TX_DATA, 0, 2)
    return sent.c - 4 - (ready + 100)


@pytest.fixture
def blocked(star, ready):
    """Host 2 stalls, and the first packet fills its buffer."""

    def make(ports=2, *, blocks=7, **switch):
        bench = star(ports, mtu=256, adapter={"mtu": 256, "receive_blocks": blocks}, **switch)
        bench.stall(ready, 2, 1)
        bench.post(ready + 1, 1, 2, payload=PAYLOAD)
        return bench

    return make


def limit(bench, cycle, *, hoq_life=None, stall_count=None, life_time=None):
    """Write the registers of the switch and of its port 2 from a cycle on; what is not given stays as it is."""
    if hoq_life is not None:
        cycle = bench.write_port(0, 2, PortRegister.HOQ_LIFE, hoq_life, cycle) + 1
    if stall_count is not None:
        cycle = bench.write_port(0, 2, PortRegister.VL_STALL_COUNT, stall_count, cycle) + 1
    if life_time is not None:
        bench.write(0, node_address(NodeRegister.LIFE_TIME), life_time, cycle)


def opens(bench, cycle, *, lasts=20):
    """The stalled host 2 takes packets for so many cycles."""
    bench.stall(cycle, 2, 0)
    bench.stall(cycle + lasts, 2, 1)


@pytest.mark.parametrize("phase", [0, 1, 100, TICK - 1])
def test_a_head_without_credits_is_discarded_between_three_quarters_of_hoqlife_and_hoqlife(
    blocked, ready, latency, phase
):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0)
    shown = -(-(ready + 500) // TICK) * TICK + phase
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    counts(bench, shown + 1200)
    bench.run(shown + 1300)
    tick = fourth_tick(shown)
    assert discards(bench) == [(tick + EXPIRED_TO_GRANT, Discard.HOQ_LIFE)]
    assert 3 * TICK < tick + 1 - shown <= 4 * TICK
    assert bench.values() == [1, 0, 0, 0, 1]


def test_the_head_after_it_waits_as_long(blocked, ready):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0)
    for _ in range(3):
        bench.post(ready + 500, 1, 2, payload=PAYLOAD)
    bench.run(ready + 5000)
    first, second, third = discards(bench)
    assert (second[0] - first[0], third[0] - second[0]) == (4 * TICK, 4 * TICK)


@pytest.mark.parametrize("hoq_life", [1, 2])
def test_each_exponent_doubles_the_limit(blocked, ready, latency, hoq_life):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=hoq_life)
    shown = ready + 600
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    bench.run(shown + 5000)
    period = TICK << hoq_life
    assert discards(bench) == [(-(-shown // period) * period + 3 * period + EXPIRED_TO_GRANT, Discard.HOQ_LIFE)]


def test_the_smaller_of_both_limits_is_that_of_a_head(blocked, ready, latency):
    """The head's time begins before a tick, and its packet's after it, so that this is not over its life time."""
    shown = -(-(ready + 600) // TICK) * TICK - 10
    for hoq_life, life_time, reason in (
        (0, 31, Discard.HOQ_LIFE),
        (0, 0, Discard.HOQ_LIFE),
        (0, 1, Discard.HOQ_LIFE),
        (31, 0, Discard.LIFE_TIME),
        (1, 0, Discard.LIFE_TIME),
    ):
        bench = blocked()
        limit(bench, ready + 10, hoq_life=hoq_life, life_time=life_time)
        bench.post(shown - latency, 1, 2, payload=PAYLOAD)
        bench.run(shown + 1300)
        assert discards(bench) == [(fourth_tick(shown) + EXPIRED_TO_GRANT, reason)]


@pytest.mark.parametrize(("hoq_life", "life_time"), [(31, 31), (20, 20), (31, 20)])
def test_above_19_there_is_no_limit(blocked, ready, hoq_life, life_time):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0, life_time=0)
    limit(bench, ready + 20, hoq_life=hoq_life, life_time=life_time)
    bench.post(ready + 500, 1, 2, payload=PAYLOAD)
    opens(bench, ready + 100_000)
    bench.run(ready + 101_000)
    assert discards(bench) == []
    assert len(bench.of(Kind.TX_DATA, 0, 2)) == 2


@pytest.mark.parametrize(
    ("register", "value", "begins_anew"),
    [
        (PortRegister.VL_STALL_COUNT, 7, True),
        (PortRegister.VL_STALL_COUNT, 0, False),  # the value that it has
        (PortRegister.HOQ_LIFE, 0, False),
        (PortRegister.HOQ_LIFE, 32, False),  # no value of it
        (NodeRegister.LIFE_TIME, 30, True),
        (NodeRegister.LIFE_TIME, 31, False),
    ],
)
def test_a_change_of_a_limit_begins_the_time_anew(blocked, ready, latency, register, value, begins_anew):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0)
    shown = ready + 600
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    given = fourth_tick(shown) - 2  # visible in the cycle of the fourth tick
    if register == NodeRegister.LIFE_TIME:
        limit(bench, given, life_time=value)
    else:
        bench.write_port(0, 2, register, value, given)
    bench.run(shown + 3000)
    begins = given + 2 if begins_anew else shown
    assert discards(bench) == [(fourth_tick(begins) + EXPIRED_TO_GRANT, Discard.HOQ_LIFE)]


def test_a_change_of_another_port_s_limit_changes_nothing(blocked, ready, latency):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0)
    shown = ready + 600
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    bench.write_port(0, 1, PortRegister.HOQ_LIFE, 0, fourth_tick(shown) - 2)
    bench.run(shown + 3000)
    assert discards(bench) == [(fourth_tick(shown) + EXPIRED_TO_GRANT, Discard.HOQ_LIFE)]


@pytest.mark.parametrize("late", [0, 1])
def test_a_head_that_is_expired_in_the_cycle_before_a_write_may_still_be_discarded(blocked, ready, latency, late):
    bench = blocked()
    shown = ready + 600
    limit(bench, ready + 10, hoq_life=0)
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    expired = fourth_tick(shown) + 1
    limit(bench, expired + 1 - 2 - late, hoq_life=31)
    bench.run(shown + 3000)
    assert discards(bench) == ([] if late else [(expired + 2, Discard.HOQ_LIFE)])


def test_while_others_leave_for_a_vl_of_a_port_its_heads_do_not_expire(blocked, ready):
    """Three inputs take turns; each waits for more than two limits."""
    bench = blocked(5)
    limit(bench, ready + 10, hoq_life=0, stall_count=1)
    for source in (1, 3, 4):
        for _ in range(3):
            bench.post(ready + 100, source, 2, payload=PAYLOAD)
    for number in range(9):
        opens(bench, ready + 700 + 700 * number)
    bench.run(ready + 8000)
    assert discards(bench) == []
    sent = bench.of(Kind.TX_DATA, 0, 2)
    by_input = [[record.cycle for record in sent if TxData.input.read(record) == source] for source in (2, 3)]
    assert len(sent) == 10
    assert all(later - before > 2 * 4 * TICK for one in by_input for before, later in pairwise(one))


def test_a_stalled_vl_discards_everything_for_eight_times_the_limit_and_then_waits_again(blocked, ready, latency):
    bench = blocked(3, vls=2)
    limit(bench, ready + 10, hoq_life=0, stall_count=2)
    shown = ready + 600
    for _ in range(2):
        bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    second = fourth_tick(shown) + EXPIRED_TO_GRANT + 4 * TICK
    last = -(-(second + 1) // TICK) * TICK + 31 * TICK
    assert last - second <= 8 * 4 * TICK
    in_stall = range(second + 100, last - 100, 1000)
    for cycle in in_stall:
        bench.post(cycle, 1, 2, payload=PAYLOAD)
        bench.post(cycle + 300, 3, 2, slot=1, sl=1, payload=PAYLOAD)
    again = last + 10
    bench.post(again - latency, 3, 2, payload=PAYLOAD)
    counts(bench, again + 1400)
    bench.run(again + 1500)
    swallowed = [(cycle, reason) for cycle, reason in discards(bench) if reason != Discard.STALLED]
    assert swallowed == [
        (second - 4 * TICK, Discard.HOQ_LIFE),
        (second, Discard.HOQ_LIFE),
        (fourth_tick(again) + EXPIRED_TO_GRANT, Discard.HOQ_LIFE),
    ]
    arrived = latency + ARRIVAL
    stalled = [cycle for cycle, reason in discards(bench) if reason == Discard.STALLED]
    assert stalled == [cycle + arrived for cycle in in_stall]
    assert bench.values() == [3 + len(stalled), 0, 0, 0, 3]
    assert [TxData.slot.read(record) for record in bench.of(Kind.TX_DATA, 0, 2)] == [0] + [1] * len(stalled)


@pytest.mark.parametrize("late", [0, 1])
def test_the_last_cycle_of_a_stall_is_that_of_the_32nd_tick(blocked, ready, latency, late):
    """With credits a packet that is whole by then goes, or does not, by that of two cycles before."""
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0, stall_count=1)
    shown = ready + 600
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    stalls = fourth_tick(shown) + EXPIRED_TO_GRANT
    last = -(-(stalls + 1) // TICK) * TICK + 31 * TICK
    opens(bench, last - 2000)
    arrived = latency + ARRIVAL
    bench.post(last + 2 + late - arrived, 1, 2, payload=PAYLOAD)
    bench.run(last + 1000)
    assert len(bench.of(Kind.TX_DATA, 0, 2)) == 1 + late
    assert [cycle for cycle, reason in discards(bench) if reason == Discard.STALLED] == ([] if late else [last + 2])


def test_a_vl_of_which_packets_leave_in_time_never_stalls(blocked, ready):
    """Each second one leaves; it takes two that do not, one after the other."""
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0, stall_count=2)
    for _ in range(8):
        bench.post(ready + 100, 1, 2, payload=PAYLOAD)
    for number in range(4):
        opens(bench, ready + 1600 + 1500 * number)
    bench.run(ready + 12_000)
    reasons = [reason for _, reason in discards(bench)]
    assert reasons == [Discard.HOQ_LIFE] * 4
    assert len(bench.of(Kind.TX_DATA, 0, 2)) == 5


@pytest.mark.parametrize("written", ["HOQ_LIFE", "VL_STALL_COUNT", "LIFE_TIME"])
def test_a_change_ends_a_stall(blocked, ready, latency, written):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0, stall_count=1)
    shown = ready + 600
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    stalls = fourth_tick(shown) + EXPIRED_TO_GRANT
    other = {"HOQ_LIFE": {"hoq_life": 1}, "VL_STALL_COUNT": {"stall_count": 2}, "LIFE_TIME": {"life_time": 30}}
    limit(bench, stalls + 1000, **other[written])
    limit(bench, stalls + 1010, hoq_life=0)
    again = stalls + 1300
    bench.post(again - latency, 1, 2, payload=PAYLOAD)
    bench.run(again + 1200)
    assert discards(bench) == [
        (stalls, Discard.HOQ_LIFE),
        (fourth_tick(again) + EXPIRED_TO_GRANT, Discard.HOQ_LIFE),
    ]


def test_what_arrived_longer_ago_than_the_life_time_is_not_sent_and_takes_no_credits(blocked, ready):
    """Two packets arrive together. The first leaves in time; the second would have credits half a limit later."""
    bench = blocked()
    limit(bench, ready + 10, life_time=0)
    for _ in range(2):
        bench.post(ready + 500, 1, 2, payload=PAYLOAD)
    opens(bench, ready + 1100)
    bench.post(ready + 1600, 3 - 2, 2, payload=PAYLOAD)
    opens(bench, ready + 1750)
    counts(bench, ready + 2200)
    bench.run(ready + 2500)
    ((granted, reason),) = discards(bench)
    assert reason == Discard.LIFE_TIME
    assert ready + 1750 < granted < ready + 1850
    _, in_time, young = bench.of(Kind.TX_DATA, 0, 2)
    assert in_time.cycle < ready + 1300 < granted < young.c < granted + 12
    assert bench.values() == [1, 0, 0, 1, 0]


@pytest.mark.parametrize("late", [0, 1])
def test_a_life_time_counts_that_is_visible_when_the_first_row_has_been_read(blocked, ready, latency, late):
    """Of two packets the second has seen four ticks, and no limit since, until just before it is granted or after."""
    shown = ready + 600
    no_limit = fourth_tick(shown) + 100

    def run(*life_times):
        bench = blocked()
        limit(bench, ready + 10, life_time=0)
        for _ in range(2):
            bench.post(shown - latency, 1, 2, payload=PAYLOAD)
        opens(bench, shown + 700)
        limit(bench, no_limit, life_time=31)
        opens(bench, no_limit + 1000)
        for cycle in life_times:
            limit(bench, cycle, life_time=19)
        return bench.run(no_limit + 1500)

    granted = run().of(Kind.TX_DATA, 0, 2)[-1].c - 4
    assert granted > no_limit + 1000
    assert discards(run(granted + late)) == ([] if late else [(granted, Discard.LIFE_TIME)])


def test_an_expired_head_waits_in_activedefer(blocked, ready, latency):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0)
    shown = ready + 600
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    bench.link(shown + 100, 1, False)
    active = shown + 3000
    bench.link(active - 2, 1, True)
    bench.run(active + 500)
    assert bench.states(0, 2, since=ready)[-1] == (active, PortState.ACTIVE)
    assert discards(bench) == [(active + 2, Discard.HOQ_LIFE)]


def test_a_1x_output_discards_in_its_phase_and_a_busy_one_when_it_is_available(blocked, ready, latency):
    bench = blocked(3, vls=2)
    for node, port, cycle in ((0, 2, ready - 20), (2, 1, ready - 19)):
        bench.write_port(node, port, PortRegister.WIDTH, LinkWidth.X1, cycle)
    limit(bench, ready + 10, hoq_life=0)
    shown = ready + 1000
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    first = fourth_tick(shown) + 4
    # Of the other VL, on the output when the second one's time has come.
    bench.post(first + 4 * TICK - 4 - 40 - latency, 3, 2, slot=1, sl=1, payload=PAYLOAD)
    bench.run(shown + 4000)
    (other,) = [record for record in bench.of(Kind.TX_DATA, 0, 2) if TxData.slot.read(record) == 1]
    available = other.cycle - 3 + 3  # the cycle of its last read, and its phase
    assert other.c < first + 4 * TICK < available
    assert discards(bench) == [(first, Discard.HOQ_LIFE), (available, Discard.HOQ_LIFE)]


def test_in_fifo_what_stands_behind_a_discarded_head_goes_on(blocked, ready, latency):
    bench = blocked(3, queueing="fifo", readers=1)
    limit(bench, ready + 10, hoq_life=0)
    shown = ready + 600
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    bench.post(shown - latency, 1, 3, payload=PAYLOAD)
    bench.run(shown + 1500)
    ((granted, _),) = discards(bench)
    (sent,) = bench.of(Kind.TX_DATA, 0, 3)
    assert (granted, sent.c) == (fourth_tick(shown) + EXPIRED_TO_GRANT, granted + 5 + 4)


def test_what_is_too_long_or_for_a_port_that_is_down_is_discarded_for_that(star, ready):
    bench = star(3)
    bench.write_port(0, 2, PortRegister.NEIGHBOR_MTU, 1, ready)
    bench.write_port(0, 3, PortRegister.STATE, PortState.DOWN, ready + 1)
    bench.post(ready + 100, 1, 2, payload=1000)
    bench.post(ready + 100, 1, 3, payload=64)
    counts(bench, ready + 800, port=2)
    counts(bench, ready + 810, port=3)
    bench.run(ready + 1000)
    assert [reason for _, reason in discards(bench, 2)] == [Discard.NEIGHBOR_MTU]
    assert [reason for _, reason in discards(bench, 3)] == [Discard.INACTIVE]
    assert bench.values() == [1, 0, 1, 0, 0, 1, 1, 0, 0, 0]


def test_a_bad_packet_of_an_expired_head_is_scrap_and_counts_for_the_stall(blocked, ready, latency):
    bench = blocked()
    limit(bench, ready + 10, hoq_life=0, stall_count=1)
    shown = ready + 600
    bench.inject(ready + 300, 0, 1, Injection(Trigger.DATA, first=5, last=5, flip=1))
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    bench.post(shown + 2000, 1, 2, payload=PAYLOAD)
    bench.run(shown + 3000)
    (scrap,) = bench.of(Kind.SCRAP, 0, 2)
    assert scrap.cycle == fourth_tick(shown) + EXPIRED_TO_GRANT + 3
    assert [reason for _, reason in discards(bench)] == [Discard.STALLED]


def test_after_a_reset_ticks_count_from_the_switch_s_new_cycle_0(star, ready, latency):
    bench = star(2, mtu=256, adapter={"mtu": 256, "receive_blocks": 7}, bring_up=False)
    given = 20
    back = given + reset_cycles(bench.parameters.nodes["sw"]) + 1
    bench.controls.append(Control(given, Operation.RESET, 0))
    for lid in (1, 2):
        bench.write(0, lft_address(lid), lid, back + lid)
    bench.bring_up(back)
    bench.stall(back + ready, 2, 1)
    bench.post(back + ready + 1, 1, 2, payload=PAYLOAD)
    limit(bench, back + ready + 10, hoq_life=0)
    shown = back + ready + 600
    bench.post(shown - latency, 1, 2, payload=PAYLOAD)
    bench.run(shown + 1500)
    assert back % TICK not in (0, TICK - 1)
    assert discards(bench) == [(back + fourth_tick(shown - back) + EXPIRED_TO_GRANT, Discard.HOQ_LIFE)]


def test_an_adapter_has_no_limits(star):
    bench = star(2, bring_up=False)
    addresses = [
        port_address(1, PortRegister.HOQ_LIFE),
        port_address(1, PortRegister.VL_STALL_COUNT),
        node_address(NodeRegister.LIFE_TIME),
    ]
    for number, address in enumerate(addresses):
        bench.write(1, address, 3, 50 + number)
        bench.read(1, address, 60 + number)
    assert bench.run(100).values() == [0, 0, 0]
