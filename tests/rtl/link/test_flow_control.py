"""Credits: what is received, what is announced, and when."""

import pytest

from tests.rtl.link.bench import ACTIVE_FROM, DECIDED, TO_WIRES, PortBench, data_rows, link_rows
from wire.codes import PortState
from wire.crc import lpcrc
from wire.flow_control import FlowControlPacket
from wire.registers import Counter, PortRegister
from wire.symbols import Control, Row, deframe, frame_link_packet
from wire.trace import Kind, LinkResult, Verdict

T = ACTIVE_FROM + 4

ROW_0 = 1 + TO_WIRES
"""Cycles from a flow control packet's grant, g, to its row 0 on the wires, w_0."""

ROW_1 = ROW_0 + 1
"""The same for row 1 on a 4X port, w_1, where the trace has the packet."""


def active(vls: int = 1, mtu: int = 256) -> PortBench:
    port = PortBench(vls=vls, mtu=mtu)
    port.activate()
    return port


def results(port: PortBench) -> list[tuple[int, LinkResult]]:
    return [(r.cycle, LinkResult(r.words[0] & 0xFF)) for r in port.of(Kind.RX_FCP)]


def raw_link(op: int, vl: int, fctbs: int = 7, fccl: int = 9) -> list[Row]:
    """A link packet with any Op and VL and a right LPCRC."""
    body = (op << 28 | fctbs << 16 | vl << 12 | fccl).to_bytes(4, "big")
    return frame_link_packet(body + lpcrc(body))


def announced(port: PortBench) -> list[tuple[int, int, int, int, int]]:
    """Flow control packets sent: (cycle, Op, VL, FCTBS, FCCL)."""
    return [
        (r.cycle, r.words[0] & 0xFF, r.words[0] >> 8, r.words[1] >> 16, r.words[1] & 0xFFFF)
        for r in port.of(Kind.TX_FCP)
    ]


# What is received


def test_a_good_flow_control_packet_sets_the_limit_two_cycles_after_its_end() -> None:
    port = active(vls=2)
    port.receive(T, link_rows(vl=1, fctbs=0x123, fccl=0xFED))
    port.run(T + 8)
    c = T + 1
    assert port.seen["cl"][c + 1] == [0, 0]
    assert port.seen["cl"][c + 2] == [0, 0xFED]
    record = port.of(Kind.RX_FCP)[-1]
    assert record.cycle == c + 2
    assert record.words == (LinkResult.GOOD | 1 << 16, 0x123 << 16 | 0xFED, 0, 0, 0)


@pytest.mark.parametrize(
    ("rows", "result", "counters"),
    [
        (raw_link(2, 9), LinkResult.OP, {Counter.RCV_ERRORS}),
        (raw_link(0, 2), LinkResult.VL, {Counter.RCV_ERRORS}),
        (raw_link(0, 15), LinkResult.VL, {Counter.RCV_ERRORS}),
        ([raw_link(9, 9)[0], raw_link(9, 8)[1]], LinkResult.LPCRC, {Counter.RCV_ERRORS}),
        (frame_link_packet(bytes(6), good=False), LinkResult.MALFORMED, {Counter.RCV_ERRORS}),
        ([raw_link(0, 0)[0], Row(0xBC, 1)], LinkResult.MALFORMED, {Counter.RCV_ERRORS, Counter.SYMBOL_ERROR}),
        ([raw_link(0, 0)[0], Row(0, 0)], LinkResult.MALFORMED, {Counter.RCV_ERRORS}),
    ],
    ids=["Op", "VL", "VL15", "LPCRC", "EBP", "violation", "too long"],
)
def test_a_bad_link_packet_is_counted_and_changes_nothing(
    rows: list[Row], result: LinkResult, counters: set[Counter]
) -> None:
    for counter in (Counter.RCV_ERRORS, Counter.SYMBOL_ERROR, Counter.RCV_PKTS):
        port = active(vls=2)
        port.watch = counter
        port.receive(T, rows)
        port.run(T + 8)
        assert results(port)[-1] == (T + 3, result)
        assert port.seen["cl"][-1] == [0, 0]
        assert port.counts(counter) == ([(T + 4, 1)] if counter in counters else [])
        fields = 0 if result == LinkResult.MALFORMED else 7 << 16 | 9
        assert port.of(Kind.RX_FCP)[-1].words[1] == fields


def test_in_initialize_a_vl_not_operational_is_no_error() -> None:
    port = PortBench()
    port.watch = Counter.RCV_ERRORS
    port.receive(T, raw_link(1, 3))
    port.run(T + 8)
    assert results(port) == [(T + 3, LinkResult.IGNORED)]
    assert port.counts(Counter.RCV_ERRORS) == []


# What is announced


def test_the_limit_announced_is_blocks_received_plus_room() -> None:
    port = active()
    port.receive(T, link_rows(fctbs=100))  # ABR from T+3 on
    port.receive(T + 2, data_rows(256))  # 72 words, 5 blocks; h is T+3, ABR from h+3 on
    for g in (T + 2, T + 5, T + 7, T + 20):
        port.grant(g)
    port.at(T + 10, free=[30])
    port.run(T + 40)
    assert announced(port) == [
        (T + 2 + ROW_1, 0, 0, 0, 64),
        (T + 5 + ROW_1, 0, 0, 0, 100 + 64),
        (T + 7 + ROW_1, 0, 0, 0, 105 + 64),
        (T + 20 + ROW_1, 0, 0, 0, 105 + 30),
    ]


def other_version(rows: list[Row]) -> list[Row]:
    """The packet with LVer 1."""
    return [Row(rows[0].data ^ 1 << 16, rows[0].k), *rows[1:]]


def limit_after(port: PortBench, rows: list[Row], **objection: int) -> int:
    """FCCL announced when a packet has been received to which the node may object; the room stays as it was."""
    h = T + 1
    port.receive(T, rows)
    if objection:
        port.pulse(h + DECIDED, refused=1, **objection)
    port.grant(T + 30)
    port.run(T + 40)
    return announced(port)[0][4]


@pytest.mark.parametrize(
    ("rows", "objection"),
    [
        (data_rows(dlid=0), {}),
        (data_rows(), {"relay": Verdict.NO_ROUTE}),
        (data_rows(), {"relay": Verdict.LOOP}),
        (data_rows(), {"relay": Verdict.VL_MAP}),
        (data_rows(good=False), {}),
    ],
    ids=["no DLID", "no route", "loop", "no VL at its output", "marked bad"],
)
def test_a_packet_that_is_not_relayed_counts_for_its_sender_has_spent_the_credits(
    rows: list[Row], objection: dict[str, int]
) -> None:
    assert limit_after(active(), rows, **objection) == 64 + 1


def test_a_packet_that_comes_before_the_port_is_armed_counts() -> None:
    assert limit_after(PortBench(), data_rows()) == 64 + 1


@pytest.mark.parametrize(
    ("rows", "objection"),
    [
        (data_rows(), {"relay": Verdict.OVERRUN}),
        (data_rows(vl=15), {}),
        (data_rows(vl=1), {}),
        (other_version(data_rows()), {}),
        (data_rows(4400), {}),
    ],
    ids=["no room", "VL15", "VL not operational", "LVer", "too long"],
)
def test_a_packet_counts_not_that_had_no_room_or_no_credits_or_whose_header_cannot_be_read(
    rows: list[Row], objection: dict[str, int]
) -> None:
    assert limit_after(active(), rows, **objection) == 64


def test_no_more_than_2048_blocks_are_announced_and_all_counts_wrap_at_4096() -> None:
    port = active()
    port.at(0, free=[4095])
    port.receive(T, link_rows(fctbs=4000))
    port.grant(T + 10)
    port.receive(T + 12, link_rows(fctbs=4095))
    port.receive(T + 14, data_rows(256))
    port.grant(T + 30)
    port.run(T + 40)
    assert [fccl for *_, fccl in announced(port)] == [(4000 + 2048) % 4096, (4095 + 5 + 2048) % 4096]


def test_blocks_sent_wrap_at_4096() -> None:
    port = active(mtu=4096)
    rows = data_rows()
    for index in range(70):
        port.send(T + 20 * index, rows, need=66)
    port.run(T + 1420)
    assert port.changes("tbs")[1:] == [(T + 20 * index + TO_WIRES, [66 * (index + 1) % 4096]) for index in range(70)]


def test_initialize_starts_all_counts_at_0_and_asks_for_a_packet_of_every_vl() -> None:
    port = active(vls=2)
    port.receive(T, link_rows(fctbs=50, fccl=60))
    port.grant(T + 4)
    port.write(T + 8, PortRegister.STATE, PortState.DOWN)  # Down at T+10, Initialize at T+11
    for g in (T + 20, T + 22):
        port.grant(g)
    port.run(T + 40)
    assert port.seen["cl"][T + 10] == [60, 0]
    assert port.seen["cl"][T + 11] == [0, 0]
    assert not port.seen["fcp_urgent"][T + 11], "a flag says what was visible the cycle before, Down"
    assert port.seen["fcp_urgent"][T + 12]
    assert announced(port)[1:] == [(T + 20 + ROW_1, 1, 1, 0, 64), (T + 22 + ROW_1, 1, 0, 0, 64)]
    assert [port.seen["fcp_urgent"][c] for c in (T + 23, T + 24)] == [1, 0]


def test_a_packet_granted_as_initialize_is_entered_is_none_of_the_new_counts() -> None:
    port = active()
    port.write(T + 8, PortRegister.STATE, PortState.DOWN)  # Down at T+10, Initialize at T+11
    port.grant(T + 10)
    port.run(T + 14)
    assert (port.seen["state"][T + 10], port.seen["state"][T + 11]) == (PortState.DOWN, PortState.INITIALIZE)
    assert port.seen["fcp_urgent"][T + 12], "each VL is due"
    assert port.seen["fcp_changed"][T + 12], "and 0 is what has been sent last"


def test_entering_armed_asks_for_a_packet_of_every_vl() -> None:
    port = PortBench()
    port.grant(5)
    port.write(20, PortRegister.STATE, PortState.ARMED)
    port.run(30)
    assert port.changes("fcp_urgent") == [(0, 0), (2, 1), (7, 0), (23, 1)]


def test_a_change_beyond_the_threshold_is_urgent_and_a_smaller_one_is_not() -> None:
    for more, urgent in ((16, False), (17, True)):
        port = active()
        port.write(9, PortRegister.FCP_THRESHOLD, 16)
        port.grant(T)
        port.at(T + 10, free=[64 + more])
        port.run(T + 20)
        assert port.seen["fcp_changed"][T + 10] == 0
        assert port.seen["fcp_changed"][T + 11] == 1
        assert bool(port.seen["fcp_urgent"][T + 11]) == urgent


def test_less_room_is_a_very_large_change() -> None:
    port = active()
    port.grant(T)
    port.at(T + 10, free=[63])
    port.run(T + 20)
    assert port.seen["fcp_urgent"][T + 11] == 1


def test_a_packet_received_changes_nothing_as_long_as_it_is_kept() -> None:
    port = active()
    port.grant(T)
    port.receive(T + 5, data_rows())  # h is T+6: ABR and free change together at h+3
    port.at(T + 6 + DECIDED + 1, free=[63])
    port.run(T + 20)
    assert not any(port.seen["fcp_changed"][T + 2 :])


def test_the_period_makes_every_operational_vl_due_and_no_other() -> None:
    port = PortBench(vls=4)
    port.write(0, PortRegister.OPERATIONAL_VLS, 2)
    port.write(3, PortRegister.FCP_PERIOD, 10)  # visible at 5: due at 15, 25
    for g in (6, 8, 17, 19):
        port.grant(g)
    port.run(25)
    assert [vl for _, _, vl, _, _ in announced(port)] == [0, 1, 0, 1]
    assert port.changes("fcp_urgent") == [(0, 0), (2, 1), (10, 0), (16, 1), (21, 0)]


def test_due_shows_in_the_flags_one_cycle_later() -> None:
    port = PortBench()
    port.write(3, PortRegister.FCP_PERIOD, 10)  # visible at 5: due at 15, 25, ...
    for g in (7, 17, 24, 27):
        port.grant(g)
    port.run(60)
    # Due at 25 is set in the very cycle in which the packet granted at 24 would clear it.
    assert port.changes("fcp_urgent") == [(0, 0), (2, 1), (9, 0), (16, 1), (19, 0), (26, 1), (29, 0), (36, 1)]


def test_the_period_runs_from_initialize_on_and_in_active_defer_but_not_in_down() -> None:
    port = active()
    port.write(7, PortRegister.FCP_PERIOD, 20)  # visible at 9: due at 29, 49
    port.grant(10)
    port.at(25, up=0)
    port.at(35, up=1)  # ActiveDefer 26..35
    port.grant(40)
    port.write(50, PortRegister.STATE, PortState.DOWN)  # Down at 52, Initialize at 53: due at 73
    port.grant(56)
    port.run(80)
    changes = port.changes("fcp_urgent")[2:]
    assert changes == [(12, 0), (37, 1), (42, 0), (50, 1), (53, 0), (54, 1), (58, 0), (74, 1)]


def test_vls_take_turns_and_urgent_goes_first() -> None:
    port = active(vls=4)
    for index in range(4):
        port.grant(T + 2 * index)
    port.at(T + 20, free=[65, 64, 200, 66])  # VL 2 is urgent (threshold 4), VLs 0 and 3 are changed
    for index in range(3):
        port.grant(T + 22 + 2 * index)
    port.run(T + 40)
    assert [vl for _, _, vl, _, _ in announced(port)] == [0, 1, 2, 3, 2, 3, 0]


def test_a_flow_control_packet_on_the_wires() -> None:
    port = active(vls=8)
    port.receive(T, link_rows(vl=0, fctbs=0xABC))
    port.send(T + 3, data_rows(), need=6)
    port.grant(T + 20)
    port.run(T + 30)
    sent = port.seen["tx"][T + 20 + ROW_0 :][:2]
    [frame] = deframe(sent)
    assert frame.start == Control.SLP
    packet = FlowControlPacket.decode(frame.body)
    assert (packet.op, packet.fctbs, packet.vl, packet.fccl) == (0, 6, 0, 0xABC + 64)
    assert announced(port) == [(T + 20 + ROW_1, 0, 0, 6, 0xABC + 64)]


def test_flow_control_packets_back_to_back_keep_their_own_values() -> None:
    port = active(vls=2)
    port.at(0, free=[10, 20])
    for g in (T, T + 2, T + 4):
        port.grant(g)
    port.at(T + 3, free=[100, 200])
    port.run(T + 12)
    frames = [FlowControlPacket.decode(f.body) for f in deframe(port.seen["tx"][T + ROW_0 :][:6])]
    assert [(f.vl, f.fccl) for f in frames] == [(0, 10), (1, 20), (0, 100)]


def test_a_1x_port_sends_its_two_rows_four_cycles_apart() -> None:
    port = active()
    port.write(9, PortRegister.WIDTH, 1)
    g = 20  # g mod 4 = 0
    for at in (g, g + 8):
        port.grant(at)
    port.run(g + 20)
    assert [r.cycle for r in port.of(Kind.TX_FCP)] == [g + ROW_0 + 4, g + ROW_0 + 12]
    rows = [(c, row) for c, row in enumerate(port.seen["tx"][: g + 20]) if row and row.k]
    assert [c for c, _ in rows] == [g + ROW_0 + after for after in (0, 4, 8, 12)]
    assert len(list(deframe(row for _, row in rows))) == 2


# The watchdog


def test_the_watchdog_counts_from_armed_from_a_good_packet_and_from_the_last_expiry() -> None:
    port = PortBench()
    port.watch = Counter.LINK_ERROR_RECOVERY
    port.write(2, PortRegister.FC_WATCHDOG, 20)
    port.write(8, PortRegister.STATE, PortState.ARMED)  # Armed at 10
    port.receive(36, link_rows())  # row 1 at 37, good at 39
    port.run(90)
    assert port.counts(Counter.LINK_ERROR_RECOVERY) == [(30, 1), (59, 2), (79, 3)]


def test_each_vl_has_a_watchdog() -> None:
    port = PortBench(vls=8)
    port.watch = Counter.LINK_ERROR_RECOVERY
    port.write(1, PortRegister.OPERATIONAL_VLS, 3)
    port.write(2, PortRegister.FC_WATCHDOG, 20)
    port.write(8, PortRegister.STATE, PortState.ARMED)
    port.receive(16, link_rows(vl=2))  # good at 19
    port.run(45)
    assert port.counts(Counter.LINK_ERROR_RECOVERY) == [(30, 3), (39, 4)]


def test_each_vls_watchdog_counts_for_itself() -> None:
    port = PortBench(vls=8)
    port.watch = PortRegister.FLOW_CTL_UPDATE_ERRORS
    port.write(1, PortRegister.OPERATIONAL_VLS, 3)
    port.write(2, PortRegister.FC_WATCHDOG, 20)
    port.write(8, PortRegister.STATE, PortState.ARMED)
    port.receive(16, link_rows(vl=2))  # good at 19
    port.run(45)
    silent, all_four = 0b01_01_00_01 << 24, 0b01_01_01_01 << 24
    assert port.counts(PortRegister.FLOW_CTL_UPDATE_ERRORS) == [(30, silent), (39, all_four)]


def test_a_good_packet_in_the_last_moment_keeps_the_watchdog_quiet() -> None:
    for row_1, quiet in ((28, True), (29, False)):  # good at 30, at 31
        port = PortBench()
        port.watch = Counter.LINK_ERROR_RECOVERY
        port.write(2, PortRegister.FC_WATCHDOG, 20)
        port.write(8, PortRegister.STATE, PortState.ARMED)
        port.receive(row_1 - 1, link_rows())
        port.run(35)
        assert port.counts(Counter.LINK_ERROR_RECOVERY) == ([] if quiet else [(30, 1)])


def test_the_watchdog_starts_again_after_active_defer() -> None:
    port = active()
    port.watch = Counter.LINK_ERROR_RECOVERY
    port.write(7, PortRegister.FC_WATCHDOG, 20)  # visible at 9
    port.at(20, up=0)
    port.at(40, up=1)  # Active again at 41
    port.run(70)
    assert port.counts(Counter.LINK_ERROR_RECOVERY) == [(41, 1), (61, 2)]
