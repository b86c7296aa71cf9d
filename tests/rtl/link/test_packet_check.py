"""What a port makes of received packets: verdict, precedence, counters, and their cycles."""

import random

import pytest

from tests.rtl.link.bench import ACTIVE_FROM, DECIDED, PortBench, data_rows, packet
from wire.codes import PortState
from wire.crc import icrc, invert_vcrc, vcrc
from wire.registers import COUNTER_WIDTHS, Counter, Detail, PacketCounter, PortRegister
from wire.symbols import Control, Row, frame_data_packet
from wire.trace import Kind, Verdict

C0 = ACTIVE_FROM + 4
"""Cycle of row 0 of the packet under test."""

H = C0 + 1
"""Cycle of its row 1."""


def changed(rows: list[Row], row: int, data: int | None = None, k: int | None = None) -> list[Row]:
    """The rows with one of them replaced in part."""
    rows = list(rows)
    rows[row] = Row(rows[row].data if data is None else data, rows[row].k if k is None else k)
    return rows


def relabelled(**lrh: int) -> list[Row]:
    """A packet's rows with other values in the LRH, and CRCs that fit them."""
    shift = {"vl": 60, "lver": 56, "sl": 52, "lnh": 48, "dlid": 32, "pkt_len": 16}
    width = {"vl": 4, "lver": 4, "sl": 4, "lnh": 2, "dlid": 16, "pkt_len": 11}
    data = packet().data
    head = int.from_bytes(data[:8], "big")
    for name, value in lrh.items():
        head = head & ~(((1 << width[name]) - 1) << shift[name]) | value << shift[name]
    data = head.to_bytes(8, "big") + data[8:-4]
    data += icrc(data) if head >> 49 & 1 and not head >> 48 & 1 else bytes(4)
    return frame_data_packet(data + vcrc(data))


def bad_vcrc(rows: list[Row]) -> list[Row]:
    return changed(rows, len(rows) - 1, rows[-1].data ^ 1 << 20)


def with_ebp(rows: list[Row]) -> list[Row]:
    return changed(rows, len(rows) - 1, rows[-1].data & ~0xFF | Control.EBP)


def bad_icrc() -> list[Row]:
    data = bytearray(packet().data)
    data[20] ^= 1
    return frame_data_packet(bytes(data) + vcrc(bytes(data)))


GOOD = data_rows()
COMMA = Row(0xBC << 8, 2)

# name: rows, verdict, the counters that move by 1 besides PortRcvPkts and PortRcvData
CASES: dict[str, tuple[list[Row], Verdict, set[Counter]]] = {
    "good": (GOOD, Verdict.GOOD, set()),
    "wrong VCRC": (bad_vcrc(GOOD), Verdict.PHYSICAL, {Counter.RCV_ERRORS}),
    "cut by a violation": ([*GOOD[:5], COMMA], Verdict.PHYSICAL, {Counter.RCV_ERRORS, Counter.SYMBOL_ERROR}),
    "cut by its length": ([*GOOD[:10], GOOD[9], GOOD[10]], Verdict.PHYSICAL, {Counter.RCV_ERRORS}),
    "marked bad": (with_ebp(GOOD), Verdict.REMOTE, {Counter.RCV_REMOTE_PHYSICAL_ERRORS}),
    "marked bad with an inverted VCRC": (
        frame_data_packet(packet().data + invert_vcrc(vcrc(packet().data)), good=False),
        Verdict.REMOTE,
        {Counter.RCV_REMOTE_PHYSICAL_ERRORS},
    ),
    "marked bad, wrong LVer": (
        with_ebp(relabelled(lver=1)), Verdict.REMOTE, {Counter.RCV_REMOTE_PHYSICAL_ERRORS},
    ),
    "wrong VCRC, wrong LVer": (bad_vcrc(relabelled(lver=1)), Verdict.PHYSICAL, {Counter.RCV_ERRORS}),
    "ends at row 1": (
        frame_data_packet(b"\0\2\0\5" + vcrc(b"\0\2\0\5")), Verdict.LENGTH, {Counter.RCV_ERRORS},
    ),
    "LVer": (relabelled(lver=3, dlid=0), Verdict.LVER, {Counter.RCV_ERRORS}),
    "says to be longer": (relabelled(pkt_len=11), Verdict.LENGTH, {Counter.RCV_ERRORS}),
    "says to be longer than the MTU lets": (
        relabelled(pkt_len=96, dlid=0), Verdict.LENGTH, {Counter.RCV_ERRORS},
    ),
    "DLID 0": (relabelled(dlid=0, vl=3), Verdict.DLID, {Counter.RCV_SWITCH_RELAY_ERRORS}),
    "VL not operational": (relabelled(vl=2), Verdict.VL, {Counter.RCV_ERRORS}),
    "VL the port does not have": (relabelled(vl=14), Verdict.VL, {Counter.RCV_ERRORS}),
    "VL15": (relabelled(vl=15), Verdict.GOOD, set()),
    "VL15, permissive": (relabelled(vl=15, dlid=0xFFFF), Verdict.GOOD, set()),
    "VL15, multicast": (relabelled(vl=15, dlid=0xC000, lnh=0), Verdict.VL, {Counter.RCV_ERRORS}),
    "VL15, last multicast LID": (relabelled(vl=15, dlid=0xFFFE), Verdict.VL, {Counter.RCV_ERRORS}),
    "VL15, raw": (relabelled(vl=15, lnh=0), Verdict.VL15_HEADER, {Counter.RCV_ERRORS}),
    "VL15 with GRH": (relabelled(vl=15, lnh=3), Verdict.VL15_HEADER, {Counter.RCV_ERRORS}),
    "raw": (relabelled(lnh=0), Verdict.GOOD, set()),
}  # fmt: skip


def receive(rows: list[Row], *, state: PortState = PortState.ACTIVE, watch: int = 0, **bench: object) -> PortBench:
    port = PortBench(**{"vls": 2, **bench})
    if state == PortState.ACTIVE:
        port.activate()
    elif state == PortState.ARMED:
        port.write(1, PortRegister.STATE, PortState.ARMED)
    port.receive(C0, rows)
    port.watch = watch
    return port


def verdict_of(port: PortBench) -> Verdict:
    [record] = port.of(Kind.RX_DATA)
    return Verdict(record.words[0] & 0xFF)


DETAILS = {
    Verdict.PHYSICAL: Detail.LOCAL_PHYSICAL_ERRORS,
    Verdict.LVER: Detail.MALFORMED_PACKET_ERRORS,
    Verdict.LENGTH: Detail.MALFORMED_PACKET_ERRORS,
    Verdict.VL: Detail.MALFORMED_PACKET_ERRORS,
    Verdict.VL15_HEADER: Detail.MALFORMED_PACKET_ERRORS,
    Verdict.OVERRUN: Detail.BUFFER_OVERRUN_ERRORS,
    Verdict.DLID: Detail.DLID_MAPPING_ERRORS,
    Verdict.NO_ROUTE: Detail.DLID_MAPPING_ERRORS,
    Verdict.VL_MAP: Detail.VL_MAPPING_ERRORS,
    Verdict.LOOP: Detail.LOOPING_ERRORS,
}


@pytest.mark.parametrize(
    "case", ["good", "wrong VCRC", "marked bad", "DLID 0", "VL15, raw", "LVer", "VL not operational"]
)
def test_one_detail_moves_with_each_error(case: str) -> None:
    rows, verdict, _ = CASES[case]
    for detail in Detail:
        port = receive(rows, watch=detail)
        port.run(C0 + 20)
        assert port.counts(detail) == ([(C0 + 13, 1)] if DETAILS.get(verdict) is detail else [])


@pytest.mark.parametrize("case", CASES)
def test_verdict_and_record(case: str) -> None:
    rows, verdict, _ = CASES[case]
    port = receive(rows)
    port.run(C0 + 20)
    [record] = port.of(Kind.RX_DATA)
    # A packet is cut at the first row that is neither clean nor an end, or at its length.
    k = 10 if case == "cut by its length" else len(rows) - 1
    header_processed = k > 1
    n, dlid, sl, vl = (
        (rows[1].data >> 8 & 0x7FF, (rows[0].data & 0xFF) << 8 | rows[1].data >> 24, rows[0].data >> 12 & 15)
        if header_processed
        else (0, 0, 0)
    ) + (rows[0].data >> 20 & 15,)
    delimiter = 0 if "cut" in case else 2 if "marked" in case else 1
    accepted = header_processed and verdict in (Verdict.GOOD, Verdict.PHYSICAL, Verdict.REMOTE, Verdict.LENGTH)
    accepted &= "LVer" not in case and "MTU" not in case
    need = (4 * n + 65) // 64 if accepted else 0
    assert record.cycle == C0 + k + 2
    assert record.words == (verdict | vl << 8 | delimiter << 16, n | k << 16, dlid << 16 | sl, need, 0)


@pytest.mark.parametrize("case", ["good", "wrong VCRC", "marked bad", "DLID 0", "VL15, raw", "cut by a violation"])
def test_the_counters_move_in_the_cycle_after_the_verdict(case: str) -> None:
    rows, _, counters = CASES[case]
    ended = C0 + len(rows) - 1
    amounts = dict.fromkeys(counters, 1) | {Counter.RCV_PKTS: 1, Counter.RCV_DATA: len(rows) - 1}
    for counter in COUNTER_WIDTHS:
        port = receive(rows, watch=counter)
        port.run(ended + 8)
        expected = [(ended + 3, amounts[counter])] if counter in amounts else []
        assert port.counts(counter) == expected, counter.name


@pytest.mark.parametrize("is_good", [True, False])
@pytest.mark.parametrize("dlid", [5, 0xBFFF, 0xC000, 0xFFFE, 0xFFFF])
def test_packets_to_a_multicast_lid_are_counted_apart(dlid: int, is_good: bool) -> None:
    """Whatever their verdict; 0xFFFF is the permissive LID."""
    is_multicast = 0xC000 <= dlid < 0xFFFF
    rows = relabelled(dlid=dlid) if is_good else bad_vcrc(relabelled(dlid=dlid))
    for counter in (PacketCounter.UNICAST_RCV_PKTS, PacketCounter.MULTICAST_RCV_PKTS):
        port = receive(rows, watch=counter)
        port.run(C0 + 20)
        counts = is_multicast == (counter is PacketCounter.MULTICAST_RCV_PKTS)
        assert port.counts(counter) == [(C0 + len(rows) + 2, 1)] * counts


def test_a_packet_whose_header_cannot_be_read_is_a_unicast_packet() -> None:
    rows = relabelled(dlid=0xC000)[:2]
    for counter, counts in ((PacketCounter.UNICAST_RCV_PKTS, 1), (PacketCounter.MULTICAST_RCV_PKTS, 0)):
        port = receive([rows[0], COMMA], watch=counter)
        port.run(C0 + 20)
        assert port.counts(counter) == [(C0 + 4, 1)] * counts


@pytest.mark.parametrize("words", [4, 5, 6, 95, 96])
@pytest.mark.parametrize("lnh", [0, 1, 2, 3])
def test_length_limits(words: int, lnh: int) -> None:
    body = (lnh << 48 | 5 << 32 | words << 16 | 1).to_bytes(8, "big") + bytes(4 * words - 8)
    port = receive(frame_data_packet(body + vcrc(body)))
    port.run(C0 + words + 4)
    fits = (6 if lnh >= 2 else 5) <= words <= 95
    assert verdict_of(port) == (Verdict.GOOD if fits else Verdict.LENGTH)


@pytest.mark.parametrize("relay", [v for v in Verdict if Verdict.NO_ROUTE <= v <= Verdict.OVERRUN])
def test_the_nodes_objection_comes_last(relay: Verdict) -> None:
    port = receive(GOOD)
    port.pulse(H + DECIDED, relay=relay, refused=1)
    port.run(C0 + 20)
    assert verdict_of(port) == relay
    assert not any(port.seen["accept"])

    port = receive(relabelled(vl=14))
    port.pulse(H + DECIDED, relay=relay, refused=1)
    port.run(C0 + 20)
    assert verdict_of(port) == Verdict.VL


@pytest.mark.parametrize(
    ("constraint", "counts"),
    [
        (Verdict.RCV_CONSTRAINT, {Counter.RCV_CONSTRAINT_ERRORS: [(C0 + 13, 1)]}),
        # The packet is counted by the port that it would have left by.
        (Verdict.XMIT_CONSTRAINT, {}),
    ],
)
def test_a_partitions_objection_comes_after_all_others(constraint: Verdict, counts: dict[Counter, object]) -> None:
    ended = C0 + 10
    for counter in (Counter.RCV_CONSTRAINT_ERRORS, Counter.XMIT_CONSTRAINT_ERRORS, Counter.RCV_ERRORS):
        port = receive(GOOD, watch=counter)
        port.pulse(ended + 1, constraint=constraint)
        port.run(C0 + 20)
        assert verdict_of(port) == constraint
        assert any(port.seen["accept"]), "it has its blocks"
        assert port.seen["write"][ended + 2]["bad"]
        assert port.counts(counter) == counts.get(counter, [])
    for case, (rows, verdict, _) in CASES.items():
        if verdict != Verdict.GOOD and "cut" not in case:
            port = receive(rows)
            port.pulse(C0 + len(rows), constraint=constraint)
            port.run(C0 + 20)
            assert verdict_of(port) == verdict, case


def test_what_may_not_leave_by_a_port_is_counted_there_however_many_at_once() -> None:
    port = receive(GOOD, watch=Counter.XMIT_CONSTRAINT_ERRORS)
    for cycle, packets in ((C0, 1), (C0 + 1, 63), (C0 + 3, 5)):
        port.pulse(cycle, xmit_constraints=packets)
    port.run(C0 + 20)
    assert port.counts(Counter.XMIT_CONSTRAINT_ERRORS) == [(C0 + 1, 1), (C0 + 2, 64), (C0 + 4, 69)]


def test_a_packet_too_short_for_its_length_field_is_cut_or_ends_early() -> None:
    rows = relabelled(pkt_len=11)
    port = receive(rows)
    port.run(C0 + 20)
    [record] = port.of(Kind.RX_DATA)
    assert record.words[0] & 0xFF == Verdict.LENGTH
    assert record.words[1] == 11 | 10 << 16
    assert record.words[3] == 1, "its blocks were taken all the same"


@pytest.mark.parametrize("state", [PortState.INITIALIZE, PortState.ARMED])
def test_data_waits_for_armed_but_vl15_does_not(state: PortState) -> None:
    port = receive(GOOD, state=state)
    port.receive(C0 + 20, relabelled(vl=15))
    port.receive(C0 + 40, relabelled(lver=1))
    port.run(C0 + 60)
    found = [record.words[0] & 0xFF for record in port.of(Kind.RX_DATA)]
    armed = state == PortState.ARMED
    assert found[0] == (Verdict.GOOD if armed else Verdict.NOT_ACTIVE)
    assert found[1] == Verdict.GOOD
    assert found[2] == (Verdict.LVER if armed else Verdict.NOT_ACTIVE)
    assert port.seen["accept"][H + DECIDED] == armed


def test_the_state_that_counts_is_that_of_the_cycle_after_row_1() -> None:
    for given, accepted in ((C0, True), (C0 + 1, False)):
        port = receive(GOOD, state=PortState.INITIALIZE)
        port.write(given, PortRegister.STATE, PortState.ARMED)  # visible two cycles later
        port.run(C0 + 20)
        assert port.seen["state"][given + 2] == PortState.ARMED
        assert bool(port.seen["accept"][H + DECIDED]) == accepted
        assert verdict_of(port) == (Verdict.GOOD if accepted else Verdict.NOT_ACTIVE)


def test_the_header_is_there_in_the_cycle_after_row_1() -> None:
    rows = data_rows(dlid=0x1234, vl=1)
    port = receive(rows)
    port.run(C0 + 20)
    assert port.seen["lookup_dlid"][H] == 0x1234
    assert port.seen["header"][H + 1] == {
        "valid": 1, "slot": 1, "vl": 1, "sl": 1, "lnh": 2, "dlid": 0x1234, "n": 10, "need": 1,
    }  # fmt: skip
    assert [cycle for cycle, acceptable in enumerate(port.seen["acceptable"]) if acceptable] == [H + 1]
    assert [cycle for cycle, accept in enumerate(port.seen["accept"]) if accept] == [H + DECIDED]


def test_rows_reach_the_buffer_two_cycles_after_the_wires() -> None:
    rows = data_rows(40, vl=1)
    n = len(rows) - 1
    port = receive(rows)
    port.run(C0 + n + 5)
    for index, row in enumerate(rows):
        written = port.seen["write"][C0 + index + 2]
        assert written is not None
        assert (written["data"], written["index"]) == (row.data, index)
        assert (written["first"], written["last"]) == (index == 0, index == n)
        assert written["accepted"] == (index > 1)
        assert written["slot"] == 1, "the pool of its VL is known from row 0 on"
        if index:
            assert (written["n"], written["need"]) == (n, 2)
    assert not port.seen["write"][C0 + n + 2]["bad"]
    assert port.seen["write"][C0 + 1] is None
    assert port.seen["write"][C0 + n + 3] is None


def test_the_last_row_of_a_cut_packet_is_stored_without_its_first_byte() -> None:
    port = receive([*GOOD[:5], GOOD[0]])
    port.run(C0 + 10)
    written = port.seen["write"][C0 + 5 + 2]
    assert (written["last"], written["bad"], written["index"], written["data"] >> 24) == (1, 1, 5, 0)


def test_a_packet_under_way_when_the_link_goes_is_cut() -> None:
    port = receive(GOOD)
    port.at(C0 + 4, up=0)
    port.run(C0 + 12)
    [record] = port.of(Kind.RX_DATA)
    assert record.cycle == C0 + 4 + 2
    assert record.words[:2] == (Verdict.PHYSICAL, 10 | 4 << 16)
    written = port.seen["write"][C0 + 6]
    assert (written["last"], written["bad"], written["data"] >> 24) == (1, 1, 0)


def test_accepted_starts_anew_with_every_packet() -> None:
    port = receive([*GOOD, *bad_vcrc(relabelled(lver=1)), *GOOD])
    port.run(C0 + 40)
    accepted = [written["accepted"] for written in port.seen["write"] if written]
    assert accepted == [0, 0, *[1] * 9, *[0] * 11, 0, 0, *[1] * 9]


@pytest.mark.parametrize(
    ("dlid", "vl", "verdict"),
    [
        (0x40, 0, Verdict.GOOD),
        (0x43, 0, Verdict.GOOD),
        (0x44, 0, Verdict.DLID),
        (0x3F, 15, Verdict.DLID),
        (0xC000, 0, Verdict.GOOD),
        (0xFFFE, 0, Verdict.GOOD),
        (0xFFFF, 0, Verdict.DLID),
        (0xFFFF, 15, Verdict.GOOD),
        (0xC000, 15, Verdict.VL),
        (0, 0, Verdict.DLID),
    ],
)
def test_an_adapter_takes_its_own_lids_multicast_and_permissive_smps(dlid: int, vl: int, verdict: Verdict) -> None:
    port = receive(relabelled(dlid=dlid, vl=vl), kind="adapter", watch=Counter.RCV_ERRORS)
    port.at(0, lid=0x41, lmc=2)
    port.run(C0 + 20)
    assert verdict_of(port) == verdict
    assert port.counts(Counter.RCV_ERRORS) == ([(C0 + 13, 1)] if verdict == Verdict.VL else [])


@pytest.mark.parametrize("lmc", [0, 7])
def test_an_adapter_without_a_lid_has_no_own_lids(lmc: int) -> None:
    for dlid in (0, 1, 127):
        port = receive(relabelled(dlid=dlid), kind="adapter")
        port.at(0, lmc=lmc)
        port.run(C0 + 20)
        assert verdict_of(port) == Verdict.DLID


def test_an_icrc_that_the_agent_finds_wrong_counts_beside_what_the_link_finds() -> None:
    for found in (C0 + 11, C0 + 12, C0 + 13):
        port = receive(bad_vcrc(GOOD), watch=Counter.RCV_ERRORS)
        port.at(found, icrc_error=1)
        port.at(found + 1, icrc_error=0)
        port.run(C0 + 20)
        assert port.last_watched() == 2


def test_only_an_adapter_checks_the_icrc() -> None:
    for kind, verdict in (("switch", Verdict.GOOD), ("adapter", Verdict.PHYSICAL)):
        port = receive(bad_icrc(), kind=kind)
        port.at(0, lid=5)
        port.run(C0 + 20)
        assert verdict_of(port) == verdict


def test_an_adapter_checks_no_icrc_where_there_is_none() -> None:
    for rows in (relabelled(lnh=0), with_ebp(bad_icrc())):
        port = receive(rows, kind="adapter")
        port.at(0, lid=5)
        port.run(C0 + 20)
        assert verdict_of(port) in (Verdict.GOOD, Verdict.REMOTE)


@pytest.mark.parametrize("seed", range(3))
def test_good_packets_back_to_back_are_all_good(seed: int) -> None:
    print(f"seed {seed}")
    source = random.Random(seed)
    port = PortBench(vls=2)
    port.activate()
    cycle, ends = C0, []
    for _ in range(12):
        cycle = port.receive(cycle, data_rows(4 * source.randrange(30), vl=source.randrange(2)))
        ends.append(cycle - 1)
        cycle += source.choice([0, 0, 0, 1, 2, 5])
    port.run(cycle + 5)
    records = port.of(Kind.RX_DATA)
    assert [record.cycle - 2 for record in records] == ends
    assert all(record.words[0] & 0xFF == Verdict.GOOD for record in records)


def test_a_1x_port_receives_a_row_in_every_fourth_cycle() -> None:
    port = PortBench()
    port.narrow = True
    port.write(0, PortRegister.WIDTH, 1)
    port.write(1, PortRegister.STATE, PortState.ARMED)
    port.receive(C0, GOOD, step=4)
    port.run(C0 + 60)
    [record] = port.of(Kind.RX_DATA)
    assert record.cycle == C0 + 40 + 2
    assert record.words[0] & 0xFF == Verdict.GOOD
    assert [c for c, accept in enumerate(port.seen["accept"]) if accept] == [C0 + 4 + DECIDED]
    written = [c for c, row in enumerate(port.seen["write"]) if row]
    assert written == [C0 + 4 * r + 2 for r in range(11)]
