"""The packets that enter a link, as an analyser in the cable gets them from time to time."""

import random

import pytest

from model.fabric import Fabric, WireTap
from wire.codes import LinkWidth
from wire.crc import fingerprint, lpcrc_good, vcrc_good
from wire.framing import FramedPacket, Framer
from wire.headers import LRH
from wire.registers import PortRegister
from wire.stimulus import Control, Injection, Operation, Trigger
from wire.symbols import LANES, idle_row
from wire.symbols import Control as Symbol
from wire.trace import Delimiter, Kind, port_source
from wire.trace_layout import RxData

CYCLES = 4000
DOWN, UP = 0, 1
"""Directions of a host's link: towards it, and from it."""


def traffic(bench, ready):
    for number in range(12):
        bench.post(ready, 1 + number % 2, 2 - number % 2, payload=16 * number, seed=number)
    return bench


def tapped(bench, direction: int = DOWN) -> WireTap:
    controls = sorted(bench.controls, key=lambda control: control.cycle)
    bench.fabric = Fabric(bench.parameters, controls, bench.posts)
    return bench.fabric.tap(0, direction)


def sent(bench, source: int) -> list[tuple[int, int]]:
    """First cycle and fingerprint of each data packet."""
    return [(record.c, record.d) for record in bench.records if record[1:3] == (source, Kind.TX_DATA)]


def seen(packets: list[FramedPacket]) -> list[tuple[int, int]]:
    symbols = {Delimiter.EGP: Symbol.EGP, Delimiter.EBP: Symbol.EBP}
    return [
        (packet.cycle, fingerprint(bytes([Symbol.SDP]) + packet.body + bytes([symbols[packet.end]])))
        for packet in packets
        if not packet.is_link
    ]


@pytest.mark.parametrize("pkt_len", [0, 1, 2, 5, 26, 27, 28, 29, 900])
def test_a_host_s_packet_of_more_rows_than_its_pkt_len_says_is_cut_where_a_receiver_cuts_it(star, ready, pkt_len):
    bench = star(2)
    bench.post(ready, 1, 2, payload=80)
    post = bench.posts[0]
    words = len(post.data) // 4
    assert words == 28
    bench.posts[0] = post._replace(data=LRH["pkt_len"].write(post.data, pkt_len))
    tap = tapped(bench, UP)
    bench.run(CYCLES)
    (packet,) = [packet for packet in tap.packets(CYCLES) if not packet.is_link]
    (received,) = bench.of(Kind.RX_DATA, 0, 1)
    assert packet.end == Delimiter(RxData.delimiter.read(received))
    assert (packet.end == Delimiter.CUT) == (pkt_len < words)


@pytest.mark.parametrize("width", [LinkWidth.X1, LinkWidth.X4])
@pytest.mark.parametrize(("direction", "source"), [(DOWN, port_source(0, 1)), (UP, port_source(1, 1))])
def test_every_packet_is_seen_as_it_was_sent(star, ready, width, direction, source):
    bench = traffic(star(2), ready)
    for node in (0, 1):
        bench.write_port(node, 1, PortRegister.WIDTH, width, cycle=100 + node)
    tap = tapped(bench, direction)
    bench.run(CYCLES)
    packets = tap.packets(CYCLES)
    assert seen(packets) == sent(bench, source)
    assert len(seen(packets)) == 6
    flow_control = [packet for packet in packets if packet.is_link]
    assert len(flow_control) == sum(record[1:3] == (source, Kind.TX_FCP) for record in bench.records) > 2
    assert all(lpcrc_good(packet.body) for packet in flow_control)


def damaged(bench, ready, seed):
    """Errors of all kinds, and a link that goes down for a while."""
    choose = random.Random(seed)
    cycles = iter(choose.sample(range(ready, ready + 700, 2), 10))
    for _ in range(8):
        trigger = choose.choice(list(Trigger))
        first = choose.randrange(6)
        flip, keep = choose.choice([(1 << choose.randrange(36), ~0), (choose.getrandbits(36), 0)])
        error = Injection(trigger, first=first, last=first + choose.randrange(3), flip=flip, keep=keep & (1 << 36) - 1)
        at_end = Injection(trigger, at_end=True, flip=choose.choice([1 << 32, 1 << 0 | 1 << 33, 0x3]))
        bench.inject(next(cycles), 0, DOWN, choose.choice([error, at_end]))
    if choose.random() < 0.5:
        cycle = next(cycles)
        bench.link(cycle, 0, False)
        bench.link(cycle + choose.choice([1, 3, 5, 61]), 0, True)
    return bench


def framed(log, until):
    """All rows of the direction framed, one by one."""
    paces = dict(log.paces(until))
    rows = {cycle: (data, k) for cycle, data, k in log.rows(until)}
    framer, found, pace = Framer(), [], 0
    for cycle in range(until):
        pace = paces.get(cycle, pace)
        if pace and (cycle in rows or cycle % pace == 0):
            packet = framer.take(cycle, *rows.get(cycle, idle_row(cycle)))
        else:
            packet = framer.rest(cycle + 1)
        if packet is not None:
            found.append(packet)
    return found


@pytest.mark.parametrize("width", [LinkWidth.X1, LinkWidth.X4])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_becomes_of_packets_the_tap_sees_what_is_in_the_rows(star, ready, seed, width):
    print(f"seed {seed}")
    bench = damaged(traffic(star(2), ready), ready, seed)
    for node in (0, 1):
        bench.write_port(node, 1, PortRegister.WIDTH, width, cycle=100 + node)
    tap = tapped(bench)
    # With a flight of 1 what gets across is what enters.
    log, _driven = bench.fabric.keep_logs(0, DOWN)
    choose = random.Random(seed)
    found = []
    cycle = 0
    while cycle < CYCLES:
        cycle = min(cycle + choose.randrange(1, 400), CYCLES)
        bench.run(cycle)
        packets = tap.packets(cycle)
        assert not packets or not found or found[-1].cycle < packets[0].cycle
        found += packets
        assert tap.begins_from() <= cycle
    assert found == framed(log, CYCLES)


def test_a_packet_is_given_when_it_has_ended_and_none_that_begins_earlier_follows(star, ready):
    bench = traffic(star(2), ready)
    tap = tapped(bench)
    before = 0
    found = []
    for cycle in range(10, CYCLES, 10):
        bench.run(cycle)
        packets = tap.packets(cycle)
        assert all(packet.cycle >= before for packet in packets)
        found += packets
        before = tap.begins_from()
    assert seen(found) == sent(bench, port_source(0, 1))


def test_a_bit_that_flips_on_the_way_is_in_what_the_tap_sees(star, ready):
    bench = traffic(star(2), ready)
    bench.inject(ready - 10, 0, DOWN, Injection(Trigger.DATA, first=3, last=3, flip=1 << 9))
    tap = tapped(bench)
    bench.run(CYCLES)
    data = [packet for packet in tap.packets(CYCLES) if not packet.is_link]
    assert [vcrc_good(packet.body) for packet in data] == [False, *[True] * 5]
    assert all(packet.end is Delimiter.EGP for packet in data)


def test_a_link_that_goes_down_cuts_the_packet_on_it(star, ready):
    bench = traffic(star(2), ready)
    tap = tapped(bench)
    bench.run(CYCLES)
    packet = [packet for packet in tap.packets(CYCLES) if not packet.is_link][2]
    again = traffic(star(2), ready)
    again.link(packet.cycle + 3, 0, False)
    tap = tapped(again)
    again.run(CYCLES)
    cut = next(one for one in tap.packets(CYCLES) if one.cycle == packet.cycle)
    assert cut == FramedPacket(packet.cycle, False, packet.body[:15], Delimiter.CUT)


def test_of_a_packet_whose_sender_is_reset_the_row_of_the_reset_s_first_cycle_is_the_last(star, ready):
    bench = traffic(star(2), ready)
    tap = tapped(bench)
    bench.run(CYCLES)
    packet = [packet for packet in tap.packets(CYCLES) if not packet.is_link][2]
    again = traffic(star(2), ready)
    again.controls.append(Control(packet.cycle + 3, Operation.RESET, 0))
    tap = tapped(again)
    again.run(CYCLES)
    cut = next(one for one in tap.packets(CYCLES) if one.cycle == packet.cycle)
    assert cut == FramedPacket(packet.cycle, False, packet.body[: 5 * LANES - 1], Delimiter.CUT)
