"""A switch whose ports check partitions: what passes, when, and what is counted (docs/pipeline.md, section 3.6)."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from tests.rtl.switch.bench import FLIGHT, SWITCH, TO_WIRES, Event, Fabric
from tests.rtl.switch.test_switch import LATENCY, X1, make, starts, verdicts
from wire.codes import LNH, VL15
from wire.crc import icrc
from wire.headers import BTH, GRH, LRH
from wire.packet import blocks_of_words
from wire.registers import Counter, PartitionCheck, PortRegister, lft_address, p_key_address, port_address
from wire.symbols import Control
from wire.trace import Kind, Verdict

# Nothing here is for the agents.
pytestmark = pytest.mark.usefixtures("stand_in")

AFTER_JOINING = 1 + 1 + TO_WIRES
"""Cycles from e to a packet's row 0 on the wires of an idle output: g and x_0 follow."""

INBOUND, OUTBOUND = PartitionCheck.INBOUND, PartitionCheck.OUTBOUND
RAW_INBOUND, RAW_OUTBOUND = PartitionCheck.RAW_INBOUND, PartitionCheck.RAW_OUTBOUND
ROW = {LNH.IBA_LOCAL: 3, LNH.IBA_GLOBAL: 13}
RIGHT, WRONG = 0x9234, 0x9235
SMALLEST = 6


def words(
    source: int,
    destination: int,
    n: int = 10,
    p_key: int = RIGHT,
    *,
    lnh: int = LNH.IBA_LOCAL,
    vl: int = 0,
    sign: int = 0,
) -> tuple[int, ...]:
    """A packet of n words from adapter to adapter."""
    body = LRH.pack(vl=vl, sl=vl, lnh=lnh, dlid=destination + 1, pkt_len=n, slid=source + 1)
    if lnh == LNH.IBA_GLOBAL:
        body += GRH.pack()
    if lnh >= LNH.IBA_LOCAL:
        body += BTH.pack(p_key=p_key, psn=sign)
        body = body[: 4 * n - 4].ljust(4 * n - 4, b"\x5a")
        body += icrc(body) if len(body) >= len(GRH.pack()) + 20 or lnh == LNH.IBA_LOCAL else bytes(4)
    body = body.ljust(4 * n, b"\xa5")
    return tuple(int.from_bytes(body[place : place + 4]) for place in range(0, 4 * n, 4))


def checking(
    checks: dict[int, PartitionCheck], adapters: int = 3, tables: dict[int, list[int]] | None = None, **more: Any
) -> tuple[Fabric, int]:
    """A fabric whose ports check this, with these P_Keys in their tables' last entries, RIGHT in all others.

    And the cycle from which data flows.
    """
    ports = range(1, adapters + 1)
    widths = {port: {PortRegister.WIDTH: X1} for port in more.pop("narrow", ())}
    fabric = make(
        adapters, watched=[(SWITCH, port) for port in ports] + [(node, 1) for node in range(adapters)], **more
    )
    registers: dict[tuple[int, int], dict[int, int]] = {}
    for port in ports:
        written = {PortRegister.PARTITION: checks.get(port, 0), **widths.get(port, {})}
        keys = (tables or {}).get(port, [RIGHT])
        written |= {p_key_address(port, 31 - place) & 0xFFFF: key for place, key in enumerate(keys)}
        registers[SWITCH, port] = written
        registers[port - 1, 1] = widths.get(port, {})
    return fabric, fabric.bring_up(5, registers)


def came(fabric: Fabric, port: int) -> list[int]:
    """When row 0 of each packet was on the switch's receive wires."""
    return starts(fabric.rows[SWITCH, port], Control.SDP)


def left(fabric: Fabric, port: int) -> list[int]:
    """When row 0 of each packet was on the switch's transmit wires."""
    return [cycle - FLIGHT for cycle in starts(fabric.rows[port - 1, 1], Control.SDP)]


def judged(fabric: Fabric) -> list[Verdict]:
    return verdicts(fabric.of(Kind.RX_DATA, SWITCH))


CASES: list[tuple[PartitionCheck, PartitionCheck, int, int, Verdict]] = [
    # What port 1 checks, what port 2 does, LNH, P_Key, verdict. Port 1's table has RIGHT, port 2's RIGHT + 2 too.
    (INBOUND, INBOUND, LNH.IBA_LOCAL, RIGHT, Verdict.GOOD),
    (INBOUND, INBOUND, LNH.IBA_LOCAL, RIGHT + 2, Verdict.RCV_CONSTRAINT),
    (INBOUND, OUTBOUND, LNH.IBA_LOCAL, RIGHT + 2, Verdict.RCV_CONSTRAINT),
    (OUTBOUND, OUTBOUND, LNH.IBA_LOCAL, RIGHT + 2, Verdict.GOOD),
    (OUTBOUND, OUTBOUND, LNH.IBA_LOCAL, WRONG, Verdict.XMIT_CONSTRAINT),
    (OUTBOUND, INBOUND, LNH.IBA_LOCAL, WRONG, Verdict.GOOD),
    (RAW_INBOUND, RAW_OUTBOUND, LNH.IBA_LOCAL, WRONG, Verdict.GOOD),
    (INBOUND, OUTBOUND, LNH.IBA_GLOBAL, RIGHT, Verdict.GOOD),
    (INBOUND, OUTBOUND, LNH.IBA_GLOBAL, WRONG, Verdict.RCV_CONSTRAINT),
    (RAW_INBOUND, OUTBOUND, LNH.IBA_GLOBAL, WRONG, Verdict.XMIT_CONSTRAINT),
    (INBOUND, OUTBOUND, LNH.RAW, RIGHT, Verdict.GOOD),
    (RAW_INBOUND, RAW_OUTBOUND, LNH.RAW, RIGHT, Verdict.RCV_CONSTRAINT),
    (RAW_OUTBOUND, RAW_OUTBOUND, LNH.RAW_IPV6, RIGHT, Verdict.XMIT_CONSTRAINT),
    (RAW_OUTBOUND, RAW_INBOUND, LNH.RAW, RIGHT, Verdict.GOOD),
]


@pytest.mark.parametrize("forwarding", ["cut-through", pytest.param("store-and-forward", marks=pytest.mark.deep)])
def test_what_passes_is_what_both_ports_let_pass(forwarding: str) -> None:
    fabric, ready = checking({}, 2, {1: [RIGHT], 2: [RIGHT + 2, RIGHT]}, forwarding=forwarding)
    expected = []
    for place, (at_1, at_2, lnh, p_key, verdict) in enumerate(CASES):
        start = ready + 80 * place
        fabric.write(start, SWITCH, port_address(1, PortRegister.PARTITION), at_1)
        fabric.write(start + 1, SWITCH, port_address(2, PortRegister.PARTITION), at_2)
        packet = words(0, 1, 20, p_key, lnh=lnh)
        fabric.post(start + 2, 0, 0, packet)
        if verdict == Verdict.GOOD:
            expected.append((0, packet))
    end = ready + 80 * len(CASES) + 40
    counters = (Counter.RCV_CONSTRAINT_ERRORS, Counter.XMIT_CONSTRAINT_ERRORS)
    for place, counter in enumerate(counters):
        for port in (1, 2):
            fabric.read(end + 4 * place + port, SWITCH, port_address(port, counter))
    fabric.run(end + 20)
    assert judged(fabric) == [verdict for *_, verdict in CASES]
    assert fabric.delivered[1] == expected
    rejected = [
        [verdict for *_, verdict in CASES].count(of) for of in (Verdict.RCV_CONSTRAINT, Verdict.XMIT_CONSTRAINT)
    ]
    assert [value for _, value in fabric.answers[SWITCH]] == [rejected[0], 0, 0, rejected[1]]
    assert not fabric.of(Kind.SCRAP)


@pytest.mark.parametrize(("lnh", "n"), [
    (LNH.IBA_LOCAL, 6), (LNH.IBA_LOCAL, 7), (LNH.IBA_LOCAL, 8), (LNH.IBA_LOCAL, 40),
    (LNH.IBA_GLOBAL, 16), (LNH.IBA_GLOBAL, 17), (LNH.IBA_GLOBAL, 60),
])  # fmt: skip
@pytest.mark.parametrize("narrow", [(), (1,), (2,), (1, 2)], ids=["4X", "1X in", "1X out", "1X"])
def test_a_packet_that_is_checked_joins_three_rows_behind_its_p_key(narrow: tuple[int, ...], lnh: LNH, n: int) -> None:
    fabric, ready = checking({1: INBOUND}, 2, narrow=narrow)
    fabric.post(ready, 0, 0, words(0, 1, n, lnh=lnh))
    fabric.run(ready + 14 * n + 60)
    (begun,), (sent,) = came(fabric, 1), left(fabric, 2)
    d = ROW[lnh] + 3
    if narrow == (1,):
        d = max(d, n - n // 4)
    joins = begun + d * (4 if 1 in narrow else 1) + 2
    wait = -(joins + 1) % 4 if 2 in narrow else 0  # g is a cycle in which a 1X output is available
    assert sent == joins + AFTER_JOINING + wait
    assert judged(fabric) == [Verdict.GOOD]
    assert len(fabric.delivered[1]) == 1


def test_what_is_not_checked_is_as_fast_as_ever() -> None:
    fabric, ready = checking({1: OUTBOUND | RAW_INBOUND, 2: INBOUND | RAW_OUTBOUND | OUTBOUND, 3: INBOUND}, 3)
    fabric.post(ready, 0, 0, words(0, 2, p_key=WRONG))
    fabric.post(ready + 40, 0, 1, words(0, 1, 72, p_key=WRONG, vl=VL15))
    fabric.run(ready + 230)
    assert judged(fabric) == [Verdict.GOOD] * 2
    first, second = came(fabric, 1)
    assert left(fabric, 3) == [first + LATENCY]
    assert left(fabric, 2) == [second + LATENCY]


@pytest.mark.parametrize(("checks", "vls"), [({1: INBOUND}, 1), ({2: OUTBOUND}, 2), ({1: INBOUND, 2: OUTBOUND}, 2)])
def test_smallest_packets_back_to_back(checks: dict[int, PartitionCheck], vls: int) -> None:
    seed = 5
    print(f"seed {seed}")
    rng = random.Random(seed)
    fabric, ready = checking(checks, 2, {1: [RIGHT, 0x1111], 2: [0x1111, RIGHT]}, vls=vls)
    keys = [rng.choice((RIGHT, WRONG, 0x9111, 0x1111)) for _ in range(40)]
    packets = [words(0, 1, SMALLEST, key, vl=sign % vls, sign=sign) for sign, key in enumerate(keys)]
    for sign, packet in enumerate(packets):
        fabric.post(ready, 0, sign % vls, packet)
    fabric.run(ready + 40 * (SMALLEST + 3) + 60)
    assert SMALLEST + 1 in [after - before for before, after in pairwise(came(fabric, 1))]
    passes = (RIGHT, 0x9111) if 2 in checks else (RIGHT, 0x9111, 0x1111)
    by_vl = [[packet for packet in packets[vl::vls] if packet[2] & 0xFFFF in passes] for vl in range(vls)]
    assert [[packet for slot, packet in fabric.delivered[1] if slot == vl] for vl in range(vls)] == by_vl
    found = fabric.of(Kind.RX_DATA, SWITCH)
    rejected = [keys.count(WRONG), keys.count(0x1111)] if 1 in checks else [0, keys.count(WRONG) + keys.count(0x1111)]
    assert [verdicts(found).count(one) for one in (Verdict.GOOD, Verdict.RCV_CONSTRAINT, Verdict.XMIT_CONSTRAINT)] == [
        sum(map(len, by_vl)),
        rejected[0],
        rejected[1] if 2 in checks else 0,
    ]


def test_rejected_packets_give_their_blocks_back_and_are_no_loss_of_credits() -> None:
    fabric, ready = checking({1: INBOUND | RAW_INBOUND, 2: OUTBOUND | RAW_OUTBOUND}, 2, {1: [RIGHT], 2: [RIGHT + 2]})
    n, sent = 40, 30
    kinds = [(LNH.IBA_LOCAL, WRONG), (LNH.IBA_LOCAL, RIGHT), (LNH.RAW, RIGHT), (LNH.IBA_GLOBAL, WRONG)]
    for sign in range(sent):
        lnh, p_key = kinds[sign % 4]
        fabric.post(ready, 0, 0, words(0, 1, n, p_key, lnh=lnh, sign=sign))
    last = words(0, 1, 95, 0xFFFF)
    fabric.post(ready, 0, 0, last)
    fabric.run(ready + (sent + 4) * (n + 3) + 300)
    # Without the blocks or the credits of those that are rejected, a buffer's, the last would never arrive.
    assert sent * blocks_of_words(n) > 4 * 16
    assert fabric.delivered[1] == [(0, last)]
    found = judged(fabric)
    assert found.count(Verdict.RCV_CONSTRAINT) == sum(kinds[sign % 4] != (LNH.IBA_LOCAL, RIGHT) for sign in range(sent))
    assert found.count(Verdict.GOOD) == 1
    assert {record.words[3] for record in fabric.of(Kind.RX_DATA, SWITCH)[:sent]} == {blocks_of_words(n)}


def test_a_packet_with_another_error_is_no_constraint() -> None:
    # Its P_Key is wrong, and its VCRC, or it is marked bad: nothing of it is sent all the same.
    fabric, ready = checking({1: INBOUND}, 2)
    fabric.post(ready, 0, 0, words(0, 1, 20, WRONG))
    fabric.post(ready + 60, 0, 0, words(0, 1, 20, RIGHT))
    posted = 1 + 20 + 2 + 1 + 1 + TO_WIRES + FLIGHT  # to row 0 on the switch's wires
    for start in (ready, ready + 60):
        fabric.flip(start + posted + 17, SWITCH, 1, 1)
    fabric.run(ready + 160)
    assert judged(fabric) == [Verdict.PHYSICAL] * 2
    (row_0,) = left(fabric, 2)
    assert row_0 > ready + 60
    assert [event.words[0] >> 8 & 1 for event in fabric.of(Kind.TX_DATA, SWITCH)] == [1]


def test_a_smallest_packet_that_is_bad_at_its_end_never_joins() -> None:
    fabric, ready = checking({1: INBOUND}, 2)
    posted = 1 + SMALLEST + 2 + 1 + 1 + TO_WIRES + FLIGHT
    fabric.post(ready, 0, 0, words(0, 1, SMALLEST))
    fabric.flip(ready + posted + 5, SWITCH, 1, 1)
    fabric.post(ready + 40, 0, 0, words(0, 1, SMALLEST))
    fabric.run(ready + 100)
    assert judged(fabric) == [Verdict.PHYSICAL, Verdict.GOOD]
    assert left(fabric, 2) == [came(fabric, 1)[1] + SMALLEST + 2 + AFTER_JOINING]
    assert not fabric.of(Kind.SCRAP)


def test_rejections_of_one_output_in_one_cycle_all_count_three_cycles_after_the_end() -> None:
    fabric, ready = checking({4: OUTBOUND, 5: OUTBOUND}, 5)
    for source, destination in ((0, 3), (1, 3), (2, 3), (3, 4), (4, 3)):
        fabric.post(ready, source, 0, words(source, destination, 10, WRONG))
    ended = ready + 1 + 10 + 2 + 1 + 1 + TO_WIRES + FLIGHT + 10  # c_e
    reads = [(cycle, port) for cycle in (ended + 2, ended + 3) for port in (4, 5)]
    for cycle, port in reads[:1] + reads[2:3]:
        fabric.read(cycle - 2, SWITCH, port_address(port, Counter.XMIT_CONSTRAINT_ERRORS))
    fabric.read(ended + 20, SWITCH, port_address(5, Counter.XMIT_CONSTRAINT_ERRORS))
    fabric.read(ended + 22, SWITCH, port_address(4, Counter.RCV_CONSTRAINT_ERRORS))
    fabric.run(ended + 40)
    assert [(event.cycle, verdict) for event, verdict in zip(fabric.of(Kind.RX_DATA), judged(fabric), strict=True)] == [
        (ended + 2, Verdict.XMIT_CONSTRAINT)
    ] * 5
    assert [value for _, value in fabric.answers[SWITCH]] == [0, 4, 1, 0]


def test_what_counts_is_what_is_visible_with_the_header() -> None:
    for given, verdict in ((-1, Verdict.RCV_CONSTRAINT), (0, Verdict.GOOD)):
        fabric, ready = checking({}, 2)
        header = ready + 1 + 10 + 2 + 1 + 1 + TO_WIRES + FLIGHT + 2  # h+1
        fabric.post(ready, 0, 0, words(0, 1, 10, WRONG))
        fabric.write(header - 2 + given + 1, SWITCH, port_address(1, PortRegister.PARTITION), INBOUND)
        fabric.run(header + 40)
        assert judged(fabric) == [verdict]


def test_a_packet_for_the_agent_is_checked_on_arrival_alone() -> None:
    own = 5
    fabric, ready = checking({1: OUTBOUND | RAW_OUTBOUND, 2: INBOUND}, 2)
    fabric.write(ready - 8, SWITCH, lft_address(own), 0)
    for source in (0, 1):
        fabric.post(ready, source, 0, words(source, own - 1, 72, WRONG))
        fabric.post(ready + 400, source, 0, words(source, own - 1, 72, RIGHT))
    fabric.run(ready + 900)
    by_port: dict[int, list[Event]] = {1: [], 2: []}
    for event in fabric.of(Kind.RX_DATA, SWITCH):
        by_port[event.port].append(event)
    assert verdicts(by_port[1]) == [Verdict.GOOD] * 2
    assert verdicts(by_port[2]) == [Verdict.RCV_CONSTRAINT, Verdict.GOOD]
    assert len([event for event in fabric.of(Kind.DELIVER, SWITCH) if event.port == 0]) == 3


def test_p_keys_are_not_read_back_and_an_adapter_has_none_of_this() -> None:
    fabric, ready = checking({1: INBOUND}, 2)
    fabric.read(ready, SWITCH, p_key_address(1, 31))
    fabric.read(ready + 1, SWITCH, port_address(1, PortRegister.PARTITION))
    fabric.write(ready, 0, port_address(1, PortRegister.PARTITION), 15)
    fabric.read(ready + 2, 0, port_address(1, PortRegister.PARTITION))
    fabric.write(ready + 3, 0, port_address(1, Counter.XMIT_CONSTRAINT_ERRORS), 7)
    fabric.read(ready + 4, 0, port_address(1, Counter.XMIT_CONSTRAINT_ERRORS))
    fabric.run(ready + 10)
    assert [value for _, value in fabric.answers[SWITCH]] == [0, INBOUND]
    assert [value for _, value in fabric.answers[0]] == [0, 7]
