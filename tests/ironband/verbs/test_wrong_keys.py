"""Random keys, ranges and rights: what a second reading of the rules refuses is refused, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random, SystemRandom

import pytest

from ironband.verbs import (
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_ATOMIC,
    IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE,
    IBV_QP_STATE,
    IBV_QPS_RESET,
    IBV_WC_LOC_PROT_ERR,
    IBV_WC_REM_ACCESS_ERR,
    IBV_WC_SUCCESS,
    IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_WR_RDMA_READ,
    IBV_WR_RDMA_WRITE,
    MR,
    PD,
    SGE,
    Fabric,
    QPAttr,
    SendWR,
)
from tests.ironband.verbs.sides import Side, connect, connected

BYTES = 256
NEEDED = {
    IBV_WR_RDMA_WRITE: IBV_ACCESS_REMOTE_WRITE,
    IBV_WR_RDMA_READ: IBV_ACCESS_REMOTE_READ,
    IBV_WR_ATOMIC_FETCH_AND_ADD: IBV_ACCESS_REMOTE_ATOMIC,
}
RIGHTS = (
    0,
    IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
)


@dataclass
class Known:
    """A region as the test knows it."""

    mr: MR
    key: int
    start: int
    rights: int
    is_ours: bool
    is_there: bool = True

    def allows(self, key: int, address: int, length: int, needed: int) -> bool:
        within = self.start <= address and address + length <= self.start + BYTES
        return key == self.key and within and self.is_ours and self.is_there and not needed & ~self.rights


def regions(side: Side) -> list[Known]:
    """Of all rights in the queue pair's domain and in another, and some that are there no more."""
    stranger = PD(side.context)
    made = []
    for pd in (side.pd, stranger):
        for rights in RIGHTS:
            mr = MR(pd, BYTES, rights)
            made.append(Known(mr, mr.rkey, mr.buf, rights, pd is side.pd))
    for rights in RIGHTS:
        mr = MR(side.pd, BYTES, rights)
        made.append(Known(mr, mr.rkey, mr.buf, rights, is_ours=True, is_there=False))
        mr.close()
    return made


def guess(random: Random, known: list[Known]) -> tuple[int, int, int]:
    """A key, an address and a length: often a region's with all rights, often nearly so, sometimes anything."""
    other, best = random.choice(known), known[len(RIGHTS) - 1]
    one = random.choice([best, random.choice(known)])
    key = random.choice(
        [one.key, one.key, one.key, other.key, one.key ^ 1 << random.randrange(32), random.getrandbits(32)]
    )
    length = random.choice([8, 8, 16, BYTES])
    last = BYTES - length
    offset = random.choice([0, last, 8 * random.randrange(last // 8 + 1), -8, last + 8, 1 << 32])
    return key, one.start + offset, length


def reconnect(one: Side, two: Side) -> None:
    for side in (one, two):
        side.qp.modify(QPAttr(IBV_QPS_RESET), IBV_QP_STATE)
    connect(one, two)


def check(fabric: Fabric, seed: int, count: int) -> None:
    print(f"seed {seed}")
    random = Random(seed)
    one, two = connected(fabric)
    here, there = regions(one), regions(two)
    refused = 0
    for number in range(count):
        opcode = random.choice(list(NEEDED))
        is_atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
        r_key, remote, length = guess(random, there)
        l_key, local, _length = guess(random, here) if random.random() < 0.2 else (one.mr.lkey, one.mr.buf, 0)
        length = 8 if is_atomic else length
        brings = opcode != IBV_WR_RDMA_WRITE
        own = Known(one.mr, one.mr.lkey, one.mr.buf, IBV_ACCESS_LOCAL_WRITE, is_ours=True)
        needed_here = IBV_ACCESS_LOCAL_WRITE if brings else 0
        is_right_here = any(region.allows(l_key, local, length, needed_here) for region in (*here, own))
        is_right_there = any(region.allows(r_key, remote, length, NEEDED[opcode]) for region in there)
        before = [region.mr.read(BYTES) for region in there if region.is_there]
        wr = SendWR(number, opcode, 1, sg=[SGE(local, length, l_key)])
        if is_atomic:
            wr.set_wr_atomic(r_key, remote, 1)
        else:
            wr.set_wr_rdma(r_key, remote)
        one.qp.post_send(wr)
        status = one.completion().status
        what = f"{number}: opcode {opcode}, {length} bytes of {r_key:#x} at {remote:#x}, into {l_key:#x} at {local:#x}"
        if is_right_here and is_right_there:
            assert status == IBV_WC_SUCCESS, what
            continue
        refused += 1
        allowed = set()
        if not is_right_here:
            allowed.add(IBV_WC_LOC_PROT_ERR)
        if not is_right_there and (is_right_here or brings):
            allowed.add(IBV_WC_REM_ACCESS_ERR)
        assert status in allowed, what
        if not is_right_there or not brings:
            assert [region.mr.read(BYTES) for region in there if region.is_there] == before, what
        reconnect(one, two)
    assert count // 2 < refused < count * 0.95


def test_random_keys_ranges_and_rights_are_refused_or_not_as_a_second_reading_says(star):
    check(star, SystemRandom().getrandbits(32), 400)


@pytest.mark.deep
def test_a_hundred_thousand_wrong_keys_ranges_and_rights_are_refused(star):
    check(star, SystemRandom().getrandbits(32), 150_000)
