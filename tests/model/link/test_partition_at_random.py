"""Packets with any P_Key over two switches whose tables change, against a plain reading of section 3.6.

One packet is under way at a time, so that what section 3 says of its verdict and of when it joins says when it leaves.
"""

import random
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import pytest

from model.fabric import Fabric
from tests.model.link.partition_reading import LNH_LOCAL, OnLink, Registers, Write, passage, sent
from tests.model.link.partitions import TABLE, iba, post, raw, set_table
from wire.codes import P_KEY_DEFAULT, LinkWidth, PortState
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.registers import (
    NodeRegister,
    PartitionCheck,
    PortRegister,
    lft_address,
    node_address,
    p_key_address,
    port_address,
)
from wire.stimulus import Control, Injection, Operation, Post, Trigger
from wire.trace import Kind, Record, Verdict, link_source, port_source
from wire.trace_layout import Inject, RxData, TxData, TxFcp

READY = 2000
GAP = 2500
"""Cycles from packet to packet: all is quiet in between."""
PACKETS = 60
WRITES = 25
"""While a packet is under way."""
AIMED = 5
"""Of the packet's key, or in its place, so that they take effect while it is looked for."""
P_KEYS = (0x8001, 1, 0x8002, 2, 0x8003, 0x8000, 0, 0xFFFF)
# Adapter i has LID i. Adapters 1 and 2 are at the first switch, 3 and 4 at the second; their ports 3 are connected.
SWITCHES = (0, 1)
LINKS = ((0, 1, 2, 1), (0, 2, 3, 1), (1, 1, 4, 1), (1, 2, 5, 1), (0, 3, 1, 3))
"""Node and port at both ends."""
ROUTES = {0: {1: 1, 2: 2, 3: 3, 4: 3}, 1: {1: 3, 2: 3, 3: 1, 4: 2}}


@dataclass
class Campaign:
    """A fabric, what happens in it, and what is expected of it."""

    seed: int
    forwarding: str
    registers: Registers = field(default_factory=lambda: Registers(SWITCHES, (1, 2, 3)))
    controls: list[Control] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(self.seed)
        self.flights = [rng.choice([1, 2, 9]) for _ in LINKS]
        self.pitches = [rng.choice([1, 1, 4]) for _ in LINKS]
        self._next = 2
        queueing = rng.choice([{}, {"queueing": "fifo", "readers": 1}])
        switches = {f"sw{i}": SwitchParameters(ports=3, forwarding=self.forwarding, **queueing) for i in (1, 2)}
        names = [*switches, *(f"ca{i}" for i in range(1, 5))]
        links = tuple(
            LinkParameters(names[a], a_port, names[b], b_port, flight)
            for (a, a_port, b, b_port), flight in zip(LINKS, self.flights, strict=True)
        )
        self.parameters = FabricParameters({**switches, **{name: AdapterParameters() for name in names[2:]}}, links)

    def write(self, node: int, address: int, value: int, cycle: int = 0) -> int:
        """In the first cycle from this one on in which nothing else happens; returns it."""
        self._next = cycle = max(cycle, self._next)
        self._next += 1
        self.controls.append(Control(cycle, Operation.BUS_WRITE, node, (address, value, 0, 0)))
        return cycle

    def bring_up(self) -> None:
        for node, routes in ROUTES.items():
            for lid, port in routes.items():
                self.write(node, lft_address(lid), port)
        for lid in range(1, 5):
            self.write(lid + 1, node_address(NodeRegister.LID), lid)
        ends = [(end, pitch) for link, pitch in zip(LINKS, self.pitches, strict=True) for end in (link[:2], link[2:])]
        for (node, port), pitch in ends:
            self.write(node, port_address(port, PortRegister.WIDTH), LinkWidth.X1 if pitch == 4 else LinkWidth.X4)
            self.write(node, port_address(port, PortRegister.FCP_PERIOD), (1 << 24) - 1)
        for state, cycle in ((PortState.ARMED, 500), (PortState.ACTIVE, 1000)):
            self._next = max(self._next, cycle)
            for (node, port), _ in ends:
                self.write(node, port_address(port, PortRegister.STATE), state)

    def change(self, cycle: int, *, often: int) -> None:
        """About a cycle, at any port."""
        rng = self.rng
        for at in sorted(rng.randrange(cycle, cycle + 150) for _ in range(often)):
            node, port = rng.choice(SWITCHES), rng.randrange(1, 4)
            if rng.random() < 0.2:
                self.check(node, port, at)
            else:
                self.set_entry(node, port, rng.randrange(TABLE), rng.choice(P_KEYS) if rng.random() < 0.1 else 0, at)

    def check(self, node: int, port: int, cycle: int, checks: int | None = None) -> None:
        if checks is None:
            checks = self.rng.choice([0, 1, 2, 3, 4, 8, 15])
        given = self.write(node, port_address(port, PortRegister.PARTITION), checks, cycle)
        self.registers.set_checks(node, port, Write(given + 2, checks))

    def set_entry(self, node: int, port: int, entry: int, p_key: int, cycle: int) -> None:
        given = self.write(node, p_key_address(port, entry), p_key, cycle)
        self.registers.set_entry(node, port, entry, given, p_key)

    def aim(self, node: int, ports: tuple[int, int], p_key: int, cycle: int) -> None:
        """Writes of a key that comes in this cycle, and of others in its place, to an entry or two of both tables.

        An entry ceases to hold its key 6 cycles after a write, and holds the next from 13 on; looks are after 1 and 2.
        """
        rng = self.rng
        places = [(port, rng.choice([0, rng.randrange(TABLE)])) for port in rng.sample(ports, rng.choice([1, 1, 2]))]
        at = cycle + rng.randrange(4) - rng.choice([6, 13]) - 10 * rng.randrange(AIMED)
        for port in ports:
            self.check(node, port, at - 2, rng.choice(list(PartitionCheck)[:2]))
        for place in range(AIMED):
            held = rng.choice([0, 0x8004]) if place % 2 else p_key | 0x8000
            self.set_entry(node, *rng.choice(places), held, at)
            at += rng.randrange(1, 11)
        if rng.random() < 0.2:
            self.check(node, rng.choice(ports), at)

    def aim_at_first_switch(self, cycle: int, words: tuple[int, ...], path: list[tuple[int, int]]) -> None:
        """Of a packet that is posted in a cycle."""
        (link, _), (following, _) = path[:2]
        a, a_port, _, _ = LINKS[link]
        out = LINKS[following][1] if LINKS[following][0] == a else LINKS[following][3]
        pitch = self.pitches[link]
        granted = -(-(cycle + 1 + len(words) + 3) // pitch) * pitch
        row_0 = granted + 4 + self.flights[link]
        if words[0] >> 16 & 3 == LNH_LOCAL:
            self.aim(a, (a_port, out), words[2] & 0xFFFF, row_0 + 3 * pitch)
        elif len(words) > 12:
            self.aim(a, (a_port, out), words[12] & 0xFFFF, row_0 + 13 * pitch)

    def packet(self, source: int, target: int) -> tuple[int, ...]:
        rng = self.rng
        kind = rng.random()
        if kind < 0.1:
            return raw(source, target, payload=4 * rng.randrange(2, 40), ipv6=rng.random() < 0.5)
        words = iba(
            source,
            target,
            rng.choice(P_KEYS),
            payload=4 * rng.choice([0, 0, 1, 2, rng.randrange(60)]),
            grh=kind > 0.6,
            seed=rng.randrange(1 << 30),
        )
        if kind > 0.95:  # a GRH, and then nothing that could be a BTH
            n = rng.randrange(6, 16)
            words = words[0], words[1] & ~0x7FF_0000 | n << 16, *words[2:n]
        return words

    def inject(self, cycle: int, link: int, direction: int, injection: Injection) -> None:
        self._next = max(self._next, cycle)
        self.controls.append(Control(self._next, Operation.INJECT, link << 1 | direction, injection.args()))
        self._next += 1

    def damage(self, cycle: int, path: list[tuple[int, int]], n: int) -> tuple[tuple[int, int], Injection]:
        """A bit of a row from 2 on, on one of the links to a switch, its direction."""
        rng = self.rng
        row = rng.choice([2, 3, min(6, n), min(16, n), rng.randrange(2, n + 1), rng.randrange(max(2, n - 2), n + 1)])
        flip = 8 << 32 if rng.random() < 0.4 else 1 << rng.randrange(8, 32)
        injection = Injection(Trigger.DATA, row, row, flip=flip)
        place = rng.choice(path[:-1])
        self.inject(cycle, *place, injection)
        return place, injection

    def of(self, kind: Kind, source: int, since: int) -> list[Record]:
        return [
            one
            for one in self.records
            if one.kind == kind and one.source == source and since <= one.cycle < since + GAP
        ]


def path_of(source: int, target: int) -> list[tuple[int, int]]:
    """Link and direction of each hop from an adapter to another one."""
    path = [(source - 1, 1)]
    if (source < 3) != (target < 3):
        path.append((4, 0 if source < 3 else 1))
    return [*path, (target - 1, 0)]


@pytest.mark.parametrize("forwarding", ["cut-through", "store-and-forward"])
def test_verdicts_and_cycles_are_those_of_the_contract(forwarding: str) -> None:
    for _ in range(4):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        run_and_compare(Campaign(seed, forwarding))


@pytest.mark.parametrize("grh", [False, True])
def test_a_packet_that_an_earlier_switch_ended_early_joins_if_its_row_came(grh: bool) -> None:
    """Only the second switch checks; the rows that end the packet on the link to it follow one another."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    campaign = Campaign(seed, "cut-through")
    campaign.bring_up()
    campaign.registers.set_checks(1, 3, Write(READY, PartitionCheck.INBOUND))
    campaign.write(1, port_address(3, PortRegister.PARTITION), PartitionCheck.INBOUND)
    plans: list[Plan] = []
    for place, row in enumerate(range(2, 22)):
        words, path = iba(1, 3, P_KEY_DEFAULT, grh=grh), path_of(1, 3)
        cut = Injection(Trigger.DATA, row, row, flip=8 << 32)
        cycle = READY + GAP * place
        campaign.inject(cycle - 100, *path[0], cut)
        campaign.posts.append(Post.of_words(cycle, 2, 0, words))
        plans.append(Plan(cycle, words, path, (path[0], cut)))
    follow(campaign, plans)


class Plan(NamedTuple):
    """A packet, and which damage waits for it on which link and direction."""

    cycle: int
    words: tuple[int, ...]
    path: list[tuple[int, int]]
    damage: tuple[tuple[int, int], Injection] | None


def run_and_compare(campaign: Campaign) -> None:
    campaign.bring_up()
    rng = campaign.rng
    campaign.change(1500, often=40)
    plans: list[Plan] = []
    for place in range(PACKETS):
        cycle = READY + GAP * place
        source, target = rng.sample(range(1, 5), 2)
        words = campaign.packet(source, target)
        path = path_of(source, target)
        damage = campaign.damage(cycle - 100, path, len(words)) if rng.random() < 0.3 else None
        campaign.posts.append(Post.of_words(cycle, source + 1, 0, words))
        campaign.change(cycle - 600, often=WRITES)
        campaign.aim_at_first_switch(cycle, words, path)
        campaign.change(cycle, often=WRITES)
        plans.append(Plan(cycle, words, path, damage))
    follow(campaign, plans)


def follow(campaign: Campaign, plans: list[Plan]) -> None:
    fabric = Fabric(campaign.parameters, campaign.controls, campaign.posts)
    campaign.records += fabric.run(READY + GAP * PACKETS)
    damages: dict[tuple[int, int], Injection] = {}  # armed on a link and direction
    for cycle, words, path, damage in plans:
        if damage is not None:
            damages[damage[0]] = damage[1]
        compare(campaign, cycle, words, path, damages)
    for node in SWITCHES:
        for port in (1, 2, 3):
            source = port_source(node, port)
            records = [one for one in campaign.records if one.source == source]
            taken = sum(RxData.blocks.read(one) for one in records if one.kind == Kind.RX_DATA)
            last = [one for one in records if one.kind == Kind.TX_FCP][-1]
            assert (TxFcp.fccl.read(last) - taken) % 4096 == campaign.parameters.nodes["sw1"].buffer_blocks


def compare(
    campaign: Campaign,
    cycle: int,
    words: tuple[int, ...],
    path: list[tuple[int, int]],
    damages: dict[tuple[int, int], Injection],
) -> None:
    """Follow a packet from switch to switch."""
    link, direction = path[0]
    first = campaign.of(Kind.TX_DATA, port_source(LINKS[link][2], 1), cycle)
    assert len(first) == 1
    n = len(words)
    stream = b"\0" + b"".join(word.to_bytes(4, "big") for word in words)
    rows = tuple(int.from_bytes(stream[4 * row : 4 * row + 4], "big") for row in range(n))
    row_0 = TxData.first_cycle.read(first[0]) + campaign.flights[link]
    packet: OnLink | None = OnLink(n, words[0] >> 16 & 3, rows, n, row_0, campaign.pitches[link])
    for (link, direction), (following, _) in pairwise(path):
        a, a_port, b, b_port = LINKS[link]
        node, into = (a, a_port) if direction else (b, b_port)
        out = LINKS[following][1] if LINKS[following][0] == node else LINKS[following][3]
        received = campaign.of(Kind.RX_DATA, port_source(node, into), cycle)
        if packet is None:
            assert not received
            return
        if (link, direction) in damages:
            injection = damages.pop((link, direction))
            packet = packet.damaged(injection)
            injected = campaign.of(Kind.INJECT, link_source(link, direction), cycle)
            assert [Inject.row.read(one) for one in injected] == (
                [injection.first] if injection.first <= packet.k else []
            )
        pitch = campaign.pitches[following]
        passed = passage(campaign.registers, node, into, out, packet, pitch, campaign.forwarding != "cut-through")
        assert [(one.cycle, RxData.verdict.read(one), RxData.end_row.read(one)) for one in received] == [
            (packet.at(packet.k) + 2, passed.verdict, packet.k)
        ], cycle
        left = campaign.of(Kind.TX_DATA, port_source(node, out), cycle)
        scrapped = campaign.of(Kind.SCRAP, port_source(node, out), cycle)
        if passed.joins is None:
            assert not left + scrapped, cycle
            return
        leaves = sent(packet, passed, pitch, campaign.flights[following])
        assert len(scrapped) == (leaves is None)
        assert [TxData.first_cycle.read(one) + campaign.flights[following] for one in left] == (
            [] if leaves is None else [leaves.row_0]
        ), cycle
        packet = leaves


@pytest.mark.parametrize("queueing", [{}, {"queueing": "fifo", "readers": 1}])
@pytest.mark.parametrize("forwarding", ["cut-through", "store-and-forward"])
def test_under_load_all_packets_come_in_order_but_those_that_are_rejected(star, ready, forwarding, queueing):
    """Tables do not change. What waits for its key and what does not share inputs and outputs."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    bench = star(4, forwarding=forwarding, **queueing)
    checks = [PartitionCheck(rng.randrange(16)) for _ in range(4)]
    tables = [{rng.choice(P_KEYS) for _ in range(4)} for _ in range(4)]
    for port, (check, p_keys) in enumerate(zip(checks, tables, strict=True), 1):
        bench.write_port(0, port, PortRegister.PARTITION, check)
        set_table(bench, port, rng.sample([*p_keys, *[0] * (TABLE - len(p_keys))], TABLE))
    verdicts: dict[int, list[Verdict]] = defaultdict(list)
    expected: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for place in range(400):
        source, target = rng.sample(range(1, 5), 2)
        p_key, is_raw = rng.choice(P_KEYS), rng.random() < 0.1
        payload = 4 * rng.choice([2, 3, rng.randrange(2, 60)])
        words = raw(source, target, payload=payload)
        if not is_raw:
            words = iba(source, target, p_key, payload=payload, grh=rng.random() < 0.4, seed=place)
        on_arrival, on_departure = checks[source - 1], checks[target - 1]
        if is_raw:
            wrong = [PartitionCheck.RAW_INBOUND in on_arrival, PartitionCheck.RAW_OUTBOUND in on_departure]
        else:
            wrong = [
                PartitionCheck.INBOUND in on_arrival and not _has(tables[source - 1], p_key),
                PartitionCheck.OUTBOUND in on_departure and not _meets(tables[target - 1], p_key),
            ]
        verdict = Verdict.RCV_CONSTRAINT if wrong[0] else Verdict.XMIT_CONSTRAINT if wrong[1] else Verdict.GOOD
        verdicts[source].append(verdict)
        post(bench, ready, words)
        if not verdict:
            expected[source, target].append(struct.pack(f">{len(words)}I", *words))
    bench.run(60_000)
    for port in range(1, 5):
        received = bench.of(Kind.RX_DATA, 0, port)
        assert [RxData.verdict.read(one) for one in received] == verdicts[port]
        taken = sum(RxData.blocks.read(one) for one in bench.of(Kind.RX_DATA, 0, port, since=0))
        fccl = TxFcp.fccl.read(bench.of(Kind.TX_FCP, 0, port)[-1])
        assert (fccl - taken) % 4096 == bench.parameters.nodes["sw"].buffer_blocks
    delivered: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for one in bench.delivered:
        delivered[int.from_bytes(one.data[6:8], "big"), one.node].append(one.data)
    assert delivered == expected


def _has(table: set[int], p_key: int) -> bool:
    return bool(p_key & 0x7FFF) and any((held ^ p_key) & 0x7FFF == 0 for held in table)


def _meets(table: set[int], p_key: int) -> bool:
    return bool(p_key & 0x7FFF) and any((held ^ p_key) & 0x7FFF == 0 and (held | p_key) >> 15 for held in table)
