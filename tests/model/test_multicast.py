"""Multicast packets in a switch (docs/pipeline.md, sections 3.3, 3.7, 4, 7 and 8.1)."""

import pytest

from wire.codes import LinkWidth
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet
from wire.packet import blocks_of_words
from wire.pma import PmaAttribute, perf_request
from wire.registers import (
    Counter,
    Detail,
    NodeRegister,
    PacketCounter,
    PartitionCheck,
    PortRegister,
    mft_address,
    node_address,
    p_key_address,
    sl_to_vl_address,
)
from wire.stimulus import Injection, Post, Trigger
from wire.trace import Discard, Kind, Verdict
from wire.trace_layout import RxData, TxData, TxDiscard

G = 0xC000
"""A group."""
SMALL = {"mtu": 256, "adapter": {"mtu": 256, "receive_blocks": 7}}
"""A host that stalls has room for one packet of 256 bytes."""


def group(bench, *members, mlid=G, cycle=None):
    for part in {member // 16 for member in members}:
        mask = sum(1 << member % 16 for member in members if member // 16 == part)
        bench.write(0, mft_address(mlid, part), mask, cycle)


def verdicts(bench, port=1):
    return [Verdict(RxData.verdict.read(record)) for record in bench.of(Kind.RX_DATA, 0, port)]


def got(bench):
    """Of each host the packets that it got."""
    return {node: [one.data for one in bench.delivered if one.node == node] for node in range(1, bench.ports + 1)}


def as_bytes(words):
    return b"".join(word.to_bytes(4, "big") for word in words)


@pytest.mark.parametrize("queueing", ["voq", "fifo"])
@pytest.mark.parametrize("forwarding", ["cut-through", "store-and-forward"])
def test_each_member_but_the_sender_gets_the_packet_once(star, ready, queueing, forwarding):
    bench = star(5, queueing=queueing, readers=1, forwarding=forwarding)
    group(bench, 1, 2, 3, 5)
    for payload in (0, 100, 256):
        bench.post(ready, 1, G, payload=payload)
    bench.run(3000)
    sent = [as_bytes(bench.words(1, G, payload=payload)) for payload in (0, 100, 256)]
    assert got(bench) == {1: [], 2: sent, 3: sent, 4: [], 5: sent}
    assert verdicts(bench) == [Verdict.GOOD] * 3


def test_two_readers_send_two_copies_at_a_time_and_the_first_as_soon_as_any_packet(star, ready):
    bench = star(4)
    group(bench, 2, 3, 4)
    bench.post(ready, 1, G, payload=256)
    bench.run(3000)
    (into,) = [record.c + bench.flight for record in bench.of(Kind.TX_DATA, 1)]
    first, second, third = sorted(record.c for port in (2, 3, 4) for record in bench.of(Kind.TX_DATA, 0, port))
    n = len(bench.words(1, G, payload=256))
    # An input accepts one offer a cycle; an output whose offer it does not accept makes the next one two cycles later.
    # The third copy is granted with the last read of the first, row n.
    assert (first - into, second - into, third - into) == (8, 10, 8 + 1 + n)


def test_a_packet_is_a_head_five_cycles_after_the_grant_before_it_unless_it_joins_two_cycles_after_that(star, ready):
    """In a queue of multicast packets. The first waits for a port that is busy for a while longer each time."""
    joined = set()
    for late in range(14):
        bench = star(4)
        group(bench, 2)
        bench.write(0, mft_address(G + 1, 0), 1 << 4)
        bench.post(ready + late, 3, 2, payload=256)
        bench.post(ready + 140, 1, G, payload=0)
        bench.post(ready + 140, 1, G + 1, payload=0)
        bench.run(2000)
        n = len(bench.words(1, G, payload=0))
        joins = [record.cycle - n + 1 for record in bench.of(Kind.RX_DATA, 0, 1)]
        first, second = (bench.of(Kind.TX_DATA, 0, port)[-1].c - 4 for port in (2, 4))
        assert second == (joins[1] + 1 if joins[1] >= first + 2 else first + 5)
        joined.add(joins[1] - first)
    assert joined >= {0, 1, 2, 3}


def test_a_port_of_a_wide_switch_is_in_another_part_of_the_entry(star, ready):
    bench = star(17)
    group(bench, 2, 16, 17)
    bench.write(0, mft_address(G, 2), 0xFFFF)  # ports 32 to 47
    bench.write(0, mft_address(G, 0), 0x1_0000)  # wider than a part
    bench.post(ready, 1, G)
    bench.run(2000)
    assert [node for node, packets in got(bench).items() if packets] == [2, 16, 17]


def test_a_miss_goes_to_nobody_at_reset_and_then_to_the_default_ports(star, ready):
    """LIDs beyond the table, or above MULTICAST_FDB_TOP, are not found; an entry of 0 is found, and has no ports."""
    bench = star(4, mft_size=32)
    group(bench, 2, mlid=G + 1)
    group(bench, 2, mlid=G + 2)
    beyond = G + 32
    bench.post(ready, 1, beyond)
    bench.write(0, node_address(NodeRegister.DEFAULT_MULTICAST_PRIMARY), 3, ready + 100)
    bench.post(ready + 110, 1, beyond)
    bench.post(ready + 110, 3, beyond)
    bench.write(0, node_address(NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY), 4, ready + 200)
    bench.post(ready + 210, 3, beyond)
    bench.post(ready + 300, 1, G)
    bench.write(0, node_address(NodeRegister.MULTICAST_FDB_TOP), G + 1, ready + 400)
    bench.post(ready + 410, 1, G + 1)
    bench.post(ready + 500, 1, G + 2)
    bench.write(0, node_address(NodeRegister.DEFAULT_MULTICAST_PRIMARY), 5, ready + 600)
    bench.post(ready + 610, 1, beyond)
    bench.read_port(0, 1, Detail.DLID_MAPPING_ERRORS, 2900)
    bench.run(3000)
    no_route, good = Verdict.NO_ROUTE, Verdict.GOOD
    assert verdicts(bench) == [no_route, good, no_route, good, good, no_route]
    assert verdicts(bench, 3) == [no_route, good]
    assert {node: len(packets) for node, packets in got(bench).items()} == {1: 0, 2: 1, 3: 2, 4: 1}
    assert bench.values() == [3]


def test_a_new_entry_is_found_by_packets_whose_header_comes_two_cycles_after_its_write(star, ready):
    sent = star(2)
    group(sent, 2)
    sent.post(ready, 1, G)
    sent.run(2000)
    (header,) = [record.c + sent.flight + 1 for record in sent.of(Kind.TX_DATA, 1)]
    for written, expected in ((header - 2, Verdict.GOOD), (header - 1, Verdict.NO_ROUTE)):
        bench = star(2)
        group(bench, 2, cycle=written)
        bench.post(ready, 1, G)
        bench.run(2000)
        assert verdicts(bench) == [expected]


def test_a_packet_to_none_but_its_own_port_loops(star, ready):
    bench = star(2)
    group(bench, 1)
    bench.post(ready, 1, G)
    bench.read_port(0, 1, Counter.RCV_SWITCH_RELAY_ERRORS, 1900)
    bench.read_port(0, 1, Detail.LOOPING_ERRORS, 1901)
    bench.run(2000)
    assert verdicts(bench) == [Verdict.LOOP]
    assert bench.values() == [1, 1]


def test_a_copy_without_a_vl_is_not_missed_unless_there_is_no_other(star, ready):
    bench = star(3, vls=4)
    group(bench, 2, 3)
    bench.write(0, sl_to_vl_address(1, 2, 5), 7)
    bench.write(0, sl_to_vl_address(1, 3, 5), 2)
    bench.write(0, sl_to_vl_address(1, 3, 6), 7)
    bench.write(0, sl_to_vl_address(1, 2, 6), 15)
    bench.post(ready, 1, G, slot=1, sl=5)
    bench.post(ready + 100, 1, G, slot=1, sl=6)
    bench.read_port(0, 1, Detail.VL_MAPPING_ERRORS, 1900)
    bench.run(2000)
    assert verdicts(bench) == [Verdict.GOOD, Verdict.VL_MAP]
    assert {node: len(packets) for node, packets in got(bench).items()} == {1: 0, 2: 0, 3: 1}
    assert [TxData.slot.read(record) for record in bench.of(Kind.TX_DATA, 0, 3)] == [2]
    assert bench.values() == [1]


def test_a_copy_for_port_0_goes_to_the_agent_and_keeps_its_slot(star, ready):
    bench = star(2, vls=2)
    group(bench, 0, 2)
    bench.write(0, sl_to_vl_address(1, 2, 0), 0)
    bench.post(ready, 1, G, slot=1)
    bench.run(2000)
    assert [record.a & 0xFF for record in bench.of(Kind.DELIVER, 0, 0)] == [1]
    assert len(got(bench)[2]) == 1


@pytest.mark.parametrize(("queueing", "others"), [("voq", 3), ("fifo", 2)])
def test_a_slow_member_keeps_only_those_behind_it_in_the_queue(star, ready, queueing, others):
    """Host 2 stalls: the copies for host 3 of the first packets behind go, and unicast packets, but for `fifo`."""
    bench = star(3, queueing=queueing, readers=1, buffer_blocks=60, **SMALL)
    group(bench, 2, 3)
    bench.stall(ready, 2, 0b11)
    for _ in range(4):
        bench.post(ready + 10, 1, G, payload=256)
    bench.post(ready + 20, 1, 3, payload=256)
    bench.run(5000)
    assert len(got(bench)[3]) == others
    assert [int.from_bytes(data[2:4]) for data in got(bench)[3]].count(3) == (queueing == "voq")


def test_blocks_return_behind_the_last_copy_and_once(star, ready):
    """A member that stalls keeps the blocks of what waits for it: the sender stands still. Then all goes on."""
    room = 3
    need = blocks_of_words(len(star.words(1, G, payload=256)))
    bench = star(3, buffer_blocks=room * need, **SMALL)
    group(bench, 2, 3)
    bench.stall(ready, 2, 0b11)
    bench.stall(ready + 4000, 2, 0)
    for _ in range(40):
        bench.post(ready + 10, 1, G, payload=256)
    bench.run(ready + 4000)
    held = len(bench.of(Kind.TX_DATA, 1))
    assert held == 1 + room
    assert len(got(bench)[3]) == 2
    bench.run(20_000)
    assert [len(got(bench)[node]) for node in (2, 3)] == [40, 40]
    assert verdicts(bench) == [Verdict.GOOD] * 40


def test_one_copy_may_be_too_long_for_its_neighbour(star, ready):
    bench = star(3)
    group(bench, 2, 3)
    bench.write_port(0, 2, PortRegister.NEIGHBOR_MTU, 1)
    bench.post(ready, 1, G, payload=512)
    bench.run(3000)
    assert [TxDiscard.reason.read(record) for record in bench.of(Kind.TX_DISCARD, 0, 2)] == [Discard.NEIGHBOR_MTU]
    assert {node: len(packets) for node, packets in got(bench).items()} == {1: 0, 2: 0, 3: 1}


def test_copies_for_a_dead_link_are_swallowed_and_the_others_arrive(star, ready):
    bench = star(3, buffer_blocks=16, **SMALL)
    group(bench, 2, 3)
    bench.write_port(0, 2, PortRegister.LINK_DOWN_TIMEOUT, 10)
    bench.link(ready, 1, up=False)
    for _ in range(20):
        bench.post(ready + 50, 1, G, payload=256)
    bench.run(6000)
    assert len(bench.of(Kind.TX_DISCARD, 0, 2)) == len(got(bench)[3]) == 20


def test_copies_expire_where_they_wait_and_nowhere_else(star, ready):
    bench = star(3, **SMALL)
    group(bench, 2, 3)
    bench.write_port(0, 2, PortRegister.HOQ_LIFE, 0)
    bench.stall(ready, 2, 0b11)
    for _ in range(6):
        bench.post(ready + 10, 1, G, payload=256)
    bench.run(9000)
    reasons = [TxDiscard.reason.read(record) for record in bench.of(Kind.TX_DISCARD, 0, 2)]
    assert reasons == [Discard.HOQ_LIFE] * 5
    assert len(got(bench)[3]) == 6


def test_copies_of_a_packet_that_ends_bad_are_all_marked_bad(star, ready):
    """Damaged in its last words: the first copies are on their links, the third is not read before: it is scrapped."""
    bench = star(4)
    group(bench, 2, 3, 4)
    bench.inject(ready, 0, 1, Injection(Trigger.DATA, 60, 60, flip=1))
    bench.post(ready + 10, 1, G, payload=256)
    bench.run(3000)
    marks = [[TxData.marked_bad.read(record) for record in bench.of(Kind.TX_DATA, 0, port)] for port in (2, 3, 4)]
    assert sorted(marks) == [[], [1], [1]]
    assert len(bench.of(Kind.SCRAP)) == 1
    assert not bench.delivered


def test_copies_of_a_packet_that_is_cut_end_early(star, ready):
    bench = star(4)
    group(bench, 2, 3, 4)
    bench.inject(ready, 0, 1, Injection(Trigger.DATA, 30, 30, flip=1 << 32))
    for _ in range(2):
        bench.post(ready + 10, 1, G, payload=256)
    bench.run(3000)
    ends = [[TxData.end_row.read(record) for record in bench.of(Kind.TX_DATA, 0, port)] for port in (2, 3, 4)]
    n = len(bench.words(1, G, payload=256))
    assert sorted(ends) == [[30, n], [30, n], [n]]
    assert len(bench.of(Kind.SCRAP)) == 1
    assert [len(got(bench)[node]) for node in (2, 3, 4)] == [1, 1, 1]


def test_copies_of_what_comes_by_a_1x_link_wait_as_for_a_4x_output(star, ready):
    starts = {}
    for name, dlid, narrow in (("unicast to 4X", 2, ()), ("to a 1X member", G, (2,)), ("to a 4X member", G, ())):
        bench = star(2)
        group(bench, 2)
        for node, port in ((0, 1), (1, 1), *(end for i in narrow for end in ((0, i), (i, 1)))):
            bench.write_port(node, port, PortRegister.WIDTH, LinkWidth.X1)
        bench.post(ready, 1, dlid, payload=256)
        bench.run(4000)
        (into,), (out,) = ([record.c for record in bench.of(Kind.TX_DATA, *at)] for at in ((1, 1), (0, 2)))
        starts[name] = out - into
    assert starts["unicast to 4X"] == starts["to a 4X member"]
    assert 0 <= starts["to a 1X member"] - starts["to a 4X member"] < 4


def test_what_arrival_rejects_is_cancelled_and_what_departure_rejects_is_one_copy(star, ready):
    bench = star(3)
    group(bench, 2, 3)
    for port in (1, 2):
        bench.write(0, p_key_address(port, 0), 0x8001)
    bench.write_port(0, 2, PortRegister.PARTITION, PartitionCheck.OUTBOUND)
    bench.post(ready, 1, G)
    bench.write_port(0, 1, PortRegister.PARTITION, PartitionCheck.INBOUND, ready + 100)
    bench.post(ready + 110, 1, G)
    bench.run(2000)
    assert verdicts(bench) == [Verdict.GOOD, Verdict.RCV_CONSTRAINT]
    assert [len(got(bench)[node]) for node in (2, 3)] == [0, 1]
    assert [len(bench.of(Kind.TX_DISCARD, 0, port)) for port in (2, 3)] == [1, 0]


def test_in_voq_copies_and_others_take_turns_at_an_output(star, ready):
    """All wait for output 2 in two queues of one input until the stall is over, but for the first."""
    bench = star(2, buffer_blocks=100, **SMALL)
    group(bench, 2)
    bench.stall(ready, 2, 0b11)
    for dlid in (2, 2, 2, 2, G, G, G, 2):
        bench.post(ready + 10, 1, dlid, payload=256)
    bench.stall(ready + 2000, 2, 0)
    bench.run(8000)
    went = [int.from_bytes(data[2:4]) for data in got(bench)[2]]
    assert went == [2, G, 2, G, 2, G, 2, 2]


def test_queues_of_multicast_packets_are_by_vl_and_take_turns(star, ready):
    """Packets of two VLs go to VL 0 of output 2."""
    bench = star(2, vls=2, buffer_blocks=100, **SMALL)
    group(bench, 2)
    bench.write(0, sl_to_vl_address(1, 2, 1), 0)
    bench.stall(ready, 2, 0b11)
    for sl in (0, 0, 0, 0, 0):
        bench.post(ready + 10, 1, G, slot=0, sl=sl, payload=256)
    for sl in (1, 1, 1):
        bench.post(ready + 400, 1, G, slot=1, sl=sl, payload=256)
    bench.stall(ready + 2000, 2, 0)
    bench.run(8000)
    assert [data[1] >> 4 for data in got(bench)[2]] == [0, 1, 0, 1, 0, 1, 0, 0]


def test_hosts_post_to_groups_at_the_same_time(star, ready):
    """Everybody to everybody, more than the buffers hold: nothing is lost, nothing stands still."""
    bench = star(4, vls=2, buffer_blocks=14, readers=2, **SMALL)
    group(bench, 1, 2, 3, 4)
    for i in range(1, 5):
        for number in range(30):
            dlid = G if number % 3 else i % 4 + 1
            words = bench.words(i, dlid, payload=40 * (number % 7), sl=number % 2, seed=100 * i + number)
            bench.posts.append(Post.of_words(ready, i, number % 2, words))
    bench.run(30_000)
    assert {len(packets) for packets in got(bench).values()} == {3 * 20 + 10}


def test_each_copy_is_a_multicast_packet_sent_and_the_packet_one_received(star, ready):
    bench = star(3)
    group(bench, 1, 2, 3)
    bench.post(ready, 1, G)
    bench.post(ready, 1, 2)
    end = ready + 1000
    for place, counter in enumerate(PacketCounter):
        for port in (1, 2, 3):
            bench.read_port(0, port, counter, end + 4 * place + port)
    bench.run(3000)
    sent_one_by_one, received_one_by_one = [0, 1, 0], [1, 0, 0]
    sent, received = [0, 1, 1], [1, 0, 0]
    assert bench.values() == [*sent_one_by_one, *received_one_by_one, *sent, *received]


def test_a_request_to_an_agent_that_a_group_gets_is_for_nobody(star, ready):
    """Port 0 of the switch is a member too. The hosts get it like any other packet."""
    bench = star(3)
    group(bench, 0, 1, 2, 3)
    mad = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, bytes([0, 1]), transaction_id=1)
    packet = gmp_packet(mad, 1, G).data
    bench.posts.append(Post(ready, 1, 0, packet))
    bench.run(4000)
    assert got(bench) == {1: [], 2: [packet], 3: [packet]}
    assert len(bench.of(Kind.DELIVER, 0, port=0)) == 1
    assert not [record for node in range(4) for record in bench.of(Kind.SEND, node, port=0)]
