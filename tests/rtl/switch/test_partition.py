"""What an input says of its packets' partitions, against section 3.6 of docs/pipeline.md read plainly."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest
from amaranth.hdl import Module

from rtl.switch.p_key_turns import PKeyTurns
from rtl.switch.partition import Partition
from tests.campaigns import some_of
from tests.rtl.simulation import Simulation
from tests.rtl.switch.written_tables import ENTRIES, WAITING, WrittenTables, access_of
from wire.codes import LNH
from wire.registers import P_KEYS
from wire.trace import Verdict

ROW = {LNH.IBA_LOCAL: 3, LNH.IBA_GLOBAL: 13}
"""K: the row with the last byte of the P_Key."""

POOL = [base | full for base in (0, 1, 2, 0x1234, 0x7FFF) for full in (0, 0x8000)]


class _Design:
    """The component, and in front of it what writes to its tables."""

    def __init__(self, ports: int) -> None:
        m = Module()
        m.submodules.partition = self.partition = Partition(ports)
        m.submodules.turns = self.turns = PKeyTurns(ports)
        m.d.comb += self.partition.change.eq(self.turns.change)
        self.simulation = Simulation(m)


_design = cache(_Design)


@dataclass
class Packet:
    """A packet on the wires of the port, its row 0 in cycle `start`, its rows `step` cycles apart.

    `cut`: it ends before row n, at this one. `guarded`: its P_Key is wanted later.
    """

    start: int
    n: int
    lnh: LNH
    p_key: int
    output: int
    arrival: bool
    departure: bool
    step: int = 1
    cut: int | None = None
    guarded: bool = False

    @property
    def last(self) -> int:
        return self.n if self.cut is None else self.cut

    @property
    def end(self) -> int:
        return self.start + self.step * self.last

    @property
    def header(self) -> int:
        """The cycle in which its header is judged, h+1."""
        return self.start + self.step + 1

    @property
    def searched(self) -> int | None:
        """c_K, if it has a P_Key."""
        if self.lnh not in ROW or self.n < ROW[self.lnh] + 3:
            return None
        return self.start + self.step * ROW[self.lnh]

    @property
    def taken(self) -> set[int]:
        """The cycles in which the tables are looked into for it, or could be."""
        wanted = self.arrival or self.departure or self.guarded
        if not wanted or self.searched is None or self.last <= ROW[self.lnh]:
            return set()
        return {self.searched + 1, self.searched + 2}

    def rows(self, rng: random.Random) -> dict[int, dict[str, int]]:
        """What is found of each row, by the cycle after the one in which it is on the wires."""
        data = bytearray(rng.randbytes(4 * self.n + 3))
        place = 10 if self.lnh == LNH.IBA_LOCAL else 50
        if self.lnh in ROW and len(data) >= place + 2:
            data[place : place + 2] = self.p_key.to_bytes(2)
        data = bytearray([0xFB]) + data  # SDP, so that row r begins at 4 r
        return {
            self.start + self.step * row + 1: {
                "data": int.from_bytes(data[4 * row : 4 * row + 4]),
                "index": row,
                "first": row == 0,
                "header": row == 1,
                "body": 0 < row < self.last,
                "end": row == self.last,
            }
            for row in range(self.last + 1)
        }


def expected(packet: Packet, tables: WrittenTables, own: int) -> Verdict:
    c_k = packet.searched
    arrives = c_k is not None and tables.has(own, packet.p_key, c_k + 1, departs=False)
    departs = c_k is not None and tables.has(packet.output + 1, packet.p_key, c_k + 2, departs=True)
    if packet.arrival and not arrives:
        return Verdict.RCV_CONSTRAINT
    return Verdict.XMIT_CONSTRAINT if packet.departure and not departs else Verdict.GOOD


Other = tuple[int, int, bool]
"""Of what else is looked for: the table's port, the P_Key, and whether it is there."""


def judge(
    packets: list[Packet],
    accesses: dict[int, dict[str, int]],
    ports: int,
    own: int,
    seed: int,
    others: dict[int, Other] | None = None,
) -> list[Verdict]:
    """The verdict in each cycle; in those without a header, what is said of one means nothing.

    OTHERS gets what else is found, by the cycle in which it is looked for.
    """
    rng = random.Random(seed)
    rows: dict[int, dict[str, int]] = {}
    for packet in packets:
        rows |= packet.rows(rng)
    headers = {packet.header: packet for packet in packets}
    outputs = {packet.header + 1: packet.output for packet in packets}
    design, found = _design(ports), []
    dut = design.partition

    async def bench(ctx: Any) -> None:
        ctx.set(dut.input, own - 1)
        for cycle in range(packets[-1].end + 8):
            packet = headers.get(cycle)
            ctx.set(dut.header, {"valid": 1, "lnh": packet.lnh, "n": packet.n} if packet else {"lnh": rng.randrange(4)})
            ctx.set(dut.arrival, packet.arrival if packet else rng.randrange(2))
            ctx.set(dut.departure, packet.departure if packet else rng.randrange(2))
            ctx.set(dut.guarded, packet.guarded if packet else rng.randrange(2))
            ctx.set(dut.accept, packet is not None)
            if others is not None:
                if cycle - 1 in others:
                    others[cycle - 1] = (*others[cycle - 1][:2], bool(ctx.get(dut.has)))
                port, p_key = rng.randrange(ports), rng.choice(POOL)
                ctx.set(dut.other_table, port)
                ctx.set(dut.other_key, p_key)
            if cycle in outputs:
                ctx.set(dut.output, outputs[cycle])
            ctx.set(dut.received, rows.get(cycle, {"data": rng.getrandbits(32), "index": rng.choice((3, 13))}))
            ctx.set(design.turns.access, accesses.get(cycle, {}))
            found.append(Verdict(ctx.get(dut.verdict)))
            if others is not None and ctx.get(dut.free):
                others[cycle] = port + 1, p_key, False
            await ctx.tick()

    design.simulation.run(bench)
    return found


@pytest.mark.parametrize(("seed", "ports"), some_of(product(range(3), (2, 5, 36)), {(0, 2), (1, 5), (2, 36)}))
def test_random_packets_and_tables_that_are_written_meanwhile(seed: int, ports: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(f"{seed}/{ports}")
    own = rng.randint(1, ports)
    used = sorted({own, *(rng.randint(1, ports) for _ in range(3))})
    tables, written = WrittenTables(), rng.sample(range(ENTRIES), 6)
    for cycle in range(6000):
        if rng.random() < (0.05, 0.1, 0.9)[seed] and tables.waiting(cycle) < WAITING:
            tables.write(cycle, rng.choice(used), rng.choice(written), rng.choice([0, 0, 0, *POOL]))
    packets: list[Packet] = []
    start = 5
    while start < 5500:
        lnh = rng.choice(list(LNH))
        shortest = 6 if lnh in ROW else 5
        packet = Packet(
            start,
            n=rng.choice([shortest, shortest + rng.randrange(14), 13, 14, 15, 16, 40]),
            lnh=lnh,
            p_key=rng.choice(POOL),
            output=rng.choice([*(port - 1 for port in used), ports]),
            arrival=rng.random() < 0.4,
            departure=rng.random() < 0.7,
            step=rng.choice([1, 1, 1, 4]),
            guarded=rng.random() < 0.3,
        )
        packet.departure &= packet.output != ports
        if rng.random() < 0.2:
            packet.cut = rng.randrange(2, packet.n)
        packets.append(packet)
        # What is cut by a row that begins no packet is followed by another row at least.
        start = packet.end + packet.step * (1 if packet.cut is None else 2) + rng.choice([0, 0, 0, 1, 7])
    others: dict[int, Other] = {}
    found = judge(packets, tables.accesses, ports, own, seed, others)
    seen: dict[Verdict, int] = defaultdict(int)
    for packet, following in pairwise(packets):
        verdict = expected(packet, tables, own)
        if packet.searched is None:
            begins = packet.header + 1
        elif packet.cut is None or packet.cut > ROW[packet.lnh]:
            begins = packet.searched + 4
        else:
            continue
        assert set(found[begins : following.header + 1]) <= {verdict}, packet
        if packet.cut is None:
            assert found[packet.end + 1] == verdict, packet
            seen[verdict] += 1
    assert min(seen[verdict] for verdict in (Verdict.GOOD, Verdict.RCV_CONSTRAINT, Verdict.XMIT_CONSTRAINT)) > 10

    # In all other cycles something else may be looked for.
    taken = set().union(*(packet.taken for packet in packets))
    assert set(range(len(found))) - set(others) == taken
    others.popitem()  # what is looked for in the last cycle is not found any more
    for cycle, (port, p_key, has) in others.items():
        assert has == tables.has(port, p_key, cycle, departs=True), cycle
    assert 10 < sum(has for _, _, has in others.values()) < len(others) - 10


def verdict_of(packet: Packet, tables: WrittenTables | None = None, own: int = 1) -> Verdict:
    accesses = {} if tables is None else tables.accesses
    return judge([packet], accesses, 3, own, 0)[packet.end + 1]


SETTLED = 40
"""Cycles in which two writes have long taken effect."""


def table_with(port: int, place: int, entry: int) -> WrittenTables:
    """A table that has this alone."""
    tables = WrittenTables()
    tables.write(0, port, 0, 0)
    tables.write(1, port, place, entry)
    return tables


@pytest.mark.parametrize(("entry", "p_key", "has"), [
    (0xFFFF, 0xFFFF, True),
    (0xFFFF, 0x7FFF, True),
    (0x7FFF, 0xFFFF, True),
    (0x7FFF, 0x7FFF, False),
    (0x9234, 0x1234, True),
    (0x9234, 0x1235, False),
    (0x9234, 0x5234, False),
    (0x8000, 0x8000, False),
    (0x8000, 0x0000, False),
    (0x0000, 0x8000, False),
    (0x0000, 0x0000, False),
])  # fmt: skip
def test_of_two_members_of_a_partition_one_has_to_be_a_full_one(entry: int, p_key: int, has: bool) -> None:
    for place in (0, 1, 30, 31):
        packet = Packet(SETTLED, 6, LNH.IBA_LOCAL, p_key, 1, arrival=False, departure=True)
        assert verdict_of(packet, table_with(2, place, entry)) == (Verdict.GOOD if has else Verdict.XMIT_CONSTRAINT), (
            place
        )


@pytest.mark.parametrize(("entry", "p_key", "has"), [
    (0xFFFF, 0xFFFF, True),
    (0x7FFF, 0x7FFF, True),
    (0x7FFF, 0xFFFF, True),
    (0x9234, 0x1235, False),
    (0x8000, 0x8000, False),
    (0x0000, 0x0000, False),
])  # fmt: skip
def test_on_arrival_a_limited_member_s_port_takes_its_packets(entry: int, p_key: int, has: bool) -> None:
    for place in (0, 1, 30, 31):
        packet = Packet(SETTLED, 6, LNH.IBA_LOCAL, p_key, 1, arrival=True, departure=False)
        assert verdict_of(packet, table_with(1, place, entry)) == (Verdict.GOOD if has else Verdict.RCV_CONSTRAINT), (
            place
        )


def test_at_reset_every_table_has_the_default_partition() -> None:
    for port in (1, 2, 3):
        for p_key, has in ((0xFFFF, True), (0x7FFF, True), (0x8001, False)):
            packet = Packet(5, 6, LNH.IBA_LOCAL, p_key, port - 1, arrival=False, departure=True)
            assert verdict_of(packet) == (Verdict.GOOD if has else Verdict.XMIT_CONSTRAINT)


@pytest.mark.parametrize("n", [6, 15, 16, 17])
def test_a_packet_too_short_for_its_headers_has_no_p_key(n: int) -> None:
    packet = Packet(5, n, LNH.IBA_GLOBAL, 0xFFFF, 1, arrival=True, departure=True)
    assert verdict_of(packet) == (Verdict.GOOD if n >= 16 else Verdict.RCV_CONSTRAINT)


@pytest.mark.parametrize("lnh", [LNH.RAW, LNH.RAW_IPV6])
def test_a_raw_packet_that_is_checked_is_rejected_whatever_is_in_it(lnh: LNH) -> None:
    for arrival, departure, verdict in (
        (True, True, Verdict.RCV_CONSTRAINT),
        (False, True, Verdict.XMIT_CONSTRAINT),
        (False, False, Verdict.GOOD),
    ):
        assert verdict_of(Packet(5, 20, lnh, 0xFFFF, 1, arrival, departure)) == verdict


@pytest.mark.parametrize("departs", [False, True])
@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("lnh", list(ROW))
def test_the_cycles_in_which_the_tables_are_looked_into(lnh: LNH, step: int, departs: bool) -> None:
    packet = Packet(SETTLED, ROW[lnh] + 3, lnh, 0x9234, 1, not departs, departs, step)
    assert packet.searched is not None
    looked_into = packet.searched + (2 if departs else 1)
    port = 2 if departs else 1
    for new_from, has in ((looked_into, True), (looked_into + 1, False)):
        tables = WrittenTables()
        tables.write(new_from - 13, port, 20, 0x1234)
        assert (verdict_of(packet, tables) == Verdict.GOOD) == has
    for old_until, has in ((looked_into, True), (looked_into - 1, False)):
        tables = table_with(port, 20, 0x1234)
        tables.write(old_until - 5, port, 20, 0x1235)
        assert (verdict_of(packet, tables) == Verdict.GOOD) == has


def test_what_is_no_entry_of_a_table_is_not_written() -> None:
    accesses = {cycle: access_of(2, 0, 0x9234) | change for cycle, change in enumerate((
        {"write": 0, "read": 1},
        {"wdata": 0x1_9234},
        {"page": 0},
        {"page": 4},
        {"page": 0x42},
        {"offset": P_KEYS - 1},
        {"offset": P_KEYS + ENTRIES},
        {"offset": P_KEYS | 0x100},
    ))}  # fmt: skip
    packet = Packet(2 * SETTLED, 6, LNH.IBA_LOCAL, 0x1234, 1, arrival=True, departure=True)
    for own in (1, 2, 3):
        assert judge([packet], accesses, 3, own, 0)[packet.end + 1] == Verdict.RCV_CONSTRAINT
    right = {3: access_of(1, 0, 0x9234), 4: access_of(2, 5, 0x9234)}
    assert judge([packet], right, 3, 1, 0)[packet.end + 1] == Verdict.GOOD
