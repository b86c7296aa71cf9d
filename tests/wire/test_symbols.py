"""A packet's rows on a 4X link: delimiters on their lanes, bytes in order, idle data between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.symbols import (
    IDLE_LFSR_SEED,
    IDLE_PERIOD,
    SKIP_ORDERED_SET,
    Control,
    Frame,
    Row,
    deframe,
    frame_data_packet,
    frame_link_packet,
    idle_byte,
    idle_row,
    row_symbols,
)

bodies = st.integers(1, 60).flatmap(lambda n: st.binary(min_size=4 * n + 2, max_size=4 * n + 2))
link_bodies = st.binary(min_size=6, max_size=6)


def k_code(x: int, y: int) -> int:
    """The byte of Kx.y."""
    return y << 5 | x


@pytest.mark.parametrize(
    ("control", "x", "y"),
    [("COM", 28, 5), ("SDP", 27, 7), ("SLP", 28, 2), ("EGP", 29, 7), ("EBP", 30, 7), ("PAD", 23, 7), ("SKP", 28, 0)],
)
def test_control_symbols_are_these_k_codes(control, x, y):
    assert Control[control] == k_code(x, y)
    assert Control[control].symbol == 0x100 + k_code(x, y)


def test_the_shortest_data_packet_fills_two_rows():
    rows = frame_data_packet(bytes.fromhex("112233445566"))
    assert rows == [Row(0xFB112233, 0b1000), Row(0x445566FD, 0b0001)]


def test_a_link_packet_fills_two_rows():
    rows = frame_link_packet(bytes.fromhex("0b9c0282df8d"))
    assert rows == [Row(0x5C0B9C02, 0b1000), Row(0x82DF8DFD, 0b0001)]


def test_a_packet_marked_bad_ends_with_ebp():
    assert frame_data_packet(bytes(10), good=False)[-1] == Row(0x000000FE, 0b0001)
    assert frame_link_packet(bytes(6), good=False)[-1] == Row(0x000000FE, 0b0001)


@given(bodies)
def test_byte_i_of_a_packet_goes_to_the_lane_of_its_number(body):
    rows = frame_data_packet(body)
    assert len(rows) == (len(body) - 2) // 4 + 1
    stream = [symbol for row in rows for symbol in row_symbols(row)]
    assert stream == [Control.SDP.symbol, *body, Control.EGP.symbol]


@given(st.lists(st.tuples(st.booleans(), bodies, link_bodies, st.booleans(), st.integers(0, 5)), max_size=6))
def test_packets_come_out_of_their_rows_unharmed(packets):
    rows: list[Row] = []
    sent: list[Frame] = []
    for is_data, body, six, good, idle in packets:
        rows += [idle_row(step) for step in range(idle)]
        if is_data:
            sent.append(Frame(Control.SDP, body, good, len(rows)))
            rows += frame_data_packet(body, good)
        else:
            sent.append(Frame(Control.SLP, six, good, len(rows)))
            rows += frame_link_packet(six, good)
    assert list(deframe(rows)) == sent
    assert sum(frame.rows for frame in sent) == len(rows) - sum(idle for *_, idle in packets)


def test_skip_ordered_sets_pass_between_packets():
    frame = frame_link_packet(b"abcdef")
    assert [found.body for found in deframe([*SKIP_ORDERED_SET, *frame, *SKIP_ORDERED_SET])] == [b"abcdef"]
    assert [row_symbols(row)[0] for row in SKIP_ORDERED_SET] == [0x1BC, 0x11C, 0x11C, 0x11C]


@given(st.lists(st.integers(0, 0x1FF), min_size=4, max_size=4))
def test_a_row_holds_four_symbols_lane_0_first(symbols):
    data = int.from_bytes([symbol & 0xFF for symbol in symbols], "big")
    k = int("".join(str(symbol >> 8) for symbol in symbols), 2)
    assert row_symbols(Row(data, k)) == tuple(symbols)


def idle_bytes_by_shifting() -> list[int]:
    state, found = 0x7FF, []
    for _ in range(2 * 2047):
        found.append(state >> 3)
        for _ in range(8):
            state = (state << 1) % 2048 + ((state >> 10) + (state >> 8)) % 2
    return found


def test_idle_data_is_the_upper_byte_of_the_lfsr():
    assert [idle_byte(step) for step in range(2 * IDLE_PERIOD)] == idle_bytes_by_shifting()


def test_idle_data_begins_with_the_seed_and_repeats_after_2047_rows_and_not_before():
    assert IDLE_PERIOD == 2047
    assert idle_byte(0) == IDLE_LFSR_SEED >> 3 == 0xFF
    period = [idle_byte(step) for step in range(IDLE_PERIOD)]
    assert [idle_byte(step + IDLE_PERIOD) for step in range(IDLE_PERIOD)] == period
    # 2047 = 23 * 89: a shorter period would divide it.
    assert period[23:] + period[:23] != period
    assert period[89:] + period[:89] != period


def test_every_idle_byte_comes_eight_times_a_period_but_zero_seven():
    period = [idle_byte(step) for step in range(IDLE_PERIOD)]
    assert [period.count(value) for value in range(256)] == [7] + [8] * 255


def test_an_idle_row_has_one_data_byte_on_all_lanes():
    assert idle_row(0) == Row(0xFFFFFFFF, 0)
    assert all(row_symbols(idle_row(step)) == (idle_byte(step),) * 4 for step in range(100))


SDP_ROW, DATA_ROW, EGP_ROW = frame_data_packet(bytes(10))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: frame_data_packet(bytes(8)), r"data packet of 8 bytes LRH to VCRC, allowed 4n \+ 2, from 6"),
        (lambda: frame_data_packet(bytes(2)), r"data packet of 2 bytes"),
        (lambda: frame_link_packet(bytes(7)), r"link packet of 7 bytes, allowed 6"),
        (lambda: list(deframe([SDP_ROW, DATA_ROW])), r"rows end inside the packet that SDP began in row 0"),
        (lambda: list(deframe([SDP_ROW, SDP_ROW])), r"row 1: SDP 0_00 0_00 0_00 inside a packet, allowed data"),
        (lambda: list(deframe([idle_row(0), EGP_ROW])), r"row 1: 0_00 0_00 0_00 EGP outside a packet"),
        (lambda: list(deframe([SDP_ROW, *SKIP_ORDERED_SET])), r"row 1: COM COM COM COM inside a packet"),
        (lambda: list(deframe([Row(0x00FB0000, 0b0100)])), r"row 0: 0_00 SDP 0_00 0_00 outside a packet"),
    ],
)
def test_errors_name_the_row_and_what_may_stand_there(act, message):
    with pytest.raises(ValueError, match=message):
        act()
