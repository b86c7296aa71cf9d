"""Counters of 64 bits and their registers (docs/management.md, section 6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.link.xmit_wait import Ticks, XmitWait
from wire.registers import (
    HIGH_OF_COUNTER,
    Counter,
    CounterHigh,
    PacketCounter,
    PortRegister,
)
from wire.stimulus import Injection, Trigger
from wire.trace import Kind

PORT = 1
LOW = PortRegister.EXTENDED_LOW
ONES = 0xFFFF_FFFF


def write_atomically(bench, counter, value, cycle, node=0):
    """The lower half first, the upper one in the next cycle."""
    bench.write_port(node, PORT, LOW, value & ONES, cycle)
    bench.write_port(node, PORT, HIGH_OF_COUNTER[counter], value >> 32, cycle + 1)


def read_whole(bench, counter, cycle, node=0):
    """The register of 32 bits, the upper half, the lower one."""
    for place, register in enumerate((counter, HIGH_OF_COUNTER[counter], LOW)):
        bench.read_port(node, PORT, register, cycle + place)


def halves(value):
    return [min(value, ONES), value >> 32, value & ONES]


@pytest.mark.parametrize("counter", HIGH_OF_COUNTER)
@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("value", [0, 1, ONES, ONES + 1, 0x123_4567_89AB_CDEF, (1 << 64) - 1])
def test_what_is_written_is_read_and_the_register_of_32_bits_stops_at_all_ones(star, counter, node, value):
    bench = star(2, bring_up=False)
    write_atomically(bench, counter, value, 50, node)
    read_whole(bench, counter, 60, node)
    bench.run(100)
    assert bench.values() == halves(value)


@pytest.mark.parametrize("counter", HIGH_OF_COUNTER)
def test_a_write_of_the_register_of_32_bits_sets_all_64(star, counter):
    bench = star(2, bring_up=False)
    write_atomically(bench, counter, (1 << 64) - 1, 50)
    bench.write_port(0, PORT, counter, 7, 60)
    read_whole(bench, counter, 70)
    bench.run(100)
    assert bench.values() == [7, 0, 7]


@pytest.mark.parametrize(
    ("before", "after"), [(ONES - 1, ONES), (ONES, ONES + 1), ((1 << 64) - 2, (1 << 64) - 1), ((1 << 64) - 1,) * 2]
)
def test_a_packet_more_is_carried_into_the_upper_half_and_all_ones_are_the_end(star, ready, before, after):
    bench = star(2)
    write_atomically(bench, Counter.RCV_PKTS, before, ready)
    bench.post(ready + 10, 1, 2)
    read_whole(bench, Counter.RCV_PKTS, ready + 500)
    bench.run(2000)
    assert bench.values() == halves(after)


def test_words_stop_at_all_ones_too(star, ready):
    """A packet's 23 rows."""
    bench = star(2)
    write_atomically(bench, Counter.RCV_DATA, (1 << 64) - 10, ready)
    bench.post(ready + 10, 1, 2)
    bench.post(ready + 10, 1, 2)
    read_whole(bench, Counter.RCV_DATA, ready + 500)
    bench.run(2000)
    assert bench.values() == halves((1 << 64) - 1)


UNICAST = (PacketCounter.UNICAST_XMIT_PKTS, PacketCounter.UNICAST_RCV_PKTS)
MULTICAST = (PacketCounter.MULTICAST_XMIT_PKTS, PacketCounter.MULTICAST_RCV_PKTS)


@pytest.mark.parametrize(
    ("dlid", "of"), [(2, UNICAST), (0xBFFF, UNICAST), (0xC000, MULTICAST), (0xFFFE, MULTICAST), (0xFFFF, UNICAST)]
)
def test_a_packet_is_unicast_or_multicast_by_its_dlid_wherever_it_goes(star, ready, dlid, of):
    bench = star(2)
    bench.post(ready, 1, dlid)
    end = ready + 500
    for place, (sent, received) in enumerate((UNICAST, MULTICAST)):
        bench.read_port(1, PORT, sent, end + 2 * place)
        bench.read_port(0, PORT, received, end + 2 * place + 1)
    bench.run(2000)
    assert bench.values() == [1 if of is UNICAST else 0] * 2 + [1 if of is MULTICAST else 0] * 2


def test_a_packet_whose_header_is_not_processed_is_unicast(star, ready):
    """It was cut in row 1: nobody knows its DLID."""
    bench = star(2)
    bench.post(ready, 1, 0xC000)
    bench.inject(ready - 10, 0, 1, Injection(Trigger.DATA, first=1, last=1, flip=1 << 32))
    for place, (_, received) in enumerate((UNICAST, MULTICAST)):
        bench.read_port(0, PORT, received, ready + 500 + place)
    bench.run(2000)
    assert bench.values() == [1, 0]


@pytest.mark.parametrize("early", [0, 1, 2])
def test_a_write_of_the_upper_half_wins_over_an_increment_of_its_cycle(star, ready, early):
    def counted(*written):
        bench = star(2)
        bench.post(ready, 1, 2, payload=12)
        for cycle in written:
            write_atomically(bench, Counter.RCV_PKTS, 5 << 32 | 5, cycle - 1 - 2)
        read_whole(bench, Counter.RCV_PKTS, 1900)
        return bench.run(2000)

    (received,) = counted().of(Kind.RX_DATA, 0)
    visible = received.cycle + 1
    assert counted(visible + 1 - early).values() == halves((5 << 32 | 5) + (early == 2))


def test_an_upper_half_is_read_with_the_lower_one_of_the_same_cycle(star, ready):
    """The read of one half is visible in the cycle before the packet is counted, that of the other in a later one."""

    def counted(*reads):
        bench = star(2)
        write_atomically(bench, Counter.RCV_PKTS, ONES, ready - 10)
        bench.post(ready, 1, 2)
        for cycle in reads:
            bench.read_port(0, PORT, CounterHigh.RCV_PKTS_HIGH, cycle)
            bench.read_port(0, PORT, LOW, cycle + 5)
        return bench.run(2000)

    (received,) = counted().of(Kind.RX_DATA, 0)
    visible = received.cycle + 1
    assert counted(visible - 1 - 2).values() == [0, ONES]
    assert counted(visible - 2).values() == [1, 0]


def test_a_read_of_an_upper_half_keeps_the_lower_one_from_the_cycle_after(star):
    """A write of another upper half takes EXTENDED_LOW as visible in its cycle and one."""
    for later, low in ((1, 3), (2, 0xAAAA)):
        bench = star(2, bring_up=False)
        write_atomically(bench, Counter.RCV_PKTS, 0xAAAA, 50)
        bench.write_port(0, PORT, LOW, 3, 60)
        bench.read_port(0, PORT, CounterHigh.RCV_PKTS_HIGH, 70)
        bench.write_port(0, PORT, CounterHigh.XMIT_PKTS_HIGH, 1, 70 + later)
        read_whole(bench, Counter.XMIT_PKTS, 80)
        bench.run(100)
        assert bench.values()[1:] == halves(1 << 32 | low)


def test_a_write_of_extended_low_wins_over_what_a_read_would_keep_in_its_cycle(star):
    for at, low in ((69, 0xAAAA), (71, 3)):  # visible at 71, 73; what is kept, at 73
        bench = star(2, bring_up=False)
        write_atomically(bench, Counter.RCV_PKTS, 0xAAAA, 50)
        bench.write_port(0, PORT, LOW, 3, at)
        bench.read_port(0, PORT, CounterHigh.RCV_PKTS_HIGH, 70)
        bench.read_port(0, PORT, LOW, 80)
        bench.run(100)
        assert bench.values() == [0, low]


@pytest.mark.parametrize(("given", "low"), [(70, 1), (72, 2)])
def test_a_write_of_the_upper_half_takes_the_lower_one_as_visible_in_the_next_cycle(star, given, low):
    """EXTENDED_LOW is 1, and 2 from cycle 73 on."""
    bench = star(2, bring_up=False)
    bench.write_port(0, PORT, LOW, 1, 50)
    bench.write_port(0, PORT, LOW, 2, 71)
    bench.write_port(0, PORT, CounterHigh.XMIT_DATA_HIGH, 9, given)
    read_whole(bench, Counter.XMIT_DATA, 80)
    bench.run(100)
    assert bench.values() == halves(9 << 32 | low)


def test_each_port_has_one_extended_low_of_its_own(star):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, LOW, 11, 50)
    bench.write_port(0, 2, LOW, 22, 51)
    for cycle, (node, port) in enumerate(((0, 1), (0, 2), (1, 1)), 60):
        bench.read_port(node, port, LOW, cycle)
    bench.run(100)
    assert bench.values() == [11, 22, 0]


def test_no_read_but_of_an_upper_half_keeps_anything(star, ready):
    bench = star(2)
    bench.post(ready, 1, 2)
    for place, counter in enumerate(Counter):
        bench.read_port(0, PORT, counter, ready + 500 + place)
    bench.read_port(0, PORT, LOW, ready + 600)
    bench.run(2000)
    assert bench.values()[-1] == 0


def test_a_write_to_a_counter_wins_over_an_increment_of_its_cycle(star, ready):
    values = []
    for early in (0, 1, 2):
        bench = star(2)
        bench.post(ready, 1, 2, payload=12)
        verdict = ready + 1 + 11 + 2 + 1 + 4 + 1 + 11 + 2
        bench.write_port(0, 1, Counter.RCV_PKTS, 5, verdict + 1 - 2 + 1 - early)
        bench.read_port(0, 1, Counter.RCV_PKTS, 1900)
        bench.run(2000)
        (record,) = bench.of(Kind.RX_DATA, 0)
        assert record.cycle == verdict
        values += bench.values()
    # Visible at verdict + 1; a write visible after, in, before that cycle.
    assert values == [5, 5, 6]


def test_xmitwait_counts_the_ticks_in_which_a_stalled_output_sent_nothing(star, ready):
    bench = star(2, mtu=256, adapter={"mtu": 256, "receive_blocks": 7})
    bench.stall(ready, 2, 1)
    bench.write_port(0, 2, PortRegister.TICK, 9, ready + 1)
    for i in range(3):
        bench.post(ready + 10, 1, 2, payload=252, seed=i)
    bench.read_port(0, 2, Counter.XMIT_WAIT, 2000 - 2)
    bench.read_port(0, 2, Counter.XMIT_WAIT, 2500 - 2)
    bench.run(3000)
    first, second = bench.values()
    assert second - first == 50


@given(
    ticks=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    spans=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 60)), max_size=20),
    reads=st.integers(1, 7),
)
def test_ticks_by_intervals_are_ticks_by_cycles(ticks, spans, reads):
    """Ticks of another length begin with each fifth span of waiting, in the middle of it."""
    lengths = Ticks(ticks[0])
    counter = XmitWait(lengths)
    waits: list[bool] = []
    starts = {0: ticks[0]}
    for number, (gap, length) in enumerate(spans):
        waits += [False] * gap
        counter.begin(len(waits))
        waits += [True] * (length // 2)
        if number % 5 == 4:
            starts[len(waits)] = ticks[number % len(ticks)]
            counter.settle(len(waits))
            lengths.begin_anew(len(waits), ticks[number % len(ticks)])
        waits += [True] * (length - length // 2)
        if len(waits) % reads == 0:
            counter.read(len(waits))
        counter.end(len(waits))
    expected = 0
    ends = [*list(starts)[1:], len(waits)]
    for (start, tick), end in zip(starts.items(), ends, strict=True):
        expected += sum(all(waits[at : at + tick]) for at in range(start, end - tick + 1, tick))
    assert counter.read(len(waits)) == expected


def test_local_link_integrity_counts_what_exceeds_the_threshold(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.LOCAL_PHY_ERRORS, 1, ready)
    for i in range(5):
        bench.inject(ready + 100 + 200 * i, 0, 1, Injection(Trigger.DATA, first=4, last=4, flip=1))
        bench.post(ready + 110 + 200 * i, 1, 2, payload=12)
        bench.read_port(0, 1, Counter.LOCAL_LINK_INTEGRITY_ERRORS, ready + 200 + 200 * i)
    bench.run(3000)
    assert bench.values() == [0, 1, 1, 2, 2]
