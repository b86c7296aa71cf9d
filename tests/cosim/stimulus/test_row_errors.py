"""Errors in rows: what each does to those of a link."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from cosim.stimulus.row_errors import INVENTED, ROW_ERRORS, link_error, random_row_errors
from wire.crc import lpcrc, vcrc_good
from wire.flow_control import FlowControlPacket
from wire.headers import LRH
from wire.packet import build_ud_send
from wire.stimulus import Control, Injection, Operation, Trigger
from wire.symbols import Control as Symbol
from wire.symbols import Row, deframe, frame_data_packet, frame_link_packet

IDLE = Row(0x5A5A5A5A, 0)


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


def invented(kind: str, times: int) -> list[Row]:
    """What idle rows become."""
    random = Random(1)
    return [row for _ in range(times) for one in INVENTED[kind](random) for row in through([IDLE], one)]


def errors(pitch: int, cycles: int, counted: Counter[str]) -> list[Control]:
    def read(random: Random, cycle: int) -> Control:
        return Control(cycle, Operation.BUS_READ, 0)

    return list(random_row_errors(Random(1), 3, pitch, 0, cycles, counted, read))


def injections(controls: list[Control]) -> list[Injection]:
    return [Injection.of(one.args) for one in controls if one.operation == Operation.INJECT]


def test_invented_packets_have_their_crcs():
    of_link, of_data = [], []
    for packet in deframe(invented("invented_packet", 200)):
        (of_link if packet.start == Symbol.SLP else of_data).append(packet)
    assert len(of_link) > 20
    assert all(lpcrc(packet.body[:4]) == packet.body[4:] for packet in of_link)
    assert {packet.body[0] >> 4 for packet in of_link} > {0, 1}
    assert all(vcrc_good(packet.body) for packet in of_data)
    assert len(of_link) + len(of_data) == 200


def test_tiny_packets_promise_more_than_comes():
    """At least 4 follow each other, some marked bad; PktLen is small, or near a power of two."""
    packets = list(deframe(invented("tiny_packets", 40)))
    assert len(packets) > 4 * 40
    assert all(vcrc_good(packet.body) for packet in packets)
    assert {packet.good for packet in packets} == {False, True}
    assert {len(packet.body) for packet in packets} == {6, 10}
    lengths = {LRH["pkt_len"].read(packet.body) for packet in packets if len(packet.body) > 8}
    assert lengths >= {6, 20, 128, 129, 1024}


def test_a_stuck_link_repeats_one_row_with_control_symbols(packet):
    stuck = [
        one for one in injections(errors(1, 1_000_000, Counter())) if not one.keep and 8 <= one.last - one.first <= 60
    ]
    assert len(stuck) > 10
    for one in stuck:
        rows = {row for place, row in enumerate(through(packet, one)) if one.first <= place <= one.last}
        assert len(rows) == 1
        assert all(row.k for row in rows)


@pytest.mark.parametrize("pitch", [1, 4])
def test_what_is_invented_comes_in_one_row_after_the_other(pitch):
    counted: Counter[str] = Counter()
    controls = errors(pitch, 8_000_000, counted)
    assert set(counted) == set(ROW_ERRORS)
    given = [one for one in controls if one.operation == Operation.INJECT]
    idle = [Injection.of(one.args).trigger == Trigger.IDLE for one in given]
    follows = sum(
        later.cycle == one.cycle + pitch and one_idle and later_idle
        for (one, one_idle), (later, later_idle) in pairwise(zip(given, idle, strict=True))
    )
    assert follows > sum(counted[kind] for kind in INVENTED) > 100
    assert all(later.cycle > one.cycle for one, later in pairwise(controls))


def test_while_a_link_is_stuck_counters_are_read():
    controls = errors(1, 2_000_000, Counter())
    reads = [place for place, one in enumerate(controls) if one.operation == Operation.BUS_READ]
    assert len(reads) > 100
    gaps = {controls[place].cycle - controls[place - 1].cycle for place in reads}
    assert gaps == {3, 4}


def test_errors_in_the_header_are_in_rows_of_the_lrh():
    counted: Counter[str] = Counter()
    drawn = injections(errors(1, 2_000_000, counted))
    flips = [
        one for one in drawn if one.trigger == Trigger.DATA and one.first == one.last <= 2 and one.flip.bit_count() == 1
    ]
    assert len(flips) >= counted["lrh_flip"] > 20
