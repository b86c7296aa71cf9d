"""Of random packets to hosts and groups those are marked that the contract has marked."""

import random
import struct
from collections import defaultdict

import pytest

from tests.model.congestion_by_cycles import Arrival, Link, Sending, Setting, marked
from wire.congestion_control import (
    CONGESTION_LOG,
    CONGESTION_LOG_EVENT,
    CONGESTION_LOG_EVENTS,
    SWITCH_PORT_CONGESTION_ELEMENT,
    CcAttribute,
)
from wire.headers import RWH
from wire.packet import build_raw, build_ud_send, parse
from wire.registers import PortRegister, congestion_address, mft_address
from wire.stimulus import Post
from wire.trace import Kind, port_of_source
from wire.trace_layout import RxData, RxFcp, TxData

PORTS, VLS, BLOCKS = 4, 2, 24
NARROW = 2
"""A port of which the link is 1X."""
GROUP = 0xC000
COUNT = 60
"""Packets of a host on each VL."""
END = 40_000
GRH = {"ip_ver": 6, "nxt_hdr": 0x1B}


def packet(draw, source, dlid, vl):
    """Its bytes, and LNH."""
    lids = {"slid": source, "dlid": dlid, "sl": vl, "vl": vl}
    payload = bytes(draw.choice((0, 0, 20, 90, 256)))
    if draw.random() < 0.1:
        return build_raw(lrh=lids, header=RWH.record(ether_type=0x88B5), payload=bytes(8) + payload[:88]).data, 0
    if draw.random() < 0.2:
        return build_ud_send(**lids, dest_qp=5, src_qp=6, q_key=0, payload=payload[:256], grh=GRH).data, 3
    return build_ud_send(**lids, dest_qp=5, src_qp=6, q_key=0, payload=payload).data, 2


def random_settings(draw, bench, since):
    """Of outputs, all written within few cycles; the last port has none of its own."""
    settings = {}
    for output in range(PORTS):
        thresholds = draw.choice((0, 8, 12, 15, 15)), draw.choice((0, 0, 2)), draw.choice((0, 0, 1, 3))
        settings[output] = Setting(*thresholds, victim=draw.random() < 0.3, since=since)
    common = settings[PORTS - 1]
    words = {8: 0x1F, 16: sum(one.victim << output + 1 for output, one in settings.items())}
    words |= {26: common.marking_rate, 25: common.threshold << 28 | common.packet_size << 16}
    for cycle, (word, value) in enumerate(words.items(), since - 1 - len(words)):
        bench.write(0, congestion_address(CcAttribute.SWITCH_CONGESTION_SETTING, word), value, cycle)
    for cycle, output in enumerate(range(PORTS - 1), since - 1):
        one = settings[output]
        fields = {"threshold": one.threshold, "packet_size": one.packet_size, "marking_rate": one.marking_rate}
        value = SWITCH_PORT_CONGESTION_ELEMENT.to_int(valid=1, **fields)
        bench.write_port(0, output + 1, PortRegister.CONGESTION, value, cycle)
        one.since = cycle + 2
    return settings


def random_posts(draw, bench, start):
    """LNHs of what each host sends on each VL, one after the other; most packets go to the last port."""
    posted = defaultdict(list)
    for source in range(1, PORTS + 1):
        dlids = [dlid for dlid in (*range(1, PORTS + 1), PORTS, PORTS, GROUP) if dlid != source]
        for vl in range(VLS):
            for number in range(COUNT):
                data, lnh = packet(draw, source, draw.choice(dlids), vl)
                posted[source, vl].append(lnh)
                bench.posts.append(Post(start + 500 * (number // 20), source, vl, data))
    return posted


def random_stalls(draw, bench, start):
    """Of hosts, so that some outputs run out of credits; none in the end. None is in a cycle of a write."""
    for cycle in range(start, start + 8_000, 400):
        bench.stall(cycle + 16 * draw.randrange(4), draw.randrange(1, PORTS + 1), draw.randrange(1 << VLS))
    for node in range(1, PORTS + 1):
        bench.stall(start + 8_500 + node, node, 0)


def links_of(bench):
    """What the trace says of flow control."""
    links = {output: Link(4 if output + 1 == NARROW else 1) for output in range(PORTS)}
    for kind in (Kind.TX_FCP, Kind.RX_FCP):
        for record in bench.of(kind, since=0):
            node, port = port_of_source(record.source)
            if node == 0 and kind == Kind.TX_FCP:
                links[port - 1].flow_control.append(record.cycle - 4 - links[port - 1].pitch)
            elif node == 0:
                credits = links[port - 1].credits[RxFcp.vl.read(record)]
                credits.append((record.cycle, RxFcp.fccl.read(record)))
    return links


def expected_log(sendings):
    """What the log holds at the end, of packets that are marked."""
    rows = defaultdict(dict)
    for one in sendings:
        pitch = 4 if one.output + 1 == NARROW else 1
        rows[one.g + 4 + pitch * (3 if one.arrival.lnh == 2 else 13)][one.output + 1] = one
    events = []
    for cycle in sorted(rows, reverse=True)[:CONGESTION_LOG_EVENTS]:
        port, one = min(rows[cycle].items())
        fields = {"slid": one.arrival.input + 1, "dlid": port, "sl": one.slot, "time_stamp": cycle // 256}
        events.append(CONGESTION_LOG_EVENT.to_int(fields))
    ports = sum(1 << port for port in {one.output + 1 for one in sendings})
    return {"log_events_counter": len(rows), "port_map": ports} | {f"event{i}": one for i, one in enumerate(events)}


def arrivals_and_sendings(bench, posted):
    """What came into the switch and when, and what was granted of it."""
    lnhs = {place: iter(one) for place, one in posted.items()}
    arrivals, queued = [], defaultdict(list)
    for record in bench.of(Kind.RX_DATA):
        node, port = port_of_source(record.source)
        if node:
            continue
        n, dlid, vl = RxData.pkt_len.read(record), RxData.dlid.read(record), RxData.vl.read(record)
        joins = record.cycle - (4 * (n // 4) if port == NARROW else n - 1)
        outputs = {out for out in range(1, PORTS + 1) if dlid in (GROUP, out)} - {port}
        one = Arrival(port - 1, joins, vl, n, next(lnhs[port, vl]), {(out - 1, vl) for out in outputs}, dlid == GROUP)
        arrivals.append(one)
        for place in one.copies:
            queued[one.input, place, one.is_multicast].append(one)
    sendings = []
    for record in bench.of(Kind.TX_DATA):
        node, port = port_of_source(record.source)
        if node:
            continue
        slot, g = TxData.slot.read(record), TxData.first_cycle.read(record) - 4
        source, is_multicast = TxData.input.read(record), TxData.dlid(record) == GROUP
        arrival = queued[source, (port - 1, slot), is_multicast].pop(0)
        sendings.append((Sending(g, port - 1, slot, arrival), TxData.fecn.read(record)))
    return arrivals, sendings


def marks_as_the_contract_does(star, ready, queueing, readers, seed):
    draw = random.Random(seed)
    hosts = {"receive_blocks": 14, "mtu": 256}
    switch = {"vls": VLS, "queueing": queueing, "readers": readers, "mtu": 256, "buffer_blocks": BLOCKS}
    bench = star(PORTS, **switch, adapter=hosts, bring_up=False)
    for node, port in ((0, NARROW), (NARROW, 1)):
        bench.write_port(node, port, PortRegister.WIDTH, 1)
    bench.write(0, mft_address(GROUP, 0), (1 << PORTS + 1) - 2)
    bench.bring_up()
    settings = random_settings(draw, bench, ready + 8 + 16 * draw.randrange(1, 120))
    posted = random_posts(draw, bench, ready)
    random_stalls(draw, bench, ready)
    for word in range(55):
        bench.read(0, congestion_address(CcAttribute.CONGESTION_LOG, word), END - 100 + word)
    bench.run(END)
    arrivals, sendings = arrivals_and_sendings(bench, posted)
    assert len(arrivals) == PORTS * VLS * COUNT
    sent, fifo = [one for one, _ in sendings], queueing == "fifo"
    expected = marked(sent, arrivals, links_of(bench), settings, blocks=BLOCKS, fifo=fifo)
    said = [one for one, fecn in sendings if fecn]
    assert {(one.g, one.output) for one in said} == {(one.g, one.output) for one in expected}
    log = CONGESTION_LOG.unpack(struct.pack(">55I", *bench.values()))
    assert log == CONGESTION_LOG.record(expected_log(said), current_time_stamp=log.current_time_stamp)
    heads = [parse(delivery.data).bth for delivery in bench.delivered]
    assert sum(bth.fecn for bth in heads if bth is not None) == len(said)


@pytest.mark.deep
@pytest.mark.parametrize(("queueing", "readers"), [("voq", 2), ("voq", 1), ("fifo", 1)])
def test_marking_cycle_by_cycle_with_other_seeds(star, ready, queueing, readers):
    for _ in range(20):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        marks_as_the_contract_does(star, ready, queueing, readers, seed)


@pytest.mark.parametrize(("queueing", "readers"), [("voq", 2), ("fifo", 1)])
def test_marking_cycle_by_cycle(star, ready, queueing, readers):
    marks_as_the_contract_does(star, ready, queueing, readers, 1)
