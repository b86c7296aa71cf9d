"""Multicast packets whose copies are checked for their partition on departure (docs/pipeline.md, section 3.8)."""

import pytest

from tests.model.link.partitions import BLOCKS, announced, arrival, checking, iba, post, raw, verdicts
from wire.codes import LinkWidth
from wire.registers import Counter, PartitionCheck, PortRegister, mft_address, p_key_address
from wire.stimulus import Injection, Operation, Post, Trigger
from wire.trace import Discard, Kind, Verdict
from wire.trace_layout import RxData, TxData, TxDiscard

IN, OUT, RAW_IN, RAW_OUT = PartitionCheck
FULL = 0x8000
G = 0xC000
"""A group."""
GOOD = Verdict.GOOD


def grouped(bench, *members, mlid=G):
    bench.write(0, mft_address(mlid, 0), sum(1 << member for member in members))
    return bench


def got(bench):
    """How many packets each host got."""
    return [sum(one.node == node for one in bench.delivered) for node in range(1, bench.ports + 1)]


def discarded(bench):
    """Port and reason of all that the switch discarded."""
    ports = range(1, bench.ports + 1)
    return [(port, TxDiscard.reason.read(one)) for port in ports for one in bench.of(Kind.TX_DISCARD, 0, port)]


def came(bench):
    """Cycles of row 0 of the packets that came by port 1, in their order."""
    return [record.c + bench.flight for record in bench.of(Kind.TX_DATA, 1)]


def left(bench, port):
    """Likewise of those that left by a port."""
    return [TxData.first_cycle.read(record) for record in bench.of(Kind.TX_DATA, 0, port)]


def head_after(ports, *, key=True):
    """Cycles from row 0 until a guarded packet is a head, if nothing else is inspected, and no cycle is taken."""
    begin = (8 if key else 3) + 1
    return begin + 2 + ports - 1 + 3


# What becomes of copies.


@pytest.mark.parametrize("queueing", [{}, {"queueing": "fifo", "readers": 1}])
@pytest.mark.parametrize("forwarding", ["cut-through", "store-and-forward"])
@pytest.mark.parametrize("grh", [False, True])
def test_a_copy_goes_only_where_the_port_s_table_has_its_p_key(star, ready, grh, forwarding, queueing):
    """Ports 2 and 3 check, port 4 does not; a packet that is no group's is as it was."""
    tables = ([], [FULL | 5], [FULL | 6], [FULL | 7])
    bench = grouped(checking(star, (0, OUT, OUT, 0), *tables, forwarding=forwarding, **queueing), 2, 3, 4)
    for p_key in (5, 6, 7):
        post(bench, ready, iba(1, G, p_key, grh=grh))
    end = ready + 900
    for port in (1, 2, 3, 4):
        bench.read_port(0, port, Counter.XMIT_CONSTRAINT_ERRORS, end + port)
        bench.read_port(0, port, Counter.XMIT_DISCARDS, end + 10 + port)
    bench.run(3000)
    assert verdicts(bench) == [GOOD] * 3
    assert got(bench) == [0, 1, 1, 3]
    assert discarded(bench) == [(port, Discard.CONSTRAINT) for port in (2, 2, 3, 3)]
    assert bench.values() == [0, 2, 2, 0, *[0] * 4]
    assert announced(bench) == BLOCKS


@pytest.mark.parametrize(
    ("p_key", "expected"), [(5, [0, 1, 0]), (FULL | 5, [0, 1, 1]), (0, [0, 0, 0]), (FULL, [0] * 3)]
)
def test_two_limited_members_do_not_hear_each_other(star, ready, p_key, expected):
    """Port 2's is a full member, port 3's a limited one; and nobody has P_Key 0."""
    bench = grouped(checking(star, (0, OUT, OUT), [], [FULL | 5], [5]), 2, 3)
    post(bench, ready, iba(1, G, p_key))
    bench.run(2000)
    assert got(bench) == expected


@pytest.mark.parametrize("ipv6", [False, True])
def test_raw_copies_are_rejected_by_raw_outbound_and_go_elsewhere(star, ready, ipv6):
    bench = grouped(checking(star, (0, RAW_OUT, OUT, 0)), 2, 3, 4)
    post(bench, ready, raw(1, G, ipv6=ipv6))
    bench.run(2000)
    assert got(bench) == [0, 0, 1, 1]
    assert discarded(bench) == [(2, Discard.CONSTRAINT)]
    row_0 = came(bench)[0]
    assert left(bench, 3) == [row_0 + head_after(4, key=False) + 4]


def test_a_packet_too_short_for_a_p_key_is_rejected_where_a_port_checks(star, ready):
    """With a GRH. The rejected copy is granted first, and the other's output makes its next offer two cycles later."""
    bench = grouped(checking(star, (0, OUT, 0)), 2, 3)
    post(bench, ready, (0x0003_0000 | G, 8 << 16 | 1, 0, 0, 0, 0, 0, 0))
    bench.run(2000)
    assert discarded(bench) == [(2, Discard.CONSTRAINT)]
    assert left(bench, 3) == [came(bench)[0] + head_after(3, key=False) + 2 + 4]


def test_the_copy_for_port_0_goes_its_way(star, ready):
    bench = grouped(checking(star, (0, OUT), [], [FULL | 6]), 0, 2)
    post(bench, ready, iba(1, G, 5))
    bench.run(2000)
    assert discarded(bench) == [(2, Discard.CONSTRAINT)]
    assert len(bench.of(Kind.DELIVER, 0, 0)) == 1


def test_a_rejected_copy_counts_when_nothing_of_it_has_been_sent(star, ready):
    bench = grouped(checking(star, (0, OUT), [], [0]), 2)
    words = iba(1, G, 5, payload=0)
    granted = arrival(len(words), ready) + head_after(2)
    post(bench, ready, words)
    for seen in (granted + 3, granted + 4):
        bench.read_port(0, 2, Counter.XMIT_CONSTRAINT_ERRORS, seen - 2)
    bench.run(2000)
    assert [record.cycle for record in bench.of(Kind.TX_DISCARD, 0, 2)] == [granted + 4]
    assert bench.values() == [0, 1]


def test_a_rejected_copy_waits_until_its_packet_has_ended(star, ready):
    """And what is behind it in its queue as any."""
    bench = grouped(checking(star, (0, OUT), [], [0]), 2)
    words = iba(1, G, 5, payload=200)
    post(bench, ready, words)
    bench.run(2000)
    assert [one.cycle for one in bench.of(Kind.TX_DISCARD, 0, 2)] == [came(bench)[0] + len(words) + 3 + 4]


def test_that_it_is_rejected_comes_before_all_other_reasons(star, ready):
    bench = grouped(checking(star, (0, OUT), [], [0]), 2)
    bench.write_port(0, 2, PortRegister.NEIGHBOR_MTU, 1)
    bench.link(ready + 200, 1, up=False)
    bench.write_port(0, 2, PortRegister.LINK_DOWN_TIMEOUT, 10)
    post(bench, ready, iba(1, G, 5, payload=400))
    post(bench, ready + 300, iba(1, G, 5))
    bench.run(2500)
    assert discarded(bench) == [(2, Discard.CONSTRAINT)] * 2


def test_a_rejected_copy_of_a_bad_packet_is_scrap_and_no_constraint_error(star, ready):
    bench = grouped(checking(star, (0, OUT), [], [0]), 2)
    bench.inject(ready - 1, 0, 1, Injection(Trigger.DATA, 12, 12, flip=1))
    post(bench, ready, iba(1, G, 5))
    bench.read_port(0, 2, Counter.XMIT_CONSTRAINT_ERRORS, 1900)
    bench.run(2000)
    assert discarded(bench) == []
    assert len(bench.of(Kind.SCRAP, 0, 2)) == 1
    assert bench.values() == [0]
    assert announced(bench) == BLOCKS


def test_what_a_port_checks_when_a_packet_has_its_header_says_whether_it_is_guarded(star, ready):
    """Later it goes by what is checked then, if it is guarded."""
    bench = grouped(star(3), 2, 3)
    words = iba(1, G, 5)
    h = arrival(len(words), ready) + 1
    bench.write(0, p_key_address(2, 0), FULL | 6, 100)
    bench.write_port(0, 2, PortRegister.PARTITION, OUT, h + 2 - 2)
    post(bench, ready, words)
    bench.run(2000)
    assert got(bench) == [0, 1, 1]
    assert left(bench, 2) == [h - 1 + 8]


# When.


@pytest.mark.parametrize("ports", [2, 3, 8])
@pytest.mark.parametrize(("payload", "grh"), [(0, False), (64, False), (64, True)])
def test_a_guarded_packet_is_a_head_behind_the_looks_into_all_tables(star, ready, ports, payload, grh):
    """It joins behind its P_Key, or with its end row, if it has no other: of six words."""
    bench = grouped(checking(star, [0] * (ports - 1) + [OUT]), ports)
    words = iba(1, G, 0xFFFF, payload=payload, grh=grh)
    post(bench, ready, words)
    bench.run(2000)
    assert left(bench, ports) == [came(bench)[0] + head_after(ports) + (10 if grh else 0) + 4]


def test_a_guarded_packet_behind_another_is_inspected_when_it_would_be_a_head(star, ready):
    """The first waits for a port that is busy for a while longer each time; the second is for another one."""
    joined = set()
    for late in range(14):
        bench = grouped(checking(star, (0, OUT, 0, OUT)), 2)
        grouped(bench, 4, mlid=G + 1)
        words = iba(1, G, 0xFFFF, payload=20)
        post(bench, ready + late, iba(3, 2, 0xFFFF, payload=256))
        post(bench, ready + 130, words)
        post(bench, ready + 130, iba(1, G + 1, 0xFFFF, payload=20))
        bench.run(2000)
        joins = came(bench)[1] + 8
        granted, second = left(bench, 2)[-1] - 4, left(bench, 4)[0] - 4
        begin = joins + 1 if joins >= granted + 2 else granted + 5
        assert second == begin + head_after(4) - 9
        joined.add(joins - granted)
    assert joined >= {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("checks", "members"), [((0, 0, 0), (2, 3)), ((OUT, 0, OUT), (2,)), ((0, RAW_OUT, RAW_IN), (2, 3))]
)
def test_a_packet_that_is_not_guarded_goes_as_soon_as_any(star, ready, checks, members):
    """Port 3, or the one by which it came, may check, if no copy is for it."""
    bench = grouped(checking(star, checks), *members)
    post(bench, ready, iba(1, G, 0xFFFF))
    bench.run(2000)
    assert left(bench, 2) == [came(bench)[0] + 8]


def test_a_guarded_packet_from_a_1x_link_joins_as_late_as_any_and_is_inspected_then(star, ready):
    bench = grouped(checking(star, (0, OUT)), 2)
    for node, port in ((0, 1), (1, 1)):
        bench.write_port(node, port, PortRegister.WIDTH, LinkWidth.X1)
    words = iba(1, G, 0xFFFF)
    post(bench, ready, words)
    bench.run(2000)
    n = len(words)
    assert left(bench, 2) == [came(bench)[0] + 4 * (n - n // 4) + head_after(2) - 6 + 4]


@pytest.mark.parametrize("follower", ["unicast checked on arrival", "unicast", "guarded", "raw"])
def test_looks_for_the_p_key_of_a_packet_that_arrives_come_first(star, ready, follower):
    """They are in two cycles, also if one table is not asked."""
    ports = 12
    checks = [IN if follower == "unicast checked on arrival" else 0, OUT] + [0] * (ports - 2)
    bench = grouped(checking(star, checks), 2)
    post(bench, ready, iba(1, G, 0xFFFF, payload=0))
    behind = raw(1, 3, payload=4) if follower == "raw" else iba(1, G if follower == "guarded" else 3, 0xFFFF, payload=0)
    post(bench, ready, behind)
    bench.run(2000)
    first, second = came(bench)
    looks = range(first + 11, first + 11 + ports)
    assert second + 4 in looks
    assert second + 5 in looks
    taken = 2 if follower in ("unicast checked on arrival", "guarded") else 0
    assert left(bench, 2)[0] == first + head_after(ports) + taken + 4


def test_packets_of_several_vls_are_inspected_in_turn(star, ready):
    """Four packets, on VLs 1, 0, 2 and 3. Of those that wait when the first has been inspected, the next is VL 2's."""
    ports, vls, p_key = 31, (1, 0, 2, 3), 0xFFFF
    bench = checking(star, [0, *[OUT] * 4, *[0] * (ports - 5)], vls=4)
    for place, vl in enumerate(vls):
        grouped(bench, 2 + vl, mlid=G + vl)
        words = iba(1, G + vl, p_key, payload=0)
        bench.posts.append(Post.of_words(ready + 12 * place, 1, vl, (words[0] | vl << 20, *words[1:])))
    bench.run(3000)
    assert [RxData.vl.read(one) for one in bench.of(Kind.RX_DATA, 0, 1)] == list(vls)
    rows = came(bench)
    begin = rows[0] + 9
    assert rows[2] + 9 <= begin + 1 + ports + 2 < rows[3] + 9  # it waits for VL 3 no more than for VL 1
    heads = []
    for taken in (6, 2 if rows[3] + 4 > begin + 1 + ports + 6 else 0, 0, 0):
        last = begin + 1 + ports + taken
        heads.append(last + 3)
        begin = last + 2
    assert {vl: left(bench, 2 + vl)[0] - 4 for vl in vls} == dict(zip((1, 2, 3, 0), heads, strict=True))


# Tables that change.


@pytest.mark.parametrize(("late", "rejected"), [(-1, True), (0, True), (1, False)])
@pytest.mark.parametrize("port", [2, 3])
def test_a_table_is_looked_into_in_the_port_s_own_cycle(star, ready, port, late, rejected):
    """An entry is 0 six cycles after its write."""
    bench = grouped(checking(star, (0, OUT, OUT)), 2, 3)
    words = iba(1, G, 0xFFFF)
    look = arrival(len(words), ready) + 10 + port
    bench.write(0, p_key_address(port, 0), 0, look + late - 6)
    post(bench, ready, words)
    bench.run(2000)
    assert discarded(bench) == [(port, Discard.CONSTRAINT)] * rejected
    assert sum(got(bench)) == 2 - rejected


@pytest.mark.parametrize(("late", "rejected"), [(-1, False), (0, False), (1, True)])
@pytest.mark.parametrize("port", [2, 3])
def test_and_what_it_checks_is_what_it_says_in_that_cycle(star, ready, port, late, rejected):
    """The other one checks all the time, and has the P_Key."""
    bench = grouped(checking(star, (0, OUT, OUT)), 2, 3)
    bench.write(0, p_key_address(port, 0), 0, 100)
    words = iba(1, G, 0xFFFF)
    look = arrival(len(words), ready) + 10 + port
    bench.write_port(0, port, PortRegister.PARTITION, 0, look + late - 2)
    post(bench, ready, words)
    bench.run(2000)
    assert discarded(bench) == [(port, Discard.CONSTRAINT)] * rejected


def test_what_is_written_after_a_copy_was_rejected_is_for_packets_to_come(star, ready):
    """Its packet is long, so it waits."""
    bench = grouped(checking(star, (0, OUT, OUT)), 2, 3)
    bench.write(0, p_key_address(2, 0), 0, 100)
    words = iba(1, G, 0xFFFF, payload=200)
    look = arrival(len(words), ready) + 12
    bench.write_port(0, 2, PortRegister.PARTITION, 0, look + 1)
    bench.write_port(0, 3, PortRegister.PARTITION, 0, look + 2)
    post(bench, ready, words)
    post(bench, ready, words)
    bench.run(2000)
    assert discarded(bench) == [(2, Discard.CONSTRAINT)]
    assert got(bench) == [0, 1, 2]


@pytest.mark.parametrize("at", range(8, 20))
def test_of_a_packet_that_is_inspected_when_its_switch_is_reset_nothing_is_left(star, ready, at):
    bench = grouped(checking(star, (0, OUT), lft_size=16, mft_size=32), 2)
    words = iba(1, G, 0xFFFF)
    bench._give(arrival(len(words), ready) + at, Operation.RESET, 0)
    post(bench, ready, words)
    bench.bring_up(3000)
    grouped(bench, 2)
    bench.write_port(0, 2, PortRegister.PARTITION, OUT)
    post(bench, 5000, words)
    bench.run(6000)
    row_0 = came(bench)[-1]
    assert row_0 > 5000
    assert [one.cycle for one in bench.of(Kind.TX_DATA, 0, 2)] == [row_0 + head_after(2) + 4 + len(words)]
