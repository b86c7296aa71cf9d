"""RC: what is refused, what each side is told, and what happens to the work that waits."""

import random
import secrets
from collections.abc import Callable

import pytest

from tests.verbs.ends import ALL_ACCESS, MEMORY_BASE, MEMORY_BYTES, End, bring_up, connected, wire_between
from verbs.address import AddressVector
from verbs.completions import AsyncEventType, CompletionOpcode, CompletionStatus
from verbs.regions import Access
from verbs.states import QpState
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest
from wire.headers import AETH, RETH
from wire.opcodes import Opcode

SUCCESS, FLUSHED = CompletionStatus.SUCCESS, CompletionStatus.WR_FLUSH_ERR
WRITE, READ, ADD = SendOpcode.RDMA_WRITE, SendOpcode.RDMA_READ, SendOpcode.ATOMIC_FETCH_AND_ADD


def statuses(a: End) -> list[CompletionStatus]:
    return [entry.status for entry in a.sent()]


def events(end: End) -> list[AsyncEventType]:
    return [event.type for event in end.events if event.type is not AsyncEventType.COMM_EST]


def ask(a: End, b: End, opcode: SendOpcode, va: int, r_key: int, length: int = 8) -> None:
    a.qp.post_send(SendRequest(0, opcode, [a.piece(0, length)], remote_va=va, r_key=r_key, compare_add=1))
    wire_between(a, b).run()


@pytest.mark.parametrize("opcode", [WRITE, READ, ADD])
@pytest.mark.parametrize(
    ("where", "key"),
    [(-8, 0), (MEMORY_BYTES, 0), (MEMORY_BYTES - 4, 0), (0, 1), (0, 1 << 8), (0, 1 << 31)],
    ids=["before", "after", "across the end", "variant", "index", "far"],
)
def test_a_wrong_key_or_range_is_a_remote_access_error(opcode: SendOpcode, where: int, key: int) -> None:
    a, b = connected()
    before = b.get(0, MEMORY_BYTES)
    where = where - 4 if opcode is ADD and where == MEMORY_BYTES - 4 else where
    ask(a, b, opcode, MEMORY_BASE + where + (MEMORY_BYTES % 8), b.region.key ^ key, 16 if opcode is not ADD else 8)
    if opcode is ADD and where == MEMORY_BYTES - 8:
        assert statuses(a) == [SUCCESS]
        return
    assert statuses(a) == [CompletionStatus.REM_ACCESS_ERR]
    assert events(b) == [AsyncEventType.QP_ACCESS_ERR]
    assert a.qp.state is b.qp.state is QpState.ERR
    assert b.get(0, MEMORY_BYTES) == before


@pytest.mark.parametrize(
    ("opcode", "access"),
    [(WRITE, Access.REMOTE_WRITE), (READ, Access.REMOTE_READ), (ADD, Access.REMOTE_ATOMIC)],
)
@pytest.mark.parametrize("of", ["region", "queue pair", "domain"])
def test_a_right_that_is_not_given_is_a_remote_access_error(opcode: SendOpcode, access: Access, of: str) -> None:
    a, b = connected()
    key = b.region.key
    if of == "queue pair":
        b.qp.modify(access=ALL_ACCESS & ~Access.MW_BIND & ~access)
    else:
        rights = ALL_ACCESS & ~access if of == "region" else ALL_ACCESS
        pd = b.pd if of == "region" else b.adapter.allocate_pd()
        key = b.adapter.keys.register(pd, b.memory, MEMORY_BASE, MEMORY_BYTES, rights).key
    ask(a, b, opcode, MEMORY_BASE, key)
    assert statuses(a) == [CompletionStatus.REM_ACCESS_ERR]


@pytest.mark.parametrize(("seed", "count"), [(5, 300), pytest.param(None, 100_000, marks=pytest.mark.deep)])
def test_random_wrong_keys_and_ranges_are_all_refused(seed: int | None, count: int) -> None:
    seed = secrets.randbits(32) if seed is None else seed
    print(f"seed {seed}")
    draw = random.Random(seed)
    secret = draw.randbytes(MEMORY_BYTES)
    for _ in range(count):
        a, b = connected()
        b.put(0, secret)
        opcode = draw.choice([WRITE, READ, ADD])
        length = 8 if opcode is ADD else draw.randrange(1, 1024)
        if draw.random() < 0.5:
            key = draw.choice([draw.getrandbits(32), b.region.key ^ 1 << draw.randrange(32)])
            va = MEMORY_BASE + 8 * draw.randrange(MEMORY_BYTES // 8)
            if key == b.region.key:
                continue
        else:
            key = b.region.key
            va = draw.choice([8 * draw.randrange(MEMORY_BASE // 8), (1 << 64) - 8, MEMORY_BASE + MEMORY_BYTES])
            if va < MEMORY_BASE < va + length:
                continue
        ask(a, b, opcode, va, key, length)
        assert statuses(a) == [CompletionStatus.REM_ACCESS_ERR], (opcode, hex(va), hex(key), length)
        assert b.get(0, MEMORY_BYTES) == secret
        assert a.get(0, length) == bytes(length)


def test_an_atomic_at_an_odd_address_is_an_invalid_request() -> None:
    a, b = connected()
    ask(a, b, ADD, MEMORY_BASE + 4, b.region.key)
    assert statuses(a) == [CompletionStatus.REM_INV_REQ_ERR]
    assert events(b) == [AsyncEventType.QP_REQ_ERR]


def test_a_message_longer_than_its_receive_request_is_a_length_error_there_and_an_invalid_request_here() -> None:
    a, b = connected()
    b.receive(0, 299, wr_id=1)
    b.receive(0, 299, wr_id=2)
    a.send(0, 300)
    wire_between(a, b).run()
    assert statuses(a) == [CompletionStatus.REM_INV_REQ_ERR]
    assert [(entry.wr_id, entry.status) for entry in b.received()] == [
        (1, CompletionStatus.LOC_LEN_ERR),
        (2, FLUSHED),
    ]


def test_a_receive_request_with_a_wrong_key_is_a_protection_error_there_and_an_operational_error_here() -> None:
    a, b = connected()
    b.qp.post_receive(ReceiveRequest(1, [ScatterGather(MEMORY_BASE, 64, 0xBAD)]))
    a.send(0, 8)
    wire_between(a, b).run()
    assert statuses(a) == [CompletionStatus.REM_OP_ERR]
    assert [entry.status for entry in b.received()] == [CompletionStatus.LOC_PROT_ERR]


def test_a_wrong_local_key_ends_the_request_once_those_before_it_have_ended() -> None:
    a, b = connected()
    for number in range(2):
        b.receive(0, 64)
        a.send(0, 8, wr_id=number)
    a.qp.post_send(SendRequest(2, SendOpcode.SEND, [ScatterGather(MEMORY_BASE, 8, 0xBAD)]))
    a.send(0, 8, wr_id=3)
    wire_between(a, b).run()
    assert statuses(a) == [SUCCESS, SUCCESS, CompletionStatus.LOC_PROT_ERR, FLUSHED]
    assert len(b.received()) == 2


def test_a_read_into_memory_that_may_not_be_written_is_a_protection_error() -> None:
    a, b = connected()
    region = a.adapter.keys.register(a.pd, a.memory, MEMORY_BASE, 64, Access.REMOTE_READ)
    piece = ScatterGather(MEMORY_BASE, 64, region.key)
    a.qp.post_send(SendRequest(0, READ, [piece], remote_va=MEMORY_BASE, r_key=b.region.key))
    wire_between(a, b).run()
    assert statuses(a) == [CompletionStatus.LOC_PROT_ERR]


def test_memory_that_has_gone_is_an_error_and_nothing_worse() -> None:
    a, b = connected()
    del b.memory.bytes[1000:]
    ask(a, b, READ, MEMORY_BASE + 500, b.region.key, 1024)
    assert statuses(a) == [CompletionStatus.REM_OP_ERR]
    a, b = connected()
    del a.memory.bytes[1000:]
    b.receive(0, 1024)
    a.send(500, 1024)
    wire_between(a, b).run()
    assert statuses(a) == [CompletionStatus.LOC_PROT_ERR]


Change = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    "sequence",
    [
        [(Opcode.RC_SEND_MIDDLE, 256)],
        [(Opcode.RC_SEND_LAST, 10)],
        [(Opcode.RC_SEND_FIRST, 256), (Opcode.RC_SEND_ONLY, 10)],
        [(Opcode.RC_SEND_FIRST, 256), (Opcode.RC_RDMA_WRITE_LAST, 10)],
        [(Opcode.RC_SEND_FIRST, 256), (Opcode.RC_RDMA_READ_REQUEST, 0)],
        [(Opcode.RC_SEND_FIRST, 100)],
        [(Opcode.RC_SEND_FIRST, 256), (Opcode.RC_SEND_MIDDLE, 255)],
        [(Opcode.RC_SEND_FIRST, 256), (Opcode.RC_SEND_LAST, 0)],
        [(Opcode.RC_SEND_ONLY, 257)],
        [(Opcode.RC_RDMA_WRITE_FIRST, 256)],
        [(0x18, 0)],
        [(0x15, 0)],
    ],
    ids=str,
)
def test_packets_out_of_place_or_of_the_wrong_length_are_an_invalid_request(sequence: list[tuple[int, int]]) -> None:
    a, b = connected()
    b.receive(0, 1024)
    envelope = a.qp.pair.envelope
    for psn, (opcode, size) in enumerate(sequence):
        extended = b""
        if opcode in (Opcode.RC_RDMA_READ_REQUEST, Opcode.RC_RDMA_WRITE_FIRST):
            extended = RETH.pack(va=MEMORY_BASE, r_key=b.region.key, dma_len=256)
        b.adapter.receive(envelope.packet(opcode, psn, extended, bytes(size)).data, 1)
    wire = wire_between(a, b)
    wire.run()
    assert [packet.header(AETH).syndrome for packet in wire.packets(1)] == [0x61]
    assert b.qp.state is QpState.ERR
    assert [entry.status for entry in b.received()] == [FLUSHED]
    assert events(b) == [AsyncEventType.QP_REQ_ERR]


def test_in_the_error_state_all_work_is_flushed_in_order_and_what_is_posted_is_too() -> None:
    a, b = connected()
    for number in range(3):
        a.receive(0, 64, wr_id=number)
        a.send(0, 8, wr_id=10 + number, signaled=False)
    a.qp.modify(QpState.ERR)
    a.send(0, 8, wr_id=13)
    a.receive(0, 64, wr_id=3)
    sent, received = a.sent(), a.received()
    assert [(entry.wr_id, entry.status) for entry in sent] == [(10 + number, FLUSHED) for number in range(4)]
    assert [(entry.wr_id, entry.status) for entry in received] == [(number, FLUSHED) for number in range(4)]
    assert received[0].opcode is CompletionOpcode.RECV
    wire = wire_between(a, b)
    wire.run()
    assert not wire.log


def test_a_shared_receive_queue_is_not_flushed_but_the_last_request_is_told() -> None:
    _a, b = connected(shared=True)
    b.receive(0, 64)
    b.qp.modify(QpState.ERR)
    assert not b.received()
    assert events(b) == [AsyncEventType.QP_LAST_WQE_REACHED]


def test_after_reset_a_queue_pair_begins_anew() -> None:
    a, b = connected()
    a.send(0, 8)
    a.qp.modify(QpState.ERR)
    a.qp.modify(QpState.RESET)
    assert statuses(a) == [FLUSHED]
    bring_up(a, AddressVector(2), b.qp.number)
    b.receive(0, 64)
    a.send(0, 8)
    wire_between(a, b).run()
    assert statuses(a) == [SUCCESS]
