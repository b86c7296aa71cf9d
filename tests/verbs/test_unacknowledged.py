"""UC and UD: nothing is acknowledged, and what does not come whole does not come."""

import pytest

from tests.verbs.ends import LATENCY, bring_up, connected, make_end, wire_between
from verbs.address import AddressVector
from verbs.completions import CompletionFlag, CompletionStatus
from verbs.queue_pair import PostError
from verbs.states import QpState, QpType
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode
from wire.opcodes import Opcode

SUCCESS = CompletionStatus.SUCCESS
WRITE, WRITE_IMM = SendOpcode.RDMA_WRITE, SendOpcode.RDMA_WRITE_WITH_IMM


def test_a_uc_message_is_complete_for_its_sender_when_it_is_sent() -> None:
    a, b = connected(QpType.UC)
    a.put(0, b"u" * 600)
    b.receive(0, 1024)
    a.send(0, 600)
    wire = wire_between(a, b)
    wire.run()
    assert [packet.bth.opcode for packet in wire.packets()] == [
        Opcode.UC_SEND_FIRST,
        Opcode.UC_SEND_MIDDLE,
        Opcode.UC_SEND_LAST,
    ]
    assert b.get(0, 600) == b"u" * 600
    assert [entry.status for entry in a.sent()] == [SUCCESS]
    assert [entry.byte_len for entry in b.received()] == [600]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_uc_message_that_loses_a_packet_is_dropped_and_the_next_gets_its_receive_request(lost: int) -> None:
    a, b = connected(QpType.UC)
    b.receive(0, 1024, wr_id=5)
    for byte in (b"1", b"2"):
        a.put(600 * (byte == b"2"), byte * 600)
        a.send(600 * (byte == b"2"), 600)
    wire = wire_between(a, b, lambda number, side, data: [] if number == lost else [LATENCY])
    wire.run()
    assert [(entry.wr_id, entry.status) for entry in b.received()] == [(5, SUCCESS)]
    assert b.get(0, 600) == b"2" * 600


def test_uc_writes_with_and_without_immediate() -> None:
    a, b = connected(QpType.UC)
    a.put(0, b"w" * 600)
    b.receive(0, 0, wr_id=1)
    a.send(0, 600, WRITE, to=(b, 5000))
    a.send(0, 600, WRITE_IMM, to=(b, 6000), imm=9)
    wire_between(a, b).run()
    assert b.get(5000, 600) == b.get(6000, 600) == b"w" * 600
    [received] = b.received()
    assert (received.imm, received.flags, received.byte_len) == (9, CompletionFlag.WITH_IMM, 600)


def test_a_uc_message_with_a_wrong_key_or_without_a_receive_request_is_lost_and_nobody_is_told() -> None:
    a, b = connected(QpType.UC)
    a.send(0, 600)
    a.send(0, 8, WRITE, remote_va=b.memory.base, r_key=0xBAD)
    a.send(0, 600, WRITE, to=(b, 60_000 + 5000))
    wire = wire_between(a, b)
    wire.run()
    assert [entry.status for entry in a.sent()] == [SUCCESS] * 3
    assert not wire.packets(1)
    assert (b.qp.state, b.received()) == (QpState.RTS, [])
    b.receive(0, 64)
    a.send(0, 8)
    wire.run()
    assert len(b.received()) == 1


def test_a_uc_message_longer_than_its_receive_request_is_lost_and_a_shorter_one_takes_it() -> None:
    a, b = connected(QpType.UC)
    b.receive(0, 300, wr_id=4)
    a.send(0, 400)
    a.send(0, 200)
    wire_between(a, b).run()
    assert [(entry.wr_id, entry.byte_len) for entry in b.received()] == [(4, 200)]


@pytest.mark.parametrize("kind", [QpType.UC, QpType.UD])
def test_what_a_service_does_not_have_is_refused_when_it_is_posted(kind: QpType) -> None:
    a, b = connected(kind)
    for opcode in (SendOpcode.RDMA_READ, SendOpcode.ATOMIC_FETCH_AND_ADD, SendOpcode.SEND_WITH_INV):
        with pytest.raises(PostError, match=f"{opcode.name} on {kind.name} queue pair"):
            a.send(0, 8, opcode, to=(b, 0))


def test_a_datagram_is_no_longer_than_the_mtu_of_its_port() -> None:
    a, _b = connected(QpType.UD)
    with pytest.raises(PostError, match="2049 bytes, allowed up to 2048"):
        a.send(0, 2049, handle=a.adapter.create_ah(a.pd, AddressVector(2)))


def test_a_datagram_without_a_receive_request_is_lost() -> None:
    a, b = connected(QpType.UD)
    handle = a.adapter.create_ah(a.pd, AddressVector(2))
    wire = wire_between(a, b)
    for number in range(2):
        a.send(0, 8, SendOpcode.SEND_WITH_IMM, handle=handle, remote_qp=b.qp.number, remote_q_key=0x11, imm=number)
        wire.run()
        b.receive(0, 64)
    assert [entry.status for entry in a.sent()] == [SUCCESS] * 2
    [received] = b.received()
    assert (received.imm, received.flags) == (1, CompletionFlag.WITH_IMM)


def test_a_datagram_that_does_not_fit_is_a_length_error_and_the_next_one_is_received() -> None:
    a, b = connected(QpType.UD)
    handle = a.adapter.create_ah(a.pd, AddressVector(2))
    for room in (47, 48):
        b.receive(0, room)
        a.send(0, 8, handle=handle, remote_qp=b.qp.number, remote_q_key=0x11)
    wire_between(a, b).run()
    assert [entry.status for entry in b.received()] == [CompletionStatus.LOC_LEN_ERR, SUCCESS]


def test_a_datagram_to_the_own_queue_pair_arrives() -> None:
    end = make_end(1, QpType.UD)
    bring_up(end, AddressVector(1), 0)
    end.put(0, b"to myself")
    end.receive(100, 64)
    handle = end.adapter.create_ah(end.pd, AddressVector(1))
    end.send(0, 9, handle=handle, remote_qp=end.qp.number, remote_q_key=0x11)
    assert end.adapter.poll(0) is None
    assert end.get(140, 9) == b"to myself"
    assert [entry.slid for entry in end.received()] == [1]


def test_an_address_handle_of_another_domain_is_a_protection_error() -> None:
    a, b = connected(QpType.UD)
    handle = a.adapter.create_ah(a.adapter.allocate_pd(), AddressVector(2))
    a.send(0, 8, handle=handle, remote_qp=b.qp.number, remote_q_key=0x11)
    assert a.adapter.poll(0) is None
    assert [entry.status for entry in a.sent()] == [CompletionStatus.LOC_PROT_ERR]


def test_a_uc_receive_request_with_a_wrong_key_ends_with_a_protection_error() -> None:
    a, b = connected(QpType.UC)
    b.qp.post_receive(ReceiveRequest(1, [ScatterGather(0, 64, 0xBAD)]))
    a.send(0, 8)
    wire_between(a, b).run()
    assert [entry.status for entry in b.received()] == [CompletionStatus.LOC_PROT_ERR]
    assert b.qp.state is QpState.ERR


def test_a_uc_message_that_begins_in_the_middle_of_another_is_taken() -> None:
    a, b = connected(QpType.UC)
    b.receive(0, 1024, wr_id=6)
    for psn, opcode in enumerate((Opcode.UC_SEND_FIRST, Opcode.UC_SEND_ONLY)):
        payload = bytes(256) if opcode is Opcode.UC_SEND_FIRST else b"only"
        b.adapter.receive(a.qp.pair.envelope.packet(opcode, psn, b"", payload).data, psn)
    assert [(entry.wr_id, entry.byte_len) for entry in b.received()] == [(6, 4)]
    assert b.get(0, 4) == b"only"
