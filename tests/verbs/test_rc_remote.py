"""RC: RDMA WRITE, READ and atomics, which the passive side does not notice."""

import pytest

from tests.verbs.ends import MEMORY_BASE, connected, wire_between
from verbs.completions import CompletionFlag, CompletionOpcode, CompletionStatus
from verbs.work import SendOpcode
from wire.headers import AETH, RETH
from wire.opcodes import Opcode

SUCCESS = CompletionStatus.SUCCESS
WRITE, WRITE_IMM, READ = SendOpcode.RDMA_WRITE, SendOpcode.RDMA_WRITE_WITH_IMM, SendOpcode.RDMA_READ
SWAP, ADD = SendOpcode.ATOMIC_CMP_AND_SWP, SendOpcode.ATOMIC_FETCH_AND_ADD


def test_a_write_is_in_remote_memory_and_takes_no_receive_request() -> None:
    a, b = connected()
    data = bytes(range(250)) * 4
    a.put(0, data)
    b.receive(0, 64)
    a.send(0, 1000, WRITE, to=(b, 5000))
    wire = wire_between(a, b)
    wire.run()
    assert b.get(5000, 1000) == data
    assert not b.received()
    assert len(b.qp.pair.receives) == 1
    requests = wire.packets(0)
    assert [packet.has(RETH) for packet in requests] == [True, False, False, False]
    assert requests[0].header(RETH).dma_len == 1000
    assert [entry.opcode for entry in a.sent()] == [CompletionOpcode.RDMA_WRITE]


def test_a_write_with_immediate_completes_a_receive_request_whose_memory_stays_as_it_was() -> None:
    a, b = connected()
    a.put(0, b"x" * 600)
    b.put(0, b"untouched")
    b.receive(0, 9, wr_id=2)
    a.send(0, 600, WRITE_IMM, to=(b, 5000), imm=77)
    wire_between(a, b).run()
    [received] = b.received()
    assert received.opcode is CompletionOpcode.RECV_RDMA_WITH_IMM
    assert (received.wr_id, received.byte_len, received.imm) == (2, 600, 77)
    assert received.flags is CompletionFlag.WITH_IMM
    assert b.get(0, 9) == b"untouched"
    assert b.get(5000, 600) == b"x" * 600


def test_a_read_takes_one_psn_for_each_response() -> None:
    a, b = connected(psn=0xFFFFFF)
    b.put(3000, bytes(range(256)) * 4)
    b.receive(0, 16)
    a.send(0, 1000, READ, to=(b, 3000))
    a.send(2000, 16)
    wire = wire_between(a, b)
    wire.run()
    assert a.get(0, 1000) == b.get(3000, 1000)
    assert [packet.bth.psn for packet in wire.packets(0)] == [0xFFFFFF, 3]
    responses = wire.packets(1)[:4]
    assert [packet.bth.opcode for packet in responses] == [
        Opcode.RC_RDMA_READ_RESPONSE_FIRST,
        Opcode.RC_RDMA_READ_RESPONSE_MIDDLE,
        Opcode.RC_RDMA_READ_RESPONSE_MIDDLE,
        Opcode.RC_RDMA_READ_RESPONSE_LAST,
    ]
    assert [packet.bth.psn for packet in responses] == [0xFFFFFF, 0, 1, 2]
    assert [packet.has(AETH) for packet in responses] == [True, False, False, True]
    assert [entry.opcode for entry in a.sent()] == [CompletionOpcode.RDMA_READ, CompletionOpcode.SEND]


def test_a_request_with_a_fence_waits_for_reads_before_it() -> None:
    a, b = connected()
    a.send(0, 512, READ, to=(b, 0))
    a.send(2000, 16, WRITE, to=(b, 0), fence=True)
    assert a.adapter.poll(0) is not None
    assert a.adapter.poll(0) is None
    a, b = connected()
    a.send(0, 512, READ, to=(b, 0))
    a.send(2000, 16, WRITE, to=(b, 0))
    assert [a.adapter.poll(0) is not None for _ in range(3)] == [True, True, False]


def test_no_more_reads_and_atomics_are_outstanding_than_were_agreed_upon() -> None:
    a, b = connected(max_rd_atomic=3)
    for _ in range(3):
        a.send(0, 512, READ, to=(b, 0))
        a.send(1000, 8, ADD, to=(b, 0), compare_add=1)
    sent = []
    while packet := a.adapter.poll(0):
        sent.append(packet)
    assert len(sent) == 3
    b.adapter.receive(sent[0].data, 1)
    while packet := b.adapter.poll(1):
        a.adapter.receive(packet.data, 2)
    assert a.adapter.poll(2) is not None
    assert a.adapter.poll(2) is None


@pytest.mark.parametrize("count", [0, 2])
def test_more_reads_than_the_responder_agreed_to_are_an_invalid_request(count: int) -> None:
    a, b = connected(max_rd_atomic=4, max_dest_rd_atomic=count)
    for number in range(count + 1):
        a.send(0, 512, READ, wr_id=number, to=(b, 0))
    while packet := a.adapter.poll(0):
        b.adapter.receive(packet.data, 1)
    wire_between(a, b).run()
    statuses = [entry.status for entry in a.sent()]
    assert statuses == [SUCCESS] * count + [CompletionStatus.REM_INV_REQ_ERR]


def test_an_atomic_changes_eight_bytes_there_and_brings_what_they_were() -> None:
    a, b = connected()
    b.put(80, (40).to_bytes(8, "little"))
    wire = wire_between(a, b)
    a.send(0, 8, ADD, to=(b, 80), compare_add=2)
    a.send(8, 8, SWAP, to=(b, 80), compare_add=42, swap=7)
    a.send(16, 8, SWAP, to=(b, 80), compare_add=42, swap=8)
    a.send(24, 8, ADD, to=(b, 80), compare_add=(1 << 64) - 8)
    wire.run()
    results = [int.from_bytes(a.get(at, 8), "little") for at in (0, 8, 16, 24)]
    assert results == [40, 42, 7, 7]
    assert b.get(80, 8) == b"\xff" * 8
    assert [entry.opcode for entry in a.sent()] == [
        CompletionOpcode.FETCH_ADD,
        CompletionOpcode.COMP_SWAP,
        CompletionOpcode.COMP_SWAP,
        CompletionOpcode.FETCH_ADD,
    ]


@pytest.mark.parametrize("opcode", [WRITE, READ])
def test_without_bytes_the_r_key_is_not_looked_at(opcode: SendOpcode) -> None:
    a, b = connected()
    a.send(0, 0, opcode, remote_va=MEMORY_BASE, r_key=0xBAD)
    wire_between(a, b).run()
    assert [entry.status for entry in a.sent()] == [SUCCESS]


def test_of_a_read_the_first_bytes_are_taken_when_they_are_sent_and_no_whole_message_is_copied() -> None:
    a, b = connected()
    a.send(0, 512, READ, to=(b, 0))
    b.adapter.receive(a.adapter.poll(0).data, 1)
    b.put(0, b"1" * 512)
    a.adapter.receive(b.adapter.poll(2).data, 3)
    b.put(256, b"2" * 256)
    a.adapter.receive(b.adapter.poll(4).data, 5)
    assert a.get(0, 512) == b"1" * 256 + b"2" * 256
