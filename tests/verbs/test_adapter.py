"""An adapter shares its port among queue pairs, and says when it wants to be asked again."""

import pytest

from tests.verbs.ends import End, bring_up, connected, make_end, wire_between
from verbs.address import AddressVector, GlobalRoute
from verbs.aeth import ack_timeout_cycles, rnr_timer_cycles
from verbs.states import QpType
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest
from wire.packet import parse


def more_pairs(a: End, b: End, count: int, sls: tuple[int, ...]) -> list[End]:
    """Further connections of the same two adapters; their sending ends."""
    made = []
    for number in range(count):
        ends = [
            End(end.adapter, end.pd, end.memory, end.region, end.send_cq, end.recv_cq, queue_pair, srq=end.srq)
            for end in (a, b)
            for queue_pair in [end.adapter.create_qp(QpType.RC, end.pd, end.send_cq, end.recv_cq, srq=end.srq)]
        ]
        for end, peer in (ends, ends[::-1]):
            bring_up(end, AddressVector(peer.adapter.ports[0].lid, sl=sls[number % len(sls)]), peer.qp.number)
        made.append(ends[0])
    return made


def test_queue_pairs_that_have_something_to_send_take_turns_packet_by_packet() -> None:
    a, b = connected()
    senders = more_pairs(a, b, 3, (0,))
    for sender in senders:
        sender.send(0, 1024, SendOpcode.RDMA_WRITE, to=(b, 0))
    turns = []
    while outgoing := a.adapter.poll(0):
        turns.append(parse(outgoing.data).bth.dest_qp)
    assert turns == turns[:3] * 4
    assert len(set(turns)) == 3


def test_what_has_no_room_waits_for_its_turn_and_holds_up_nobody_else() -> None:
    a, b = connected()
    for sender in more_pairs(a, b, 4, (1, 2)):
        sender.send(0, 512, SendOpcode.RDMA_WRITE, to=(b, 0))
    sent = [a.adapter.poll(0, blocked={1}) for _ in range(4)]
    assert [outgoing.sl for outgoing in sent if outgoing] == [2] * 4
    assert a.adapter.poll(0, blocked={1}) is None
    assert [outgoing.sl for _ in range(4) if (outgoing := a.adapter.poll(0))] == [1] * 4


def test_a_datagram_has_the_sl_of_its_address_handle() -> None:
    a, b = connected(QpType.UD)
    for sl in (5, 6):
        handle = a.adapter.create_ah(a.pd, AddressVector(2, sl=sl))
        a.send(0, 8, handle=handle, remote_qp=b.qp.number, remote_q_key=0x11)
    assert a.adapter.poll(0, blocked={5}) is None
    assert [a.adapter.poll(0).sl for _ in range(2)] == [5, 6]


def test_an_adapter_wants_to_be_asked_at_once_or_when_a_timer_runs_out_or_never() -> None:
    a, b = connected(timeout=5)
    assert a.adapter.poll(9) is None
    assert a.adapter.wake is None
    a.send(0, 8)
    assert a.adapter.wake == 9
    outgoing = a.adapter.poll(10)
    assert a.adapter.poll(10) is None
    assert a.adapter.wake == 10 + (4096 << 5) // 4
    b.receive(0, 64)
    b.adapter.receive(outgoing.data, 20)
    a.adapter.receive(b.adapter.poll(20).data, 30)
    assert a.adapter.poll(30) is None
    assert a.adapter.wake is None


def test_an_adapter_is_due_from_the_cycle_on_in_which_its_first_timer_ends_be_it_put_off_or_moved_earlier() -> None:
    a, b = connected(timeout=8, min_rnr_timer=1)
    time_out, rnr = ack_timeout_cycles(8, 4), rnr_timer_cycles(1, 4)
    assert time_out is not None

    def is_due_from(cycle: int) -> bool:
        return not a.adapter.is_due(cycle - 1) and a.adapter.is_due(cycle)

    a.send(0, 8)
    assert a.adapter.is_due(0)
    sent = a.adapter.poll(0)
    assert a.adapter.poll(0) is None
    assert is_due_from(time_out)
    b.adapter.receive(sent.data, 10)
    a.adapter.receive(b.adapter.poll(10).data, 20)
    assert a.adapter.is_due(20)
    assert a.adapter.poll(20) is None, "it waits for the receiver"
    assert is_due_from(20 + rnr)
    assert a.adapter.poll(20 + rnr).data == sent.data
    assert a.adapter.poll(20 + rnr) is None
    assert is_due_from(20 + rnr + time_out)


def test_a_time_out_comes_while_others_keep_the_port_busy_too() -> None:
    a, b = connected(timeout=5, retry_cnt=1)
    [other] = more_pairs(a, b, 1, (0,))
    a.send(0, 8)
    lost = a.adapter.poll(0)
    other.send(0, 60_000, SendOpcode.RDMA_WRITE, to=(b, 0))
    seen = [a.adapter.poll(now) for now in range(0, 60_000, 1000)]
    assert sum(outgoing is not None and outgoing.data == lost.data for outgoing in seen) == 1


def test_what_comes_for_a_queue_pair_that_has_ended_is_dropped() -> None:
    a, b = connected()
    a.send(0, 8)
    b.adapter.destroy_qp(b.qp)
    b.adapter.receive(a.adapter.poll(0).data, 1)
    assert b.adapter.poll(1) is None
    assert b.adapter.dropped == 1
    a.adapter.destroy_qp(a.qp)
    assert a.adapter.poll(1 << 30) is None
    assert a.adapter.wake is None


def test_datagrams_that_were_posted_leave_though_their_queue_pair_has_ended() -> None:
    a, b = connected(QpType.UD)
    for number, sl in enumerate((5, 6, 5)):
        handle = a.adapter.create_ah(a.pd, AddressVector(2, sl=sl))
        a.put(8 * number, bytes([number + 1] * 8))
        a.send(8 * number, 8, wr_id=number, handle=handle, remote_qp=b.qp.number, remote_q_key=0x11)
    a.adapter.destroy_qp(a.qp)
    a.put(0, bytes(24))  # its program's own again
    assert [entry.wr_id for entry in a.sent()] == [0, 1, 2]
    assert a.adapter.wake == 0
    sent = [a.adapter.poll(0, blocked={5}), a.adapter.poll(0, blocked={5}), a.adapter.poll(0), a.adapter.poll(0)]
    assert [outgoing and (outgoing.sl, parse(outgoing.data).payload) for outgoing in sent] == [
        (6, bytes([2] * 8)),
        None,
        (5, bytes([1] * 8)),
        (5, bytes([3] * 8)),
    ]
    assert a.adapter.poll(0) is None
    assert a.adapter.wake is None


def test_a_handle_for_a_port_or_a_gid_that_there_is_not_is_refused() -> None:
    end = make_end(1)
    with pytest.raises(ValueError, match=r"port 2: allowed 1\.\.1"):
        end.adapter.create_ah(end.pd, AddressVector(2, port=2))
    with pytest.raises(ValueError, match="dlid: value 0x10000 does not fit 16 bits"):
        AddressVector(0x10000)
    with pytest.raises(ValueError, match=r"src_path_bits 128: allowed 0\.\.127"):
        AddressVector(2, src_path_bits=128)
    with pytest.raises(ValueError, match="hop_lmt: value 0x100 does not fit"):
        GlobalRoute(1, hop_limit=256)
    with pytest.raises(ValueError, match="SGID index 1: port has 1 GIDs"):
        end.adapter.create_ah(end.pd, AddressVector(2, route=GlobalRoute(1, sgid_index=1)))


def test_a_message_to_the_own_port_comes_back_inside_the_adapter() -> None:
    a, _b = connected()
    ends = [
        End(a.adapter, a.pd, a.memory, a.region, a.send_cq, a.recv_cq, queue_pair)
        for queue_pair in (a.adapter.create_qp(QpType.RC, a.pd, a.send_cq, a.recv_cq) for _ in range(2))
    ]
    for end, peer in (ends, ends[::-1]):
        bring_up(end, AddressVector(1), peer.qp.number)
    ends[1].qp.post_receive(ReceiveRequest(5, [a.piece(512, 512)]))
    a.put(0, b"to myself" * 40)
    ends[0].qp.post_send(SendRequest(4, SendOpcode.SEND, [a.piece(0, 360)]))
    assert a.adapter.poll(0) is None
    assert a.get(512, 360) == b"to myself" * 40
    assert [entry.wr_id for entry in a.sent()] == [4]


def test_two_runs_of_the_same_calls_are_the_same_to_the_bit() -> None:
    logs = []
    for _ in range(2):
        a, b = connected()
        for sender in more_pairs(a, b, 3, (0, 1)):
            sender.send(0, 700, SendOpcode.RDMA_READ, to=(b, 0))
            sender.qp.post_send(SendRequest(1, SendOpcode.SEND, [ScatterGather(0, 0, 0)]))
        wire = wire_between(a, b)
        wire.run(50_000)
        logs.append(wire.log)
    assert logs[0] == logs[1]
    assert len(logs[0]) > 12


def test_those_who_wait_for_room_keep_their_order() -> None:
    a, b = connected()
    senders = more_pairs(a, b, 3, (1,))
    for sender in senders:
        sender.send(0, 8, SendOpcode.RDMA_WRITE, to=(b, 0))
    assert a.adapter.poll(0, blocked={1}) is None
    sent = [parse(outgoing.data).bth.dest_qp for _ in senders if (outgoing := a.adapter.poll(0))]
    assert sent == [sender.qp.pair.attributes.dest_qp for sender in senders]
