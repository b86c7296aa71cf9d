"""What an input says of its packets' partitions, against section 3.6 of docs/pipeline.md read plainly."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module, Signal

from rtl.registers.bus import NodeAccess
from rtl.switch.partition import Partition, PKeyTables, p_key_written
from tests.rtl.simulation import Simulation
from wire.codes import LNH
from wire.registers import P_KEYS, p_key_address, place_of_address
from wire.trace import Verdict

ENTRIES = 32
STEPS = (range(11), range(11, 22), range(22, 32))
"""The entries looked at in c_K + 1, c_K + 2 and c_K + 3."""

ROW = {LNH.IBA_LOCAL: 3, LNH.IBA_GLOBAL: 13}
"""K: the row with the last byte of the P_Key."""

POOL = [base | full for base in (0, 1, 2, 0x1234, 0x7FFF) for full in (0, 0x8000)]


class _Design:
    """The component, and in front of it what decodes the register bus."""

    def __init__(self, ports: int) -> None:
        m = Module()
        m.submodules.partition = self.partition = Partition(ports)
        self.access = Signal(NodeAccess)
        m.d.comb += self.partition.write.eq(p_key_written(m, self.access, ports))
        self.simulation = Simulation(m)


_design = cache(_Design)


@dataclass
class Packet:
    """A packet on the wires of the port, its row 0 in cycle `start`, its rows `step` cycles apart.

    `cut`: it ends before row n, at this one.
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


Write = tuple[int, int, int, int]
"""Cycle in which it is at the node's stage, port, entry, key."""


def tables_at(writes: list[Write], ports: int, cycle: int) -> dict[int, list[int]]:
    """The P_Key tables as visible in a cycle."""
    tables = {port: [0xFFFF] + [0] * (ENTRIES - 1) for port in range(1, ports + 1)}
    for given, port, entry, key in writes:
        if given < cycle:
            tables[port][entry] = key
    return tables


def table_has(writes: list[Write], ports: int, port: int, p_key: int, c_k: int, *, departs: bool) -> bool:
    for after, entries in enumerate(STEPS, start=1):
        table = tables_at(writes, ports, c_k + after)[port]
        for entry in entries:
            same = table[entry] & 0x7FFF == p_key & 0x7FFF != 0
            if same and (not departs or (table[entry] | p_key) & 0x8000):
                return True
    return False


def expected(packet: Packet, writes: list[Write], ports: int, own: int) -> Verdict:
    def passes(port: int, *, departs: bool) -> bool:
        c_k = packet.searched
        return c_k is not None and table_has(writes, ports, port, packet.p_key, c_k, departs=departs)

    if packet.arrival and not passes(own, departs=False):
        return Verdict.RCV_CONSTRAINT
    if packet.departure and not passes(packet.output + 1, departs=True):
        return Verdict.XMIT_CONSTRAINT
    return Verdict.GOOD


def judge(packets: list[Packet], accesses: dict[int, dict[str, int]], ports: int, own: int, seed: int) -> list[Verdict]:
    """The verdict in each cycle; in those without a header, what is said of one means nothing."""
    rng = random.Random(seed)
    rows: dict[int, dict[str, int]] = {}
    for packet in packets:
        rows |= packet.rows(rng)
    headers = {packet.header: packet for packet in packets}
    outputs = {packet.header + 1: packet.output for packet in packets}
    design, found = _design(ports), []
    dut = design.partition

    async def bench(ctx: Any) -> None:
        ctx.set(dut.port, own)
        for cycle in range(packets[-1].end + 8):
            packet = headers.get(cycle)
            ctx.set(dut.header, {"valid": 1, "lnh": packet.lnh, "n": packet.n} if packet else {"lnh": rng.randrange(4)})
            ctx.set(dut.arrival, packet.arrival if packet else rng.randrange(2))
            ctx.set(dut.departure, packet.departure if packet else rng.randrange(2))
            if cycle in outputs:
                ctx.set(dut.output, outputs[cycle])
            ctx.set(dut.received, rows.get(cycle, {"data": rng.getrandbits(32), "index": rng.choice((3, 13))}))
            ctx.set(design.access, accesses.get(cycle, {}))
            found.append(Verdict(ctx.get(dut.verdict)))
            await ctx.tick()

    design.simulation.run(bench)
    return found


def write_of(port: int, entry: int, key: int) -> dict[str, int]:
    page, offset = place_of_address(p_key_address(port, entry))
    return {"write": 1, "page": page, "offset": offset, "wdata": key}


@pytest.mark.parametrize("ports", [2, 5, 36])
@pytest.mark.parametrize("seed", range(3))
def test_random_packets_and_tables_that_are_written_meanwhile(seed: int, ports: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(f"{seed}/{ports}")
    own = rng.randint(1, ports)
    used = sorted({own, *(rng.randint(1, ports) for _ in range(3))})
    writes: list[Write] = []
    accesses: dict[int, dict[str, int]] = {}
    for cycle in range(4000):
        if rng.random() < (0.1, 0.4, 0.9)[seed]:
            write = (rng.choice(used), rng.randrange(ENTRIES), rng.choice([0, 0, 0, *POOL]))
            accesses[cycle] = write_of(*write)
            writes.append((cycle, *write))
    packets: list[Packet] = []
    start = 5
    while start < 3500:
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
        )
        packet.departure &= packet.output != ports
        if rng.random() < 0.2:
            packet.cut = rng.randrange(2, packet.n)
        packets.append(packet)
        # What is cut by a row that begins no packet is followed by another row at least.
        start = packet.end + packet.step * (1 if packet.cut is None else 2) + rng.choice([0, 0, 0, 1, 7])
    found = judge(packets, accesses, ports, own, seed)
    seen: dict[Verdict, int] = defaultdict(int)
    for packet, following in pairwise(packets):
        verdict = expected(packet, writes, ports, own)
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


def verdict_of(packet: Packet, writes: Iterable[Write] = (), own: int = 1) -> Verdict:
    accesses = {cycle: write_of(*write) for cycle, *write in writes}
    return judge([packet], accesses, 3, own, 0)[packet.end + 1]


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
    for place in (0, 10, 11, 21, 22, 31):
        writes = [(0, 2, 0, 0), (1, 2, place, entry)]
        packet = Packet(5, 6, LNH.IBA_LOCAL, p_key, 1, arrival=False, departure=True)
        assert verdict_of(packet, writes) == (Verdict.GOOD if has else Verdict.XMIT_CONSTRAINT), place


@pytest.mark.parametrize(("entry", "p_key", "has"), [
    (0xFFFF, 0xFFFF, True),
    (0x7FFF, 0x7FFF, True),
    (0x7FFF, 0xFFFF, True),
    (0x9234, 0x1235, False),
    (0x8000, 0x8000, False),
    (0x0000, 0x0000, False),
])  # fmt: skip
def test_on_arrival_a_limited_member_s_port_takes_its_packets(entry: int, p_key: int, has: bool) -> None:
    for place in (0, 10, 11, 21, 22, 31):
        writes = [(0, 1, 0, 0), (1, 1, place, entry)]
        packet = Packet(5, 6, LNH.IBA_LOCAL, p_key, 1, arrival=True, departure=False)
        assert verdict_of(packet, writes) == (Verdict.GOOD if has else Verdict.RCV_CONSTRAINT), place


def test_at_reset_every_table_has_the_default_partition() -> None:
    for port in (1, 2, 3):
        for p_key, has in ((0xFFFF, True), (0x7FFF, True), (0x8001, False)):
            packet = Packet(5, 6, LNH.IBA_LOCAL, p_key, port - 1, arrival=False, departure=True)
            assert verdict_of(packet) == (Verdict.GOOD if has else Verdict.XMIT_CONSTRAINT)


@pytest.mark.parametrize(("tables", "columns"), [(1, 11), (5, 16)])
def test_after_a_reset_they_have_it_again(tables: int, columns: int) -> None:
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.dut = dut = PKeyTables(tables, columns, departs=True)
    places = [(table, step) for table in range(tables) for step in range(len(STEPS))]

    async def places_with(ctx: Any, key: int) -> list[tuple[int, int]]:
        found = []
        for table, step in places:
            ctx.set(dut.table_number, table)
            ctx.set(dut.step, step)
            ctx.set(dut.key, key)
            if ctx.get(dut.has):
                found.append((table, step))
        return found

    async def bench(ctx: Any) -> None:
        at_reset = [(table, 0) for table in range(tables)]
        assert await places_with(ctx, 0xFFFF) == at_reset
        for table in range(tables):
            for entry in range(ENTRIES):
                place = {"row": entry // columns, "column": 1 << entry % columns}
                ctx.set(dut.write, {"table_number": table, "place": place, "key": 0x9234})
                await ctx.tick()
        ctx.set(dut.write.place.column, 0)
        assert (await places_with(ctx, 0xFFFF), await places_with(ctx, 0x9234)) == ([], places)
        ctx.set(sync.rst, 1)
        for _word in range(len(places)):
            await ctx.tick()
        ctx.set(sync.rst, 0)
        assert (await places_with(ctx, 0xFFFF), await places_with(ctx, 0x9234)) == (at_reset, [])

    Simulation(m).run(bench)


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


@pytest.mark.parametrize("entry", [0, 10, 11, 21, 22, 31])
@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("lnh", list(ROW))
def test_the_cycle_in_which_an_entry_is_looked_at(lnh: LNH, step: int, entry: int) -> None:
    packet = Packet(5, ROW[lnh] + 3, lnh, 0x9234, 1, arrival=False, departure=True, step=step)
    assert packet.searched is not None
    looked_at = packet.searched + 1 + entry // 11
    for given, has in ((looked_at - 1, True), (looked_at, False)):
        # A write at the node's stage is visible in the next cycle.
        assert (verdict_of(packet, [(given, 2, entry, 0x1234)]) == Verdict.GOOD) == has
        missing = [(1, 2, entry, 0x1234), (given, 2, entry, 0x1235)]
        assert (verdict_of(packet, missing) == Verdict.GOOD) != has


def test_what_is_no_entry_of_a_table_is_not_written() -> None:
    accesses = {cycle: write_of(2, 0, 0x9234) | change for cycle, change in enumerate((
        {"write": 0, "read": 1},
        {"wdata": 0x1_9234},
        {"page": 0},
        {"page": 4},
        {"page": 0x42},
        {"offset": P_KEYS - 1},
        {"offset": P_KEYS + ENTRIES},
        {"offset": P_KEYS | 0x100},
    ))}  # fmt: skip
    packet = Packet(20, 6, LNH.IBA_LOCAL, 0x1234, 1, arrival=True, departure=True)
    for own in (1, 2, 3):
        assert judge([packet], accesses, 3, own, 0)[packet.end + 1] == Verdict.RCV_CONSTRAINT
    right = {3: write_of(1, 0, 0x9234), 4: write_of(2, 5, 0x9234)}
    assert judge([packet], right, 3, 1, 0)[packet.end + 1] == Verdict.GOOD
