"""A queue pair that BECNs name waits behind its packets; nothing else does (IBTA vol 1, A10.2.2)."""

from itertools import pairwise

import pytest

from tests.verbs.congestion_control.notices import ROWS, cnp, fecn, polls, slow
from tests.verbs.congestion_control.settings import settings_with
from tests.verbs.ends import Through, Wire, bring_up, connected, make_end, wire_between
from verbs.address import AddressVector
from verbs.states import QpType
from verbs.work import SendOpcode
from wire.opcodes import Opcode
from wire.packet import parse


def test_a_packet_waits_for_the_one_before_and_as_much_longer_as_the_table_says() -> None:
    a, b = connected(QpType.UC)
    slow(a, 3)
    a.send(0, 4 * 256, SendOpcode.RDMA_WRITE, to=(b, 0))
    sent = list(polls(a, 10_000))
    assert [now for now, _packet in sent[:2]] == [0, 4 * (ROWS + 4)]
    assert [now for now, _packet in sent[2:]] == [4 * (ROWS + 4) + 4 * ROWS, 4 * (ROWS + 4) + 8 * ROWS]


def test_without_settings_a_notice_only_counts() -> None:
    a, b = connected(QpType.UC)
    a.adapter.receive(cnp(a), 0)
    a.send(0, 4 * 256, SendOpcode.RDMA_WRITE, to=(b, 0))
    assert [now for now, _packet in polls(a, 10_000)] == [0] * 4
    assert a.adapter.congestion_notices == 1


def test_other_queue_pairs_do_not_wait() -> None:
    a, b = connected(QpType.UC)
    other = a.adapter.create_qp(QpType.UC, a.pd, a.send_cq, a.recv_cq)
    slow(a, 100)
    slowed, a.qp = a.qp, other
    bring_up(a, AddressVector(2), b.qp.number)
    a.send(0, 4 * 256, SendOpcode.RDMA_WRITE, to=(b, 0))
    a.qp = slowed
    a.send(0, 4 * 256, SendOpcode.RDMA_WRITE, to=(b, 0))
    assert [now for now, _packet in polls(a, 100)] == [0] * 5


def test_by_sl_queue_pairs_take_turns_at_the_rate_of_one() -> None:
    a, b = connected(QpType.UC)
    other = a.adapter.create_qp(QpType.UC, a.pd, a.send_cq, a.recv_cq)
    slow(a, 1, by_sl=True)
    first, a.qp = a.qp, other
    bring_up(a, AddressVector(2), b.qp.number + 1)
    a.send(0, 3 * 256, SendOpcode.RDMA_WRITE, to=(b, 0))
    a.qp = first
    a.send(0, 3 * 256, SendOpcode.RDMA_WRITE, to=(b, 0))
    sent = list(polls(a, 10_000))
    assert len({now for now, _packet in sent}) == 6
    peers = [parse(packet.data).bth.dest_qp for _now, packet in sent]
    assert all(one != two for one, two in pairwise(peers))


def test_acknowledgements_do_not_wait() -> None:
    a, b = connected()
    slow(b, 100)
    b.send(0, 4 * 256, SendOpcode.RDMA_WRITE, to=(a, 0))
    assert [now for now, _packet in polls(b, 100)] == [0]
    a.send(0, 8, SendOpcode.RDMA_WRITE, to=(b, 0))
    request = a.adapter.poll(50)
    assert request is not None
    b.adapter.receive(request.data, 60)
    answer = b.adapter.poll(60)
    assert answer is not None
    assert parse(answer.data).bth.opcode == Opcode.RC_ACKNOWLEDGE
    assert b.adapter.poll(60) is None


def test_the_data_of_a_read_waits_and_a_notice_says_that_it_met_congestion() -> None:
    a, b = connected()
    b.adapter.congestion_control[0].set(settings_with(ccti_increase=10), 0)
    wire = Wire(Through(a.adapter, fecn), b.adapter)
    took = []
    for _read in range(2):
        a.send(0, 2 * 256, SendOpcode.RDMA_READ, to=(b, 0))
        begin = wire.now
        wire.run()
        took.append(wire.now - begin)
    assert len(a.sent()) == 2
    assert [packet.bth.opcode for packet in wire.packets(0)].count(Opcode.CNP) == 4
    assert b.adapter.congestion_notices == 4
    assert took[1] - took[0] > 21 * ROWS


@pytest.mark.parametrize("kind", [QpType.RC, QpType.UC, QpType.UD])
def test_flows_that_meet_congestion_become_slow_and_then_fast_again(kind: QpType) -> None:
    a, b = connected(kind)
    control = a.adapter.congestion_control[0]
    control.set(settings_with(ccti_increase=4, ccti_timer=1), 0)
    marked = Through(b.adapter, fecn)
    where = {}
    if kind is QpType.UD:
        where = {"handle": a.adapter.create_ah(a.pd, AddressVector(2)), "remote_qp": b.qp.number, "remote_q_key": 0x11}
    for place in range(8):
        b.receive(0, 512)
        a.send(0, 256, wr_id=place, **where)
    wire = Wire(a.adapter, marked)
    wire.run(600)
    assert control.ccti(a.qp.number, 0, wire.now) > 0
    wire.run()
    assert [entry.wr_id for entry in a.sent()] == list(range(8))
    assert len(b.received()) == 8
    assert control.ccti(a.qp.number, 0, wire.now + 100_000) == 0


def test_a_queue_pair_that_ends_is_forgotten() -> None:
    a, _b = connected(QpType.UC)
    slow(a, 5)
    a.adapter.destroy_qp(a.qp)
    assert a.adapter.congestion_control[0].ccti(a.qp.number, 0, 0) == 0


def test_messages_arrive_in_order_however_slow() -> None:
    a, b = connected()
    slow(a, 50)
    for place in range(3):
        b.receive(place * 1024, 1024)
        a.put(place * 1024, bytes([place]) * 1024)
        a.send(place * 1024, 1024)
    wire_between(a, b).run()
    assert len(b.received()) == 3
    assert b.get(0, 3072) == bytes([0]) * 1024 + bytes([1]) * 1024 + bytes([2]) * 1024


def test_an_idle_adapter_wants_nothing() -> None:
    end = make_end(1)
    end.adapter.congestion_control[0].set(settings_with(ccti_timer=1), 0)
    assert end.adapter.wake is None
