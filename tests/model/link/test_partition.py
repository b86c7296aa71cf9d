"""Partitions: P_Keys and raw packets, checked on arrival and departure (docs/pipeline.md, section 3.6)."""

import pytest

from model.link.partition import Partition, Turns
from tests.model.link.partitions import (
    BLOCKS,
    TABLE,
    announced,
    arrival,
    checking,
    iba,
    latencies,
    post,
    raw,
    set_table,
    verdicts,
)
from wire.codes import VL15, LinkWidth, PortState
from wire.mad import MadMethod, mad_data
from wire.mad_packet import gmp_packet
from wire.pma import PERF_MAD, PORT_COUNTERS, PmaAttribute, perf_request
from wire.registers import Counter, PartitionCheck, PortRegister, lft_address, p_key_address
from wire.stimulus import Injection, Post, Trigger
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData

IN, OUT, RAW_IN, RAW_OUT = PartitionCheck
FULL = 0x8000
GOOD, RCV, XMIT = Verdict.GOOD, Verdict.RCV_CONSTRAINT, Verdict.XMIT_CONSTRAINT


# Tables.


AT = 1000
"""When what `table` writes has had its turns."""


def table(*p_keys, turns=None):
    partition = Partition(turns or Turns())
    for entry in range(TABLE):
        partition.write(0, entry, p_keys[entry] if entry < len(p_keys) else 0)
    return partition


def first(partition, p_key, cycle):
    """The first cycle from one on in which a table has a P_Key."""
    return next(now for now in range(cycle, cycle + 1000) if partition.has(now, p_key, departs=False))


def test_at_reset_a_table_has_the_default_partition_with_full_membership():
    partition = Partition(Turns())
    assert [key for key in range(1 << 16) if partition.has(0, key, departs=True)] == [0x7FFF, 0xFFFF]
    assert partition.checks == 0


@pytest.mark.parametrize(
    ("entry", "p_key", "has"),
    [
        (FULL | 5, FULL | 5, True),
        (FULL | 5, 5, True),  # a full member's table takes a limited member's packet
        (5, FULL | 5, True),  # and the other way round
        (5, 5, False),  # two limited members do not hear each other, though both may send
        (FULL | 5, FULL | 4, False),
        (FULL | 5, FULL | 0x4005, False),
        (FULL | 0x7FFF, 0x7FFF, True),
    ],
)
@pytest.mark.parametrize("place", [0, 11, 31])
def test_two_members_of_a_partition_meet_if_one_of_them_is_a_full_one(place, entry, p_key, has):
    assert table(*[0] * place, entry).has(AT, p_key, departs=True) is has
    assert table(*[0] * place, entry).has(AT, p_key, departs=False) is (entry & 0x7FFF == p_key & 0x7FFF)


def test_a_partition_of_number_0_is_in_no_table():
    assert not table(FULL, 0).has(AT, FULL, departs=False)
    assert not table(FULL, 0).has(AT, 0, departs=False)


@pytest.mark.parametrize("entry", [0, 11, 31])
def test_an_entry_that_changes_is_in_no_partition_for_a_while(entry):
    """The old one to the third cycle after its turn, none from the fourth on, the new one from the eleventh on."""
    partition = table(*[0] * entry, FULL | 5)
    partition.write(AT, entry, FULL | 6)
    held = {5: [], 6: []}
    for cycle in range(AT, AT + 15):
        for p_key, cycles in held.items():
            if partition.has(cycle, p_key, departs=True):
                cycles.append(cycle - AT)
    assert held == {5: [0, 1, 2, 3], 6: [11, 12, 13, 14]}


def test_an_entry_that_is_written_with_what_it_holds_stays_in_its_partition():
    partition = table(FULL | 5)
    partition.write(AT, 0, FULL | 5)
    assert all(partition.has(cycle, 5, departs=True) for cycle in range(AT, AT + 30))


def test_what_a_packet_that_departs_is_looked_for_in_does_not_spoil_what_one_that_arrives_is():
    """Of two packets in the same cycle, the one that arrives is looked for in the table of the cycle before."""
    partition = table(FULL | 5)
    partition.write(AT, 0, FULL | 6)
    assert not partition.has(AT + 4, 5, departs=True)
    assert partition.has(AT + 3, 5, departs=False)


@pytest.mark.parametrize("gap", range(1, 13))
def test_written_entries_have_their_turns_ten_cycles_after_one_another(gap):
    """Of several writes to an entry each has its turn, and lasts until the next one's."""
    partition = table()
    for place in range(4):
        partition.write(AT + gap * place, 7, FULL | 1 + place)
    held = [first(partition, 1 + place, AT) for place in range(4)]
    assert held == [AT + max(gap, 10) * place + 11 for place in range(4)]


def test_the_turns_of_a_switch_are_those_of_all_its_ports():
    turns = Turns()
    one, other = table(turns=turns), table(turns=turns)
    for place, partition in enumerate((one, other, one)):
        partition.write(AT + place, place, FULL | 5 + place)
    assert [first(one, 5, AT), first(other, 6, AT), first(one, 7, AT)] == [AT + 11, AT + 21, AT + 31]


def test_a_write_of_what_an_entry_holds_takes_its_turn_too():
    partition = table(FULL | 5)
    partition.write(AT, 0, FULL | 5)
    partition.write(AT, 1, FULL | 6)
    assert first(partition, 6, AT) == AT + 21


# Packets on their way.


def test_nothing_is_checked_at_reset(star, ready):
    bench = checking(star, (0, 0), [0], [0])
    post(bench, ready, iba(1, 2, 0x1234))
    post(bench, ready + 200, raw(1, 2))
    bench.run(2000)
    assert verdicts(bench) == [GOOD, GOOD]
    assert latencies(bench) == [8, 8]


@pytest.mark.parametrize(
    ("entry", "p_key", "arrives", "departs"),
    [
        (5, FULL | 5, True, True),
        (FULL | 5, 5, True, True),
        (5, 5, True, False),  # a limited member may send, and another does not hear it
        (FULL, FULL, False, False),
    ],
)
@pytest.mark.parametrize("checks", [(IN, 0), (0, OUT), (IN, OUT)])
def test_a_packet_passes_if_the_tables_have_its_p_key(star, ready, checks, entry, p_key, arrives, departs):
    bench = checking(star, checks, [entry], [entry])
    post(bench, ready, iba(1, 2, p_key))
    bench.run(2000)
    verdict = RCV if checks[0] and not arrives else XMIT if checks[1] and not departs else GOOD
    assert verdicts(bench) == [verdict]
    assert len(bench.delivered) == (verdict == GOOD)
    assert len(bench.of(Kind.TX_DATA, 0, 2)) == (verdict == GOOD)
    assert not bench.of(Kind.SCRAP)


def test_arrival_is_checked_by_the_table_of_the_input_and_departure_by_that_of_the_output(star, ready):
    bench = checking(star, (IN | OUT, IN | OUT, IN | OUT), [FULL | 1, FULL | 2], [FULL | 2], [FULL | 1])
    for place, (target, p_key) in enumerate([(2, 1), (2, 2), (3, 1), (3, 2), (2, 3)]):
        post(bench, ready + 200 * place, iba(1, target, p_key))
    bench.run(3000)
    assert verdicts(bench) == [XMIT, GOOD, GOOD, XMIT, RCV]
    assert [delivery.node for delivery in bench.delivered] == [2, 3]


@pytest.mark.parametrize(
    ("filters", "verdict"),
    [((RAW_IN, 0), RCV), ((0, RAW_OUT), XMIT), ((RAW_IN, RAW_OUT), RCV), ((RAW_OUT | IN | OUT, RAW_IN | OUT), GOOD)],
)
@pytest.mark.parametrize("ipv6", [False, True])
@pytest.mark.parametrize("forwarding", ["cut-through", "store-and-forward"])
def test_a_raw_packet_is_rejected_where_raw_packets_are_filtered_and_only_there(
    star, ready, forwarding, ipv6, filters, verdict
):
    bench = checking(star, filters, [FULL | 9], [FULL | 9], forwarding=forwarding)
    post(bench, ready, raw(1, 2, ipv6=ipv6))
    bench.run(2000)
    assert verdicts(bench) == [verdict]
    assert len(bench.delivered) == (verdict == GOOD)
    assert announced(bench) == BLOCKS


def test_where_raw_packets_are_filtered_others_are_not_looked_at(star, ready):
    bench = checking(star, (RAW_IN | RAW_OUT | OUT, RAW_IN | RAW_OUT | IN), [0], [0])
    post(bench, ready, iba(1, 2, 5))
    bench.run(2000)
    assert verdicts(bench) == [GOOD]
    assert latencies(bench) == [8]


def test_vl15_is_not_checked(star, ready):
    bench = checking(star, (15, 15), [0], [0])
    bench.post(ready, 1, 2, slot=1, vl=VL15, payload=256)
    bench.run(2000)
    assert verdicts(bench) == [GOOD]
    assert latencies(bench) == [8]


def test_port_0_checks_nothing_and_what_an_agent_sends_is_not_checked(star, ready):
    """A PMA request is checked where it comes in, its answer nowhere, not even by the port it leaves by."""
    switch_lid = 9
    bench = checking(star, (IN | OUT, OUT), [FULL | 7], [0])
    bench.write(0, lft_address(switch_lid), 0)
    for place, p_key in enumerate((FULL | 7, FULL | 8)):
        request = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, bytes([0, 1]), transaction_id=place)
        data = gmp_packet(request, 1, switch_lid, p_key=p_key).data
        bench.posts.append(Post(ready + 1000 * place, 1, 0, data))
    bench.run(4000)
    assert verdicts(bench) == [GOOD, RCV]
    (answer,) = bench.delivered
    assert PORT_COUNTERS.unpack(mad_data(PERF_MAD.unpack(answer.data[28:-4]))).port_rcv_pkts == 1


# When they join.


@pytest.mark.parametrize("checks", [(IN, 0), (0, OUT), (IN, OUT)])
@pytest.mark.parametrize("flight", [1, 7])
def test_a_checked_packet_waits_for_its_p_key_and_a_look_at_the_tables(star, ready, flight, checks):
    bench = checking(star, checks, flight=flight)
    post(bench, ready, iba(1, 2, 0xFFFF))
    bench.run(2000)
    assert latencies(bench) == [6 + 2 + 5]  # joins two cycles after row 6


def test_a_packet_with_a_grh_joins_when_row_16_has_come(star, ready):
    bench = checking(star, (IN, OUT))
    post(bench, ready, iba(1, 2, 0xFFFF, grh=True))
    bench.run(2000)
    assert latencies(bench) == [16 + 2 + 5]


@pytest.mark.parametrize(("grh", "k"), [(False, 3), (True, 13)])
def test_the_smallest_packet_joins_two_cycles_after_its_end(star, ready, grh, k):
    bench = checking(star, (IN, OUT))
    words = iba(1, 2, 0xFFFF, payload=0, grh=grh)
    assert len(words) == k + 3
    post(bench, ready, words)
    bench.run(2000)
    assert latencies(bench) == [k + 3 + 2 + 5]
    assert len(bench.delivered) == 1
    assert announced(bench) == BLOCKS


@pytest.mark.parametrize("checks", [(IN, 0), (0, OUT), (IN, OUT)])
def test_a_packet_with_a_grh_that_ends_too_soon_has_no_p_key(star, ready, checks):
    """15 words: its BTH is cut off, which is no error of the link."""
    words = list(iba(1, 2, 0xFFFF, grh=True, payload=0)[:15])
    words[1] = words[1] & ~0x7FF_0000 | 15 << 16
    bench = checking(star, checks)
    post(bench, ready, tuple(words))
    bench.run(2000)
    assert verdicts(bench) == [RCV if checks[0] else XMIT]
    assert announced(bench) == BLOCKS


@pytest.mark.parametrize("size", [6, 9, 16, 17, 40, 80])
def test_from_1x_to_4x_it_waits_for_both_its_p_key_and_a_row_that_keeps_the_output_from_running_dry(star, ready, size):
    bench = checking(star, (IN, 0))
    for node in (0, 1):
        bench.write_port(node, 1, PortRegister.WIDTH, LinkWidth.X1)
    words = iba(1, 2, 0xFFFF, payload=4 * (size - 6))
    post(bench, ready, words)
    bench.run(4000)
    assert len(words) == size
    assert latencies(bench) == [4 * max(6, size - size // 4) + 2 + 5]


def test_from_4x_to_1x_it_waits_for_its_p_key_alone(star, ready):
    bench = checking(star, (IN, 0))
    for node, port in ((0, 2), (2, 1)):
        bench.write_port(node, port, PortRegister.WIDTH, LinkWidth.X1)
    post(bench, ready, iba(1, 2, 0xFFFF))
    bench.run(4000)
    (latency,) = latencies(bench)
    assert 0 <= latency - (6 + 2 + 5) < 4


@pytest.mark.parametrize("grh", [False, True])
@pytest.mark.parametrize("p_key", [5, 6])
def test_a_store_and_forward_switch_checks_too_and_takes_no_longer(star, ready, p_key, grh):
    bench = checking(star, (IN, OUT), [FULL | 5], [FULL | 5], forwarding="store-and-forward")
    words = iba(1, 2, p_key, grh=grh)
    post(bench, ready, words)
    bench.run(2000)
    assert verdicts(bench) == [GOOD if p_key == 5 else RCV]
    if p_key == 5:
        assert latencies(bench) == [len(words) + 7]
    assert announced(bench) == BLOCKS


@pytest.mark.parametrize("queueing", [{}, {"queueing": "fifo", "readers": 1}])
def test_a_rejected_packet_leaves_the_way_free(star, ready, queueing):
    """Packets before and after it in the same queue go on as if it had not been there."""
    bench = checking(star, (IN, OUT), [FULL | 5, FULL | 6], [FULL | 5], **queueing)
    for p_key in (5, 6, 5, 7, 5):
        post(bench, ready, iba(1, 2, p_key, payload=200))
    bench.run(3000)
    assert verdicts(bench) == [GOOD, XMIT, GOOD, RCV, GOOD]
    assert len(bench.delivered) == 3
    assert announced(bench) == BLOCKS


# Writes.


def test_partition_counts_as_it_is_in_the_cycle_after_row_1(star, ready):
    n = len(iba(1, 2, 5))
    for given, checked in ((-1, True), (0, False)):
        bench = checking(star, (0, 0), [0], [0])
        bench.write_port(0, 1, PortRegister.PARTITION, IN, arrival(n, ready) + 1 + given)  # visible 2 cycles later
        post(bench, ready, iba(1, 2, 5))
        bench.run(2000)
        assert verdicts(bench) == [RCV if checked else GOOD]


@pytest.mark.parametrize("entry", [0, 31])
@pytest.mark.parametrize(("checks", "port", "verdict"), [((IN, 0), 1, RCV), ((0, OUT), 2, XMIT)])
@pytest.mark.parametrize("grh", [False, True])
@pytest.mark.parametrize("damaged", [False, True])
def test_a_key_that_is_written_while_it_is_looked_for(star, ready, damaged, grh, checks, port, verdict, entry):
    """A damaged packet is received row by row; whether it joined shows in that it is sent, marked bad."""
    k = 13 if grh else 3
    words = iba(1, 2, 5, grh=grh)
    looked_at = arrival(len(words), ready) + k + (1 if checks[0] else 2)
    for before, after, shows in ((0, FULL | 5, 11), (FULL | 5, 0, 4), (FULL | 5, 6, 4), (6, FULL | 5, 11)):
        for late in (0, 1):
            bench = checking(star, checks)
            set_table(bench, port, [0] * entry + [before])
            bench.write(0, p_key_address(port, entry), after, looked_at - shows - 2 + late)
            if damaged:
                bench.inject(ready - 1, 0, 1, Injection(Trigger.DATA, 2, 2, flip=1 << 24))
            post(bench, ready, words)
            bench.run(2000)
            passes = (before if late else after) == FULL | 5
            assert len(bench.of(Kind.TX_DATA, 0, 2)) == passes, (before, late)
            if damaged:
                assert verdicts(bench) == [Verdict.PHYSICAL]
            else:
                assert verdicts(bench) == [GOOD if passes else verdict]


def test_p_keys_are_written_in_a_switch_alone_and_never_read(star):
    bench = star(2, bring_up=False, vls=2)
    for node, port in ((0, 2), (1, 1)):
        bench.write_port(node, port, PortRegister.PARTITION, 15, 50 + node)
        bench.write(node, p_key_address(port, 0), 5, 60 + node)
        bench.read_port(node, port, PortRegister.PARTITION, 70 + node)
        bench.read(node, p_key_address(port, 0), 80 + node)
    bench.write_port(0, 2, PortRegister.PARTITION, 16, 90)
    bench.read_port(0, 2, PortRegister.PARTITION, 95)
    bench.run(200)
    assert bench.values() == [15, 0, 0, 0, 15]


def test_an_entry_wider_than_16_bits_is_ignored(star, ready):
    bench = checking(star, (IN, 0), [FULL | 5])
    bench.write(0, p_key_address(1, 0), 1 << 16 | 6)
    post(bench, ready, iba(1, 2, 5))
    bench.run(2000)
    assert verdicts(bench) == [GOOD]


# Counters.


@pytest.mark.parametrize(
    ("checks", "packet", "expected"),
    [
        ((IN, OUT), iba(1, 2, 5), {(1, Counter.RCV_CONSTRAINT_ERRORS)}),
        ((0, OUT), iba(1, 2, 5), {(2, Counter.XMIT_CONSTRAINT_ERRORS)}),
        ((RAW_IN, RAW_OUT), raw(1, 2), {(1, Counter.RCV_CONSTRAINT_ERRORS)}),
        ((0, RAW_OUT), raw(1, 2), {(2, Counter.XMIT_CONSTRAINT_ERRORS)}),
        ((IN, OUT), iba(1, 2, FULL | 9), set()),
    ],
)
def test_a_constraint_counts_at_the_port_that_rejects(star, ready, checks, packet, expected):
    bench = checking(star, checks, [FULL | 9], [FULL | 9])
    post(bench, ready, packet)
    others = (Counter.RCV_ERRORS, Counter.RCV_SWITCH_RELAY_ERRORS, Counter.XMIT_DISCARDS)
    counters = [Counter.XMIT_CONSTRAINT_ERRORS, Counter.RCV_CONSTRAINT_ERRORS, *others]
    places = [(port, counter) for port in (1, 2) for counter in counters]
    for index, (port, counter) in enumerate(places):
        bench.read_port(0, port, counter, ready + 500 + index)
    bench.read_port(0, 1, Counter.RCV_PKTS, ready + 600)
    bench.run(2000)
    *values, packets = bench.values()
    assert {place for place, value in zip(places, values, strict=True) if value} == expected
    assert packets == 1


@pytest.mark.parametrize(
    ("checks", "port", "counter"),
    [((IN, 0), 1, Counter.RCV_CONSTRAINT_ERRORS), ((0, OUT), 2, Counter.XMIT_CONSTRAINT_ERRORS)],
)
def test_it_counts_three_cycles_after_the_end(star, ready, checks, port, counter):
    words = iba(1, 2, 5)
    end = arrival(len(words), ready) + len(words)
    bench = checking(star, checks, [0], [0])
    post(bench, ready, words)
    bench.read_port(0, port, counter, end + 2 - 2)
    bench.read_port(0, port, counter, end + 3 - 2)
    bench.run(2000)
    (received,) = bench.of(Kind.RX_DATA, 0, 1)
    assert received.cycle == end + 2
    assert bench.values() == [0, 1]


def test_packets_that_one_output_rejects_in_one_cycle_count_each(star, ready):
    bench = checking(star, (0, 0, 0, OUT), [], [], [], [0])
    for source in (1, 2, 3):
        post(bench, ready, iba(source, 4, 5))
    bench.read_port(0, 4, Counter.XMIT_CONSTRAINT_ERRORS, ready + 300)
    bench.run(2000)
    (cycle,) = {record.cycle for port in (1, 2, 3) for record in bench.of(Kind.RX_DATA, 0, port)}
    assert cycle < ready + 100
    assert bench.values() == [3]


def test_constraint_errors_of_an_adapter_stay_0(star, ready):
    bench = checking(star, (0, 0))
    bench.write_port(1, 1, PortRegister.PARTITION, 15)
    post(bench, ready, iba(1, 2, 5))
    bench.read_port(1, 1, Counter.XMIT_CONSTRAINT_ERRORS, ready + 300)
    bench.read_port(2, 1, Counter.RCV_CONSTRAINT_ERRORS, ready + 301)
    bench.run(2000)
    assert len(bench.delivered) == 1
    assert bench.values() == [0, 0]


def test_a_rejected_packet_is_no_activetrigger(star, ready):
    """A port in Armed waits for a good packet."""
    bench = star(2, bring_up=False)
    for node, port in ((0, 1), (0, 2), (1, 1), (2, 1)):
        bench.write_port(node, port, PortRegister.STATE, PortState.ARMED, 300 + 2 * node + port)
    for node, port in ((0, 2), (1, 1), (2, 1)):
        bench.write_port(node, port, PortRegister.STATE, PortState.ACTIVE, 700 + 2 * node + port)
    bench.write_port(0, 1, PortRegister.PARTITION, IN)
    set_table(bench, 1, [FULL | 5])
    for place, p_key in enumerate((6, 5)):
        post(bench, ready + 200 * place, iba(1, 2, p_key))
    bench.run(2000)
    first, second = bench.of(Kind.RX_DATA, 0, 1)
    assert [RxData.verdict.read(record) for record in (first, second)] == [RCV, GOOD]
    assert bench.states(0, 1)[-1] == (second.cycle + 1, PortState.ACTIVE)
