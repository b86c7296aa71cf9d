"""RC: messages sent to receive requests, cut into packets and acknowledged."""

import pytest

from tests.verbs.ends import connected, wire_between
from verbs.aeth import AckKind, ack_kind, ack_value
from verbs.completions import CompletionFlag, CompletionOpcode, CompletionStatus
from verbs.queue_pair import PostError
from verbs.receive_queue import QueueFullError
from verbs.work import MAX_MESSAGE_BYTES, ReceiveRequest, ScatterGather, SendOpcode, SendRequest
from wire.headers import AETH, BTH, IETH, IMM_DT, LRH
from wire.opcodes import Opcode

SUCCESS = CompletionStatus.SUCCESS


def test_a_message_is_in_the_memory_of_the_receive_request_and_both_sides_are_told() -> None:
    a, b = connected()
    a.put(0, b"Hello, fabric")
    b.receive(100, 64, wr_id=7)
    a.send(0, 13, wr_id=3)
    wire = wire_between(a, b)
    wire.run()
    assert b.get(100, 13) == b"Hello, fabric"
    [sent], [received] = a.sent(), b.received()
    assert (sent.wr_id, sent.status, sent.opcode) == (3, SUCCESS, CompletionOpcode.SEND)
    assert (received.wr_id, received.status, received.byte_len) == (7, SUCCESS, 13)
    assert (received.qp_number, received.src_qp) == (b.qp.number, a.qp.number)
    assert [packet.bth.opcode for packet in wire.packets()] == [Opcode.RC_SEND_ONLY, Opcode.RC_ACKNOWLEDGE]


@pytest.mark.parametrize(
    ("opcode", "last", "only", "layout", "flag"),
    [
        (SendOpcode.SEND, Opcode.RC_SEND_LAST, Opcode.RC_SEND_ONLY, None, CompletionFlag.NONE),
        (SendOpcode.SEND_WITH_IMM, Opcode.RC_SEND_LAST_IMM, Opcode.RC_SEND_ONLY_IMM, IMM_DT, CompletionFlag.WITH_IMM),
    ],
)
def test_a_long_message_goes_as_first_middle_and_last_packets_of_the_path_mtu(
    opcode: SendOpcode, last: Opcode, only: Opcode, layout: object, flag: CompletionFlag
) -> None:
    a, b = connected(psn=0xFFFFFE)
    data = bytes(range(256)) * 3 + b"end"
    a.put(0, data)
    for length in (len(data), 256, 0):
        b.receive(0, 1024)
        a.send(0, length, opcode, imm=0x01020304)
    wire = wire_between(a, b)
    wire.run()
    requests = wire.packets(0)
    assert [packet.bth.opcode for packet in requests] == [
        *(Opcode.RC_SEND_FIRST, Opcode.RC_SEND_MIDDLE, Opcode.RC_SEND_MIDDLE, last),
        *(only, only),
    ]
    assert [len(packet.payload) for packet in requests] == [256, 256, 256, 3, 256, 0]
    assert [packet.bth.psn for packet in requests] == [0xFFFFFE, 0xFFFFFF, 0, 1, 2, 3]
    assert b.get(0, len(data)) == data
    received = b.received()
    assert [(entry.byte_len, entry.flags) for entry in received] == [(771, flag), (256, flag), (0, flag)]
    if layout is IMM_DT:
        assert {entry.imm for entry in received} == {0x01020304}
        assert [packet.has(IMM_DT) for packet in requests] == [False, False, False, True, True, True]


def test_a_message_is_gathered_from_pieces_and_scattered_to_others() -> None:
    a, b = connected()
    a.put(0, bytes(range(200)) * 4)
    b.qp.post_receive(ReceiveRequest(0, [b.piece(0, 100), b.piece(1000, 0), b.piece(2000, 500), b.piece(4000, 500)]))
    a.qp.post_send(SendRequest(0, SendOpcode.SEND, [a.piece(3, 1), a.piece(100, 599), a.piece(0, 100)]))
    wire_between(a, b).run()
    sent = a.get(3, 1) + a.get(100, 599) + a.get(0, 100)
    assert b.get(0, 100) + b.get(2000, 500) + b.get(4000, 100) == sent
    assert b.received()[0].byte_len == 700


def test_inline_data_is_that_of_the_time_of_posting_and_needs_no_key() -> None:
    a, b = connected()
    b.receive(0, 64)
    a.qp.post_send(SendRequest(0, SendOpcode.SEND, inline=b"inline"))
    wire_between(a, b).run()
    assert b.get(0, 6) == b"inline"


def test_a_request_that_is_not_signaled_is_completed_only_if_it_fails() -> None:
    a, b = connected()
    b.receive(0, 64)
    a.send(0, 8, signaled=False)
    wire = wire_between(a, b)
    wire.run()
    assert [packet.bth.ack_req for packet in wire.packets(0)] == [1]
    assert not a.sent()
    assert b.received()


def test_acks_are_coalesced_where_the_responder_has_no_time_for_each() -> None:
    a, b = connected()
    for number in range(8):
        b.receive(0, 64)
        a.send(0, 8, wr_id=number)
    outgoing = []
    while packet := a.adapter.poll(0):
        outgoing.append(packet)
        b.adapter.receive(packet.data, 10)
        if len(outgoing) == 1:  # it says how many receive requests there are
            a.adapter.receive(b.adapter.poll(10).data, 20)
    assert len(outgoing) == 8
    ack = b.adapter.poll(20)
    assert b.adapter.poll(20) is None
    a.adapter.receive(ack.data, 30)
    assert [entry.wr_id for entry in a.sent()] == list(range(8))


def test_before_the_first_credits_are_known_one_packet_goes_and_asks_for_an_ack() -> None:
    a, b = connected()
    b.receive(0, 1024)
    b.receive(0, 1024)
    a.send(0, 1024)
    a.send(0, 1024)
    first = a.adapter.poll(0)
    assert a.adapter.poll(0) is None
    b.adapter.receive(first.data, 1)
    ack = b.adapter.poll(1)
    a.adapter.receive(ack.data, 2)
    rest = []
    while packet := a.adapter.poll(2):
        rest.append(packet)
    assert len(rest) == 7


def test_acks_tell_how_many_receive_requests_are_posted_and_how_many_messages_are_complete() -> None:
    a, b = connected()
    for _ in range(6):
        b.receive(0, 64)
    wire = wire_between(a, b)
    for _ in range(3):
        a.send(0, 8)
        wire.run()
    told = [packet.header(AETH) for packet in wire.packets(1)]
    assert [(ack_kind(aeth.syndrome), aeth.msn) for aeth in told] == [(AckKind.ACK, msn) for msn in (1, 2, 3)]
    assert [ack_value(aeth.syndrome) for aeth in told] == [4, 4, 3]  # 5 has no code


def test_with_a_shared_receive_queue_no_credits_are_counted_and_all_goes_at_once() -> None:
    a, b = connected(shared=True)
    wire = wire_between(a, b)
    for _ in range(5):
        b.receive(0, 64)
    a.send(0, 8)
    wire.run()
    assert ack_value(wire.packets(1)[0].header(AETH).syndrome) == 31
    for _ in range(4):
        a.send(0, 8)
    assert all(a.adapter.poll(wire.now) for _ in range(4))


def test_only_the_last_packet_of_a_solicited_message_is_solicited() -> None:
    a, b = connected()
    told = []
    b.recv_cq.on_completion = lambda: told.append(len(b.recv_cq))
    b.recv_cq.request_notification(solicited_only=True)
    for solicited in (False, True):
        b.receive(0, 512)
        a.send(0, 512, solicited=solicited)
    wire = wire_between(a, b)
    wire.run()
    assert [packet.bth.se for packet in wire.packets(0)] == [0, 0, 0, 1]
    assert told == [2]


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("imm", 32),
        ("remote_va", 64),
        ("r_key", 32),
        ("compare_add", 64),
        ("swap", 64),
        ("remote_qp", 24),
        ("remote_q_key", 32),
        ("xrc_srq", 24),
    ],
)
def test_what_goes_into_headers_has_to_fit_them(name: str, width: int) -> None:
    SendRequest(0, SendOpcode.SEND, **{name: (1 << width) - 1})
    for value in (1 << width, -1):
        with pytest.raises(ValueError, match=f"work request: {name} .* does not fit {width} bits"):
            SendRequest(0, SendOpcode.SEND, **{name: value})


def test_what_a_send_queue_does_not_take_is_refused_when_it_is_posted() -> None:
    a, b = connected()
    key = a.region.key
    with pytest.raises(PostError, match=r"2147483649 bytes, allowed up to 2147483648"):
        a.qp.post_send(SendRequest(0, SendOpcode.SEND, [ScatterGather(0, MAX_MESSAGE_BYTES + 1, key)]))
    with pytest.raises(PostError, match="17 pieces, allowed up to 16"):
        a.qp.post_send(SendRequest(0, SendOpcode.SEND, [a.piece(0, 1)] * 17))
    with pytest.raises(PostError, match="4 bytes, allowed 8"):
        a.send(0, 4, SendOpcode.ATOMIC_FETCH_AND_ADD, to=(b, 0))
    with pytest.raises(PostError, match="257 bytes inline, allowed up to 256"):
        a.qp.post_send(SendRequest(0, SendOpcode.SEND, inline=bytes(257)))
    for _ in range(128):
        a.send(0, 8)
    with pytest.raises(QueueFullError, match="full with 128 requests"):
        a.send(0, 8)


def test_sending_with_invalidate_names_a_key_in_the_last_packet() -> None:
    a, b = connected()
    window = b.adapter.keys.allocate_window(b.pd, 2)
    b.adapter.keys.bind(
        window, b.region.key, b.memory.base, 64, b.region.access, pd=b.pd, qp_number=b.qp.number, new_key=window.key
    )
    b.receive(0, 512)
    a.send(0, 300, SendOpcode.SEND_WITH_INV, r_key=window.key)
    wire = wire_between(a, b)
    wire.run()
    assert [packet.has(IETH) for packet in wire.packets(0)] == [False, True]
    [received] = b.received()
    assert (received.flags, received.imm) == (CompletionFlag.WITH_INV, window.key)
    assert window.region is None


def test_congestion_that_a_request_has_seen_is_told_by_the_next_answer() -> None:
    a, b = connected()
    wire = wire_between(a, b)
    for congested in (1, 0):
        b.receive(0, 64)
        a.send(0, 8)
        b.adapter.receive(BTH["fecn"].write(a.adapter.poll(wire.now).data, congested, LRH.size_bytes), wire.now)
        wire.run()
    assert [packet.bth.becn for packet in wire.packets(1)] == [1, 0]
