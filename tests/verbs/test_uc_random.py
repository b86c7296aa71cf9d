"""UC: of the same packets, some lost, repeated or late, two readings make the same memory and completions."""

import random
import secrets

import pytest

from tests.verbs.ends import MEMORY_BASE, MEMORY_BYTES, Through, Wire, connected
from tests.verbs.naive_uc import NaiveUc
from tests.verbs.random_traffic import LONGEST, MTU, OPCODES, RECEIVED, SOURCE, WRITTEN, fate_of
from verbs.states import QpType

SENT = [kind for kind in OPCODES if kind.startswith(("send", "write"))]


def compare(seed: int, messages: int) -> int:
    """Sends some messages over a bad wire; how many packets they took."""
    draw = random.Random(seed)
    psn = draw.randrange(1 << 24)
    a, b = connected(QpType.UC, psn=psn)
    a.put(0, draw.randbytes(MEMORY_BYTES))
    naive = NaiveUc(bytearray(MEMORY_BYTES), MEMORY_BASE, b.region.key, psn, MTU)
    fate = fate_of(draw, draw.choice([0, 0.02, 0.1]), draw.choice([0, 0.02]), draw.choice([1, 3, 30]))

    def both(data: bytes) -> bytes:
        naive.receive(data)
        return data

    wire = Wire(a.adapter, Through(b.adapter, both), fate)
    number, found = 0, []
    for _ in range(messages):
        if draw.random() < 0.7:
            room = draw.choice([LONGEST, LONGEST, 300])
            b.receive(RECEIVED, room, number)
            naive.posted.append((number, RECEIVED, room))
            number += 1
        kind, length = draw.choice(SENT), draw.choice([0, MTU, draw.randrange(LONGEST)])
        r_key = b.region.key ^ (draw.random() < 0.05)
        offset = draw.randrange(*WRITTEN) - LONGEST if draw.random() < 0.9 else MEMORY_BYTES - 1
        imm = draw.getrandbits(32) if kind.endswith("_imm") else 0
        where = {"remote_va": MEMORY_BASE + offset, "r_key": r_key} if kind.startswith("write") else {}
        a.send(draw.randrange(SOURCE[0], SOURCE[1] - LONGEST), length, OPCODES[kind], imm=imm, **where)
        wire.run()
        found += [(entry.wr_id, entry.status.name, entry.byte_len, entry.imm) for entry in b.received()]
        assert found == naive.receives, f"seed {seed}"
        assert b.memory.bytes == naive.memory, f"seed {seed}"
    return len(wire.log)


def test_two_readings_of_uc_agree() -> None:
    print("seeds 0..9")
    for seed in range(10):
        compare(seed, 40)


@pytest.mark.deep
def test_two_readings_of_uc_agree_for_a_hundred_thousand_packets() -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    draw, packets = random.Random(seed), 0
    while packets < 100_000:
        packets += compare(draw.getrandbits(32), 200)
