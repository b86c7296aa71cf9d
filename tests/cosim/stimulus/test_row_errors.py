"""Errors in rows: what each does to those of a link."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from cosim.stimulus.row_errors import ROW_ERRORS, link_error, random_row_errors
from wire.crc import lpcrc, vcrc_good
from wire.flow_control import FlowControlPacket
from wire.headers import LRH
from wire.packet import build_ud_send
from wire.stimulus import Injection, Trigger
from wire.symbols import Control as Symbol
from wire.symbols import Row, deframe, frame_data_packet, frame_link_packet


def through(rows: list[Row], injection: Injection) -> list[Row]:
    """Rows of one packet after an injection (docs/pipeline.md, 2.1)."""
    out = []
    for number, row in enumerate(rows):
        at_end = number == len(rows) - 1
        hit = at_end if injection.at_end else injection.first <= number <= injection.last
        word = row.k << 32 | row.data
        if hit:
            word = word & injection.keep ^ injection.flip
        out.append(Row(word & 0xFFFF_FFFF, word >> 32))
    return out


@pytest.fixture
def packet() -> list[Row]:
    built = build_ud_send(slid=1, dlid=2, dest_qp=3, src_qp=4, q_key=5, payload=bytes(range(100)))
    return frame_data_packet(built.wire)


def test_a_flipped_bit_is_one_flipped_bit(packet):
    changed = through(packet, link_error("bit_flip", row=5, bit=0))
    assert changed[5].data == packet[5].data ^ 0x8000_0000
    assert [row for number, row in enumerate(changed) if number != 5] == packet[:5] + packet[6:]


def test_ebp_marks_a_packet_bad_and_changes_nothing_else(packet):
    (before,), (after,) = deframe(packet), deframe(through(packet, link_error("ebp")))
    assert (before.good, after.good) == (True, False)
    assert before.body == after.body


def test_a_truncated_packet_has_no_end(packet):
    with pytest.raises(ValueError, match="end inside the packet"):
        list(deframe(through(packet, link_error("truncate", row=4))))


def test_a_lost_packet_is_idle_data(packet):
    assert list(deframe(through(packet, link_error("lost_packet")))) == []


def test_a_lost_flow_control_packet_is_idle_data():
    rows = frame_link_packet(FlowControlPacket(op=0, fctbs=1, vl=0, fccl=2).encode())
    injection = link_error("lost_flow_control")
    assert injection.trigger == Trigger.LINK
    assert list(deframe(through(rows, injection))) == []


def test_a_stray_symbol_is_a_control_symbol_outside_packets():
    injection = link_error("stray_symbol")
    assert injection.trigger == Trigger.IDLE
    (row,) = through([Row(0x5A5A5A5A, 0)], injection)
    assert row == Row(Symbol.COM << 16, 0b0100)


@pytest.mark.parametrize("pitch", [1, 4])
def test_invented_packets_have_their_crcs_and_come_in_one_row_after_the_other(pitch):
    counted: Counter[str] = Counter()
    controls = list(random_row_errors(Random(1), 3, pitch, 0, 8_000_000, counted))
    assert set(counted) == set(ROW_ERRORS)
    given = [(one.cycle, Injection.of(one.args)) for one in controls]
    follows = [
        later == cycle + pitch and one.trigger == next_one.trigger == Trigger.IDLE
        for (cycle, one), (later, next_one) in pairwise(given)
    ]
    rows: list[Row] = []  # those that follow others or are followed; a stray symbol is alone
    for (cycle, one), behind, before in zip(given, [False, *follows], [*follows, False], strict=True):
        if behind or before:
            assert cycle % pitch == 0
            rows += through([Row(0x5A5A5A5A, 0)], one)
    of_link, of_data = [], []
    for packet in deframe(rows):
        (of_link if packet.start == Symbol.SLP else of_data).append(packet)
    assert len(of_link) > 20
    assert all(lpcrc(packet.body[:4]) == packet.body[4:] for packet in of_link)
    assert {packet.body[0] >> 4 for packet in of_link} > {0, 1}
    assert all(vcrc_good(packet.body) for packet in of_data)
    # Of tiny ones, 4 at least follow each other, some marked bad, some with a header that promises more than comes.
    assert len(of_link) + len(of_data) > counted["invented_packet"] + 4 * counted["tiny_packets"] > 100
    assert {packet.good for packet in of_data} == {False, True}
    lengths = {LRH["pkt_len"].read(packet.body) for packet in of_data if len(packet.body) > 8}
    assert min(lengths) == 6
    assert {len(packet.body) for packet in of_data} == {6, 10}


def test_errors_in_the_header_are_in_rows_of_the_lrh():
    counted: Counter[str] = Counter()
    drawn = [Injection.of(one.args) for one in random_row_errors(Random(2), 0, 1, 0, 2_000_000, counted)]
    flips = [
        one for one in drawn if one.trigger == Trigger.DATA and one.first == one.last <= 2 and one.flip.bit_count() == 1
    ]
    assert len(flips) >= counted["lrh_flip"] > 20
