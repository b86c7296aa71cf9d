"""Captured packets as rows on a link: an analyser that sees them there captures the same."""

import random

import pytest

from model.link.playing import PlayedRows, played
from model.packet import DataTransmission, LinkTransmission
from wire.crc import invert_vcrc, lpcrc, vcrc
from wire.framing import FramedPacket, Framer
from wire.packet import build_ud_send
from wire.symbols import Control, Row, frame_data_packet, frame_link_packet, idle_row
from wire.trace import Delimiter

DATA = build_ud_send(slid=1, dlid=2, vl=3, sl=3, dest_qp=5, src_qp=6, q_key=7, payload=bytes(range(40))).data
GOOD = DATA + vcrc(DATA)
BAD = DATA + invert_vcrc(vcrc(DATA))
CREDITS = (body := bytes([0x00, 0x21, 0x30, 0x44])) + lpcrc(body)


def seen_again(packet: FramedPacket, pace: int = 1) -> FramedPacket:
    """What is framed of the packet's rows, with idle data behind them."""
    sending = played(packet, pace)
    assert sending.w0 == packet.cycle
    rows = [sending.row(index) for index in range(sending.end + 1)] + [idle_row(step) for step in range(9)]
    framer = Framer()
    taken = (framer.take(packet.cycle + pace * index, *row) for index, row in enumerate(rows))
    (found,) = [one for one in taken if one is not None]
    return found


@pytest.mark.parametrize("pace", [1, 4])
@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        (FramedPacket(40, False, GOOD, Delimiter.EGP), DataTransmission),
        (FramedPacket(40, False, BAD, Delimiter.EBP), DataTransmission),
        (FramedPacket(40, True, CREDITS, Delimiter.EGP), LinkTransmission),
        (FramedPacket(40, False, BAD, Delimiter.EGP), PlayedRows),
        (FramedPacket(40, False, GOOD, Delimiter.EBP), PlayedRows),
        (FramedPacket(40, False, GOOD[:20] + GOOD[-2:], Delimiter.EGP), PlayedRows),
        (FramedPacket(40, True, CREDITS, Delimiter.EBP), PlayedRows),
        (FramedPacket(40, True, CREDITS[:4] + b"\x12\x34", Delimiter.EGP), PlayedRows),
        (FramedPacket(40, True, CREDITS + b"\xfd", Delimiter.CUT), PlayedRows),
        (FramedPacket(40, True, CREDITS[:3], Delimiter.CUT), PlayedRows),
        (FramedPacket(40, False, GOOD[:3], Delimiter.CUT), PlayedRows),
        (FramedPacket(40, False, GOOD[:19], Delimiter.CUT), PlayedRows),
        (FramedPacket(40, False, GOOD + b"\x00", Delimiter.CUT), PlayedRows),
    ],
)
def test_a_packet_is_on_the_wires_as_it_was_captured(packet, kind, pace):
    assert isinstance(played(packet, pace), kind)
    assert seen_again(packet, pace) == packet


def test_whatever_rows_a_capture_is_of_it_is_the_same_from_its_packets():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choose = random.Random(seed)
    for _ in range(300):
        rows = [*(frame_link_packet(CREDITS) if choose.random() < 0.3 else frame_data_packet(GOOD))]
        for _ in range(choose.randrange(3)):
            at = choose.randrange(1, len(rows))
            flip = choose.choice([1 << choose.randrange(32), 0]), choose.choice([0, 1 << choose.randrange(4)])
            rows[at] = Row(rows[at].data ^ flip[0], rows[at].k ^ flip[1])
        if choose.random() < 0.3:
            end = choose.choice([Control.EGP, Control.EBP])
            rows[choose.randrange(1, len(rows))] = Row(choose.getrandbits(24) << 8 | end, 1)
        framer = Framer()
        taken = [framer.take(cycle, *row) for cycle, row in enumerate([*rows, *[idle_row(n) for n in range(9)]])]
        packet = next(one for one in taken if one is not None)
        assert seen_again(packet) == packet


def test_of_a_row_that_was_not_captured_whole_the_rest_is_zeros():
    for length in range(6, 30):
        found = seen_again(FramedPacket(0, False, GOOD[:length], Delimiter.EGP))
        assert found.body == GOOD[:length] + bytes(-(length + 2) % 4)
        found = seen_again(FramedPacket(0, False, GOOD[:length], Delimiter.CUT))
        assert found.body == GOOD[:length] + bytes(-(length + 1) % 4)
