"""The transmit stage: rows on the wires, refusal, TBS, counters, records."""

import pytest

from tests.rtl.link.bench import ACTIVE_FROM, TO_STAGE, TO_WIRES, PortBench, data_rows, packet
from wire.codes import PortState
from wire.crc import fingerprint, vcrc
from wire.registers import Counter, Detail, PacketCounter, PortRegister
from wire.symbols import IDLE_PERIOD, Control, Row, deframe, idle_row
from wire.trace import Discard, Kind

X0 = ACTIVE_FROM + 4
"""Cycle in which row 0 is read."""


def active(vls: int = 2) -> PortBench:
    port = PortBench(vls=vls)
    port.activate()
    return port


def on_wires(port: PortBench) -> list[tuple[int, Row]]:
    """Rows that are not idle, with their cycle."""
    return [(c, row) for c, row in enumerate(port.seen["tx"]) if row and row != idle_row(c)]


def symbol_bytes(rows: list[Row]) -> bytes:
    return b"".join(row.data.to_bytes(4, "big") for row in rows)


def test_idle_rows_follow_the_cycle_from_reset_on() -> None:
    port = PortBench()
    port.run(IDLE_PERIOD + 20)
    assert port.seen["tx"] == [idle_row(c) for c in range(IDLE_PERIOD + 20)]


@pytest.mark.parametrize("payload", [0, 4, 60, 256])
def test_a_packet_leaves_three_cycles_after_it_is_read_with_its_new_vl_and_vcrc(payload: int) -> None:
    port = active()
    sent = packet(payload, vl=0)
    rows = data_rows(payload, vl=0)
    port.send(X0, rows, slot=1, input=5)
    port.run(X0 + len(rows) + 5)
    found = on_wires(port)
    assert [c for c, _ in found] == [X0 + r + TO_WIRES for r in range(len(rows))]
    [frame] = deframe(row for _, row in found)
    data = bytes([0x10 | sent.data[0] & 15]) + sent.data[1:]
    assert frame.good
    assert frame.body == data + vcrc(data)

    n = len(rows) - 1
    [record] = port.of(Kind.TX_DATA)
    assert record.cycle == X0 + n + TO_WIRES
    mark = fingerprint(symbol_bytes([row for _, row in found]))
    assert record.words == (1 | 5 << 16, n | n << 16, X0 + TO_WIRES, mark, int.from_bytes(data[:4], "big"))


def test_vl15_keeps_its_vl() -> None:
    port = active()
    port.send(X0, data_rows(vl=15), slot=2)
    port.run(X0 + 20)
    [frame] = deframe(row for _, row in on_wires(port))
    assert frame.body == packet(vl=15).wire
    assert port.seen["tbs"][-1] == [0, 0], "VL15 has no credits"


def test_a_bad_packet_ends_with_ebp_and_an_inverted_vcrc() -> None:
    port = active()
    port.send(X0, data_rows(), bad=True)
    port.run(X0 + 20)
    [frame] = deframe(row for _, row in on_wires(port))
    sent = packet()
    assert not frame.good
    assert frame.body == sent.data + bytes(byte ^ 0xFF for byte in vcrc(sent.data))
    assert port.of(Kind.TX_DATA)[0].words[0] == 1 << 8


def test_a_packet_cut_early_is_shorter_on_the_wires_but_not_in_its_blocks() -> None:
    port = active()
    rows = data_rows(256)
    port.send(X0, rows[:7], bad=True, n=72, need=5)
    port.run(X0 + 20)
    [record] = port.of(Kind.TX_DATA)
    assert record.cycle == X0 + 6 + TO_WIRES
    assert record.words[:2] == (1 << 8, 72 | 6 << 16)
    assert port.seen["tbs"][-1] == [5, 0]


def test_packets_back_to_back() -> None:
    port = active()
    cycle = X0
    for payload in (8, 0, 64, 12):
        cycle = port.send(cycle, data_rows(payload, vl=1), slot=1) + 1
    port.run(cycle + 5)
    frames = list(deframe(row for _, row in on_wires(port)))
    assert [frame.body for frame in frames] == [packet(p, vl=1).wire for p in (8, 0, 64, 12)]
    assert len(on_wires(port)) == cycle - X0


def test_blocks_are_counted_as_sent_when_the_first_row_leaves() -> None:
    port = active()
    port.send(X0, data_rows(256, vl=1), slot=1)
    port.run(X0 + 10)
    assert port.changes("tbs") == [(0, [0, 0]), (X0 + TO_WIRES, [0, 5])]


@pytest.mark.parametrize("counter", [Counter.XMIT_PKTS, Counter.XMIT_DATA, Counter.XMIT_DISCARDS])
def test_the_counters_move_when_the_end_row_is_on_the_wires(counter: Counter) -> None:
    port = active()
    port.watch = counter
    port.send(X0, data_rows())
    port.send(X0 + 20, data_rows()[:1], n=10)
    port.run(X0 + 40)
    expected = {
        Counter.XMIT_PKTS: [(X0 + 10 + TO_WIRES, 1)],
        Counter.XMIT_DATA: [(X0 + 10 + TO_WIRES, 10)],
        Counter.XMIT_DISCARDS: [(X0 + 20 + TO_WIRES, 1)],
    }
    assert port.counts(counter) == expected[counter]


@pytest.mark.parametrize("dlid", [0x4000, 0xBFFF, 0xC000, 0xFF00, 0xFFFE, 0xFFFF])
def test_packets_to_a_multicast_lid_are_counted_apart(dlid: int) -> None:
    """0xFFFF is the permissive LID."""
    is_multicast = 0xC000 <= dlid < 0xFFFF
    for counter in (PacketCounter.UNICAST_XMIT_PKTS, PacketCounter.MULTICAST_XMIT_PKTS):
        port = active()
        port.watch = counter
        port.send(X0, data_rows(dlid=dlid))
        port.send(X0 + 20, data_rows(dlid=dlid)[:1], n=10)
        port.run(X0 + 40)
        counts = is_multicast == (counter is PacketCounter.MULTICAST_XMIT_PKTS)
        assert port.counts(counter) == [(X0 + 10 + TO_WIRES, 1)] * counts


def swallowed(reason: Discard) -> Row:
    """What comes of a packet that is swallowed."""
    return Row(reason << 16, 0)


@pytest.mark.parametrize("reason", Discard)
def test_what_is_swallowed_leaves_nothing_but_a_record(reason: Discard) -> None:
    port = active()
    port.send(X0, [swallowed(reason)], slot=1, n=10, input=3)
    port.run(X0 + 20)
    assert on_wires(port) == []
    assert port.seen["tbs"][-1] == [0, 0]
    assert port.of(Kind.TX_DATA) == []
    [record] = port.of(Kind.TX_DISCARD)
    assert (record.cycle, record.words) == (X0 + TO_WIRES, (1 | 3 << 16, 10, reason, 0, 0))


@pytest.mark.parametrize("why", ["VL not operational", "Armed"])
def test_what_may_not_be_sent_is_refused(why: str) -> None:
    port = PortBench(vls=2)
    if why == "Armed":
        port.write(1, PortRegister.STATE, PortState.ARMED)
    else:
        port.activate()
        port.write(9, PortRegister.OPERATIONAL_VLS, 1)
    slot = 1 if why == "VL not operational" else 0
    port.send(X0, data_rows(), slot=slot, input=3)
    port.run(X0 + 20)
    assert on_wires(port) == []
    assert port.seen["tbs"][-1] == [0, 0]
    assert port.of(Kind.TX_DATA) == []
    [record] = port.of(Kind.TX_DISCARD)
    assert (record.cycle, record.words) == (X0 + 10 + TO_WIRES, (slot | 3 << 16, 10 | 10 << 16, 0, 0, 0))


REASONS = {
    Detail.INACTIVE_DISCARDS: Discard.INACTIVE,
    Detail.NEIGHBOR_MTU_DISCARDS: Discard.NEIGHBOR_MTU,
    Detail.LIFE_TIME_DISCARDS: Discard.LIFE_TIME,
    Detail.HOQ_LIFE_DISCARDS: Discard.HOQ_LIFE,
}


@pytest.mark.parametrize("detail", REASONS)
def test_discards_are_counted_by_their_reasons(detail: Detail) -> None:
    """Those of a stall by none; what is refused was not swallowed, and a port's state is why."""
    port = PortBench(vls=2)
    port.watch = detail
    for reason in Discard:
        port.send(X0 + 20 * reason, [swallowed(reason)], n=10)
    port.send(X0 + 100, data_rows())
    port.run(X0 + 120)
    discarded = [(X0 + 20 * REASONS[detail] + TO_WIRES, 1)]
    refused = [(X0 + 110 + TO_WIRES, 2)] if detail is Detail.INACTIVE_DISCARDS else []
    assert port.counts(detail) == discarded + refused


@pytest.mark.parametrize("state", [PortState.INITIALIZE, PortState.ARMED])
def test_vl15_and_flow_control_pass_before_active(state: PortState) -> None:
    port = PortBench(vls=2)
    if state == PortState.ARMED:
        port.write(1, PortRegister.STATE, PortState.ARMED)
    port.send(X0, data_rows(vl=15), slot=2)
    port.grant(X0 + 11)
    port.run(X0 + 20)
    assert len(list(deframe(row for _, row in on_wires(port)))) == 2


def test_nothing_passes_while_the_link_is_down() -> None:
    port = PortBench(vls=2)
    port.at(0, up=0)
    port.send(X0, data_rows(vl=15), slot=2)
    port.grant(X0 + 11)
    port.run(X0 + 20)
    assert on_wires(port) == []
    assert [r.kind for r in port.records] == [Kind.TX_DISCARD]


def test_a_packet_refused_within_stays_refused() -> None:
    port = active()
    port.send(X0, data_rows())
    row_4 = X0 + 4 + TO_STAGE
    port.at(row_4 - 1, up=0)  # ActiveDefer from row 4 on
    port.at(row_4 + 1, up=1)  # Active again from row 6 on
    port.run(X0 + 20)
    assert [c for c, _ in on_wires(port)] == [X0 + r + TO_WIRES for r in range(4)]
    assert [(r.kind, r.cycle) for r in port.records if r.kind in (Kind.TX_DATA, Kind.TX_DISCARD)] == [
        (Kind.TX_DISCARD, X0 + 10 + TO_WIRES)
    ]
    assert port.seen["tbs"][-1] == [1, 0], "its first row was sent"


@pytest.mark.parametrize("rows", [1, 11])
def test_the_next_packet_after_a_swallowed_or_refused_one_may_pass(rows: int) -> None:
    port = PortBench(vls=2)
    port.activate()
    port.write(9, PortRegister.OPERATIONAL_VLS, 1)
    after = port.send(X0, data_rows()[:rows], slot=1 if rows > 1 else 0, n=10) + 1
    port.send(after, data_rows())
    port.run(after + 20)
    assert [c for c, _ in on_wires(port)] == [after + r + TO_WIRES for r in range(11)]


def test_a_flow_control_packet_refused_in_part_is_not_recorded() -> None:
    row_0 = X0 + TO_STAGE
    for refused_from, rows_sent in ((row_0, 0), (row_0 + 1, 1), (row_0 + 2, 2)):
        port = active()
        port.grant(X0 - 1)
        port.at(refused_from - 1, up=0)
        port.run(X0 + 10)
        assert len(on_wires(port)) == rows_sent
        assert len(port.of(Kind.TX_FCP)) == (rows_sent == 2)


def test_a_flow_control_packet_refused_at_row_0_stays_refused() -> None:
    port = active()
    row_0 = X0 + TO_STAGE
    port.grant(X0 - 1)
    port.at(row_0 - 1, up=0)  # ActiveDefer in the cycle of row 0 alone
    port.at(row_0, up=1)
    port.run(X0 + 10)
    assert on_wires(port) == []
    assert port.of(Kind.TX_FCP) == []


def test_a_1x_port_drives_a_row_in_every_fourth_cycle() -> None:
    port = active()
    port.write(9, PortRegister.WIDTH, 1)  # visible at 11
    x_0 = 21  # g = 20, g mod 4 = 0
    port.send(x_0, data_rows(), step=4)
    port.run(x_0 + 60)
    driven = [c for c, row in enumerate(port.seen["tx"]) if row]
    assert driven == [c for c in range(x_0 + 60) if c < 11 or c % 4 == 0]
    assert [c for c, _ in on_wires(port)] == [x_0 + 4 * r + TO_WIRES for r in range(11)]
    [record] = port.of(Kind.TX_DATA)
    assert record.cycle == x_0 + 40 + TO_WIRES
    assert record.words[1:3] == (10 | 10 << 16, x_0 + TO_WIRES)


def test_the_vcrc_is_right_whatever_the_one_received_was() -> None:
    port = active()
    rows = data_rows()
    rows[-1] = Row(rows[-1].data & 0xFF000000 | Control.EBP, 1)
    port.send(X0, rows)
    port.run(X0 + 20)
    [frame] = deframe(row for _, row in on_wires(port))
    assert (frame.good, frame.body) == (True, packet().wire)
