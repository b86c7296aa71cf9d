"""Random operations between two ends of a connection, over a wire that loses, repeats and delays packets.

An end is an engine of `verbs` or the second reading; what must be in memory and among completions afterwards is
worked out here, by carrying out the operations one after the other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tests.verbs.ends import (
    ALL_ACCESS,
    LATENCY,
    MEMORY_BASE,
    MEMORY_BYTES,
    End,
    Fate,
    Transport,
    Wire,
    bring_up,
    bring_up_context,
    bring_up_datagram,
    make_end,
)
from tests.verbs.naive_rc import NaiveRc, Operation
from tests.verbs.naive_rd import Q_KEY, NaiveRd
from tests.verbs.naive_xrc import NaiveXrc
from verbs.address import AddressVector
from verbs.completions import CompletionFlag, CompletionStatus
from verbs.regions import Access
from verbs.states import QpState, QpType
from verbs.work import SendOpcode, SendRequest

MTU = 256
LONGEST = 6 * MTU
SLOTS = 12
"""Receive requests go round through so many places."""

TOO_SHORT = 10
"""Bytes of a receive request that does not suffice."""

# Of the memory of each end, by what it is for: nothing else touches it.
SOURCE = 0x0000, 0x3000
"""What is sent and written from here, and read by the peer."""
RESULTS = 0x3000, 0x6000
"""What READs and atomics bring."""
WRITTEN = 0x6000, 0x9000
"""What the peer writes, without a fence."""
SHARED = 0x9000, 0xA000
"""What the peer writes and reads, with fences."""
CELLS = 0xA000, 0xA040
"""What the peer's atomics work on."""
RECEIVED = 0xB000

OPCODES = {
    "send": SendOpcode.SEND,
    "send_imm": SendOpcode.SEND_WITH_IMM,
    "write": SendOpcode.RDMA_WRITE,
    "write_imm": SendOpcode.RDMA_WRITE_WITH_IMM,
    "read": SendOpcode.RDMA_READ,
    "swap": SendOpcode.ATOMIC_CMP_AND_SWP,
    "add": SendOpcode.ATOMIC_FETCH_AND_ADD,
}


class Talker(Protocol):
    """An end as this test uses it."""

    r_key: int

    @property
    def transport(self) -> Transport: ...
    def post(self, operation: Operation) -> None: ...
    def post_receive(self, number: int, offset: int, length: int) -> None: ...
    def sends(self) -> list[tuple[int, str]]: ...
    def receives(self) -> list[tuple[int, str, int, int]]: ...
    def contents(self) -> bytearray: ...
    def recover(self) -> None: ...


class EngineTalker:
    """An engine of `verbs`."""

    def __init__(self, lid: int, peer_lid: int, peer_qp: int, psn: int, contents: bytes) -> None:
        self.end: End = make_end(lid)
        self.end.put(0, contents)
        self.r_key = self.end.region.key
        self.qp = self.end.qp.number
        path = AddressVector(peer_lid)
        bring_up(self.end, path, peer_qp, psn, path_mtu=MTU, timeout=8)
        self._to: dict[str, int] = {}
        self._sends: list[tuple[int, str]] = []
        self._receives: list[tuple[int, str, int, int]] = []

    @property
    def transport(self) -> Transport:
        return self.end.adapter

    def post(self, operation: Operation) -> None:
        # In several pieces, as a work request may be.
        cut = operation.length // 3 if operation.length > 8 else 0
        pieces = [self.end.piece(operation.local, cut), self.end.piece(operation.local + cut, operation.length - cut)]
        self.end.qp.post_send(
            SendRequest(
                operation.number,
                OPCODES[operation.kind],
                pieces,
                imm=operation.imm,
                remote_va=operation.remote,
                r_key=operation.r_key,
                compare_add=operation.compare_add,
                swap=operation.swap,
                fence=operation.fence,
                **self._to,
            )
        )

    def post_receive(self, number: int, offset: int, length: int) -> None:
        self.end.receive(offset, length, number)

    def sends(self) -> list[tuple[int, str]]:
        self._sends += [(entry.wr_id, entry.status.name) for entry in self.end.sent()]
        return self._sends

    def receives(self) -> list[tuple[int, str, int, int]]:
        for entry in self.end.received():
            assert bool(entry.flags & CompletionFlag.WITH_IMM) or not entry.imm
            length = 0 if entry.status is not CompletionStatus.SUCCESS else entry.byte_len
            self._receives.append((entry.wr_id, entry.status.name, length, entry.imm))
        return self._receives

    def contents(self) -> bytearray:
        return self.end.memory.bytes

    def recover(self) -> None:
        self.end.qp.modify(QpState.RTS)


class NaiveTalker:
    """The second reading."""

    qp = 0x77

    def __init__(self, lid: int, peer_lid: int, peer_qp: int, psn: int, contents: bytes) -> None:
        self.r_key = 0xABC0 + lid
        memory = bytearray(contents)
        self.end = NaiveRc(lid, peer_lid, self.qp, peer_qp, memory, MEMORY_BASE, self.r_key, psn, MTU)
        self.end.counts = contents[0] % 2 == 0

    @property
    def transport(self) -> Transport:
        return self.end

    def post(self, operation: Operation) -> None:
        self.end.post(operation)

    def post_receive(self, number: int, offset: int, length: int) -> None:
        self.end.post_receive(number, offset, length)

    def sends(self) -> list[tuple[int, str]]:
        return self.end.sends

    def receives(self) -> list[tuple[int, str, int, int]]:
        return self.end.receives

    def contents(self) -> bytearray:
        return self.end.memory

    def recover(self) -> None:
        """It goes on anyway."""


class RdTalker(EngineTalker):
    """An engine whose queue pair sends through a context, which has the next number."""

    def __init__(self, lid: int, peer_lid: int, peer_qp: int, psn: int, contents: bytes) -> None:
        self.end = make_end(lid, QpType.RD)
        self.end.put(0, contents)
        self.r_key, self.qp = self.end.region.key, self.end.qp.number
        rdd = self.end.qp.pair.reliable_domain
        assert rdd is not None
        self.context = self.end.adapter.create_eec(rdd)
        assert self.context.number == self.qp + 1
        self._to = {"eec": self.context.number, "remote_qp": peer_qp, "remote_q_key": Q_KEY}
        bring_up_context(self.context, AddressVector(peer_lid), peer_qp + 1, psn, MTU)
        bring_up_datagram(self.end.qp, Q_KEY)
        self._sends = []
        self._receives = []


class NaiveRdTalker(NaiveTalker):
    """The second reading of RD."""

    def __init__(self, lid: int, peer_lid: int, peer_qp: int, psn: int, contents: bytes) -> None:
        self.r_key = 0xABC0 + lid
        memory = bytearray(contents)
        self.end = NaiveRd(lid, peer_lid, self.qp, peer_qp, memory, MEMORY_BASE, self.r_key, psn, MTU)
        self.end.eec, self.end.peer_eec = self.qp + 1, peer_qp + 1


class XrcTalker(EngineTalker):
    """An engine with a queue pair that sends, another that receives and its shared receive queue, numbered in turn."""

    def __init__(self, lid: int, peer_lid: int, peer_qp: int, psn: int, contents: bytes) -> None:
        self.end = make_end(lid, QpType.XRC_SEND)
        self.end.put(0, contents)
        adapter, path = self.end.adapter, AddressVector(peer_lid)
        self.r_key, self.qp = self.end.region.key, self.end.qp.number
        domain = adapter.open_xrcd()
        target = adapter.create_xrc_target(domain)
        self.end.srq = adapter.create_xrc_srq(self.end.pd, domain, self.end.recv_cq, 128, 4)
        assert (target.number, self.end.srq.number) == (self.qp + 1, self.qp + 2)
        self._to = {"xrc_srq": peer_qp + 2}
        for queue_pair, peer in ((self.end.qp, peer_qp + 1), (target, peer_qp)):
            queue_pair.modify(QpState.INIT, p_key_index=0, port=1, access=ALL_ACCESS & ~Access.MW_BIND)
            responds = {} if queue_pair is self.end.qp else {"max_dest_rd_atomic": 4, "min_rnr_timer": 1}
            queue_pair.modify(QpState.RTR, path=path, path_mtu=MTU, dest_qp=peer, rq_psn=psn, **responds)
        self.end.qp.modify(QpState.RTS, sq_psn=psn, timeout=8, retry_cnt=7, rnr_retry=7, max_rd_atomic=4)
        self._sends = []
        self._receives = []


class NaiveXrcTalker(NaiveTalker):
    """The second reading of XRC."""

    def __init__(self, lid: int, peer_lid: int, peer_qp: int, psn: int, contents: bytes) -> None:
        self.r_key = 0xABC0 + lid
        memory = bytearray(contents)
        self.end = NaiveXrc(lid, peer_lid, self.qp, peer_qp, memory, MEMORY_BASE, self.r_key, psn, MTU)


TALKERS = {
    "engine": EngineTalker,
    "naive": NaiveTalker,
    "rd": RdTalker,
    "naive rd": NaiveRdTalker,
    "xrc": XrcTalker,
    "naive xrc": NaiveXrcTalker,
}
QPS = {kind: NaiveTalker.qp if kind.startswith("naive") else 2 for kind in TALKERS}


def fate_of(draw: random.Random, lost: float, repeated: float, jitter: int) -> Fate:
    """Loses and repeats packets, and lets them overtake each other by up to `jitter` cycles."""

    def fate(number: int, side: int, data: bytes) -> Iterator[int]:
        if draw.random() >= lost:
            yield LATENCY + draw.randrange(jitter)
        if draw.random() < repeated:
            yield LATENCY + draw.randrange(4 * jitter)

    return fate


def drawn_operation(draw: random.Random, number: int, r_key: int) -> Operation:
    """An operation of one end."""
    kind = draw.choice([*OPCODES, "send", "write", "read"])
    length = draw.choice([0, 1, MTU, 2 * MTU, draw.randrange(LONGEST), draw.randrange(MTU)])
    imm = draw.getrandbits(32) if kind.endswith("_imm") else 0

    def within(area: tuple[int, int], size: int) -> int:
        return draw.randrange(area[0], area[1] - size + 1)

    if kind in ("swap", "add"):
        cell = CELLS[0] + 8 * draw.randrange((CELLS[1] - CELLS[0]) // 8)
        small = draw.randrange(3)
        return Operation(number, kind, within(RESULTS, 8), 8, MEMORY_BASE + cell, r_key, 0, draw.randrange(3), small)
    shared = draw.random() < 0.3
    if kind == "read":
        remote = within(SHARED if shared else SOURCE, length)
        return Operation(number, kind, within(RESULTS, length), length, MEMORY_BASE + remote, r_key)
    local = within(SOURCE, length)
    if kind.startswith("write"):
        remote = within(SHARED if shared else WRITTEN, length)
        return Operation(number, kind, local, length, MEMORY_BASE + remote, r_key, imm, fence=shared)
    return Operation(number, kind, local, length, imm=imm)


def bad_operation(draw: random.Random, number: int, r_key: int) -> tuple[Operation, str, str]:
    """An operation that is refused, what it ends with, and what the next receive request of its peer ends with."""
    local, size, cell = SOURCE[0], draw.randrange(TOO_SHORT + 1, LONGEST), MEMORY_BASE + CELLS[0]
    kind, at, key = draw.choice(["write", "write_imm", "read", "add", "swap"]), cell, r_key
    match draw.choice(["long", "key", "range", "odd"]):
        case "long":
            return Operation(number, "send", local, size), "REM_INV_REQ_ERR", "LOC_LEN_ERR"
        case "key":
            key ^= 1 << draw.randrange(32)
        case "range":
            at = draw.choice([MEMORY_BASE - 8, MEMORY_BASE + MEMORY_BYTES, (1 << 64) - 8])
        case "odd":
            odd = Operation(number, "add", RESULTS[0], 8, cell + draw.randrange(1, 8), r_key)
            return odd, "REM_INV_REQ_ERR", "WR_FLUSH_ERR"
    size = 8 if kind in ("add", "swap") else size
    return Operation(number, kind, local, size, at, key), "REM_ACCESS_ERR", "WR_FLUSH_ERR"


@dataclass
class Oracle:
    """What one end's operations do, one after the other."""

    mine: bytearray
    theirs: bytearray
    sends: list[tuple[int, str]] = field(default_factory=list)
    receives: list[tuple[int, str, int, int]] = field(default_factory=list)
    """At the peer."""

    def carry_out(self, operation: Operation) -> None:
        self.sends.append((operation.number, "SUCCESS"))
        at, remote, size = operation.local, operation.remote - MEMORY_BASE, operation.length
        if operation.kind == "read":
            self.mine[at : at + size] = self.theirs[remote : remote + size]
            return
        if operation.kind in ("swap", "add"):
            old = int.from_bytes(self.theirs[remote : remote + 8], "little")
            if operation.kind == "add":
                new = (old + operation.compare_add) % (1 << 64)
            else:
                new = operation.swap if old == operation.compare_add else old
            self.theirs[remote : remote + 8] = new.to_bytes(8, "little")
            self.mine[at : at + 8] = old.to_bytes(8, "little")
            return
        number = len(self.receives)
        if operation.kind.startswith("send"):
            remote = slot(number)
        self.theirs[remote : remote + size] = self.mine[at : at + size]
        if operation.kind != "write":
            self.receives.append((number, "SUCCESS", size, operation.imm))


def slot(number: int) -> int:
    return RECEIVED + number % SLOTS * LONGEST


class Conversation:
    """Two ends that talk; `packets` counts what they sent."""

    def __init__(self, kinds: tuple[str, str], draw: random.Random, fate: Fate, receives: int) -> None:
        contents = [draw.randbytes(MEMORY_BYTES) for _ in range(2)]
        psn = draw.choice([0, 1, (1 << 23) - 50, (1 << 24) - 50, draw.randrange(1 << 24)])
        qps = [QPS[kind] for kind in kinds]
        self.talkers: list[Talker] = [
            TALKERS[kinds[side]](side + 1, 2 - side, qps[1 - side], psn, contents[side]) for side in range(2)
        ]
        memories = [bytearray(memory) for memory in contents]
        self.oracles = [Oracle(memories[0], memories[1]), Oracle(memories[1], memories[0])]
        self.wire = Wire(self.talkers[0].transport, self.talkers[1].transport, fate)
        self._draw = draw
        self._posted_receives = [0, 0]
        self._at_once = receives
        self._numbers = [0, 0]

    @property
    def packets(self) -> int:
        return len(self.wire.log)

    def go_on(self, operations: int) -> None:
        """Posts operations at both ends, and receive requests as they are needed, until all have ended."""
        for side in range(2):
            for _ in range(operations):
                operation = drawn_operation(self._draw, self._numbers[side], self.talkers[1 - side].r_key)
                self._numbers[side] += 1
                self.oracles[side].carry_out(operation)
                self.talkers[side].post(operation)
        while not self._has_ended():
            assert self.wire.now < 1 << 40, "nothing comes to an end"
            for side, talker in enumerate(self.talkers):
                wanted = len(self.oracles[1 - side].receives)
                held = self._posted_receives[side] - len(talker.receives())
                while held < self._at_once and self._posted_receives[side] < wanted:
                    number = self._posted_receives[side]
                    talker.post_receive(number, slot(number), LONGEST)
                    self._posted_receives[side] += 1
                    held += 1
            self.wire.run(self.wire.now + self._draw.randrange(1, 4000))

    def end_badly(self, side: int) -> None:
        """Posts operations at one end of which one cannot be carried out, and receive requests for all of them.

        The wire has to be a good one: if what refuses it is lost, its requester learns only that nobody answers.
        """
        mine, peer = self.talkers[side], self.talkers[1 - side]
        oracle = self.oracles[side]
        good = self._draw.randrange(6)
        operations = [
            drawn_operation(self._draw, self._numbers[side] + number, peer.r_key) for number in range(good + 3)
        ]
        for operation in operations[:good]:
            oracle.carry_out(operation)
        operations[good], status, their_status = bad_operation(self._draw, operations[good].number, peer.r_key)
        oracle.sends.append((operations[good].number, status))
        oracle.sends += [(operation.number, "WR_FLUSH_ERR") for operation in operations[good + 1 :]]
        first = self._posted_receives[1 - side]
        wanted = len(oracle.receives)
        for number in range(first, wanted):
            peer.post_receive(number, slot(number), LONGEST)
        for number, expected in ((wanted, their_status), (wanted + 1, "WR_FLUSH_ERR")):
            peer.post_receive(number, slot(number), TOO_SHORT)
            oracle.receives.append((number, expected, 0, 0))
        self._numbers[side] += len(operations)
        for operation in operations:
            mine.post(operation)
        self.wire.run()

    def fail_and_recover(self, side: int) -> None:
        """As `end_badly`, of RD: contexts and what receives go on, and the queue pair that sent comes back from SQE."""
        mine, peer, oracle = self.talkers[side], self.talkers[1 - side], self.oracles[side]
        first = self._numbers[side]
        operations = [drawn_operation(self._draw, first + number, peer.r_key) for number in range(4)]
        oracle.carry_out(operations[0])
        operations[1], status, _their_status = bad_operation(self._draw, first + 1, peer.r_key)
        oracle.sends.append((first + 1, status))
        oracle.sends += [(operation.number, "WR_FLUSH_ERR") for operation in operations[2:]]
        wanted = len(oracle.receives)
        for number in range(self._posted_receives[1 - side], wanted):
            peer.post_receive(number, slot(number), LONGEST)
        bad, self._posted_receives[1 - side] = operations[1], wanted
        if bad.kind == "send" or (bad.kind == "write_imm" and bad.length <= MTU):
            peer.post_receive(wanted, slot(wanted), TOO_SHORT)
            self._posted_receives[1 - side] += 1
            # A longer WRITE is refused at its first packet, and asks for a receive request with its last.
            oracle.receives.append((wanted, "LOC_LEN_ERR" if bad.kind == "send" else "REM_ABORT_ERR", 0, 0))
        self._numbers[side] += len(operations)
        for operation in operations:
            mine.post(operation)
        self.wire.run()
        mine.recover()

    def _has_ended(self) -> bool:
        return all(
            len(talker.sends()) >= number and len(talker.receives()) >= len(self.oracles[1 - side].receives)
            for side, (talker, number) in enumerate(zip(self.talkers, self._numbers, strict=True))
        )

    def differences(self) -> list[str]:
        """What is not as the operations, one after the other, would have it."""
        found = []
        for side, talker in enumerate(self.talkers):
            mine, peer = self.oracles[side], self.oracles[1 - side]
            if talker.sends() != mine.sends:
                found.append(f"side {side}: {_first_difference(talker.sends(), mine.sends)} of send completions")
            if talker.receives() != peer.receives:
                found.append(f"side {side}: {_first_difference(talker.receives(), peer.receives)} of receives")
            if talker.contents() != mine.mine:
                found.append(f"side {side}: byte {_first_difference(talker.contents(), mine.mine)} of memory")
        return found


def _first_difference(one: object, other: object) -> str:
    pairs = enumerate(zip(one, other, strict=False))
    return next((f"{i}: {a!r}, expected {b!r}" for i, (a, b) in pairs if a != b), f"{len(one)}, not {len(other)}")
