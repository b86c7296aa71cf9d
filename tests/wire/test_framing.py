"""Packets framed out of the rows of a link."""

from collections.abc import Iterable

from wire.crc import lpcrc
from wire.framing import FramedPacket, Framer
from wire.packet import build_ud_send
from wire.symbols import Control, Row, frame_data_packet, frame_link_packet, idle_row
from wire.trace import Delimiter

DATA = build_ud_send(slid=1, dlid=2, dest_qp=5, src_qp=6, q_key=7, payload=bytes(range(20))).data + b"\x12\x34"
FLOW_CONTROL = (body := bytes([0x00, 0x21, 0x30, 0x44])) + lpcrc(body)
ROWS = frame_data_packet(DATA)


def framed(rows: Iterable[Row | None], pace: int = 1) -> list[FramedPacket]:
    """The packets in rows that come at a pace; None is a cycle without one."""
    framer = Framer()
    found = []
    cycle = 0
    for row in rows:
        packet = framer.take(cycle, *row) if row is not None else framer.rest(cycle + 1)
        if packet is not None:
            found.append(packet)
        cycle += pace
    return found


def idle(rows: int) -> list[Row]:
    return [idle_row(step) for step in range(rows)]


def test_packets_are_the_bytes_between_their_delimiters() -> None:
    rows = [*idle(3), *ROWS, *frame_link_packet(FLOW_CONTROL), *idle(2), *frame_data_packet(DATA, good=False)]
    assert framed(rows) == [
        FramedPacket(3, False, DATA, Delimiter.EGP),
        FramedPacket(3 + len(ROWS), True, FLOW_CONTROL, Delimiter.EGP),
        FramedPacket(7 + len(ROWS), False, DATA, Delimiter.EBP),
    ]


def test_at_1x_a_row_comes_in_every_fourth_cycle() -> None:
    assert framed([*idle(2), *ROWS], pace=4) == [FramedPacket(8, False, DATA, Delimiter.EGP)]


def test_a_packet_without_an_end_is_cut_where_it_should_have_ended() -> None:
    without_end = [*ROWS[:-1], Row(ROWS[-1].data, 0)]
    (packet,) = framed([*without_end, *idle(30)])
    assert packet == FramedPacket(0, False, DATA + bytes([Control.EGP]), Delimiter.CUT)
    (packet,) = framed([frame_link_packet(FLOW_CONTROL)[0], *idle(30)])
    assert (packet.is_link, len(packet.body), packet.end) == (True, 7, Delimiter.CUT)


def test_a_packet_that_ends_early_ends_there() -> None:
    (packet,) = framed([*ROWS[:4], ROWS[-1], *idle(30)])
    assert packet == FramedPacket(0, False, DATA[:15] + DATA[-3:], Delimiter.EGP)


def test_a_pktlen_that_is_too_small_cuts_a_packet_and_what_is_behind_is_none() -> None:
    for words in (0, 1, 3):
        short = [ROWS[0], Row((ROWS[1].data & ~0x0007_FF00) | words << 8, 0), *ROWS[2:]]
        (packet,) = framed([*short, *idle(9)])
        assert (len(packet.body), packet.end) == (3 + 4 * max(1, words), Delimiter.CUT)


def test_the_next_packet_cuts_one_that_has_not_ended() -> None:
    first, second = framed([*ROWS[:5], *ROWS])
    assert first == FramedPacket(0, False, DATA[:19], Delimiter.CUT)
    assert second == FramedPacket(5, False, DATA, Delimiter.EGP)


def test_silence_cuts_a_packet() -> None:
    for silent in (4, 5, 40):
        cut, whole = framed([*ROWS[:5], *[None] * silent, *ROWS])
        assert cut == FramedPacket(0, False, DATA[:19], Delimiter.CUT)
        assert whole == FramedPacket(5 + silent, False, DATA, Delimiter.EGP)


def test_what_begins_with_no_start_delimiter_is_no_packet() -> None:
    assert framed([Row(ROWS[0].data, 0), *ROWS[1:], Row(Control.EGP << 24, 8), *idle(3)]) == []


def test_a_control_symbol_inside_cuts_a_packet() -> None:
    for inside in (Row(ROWS[3].data, 0b0100), Row(Control.EGP, 0b0011), Row(Control.SDP << 24, 0b1001)):
        (packet,) = framed([*ROWS[:3], inside, *ROWS[4:]])
        assert packet == FramedPacket(0, False, DATA[:11], Delimiter.CUT)
    first, second = frame_link_packet(FLOW_CONTROL)
    (packet,) = framed([first, Row(second.data, 0b0101)])
    assert packet == FramedPacket(0, True, FLOW_CONTROL[:3], Delimiter.CUT)
