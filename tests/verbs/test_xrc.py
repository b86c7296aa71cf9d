"""XRC: a queue pair for each peer process, shared receive queues for each of ours (IBTA vol 1, annex A14)."""

from dataclasses import dataclass

import pytest

from tests.verbs.ends import ALL_ACCESS, MEMORY_BASE, MEMORY_BYTES, End, Wire, make_end
from verbs.address import AddressVector
from verbs.aeth import NO_CREDIT_COUNT, AckKind, NakCode, syndrome
from verbs.completions import CompletionQueue, CompletionStatus
from verbs.memory import BufferMemory
from verbs.queue_pair import PostError, QueuePair
from verbs.receive_queue import SharedReceiveQueue
from verbs.regions import Access, InUseError, MemoryRegion, XrcDomain
from verbs.states import QpState, QpType
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest
from wire.headers import AETH, XRCETH
from wire.opcodes import Opcode
from wire.packet import parse

SUCCESS = CompletionStatus.SUCCESS
PATH = {"path_mtu": 256, "rq_psn": 0}
RETRIES = {"timeout": 8, "retry_cnt": 7, "rnr_retry": 7, "max_rd_atomic": 4}


@dataclass
class Process:
    """One of several at the receiving adapter: memory, a shared receive queue and where it completes."""

    memory: BufferMemory
    region: MemoryRegion
    cq: CompletionQueue
    srq: SharedReceiveQueue

    def receive(self, length: int, wr_id: int = 0) -> None:
        self.srq.post(ReceiveRequest(wr_id, [ScatterGather(MEMORY_BASE, length, self.region.key)]))


def process(b: End, domain: XrcDomain) -> Process:
    pd, cq, memory = b.adapter.allocate_pd(), b.adapter.create_cq(64), BufferMemory(MEMORY_BYTES, MEMORY_BASE)
    region = b.adapter.keys.register(pd, memory, MEMORY_BASE, MEMORY_BYTES, ALL_ACCESS)
    return Process(memory, region, cq, b.adapter.create_xrc_srq(pd, domain, cq, 16, 4))


@pytest.fixture
def ends() -> tuple[End, End, QueuePair, XrcDomain]:
    """A sender, and what receives for two processes."""
    a, b = make_end(1), make_end(2)
    a.qp = a.adapter.create_qp(QpType.XRC_SEND, a.pd, a.send_cq, a.recv_cq)
    domain = b.adapter.open_xrcd()
    target = b.adapter.create_xrc_target(domain)
    for pair in (a.qp, target):
        pair.modify(QpState.INIT, p_key_index=0, port=1, access=ALL_ACCESS & ~Access.MW_BIND)
    a.qp.modify(QpState.RTR, path=AddressVector(2), dest_qp=target.number, **PATH)
    target.modify(
        QpState.RTR, path=AddressVector(1), dest_qp=a.qp.number, **PATH, max_dest_rd_atomic=4, min_rnr_timer=1
    )
    a.qp.modify(QpState.RTS, sq_psn=0, **RETRIES)
    return a, b, target, domain


def send(a: End, to: Process, length: int, opcode: SendOpcode = SendOpcode.SEND, **more: int) -> None:
    remote = {"remote_va": MEMORY_BASE, "r_key": to.region.key, "xrc_srq": to.srq.number, **more}
    a.qp.post_send(SendRequest(0, opcode, [a.piece(0, length)], **remote))


def test_a_message_goes_to_the_shared_receive_queue_that_it_names(ends) -> None:
    a, b, target, domain = ends
    processes = [process(b, domain) for _ in range(2)]
    for number, one in enumerate(processes):
        one.receive(1024, number)
        a.put(0, bytes([number + 1]) * 600)
        send(a, one, 600)
        wire = Wire(a.adapter, b.adapter)
        wire.run()
        requests = wire.packets(0)
        assert [packet.bth.opcode for packet in requests] == [
            Opcode.XRC_SEND_FIRST,
            Opcode.XRC_SEND_MIDDLE,
            Opcode.XRC_SEND_LAST,
        ]
        assert {packet.header(XRCETH).xrc_srq for packet in requests} == {one.srq.number}
        assert {packet.bth.opcode for packet in wire.packets(1)} == {Opcode.XRC_ACKNOWLEDGE}
        assert one.memory.read(MEMORY_BASE, 600) == bytes([number + 1]) * 600
    assert [[(entry.wr_id, entry.qp_number) for entry in one.cq.poll(9)] for one in processes] == [
        [(0, target.number)],
        [(1, target.number)],
    ]
    assert [entry.status for entry in a.sent()] == [SUCCESS] * 2


def test_remote_memory_is_of_the_domain_of_the_shared_receive_queue_that_is_named(ends) -> None:
    a, b, _target, domain = ends
    one, other = (process(b, domain) for _ in range(2))
    a.put(0, b"w" * 16)
    send(a, one, 16, SendOpcode.RDMA_WRITE)
    send(a, one, 8, SendOpcode.ATOMIC_FETCH_AND_ADD, compare_add=1)
    send(a, one, 16, SendOpcode.RDMA_READ)
    send(a, one, 16, SendOpcode.RDMA_WRITE, xrc_srq=other.srq.number)
    Wire(a.adapter, b.adapter).run()
    assert [entry.status for entry in a.sent()] == [SUCCESS] * 3 + [CompletionStatus.REM_ACCESS_ERR]
    assert one.memory.read(MEMORY_BASE, 16) == b"x" + b"w" * 15
    assert a.get(0, 16) == b"x" + b"w" * 15


def test_a_shared_receive_queue_of_another_domain_is_an_invalid_request(ends) -> None:
    a, b, _target, _domain = ends
    stranger = process(b, b.adapter.open_xrcd())
    stranger.receive(64)
    send(a, stranger, 8)
    Wire(a.adapter, b.adapter).run()
    assert [entry.status for entry in a.sent()] == [CompletionStatus.REM_INV_REQ_ERR]
    assert not stranger.cq.poll()


def test_a_shared_receive_queue_without_requests_is_not_ready(ends) -> None:
    a, b, _target, domain = ends
    one = process(b, domain)
    send(a, one, 8)
    wire = Wire(a.adapter, b.adapter)
    wire.run(1000)
    one.receive(64)
    wire.run()
    assert [entry.status for entry in a.sent()] == [SUCCESS]


def test_what_is_in_use_does_not_go(ends) -> None:
    a, b, target, domain = ends
    one = process(b, domain)
    b.adapter.close_xrcd(b.adapter.open_xrcd())
    with pytest.raises(InUseError, match=f"queue pair {target.number:#x}, shared receive queue {one.srq.number:#x}"):
        b.adapter.close_xrcd(domain)
    with pytest.raises(InUseError, match=f"completion queue is used by shared receive queue {one.srq.number:#x}"):
        b.adapter.destroy_cq(one.cq)
    b.adapter.destroy_srq(one.srq)
    b.adapter.destroy_qp(target)
    b.adapter.close_xrcd(domain)
    b.adapter.destroy_cq(one.cq)
    assert a.qp.state is QpState.RTS


def test_one_only_sends_and_the_other_only_receives(ends) -> None:
    a, _b, target, _domain = ends
    with pytest.raises(PostError, match=r"SEND on XRC_RECV queue pair .*: allowed nothing"):
        target.post_send(SendRequest(0, SendOpcode.SEND))
    with pytest.raises(PostError, match="it has no receive queue"):
        a.qp.post_receive(ReceiveRequest(0))


def test_all_packets_of_a_message_are_for_one_shared_receive_queue(ends) -> None:
    a, b, _target, domain = ends
    one, other = (process(b, domain) for _ in range(2))
    one.receive(1024)
    other.receive(1024)
    for psn, (opcode, to) in enumerate(((Opcode.XRC_SEND_FIRST, one), (Opcode.XRC_SEND_LAST, other))):
        packet = a.qp.pair.envelope.packet(opcode, psn, XRCETH.pack(xrc_srq=to.srq.number), bytes(256))
        b.adapter.receive(packet.data, psn)
    answer = b.adapter.poll(2)
    assert answer is not None
    assert parse(answer.data).header(AETH).syndrome == syndrome(AckKind.NAK, NakCode.INVALID_REQUEST)
    assert [entry.status for entry in one.cq.poll(9)] == [CompletionStatus.WR_FLUSH_ERR]
    assert not other.cq.poll(9)


def test_credits_are_not_told(ends) -> None:
    a, b, _target, domain = ends
    one = process(b, domain)
    one.receive(64)
    send(a, one, 8)
    wire = Wire(a.adapter, b.adapter)
    wire.run()
    assert [packet.header(AETH).syndrome for packet in wire.packets(1)] == [NO_CREDIT_COUNT]


def test_rights_are_those_that_the_receiving_queue_pair_has_now(ends) -> None:
    a, b, target, domain = ends
    one = process(b, domain)
    send(a, one, 8, SendOpcode.RDMA_WRITE)
    Wire(a.adapter, b.adapter).run()
    target.modify(QpState.RESET)
    target.modify(QpState.INIT, p_key_index=0, port=1, access=Access.NONE)
    again = {"path": AddressVector(1), "dest_qp": a.qp.number, "path_mtu": 256, "rq_psn": 1}
    target.modify(QpState.RTR, **again, max_dest_rd_atomic=4, min_rnr_timer=1)
    send(a, one, 8, SendOpcode.RDMA_WRITE)
    Wire(a.adapter, b.adapter).run()
    assert [entry.status for entry in a.sent()] == [SUCCESS, CompletionStatus.REM_ACCESS_ERR]


def test_an_overrun_of_the_completion_queue_of_a_shared_receive_queue_ends_what_receives_for_it(ends) -> None:
    a, b, target, domain = ends
    pd, cq = b.adapter.allocate_pd(), b.adapter.create_cq(1)
    region = b.adapter.keys.register(pd, b.memory, MEMORY_BASE, 64, ALL_ACCESS)
    srq = b.adapter.create_xrc_srq(pd, domain, cq, 16, 4)
    for number in range(2):
        srq.post(ReceiveRequest(number, [ScatterGather(MEMORY_BASE, 64, region.key)]))
        a.qp.post_send(SendRequest(0, SendOpcode.SEND, [a.piece(0, 8)], xrc_srq=srq.number))
    Wire(a.adapter, b.adapter).run(5_000)
    assert target.state is QpState.ERR
