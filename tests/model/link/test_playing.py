"""Captured packets as rows on a link: an analyser that sees them there captures the same."""

import random
from itertools import chain, count

import pytest

from model.fabric import Fabric
from model.link.playing import PlayedRows, played
from model.packet import DataTransmission, LinkTransmission
from wire.codes import LinkWidth
from wire.crc import invert_vcrc, lpcrc, vcrc
from wire.framing import FramedPacket, Framer
from wire.packet import build_ud_send
from wire.parameters import reset_cycles
from wire.registers import PortRegister
from wire.stimulus import Control, Operation, Play
from wire.symbols import Control as Symbol
from wire.symbols import Row, frame_data_packet, frame_link_packet, idle_row
from wire.trace import Delimiter, Kind, Verdict
from wire.trace_layout import RxData

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
            end = choose.choice([Symbol.EGP, Symbol.EBP])
            rows[choose.randrange(1, len(rows))] = Row(choose.getrandbits(24) << 8 | end, 1)
        # One without an end delimiter whose PktLen was made greater takes idle rows in until that length is reached.
        framer = Framer()
        taken = (framer.take(cycle, *row) for cycle, row in enumerate(chain(rows, map(idle_row, count()))))
        packet = next(one for one in taken if one is not None)
        assert seen_again(packet) == packet


def test_of_a_row_that_was_not_captured_whole_the_rest_is_zeros():
    for length in range(6, 30):
        found = seen_again(FramedPacket(0, False, GOOD[:length], Delimiter.EGP))
        assert found.body == GOOD[:length] + bytes(-(length + 2) % 4)
        found = seen_again(FramedPacket(0, False, GOOD[:length], Delimiter.CUT))
        assert found.body == GOOD[:length] + bytes(-(length + 1) % 4)


TO_HOST, TO_SWITCH = 0, 1
"""Directions of a host's link."""


def with_plays(bench, packets, since, direction=TO_SWITCH):
    """Packets in place of those that host 1 sends, or that its switch does."""
    controls = sorted(bench.controls, key=lambda control: control.cycle)
    bench.fabric = Fabric(bench.parameters, controls, sorted(bench.posts, key=lambda post: post.cycle))
    bench.fabric.play({(0, direction): since}, [Play(0, direction, packet) for packet in packets])
    return bench


def data(payload: int = 64) -> bytes:
    body = build_ud_send(slid=1, dlid=2, dest_qp=5, src_qp=6, q_key=0, payload=bytes(payload)).data
    return body + vcrc(body)


def test_a_port_gets_what_is_played_and_a_tap_sees_what_the_port_there_sends(star, ready):
    bench = star(2)
    bench.post(ready, 1, 2, payload=20)
    bench.post(ready + 400, 1, 2, payload=20)
    since = ready + 300
    packets = [FramedPacket(since + 20 + 100 * n, False, data(16 * n), Delimiter.EGP) for n in range(3)]
    with_plays(bench, packets, since)
    tap = bench.fabric.tap(0, TO_SWITCH)
    bench.run(ready + 2000)
    received = [(record.cycle - 4 - (record.b & 0xFFFF), record.b & 0xFFFF) for record in bench.of(Kind.RX_DATA, 0, 1)]
    assert received[1:] == [(packet.cycle - 1, len(packet.body) // 4) for packet in packets]
    own = [packet for packet in tap.packets(ready + 2000) if not packet.is_link and packet.cycle >= ready]
    assert [len(packet.body) for packet in own] == [len(data(20))] * 2
    assert own[0].cycle < since < own[1].cycle
    assert own[0].cycle == received[0][0] + 1
    # Host 2 gets the first of its own, and what was played.
    assert len(bench.of(Kind.DELIVER, 2)) == 4


def test_a_packet_that_begins_where_one_was_cut_is_whole_on_the_wires(star, ready):
    cut = FramedPacket(ready, False, data()[:23], Delimiter.CUT)
    follows = FramedPacket(ready + 6, False, data(), Delimiter.EGP)
    bench = with_plays(star(2), [cut, follows], ready)
    log, _other = bench.fabric.keep_logs(0, TO_SWITCH)
    bench.run(ready + 500)
    rows = [row for row in log.rows(ready + 500) if row[0] >= ready]
    assert [cycle for cycle, _data, _k in rows] == list(range(ready, ready + 6 + 25))
    framer = Framer()
    framed = [found for row in rows if (found := framer.take(*row)) is not None]
    assert framed == [cut, follows]
    # As on any link: the port that was in the middle of a packet does not take the start of another for one.
    (verdict,) = (RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, 1))
    assert verdict == Verdict.PHYSICAL


def test_packets_played_on_a_link_that_is_down_are_gone(star, ready):
    bench = star(2)
    bench.link(ready + 10, 0, False)
    packets = [FramedPacket(ready + n, False, data(), Delimiter.EGP) for n in (0, 100)]
    with_plays(bench, packets, ready).run(ready + 500)
    (record,) = bench.of(Kind.RX_DATA, 0, 1)
    assert RxData.delimiter.read(record) == Delimiter.CUT


def test_what_is_played_when_the_node_there_comes_back_from_a_reset_is_on_the_wires(star, ready):
    bench = star(2)
    back = ready + reset_cycles(list(bench.parameters.nodes.values())[1]) + 1
    bench.controls.append(Control(ready, Operation.RESET, 1))
    with_plays(bench, [FramedPacket(back + 2, False, data(), Delimiter.EGP)], ready)
    log, _other = bench.fabric.keep_logs(0, TO_SWITCH)
    bench.run(back + 100)
    first = next(cycle for cycle, _data, _k in log.rows(back + 100) if cycle >= ready + 2)
    assert first == back + 2
    assert len(bench.of(Kind.RX_DATA, 0, 1)) == 1


def with_widths(bench, ready, begin, gap):
    """At a 1X link the port of host 1, which sends packets, is 4X and 1X in turn."""
    for node in (0, 1):
        bench.write_port(node, 1, PortRegister.WIDTH, LinkWidth.X1, ready - 200 + node)
    for n in range(10):
        width = LinkWidth.X1 if n % 2 else LinkWidth.X4
        bench.write_port(1, 1, PortRegister.WIDTH, width, begin + n * gap)
    for n in range(3):
        bench.post(ready + 20 * n, 1, 2, payload=20)
    return bench


@pytest.mark.parametrize("gap", [1, 3, 5, 14])
def test_of_packets_under_which_the_width_changes_the_rows_that_were_on_the_wires_are_played(star, ready, gap):
    cut, end = 0, ready + 1000
    for begin in range(ready, ready + 40):
        own = with_plays(with_widths(star(2), ready, begin, gap), [], end)
        tap = own.fabric.tap(0, TO_SWITCH)
        own.run(end)
        captured = [one for one in tap.packets(end) if one.cycle >= ready]
        cut += sum(one.end == Delimiter.CUT for one in captured)
        again = with_plays(with_widths(star(2), ready, begin, gap), captured, ready)
        log, _other = again.fabric.keep_logs(0, TO_SWITCH)
        again.run(end)
        for kind in (Kind.RX_DATA, Kind.RX_FCP, Kind.TX_DATA):
            assert again.of(kind, 0, 1) == own.of(kind, 0, 1)
        framer = Framer()
        rows = (row for row in log.rows(end) if row[0] >= ready)
        assert [one for row in rows if (one := framer.take(*row)) is not None] == captured
    assert cut > 10
