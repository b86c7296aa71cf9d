"""A whole switch between adapters, in Amaranth's simulator."""

import random
from typing import Any

import pytest

from tests.rtl.switch.bench import FLIGHT, SWITCH, TO_WIRES, Event, Fabric
from wire.codes import VL15, PortState
from wire.packet import blocks_of_words, build_ud_send
from wire.parameters import AdapterParameters, SwitchParameters
from wire.registers import (
    VL_ARBITRATION_LOW,
    Counter,
    NodeRegister,
    PortRegister,
    lft_address,
    mft_address,
    node_address,
    port_address,
    sl_to_vl_address,
    vl_arbitration_address,
)
from wire.symbols import Control
from wire.trace import Kind, Verdict

# Nothing here is for the agents.
pytestmark = pytest.mark.usefixtures("stand_in")

LATENCY = 1 + 2 + 1 + 1 + TO_WIRES  # h, e, g and x_0 follow c_0
MTU = 256
X1 = 1
X4 = 2
GROUP = 0xC003


def make(adapters: int = 2, vls: int = 1, watched: Any = (), **switch: Any) -> Fabric:
    parameters = {"ports": max(2, adapters), "vls": vls, "mtu": MTU, "buffer_blocks": 16, "lft_size": 16} | switch
    blocks = parameters["buffer_blocks"]
    return Fabric(
        SwitchParameters(**parameters),
        AdapterParameters(vls=vls, mtu=parameters["mtu"], receive_blocks=blocks, send_blocks=blocks),
        adapters,
        watched,
    )


def words(source: int, destination: int, size: int = 16, *, vl: int = 0, sl: int = 0, psn: int = 0) -> tuple[int, ...]:
    """A packet from adapter to adapter; `size` is that of its payload in bytes."""
    content = bytes((psn * 31 + place) & 0xFF for place in range(size))
    packet = build_ud_send(
        slid=source + 1, dlid=destination + 1, dest_qp=1, src_qp=2, q_key=3, payload=content, vl=vl, sl=sl, psn=psn
    )
    return tuple(int.from_bytes(packet.data[place : place + 4]) for place in range(0, len(packet.data), 4))


def starts(rows: list[tuple[int, int, int]], control: Control) -> list[int]:
    return [cycle for cycle, data, k in rows if k == 0b1000 and data >> 24 == control]


def posted_to_link(cycle: int, packet: tuple[int, ...]) -> int:
    """When row 0 of a packet posted in a cycle, on an idle adapter, is on the switch's receive wires."""
    end = cycle + 1 + len(packet)  # c_n
    return end + 2 + 1 + 1 + TO_WIRES + FLIGHT  # e, g and x_0 follow


def verdicts(events: list[Event]) -> list[Verdict]:
    return [Verdict(event.words[0] & 0xFF) for event in events]


def test_a_packet_passes_an_idle_switch_in_eight_cycles() -> None:
    fabric = make(watched=[(SWITCH, 1), (1, 1)])
    ready = fabric.bring_up(5)
    for cycle, size in ((0, 0), (60, 4), (120, 100), (210, MTU)):
        fabric.post(ready + cycle, 0, 0, words(0, 1, size))
    fabric.run(ready + 480)
    into, out = starts(fabric.rows[SWITCH, 1], Control.SDP), starts(fabric.rows[1, 1], Control.SDP)
    assert len(into) == 4
    assert [after - FLIGHT - before for before, after in zip(into, out, strict=True)] == [LATENCY] * 4

    # TX_DATA names the cycle of row 0 on the wires and is stamped with that of the end row.
    sent = fabric.of(Kind.TX_DATA, SWITCH)
    assert [event.words[2] for event in sent] == [cycle - FLIGHT for cycle in out]
    assert all(event.cycle == event.words[2] + (event.words[1] >> 16) for event in sent)


@pytest.mark.parametrize(
    ("queueing", "vls", "seed"),
    [("voq", 2, 0), ("fifo", 2, 1), pytest.param("voq", 15, 2, marks=pytest.mark.deep)],
)
def test_packets_arrive_whole_and_in_order(queueing: str, vls: int, seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    fabric = make(3, vls, queueing=queueing, readers=1 if queueing == "fifo" else 2)
    ready = fabric.bring_up(5)
    sent: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for psn in range(24):
        source, vl = rng.randrange(3), rng.randrange(vls)
        destination = rng.choice([node for node in range(3) if node != source])
        packet = words(source, destination, rng.choice((0, 20, rng.randrange(MTU + 1))) & ~3, vl=vl, sl=vl, psn=psn)
        fabric.post(ready + rng.randrange(100), source, vl, packet)
        sent.setdefault((source, destination), []).append(packet)
    fabric.run(ready + 600)
    for node in range(3):
        arrived = fabric.delivered[node]
        for source in range(3):
            for vl in range(vls):
                expected = [packet for packet in sent.get((source, node), []) if packet[0] >> 28 == vl]
                flow = [packet for slot, packet in arrived if packet[1] & 0xFFFF == source + 1 and slot == vl]
                assert flow == expected
    assert not fabric.of(Kind.SCRAP)
    assert {verdict for event in fabric.of(Kind.RX_DATA) for verdict in verdicts([event])} == {Verdict.GOOD}
    places = [(event.cycle, event.node, event.port, event.kind) for event in fabric.events if event.node == SWITCH]
    assert places == sorted(places)


def test_the_vls_of_an_output_share_it_by_their_weights() -> None:
    fabric = make(3, 2)
    for number, entry in enumerate((0 << 8 | 6, 1 << 8 | 2)):
        fabric.write(2 + number, SWITCH, vl_arbitration_address(3, VL_ARBITRATION_LOW, number), entry)
    ready = fabric.bring_up(5)
    for psn in range(10):
        for source in (0, 1):
            fabric.post(ready, source, psn % 2, words(source, 2, 44, vl=psn % 2, sl=psn % 2, psn=psn))
    fabric.run(ready + 350)
    sent = [event.words for event in fabric.of(Kind.TX_DATA, SWITCH) if event.port == 3]
    assert {blocks_of_words(packet[1] & 0xFFFF) for packet in sent} == {2}
    # Six blocks, two blocks; the very first packets find no other.
    assert [packet[0] & 0xFF for packet in sent][4:12] == [0, 0, 0, 1] * 2


def test_vl15_needs_neither_credits_nor_an_active_port() -> None:
    fabric = make()
    for port in (1, 2):
        fabric.write(5 + 2 * port, SWITCH, lft_address(port), port)
        fabric.write(5 + 2 * port, port - 1, node_address(NodeRegister.LID), port)
    packet = words(0, 1, 256, vl=VL15)
    fabric.post(20, 0, 1, packet)
    fabric.run(300)
    assert fabric.delivered[1] == [(1, packet)]
    assert {event.words[0] for event in fabric.of(Kind.STATE)} <= {PortState.INITIALIZE}


def test_a_packet_without_credits_waits_and_others_pass_it() -> None:
    fabric = make(3, watched=[(1, 1)])
    ready = fabric.bring_up(5)
    fabric.stall(ready, 1, 0b11)
    # Packets of 5 blocks: the buffer of adapter 1 takes three, that of the switch three, one stays behind.
    for psn in range(7):
        fabric.post(ready, 0, 0, words(0, 1, MTU, psn=psn))
    other = words(2, 0, 64)
    fabric.post(ready + 400, 2, 0, other)
    fabric.read(ready + 680, SWITCH, port_address(2, Counter.XMIT_WAIT))
    fabric.stall(ready + 681, 1, 0)
    fabric.run(ready + 1210)
    begun = starts(fabric.rows[1, 1], Control.SDP)
    assert [cycle > ready + 680 for cycle in begun] == [False] * 3 + [True] * 4
    assert [packet for _, packet in fabric.delivered[1]] == [words(0, 1, MTU, psn=psn) for psn in range(7)]
    assert fabric.delivered[0] == [(0, other)]
    ((_, waited),) = fabric.answers[SWITCH]
    assert waited > 10


def grouped(source: int, size: int = 16, psn: int = 0) -> tuple[int, ...]:
    """A packet from an adapter to the group."""
    return words(source, GROUP - 1, size, psn=psn)


def test_a_packet_to_a_group_passes_in_eight_cycles_to_each_other_port_in_turn() -> None:
    fabric = make(3, watched=[(SWITCH, 1), (1, 1), (2, 1)])
    fabric.write(2, SWITCH, mft_address(GROUP, 0), 0b1110)
    ready = fabric.bring_up(5)
    packets = [grouped(0, size, psn) for psn, size in enumerate((16, 100, MTU))]
    for packet in packets:
        fabric.post(ready, 0, 0, packet)
    fabric.run(ready + 300)
    assert [fabric.delivered[node] for node in range(3)] == [[], *[[(0, packet) for packet in packets]] * 2]
    (into, *_), *out = (starts(rows, Control.SDP) for rows in fabric.rows.values())
    # An input accepts one offer a cycle, and an output makes one in every second.
    assert [begun[0] - FLIGHT - into for begun in out] == [LATENCY, LATENCY + 2]


def test_a_port_without_credits_keeps_only_its_own_copies() -> None:
    fabric = make(3)
    fabric.write(2, SWITCH, mft_address(GROUP, 0), 0b1110)
    ready = fabric.bring_up(5)
    resumes = ready + 500
    fabric.stall(ready, 1, 0b11)
    # Packets of 5 blocks: of the buffer of adapter 1 the first three fill 15 of 16, the fourth waits.
    packets = [grouped(0, MTU, psn) for psn in range(5)]
    for packet in packets:
        fabric.post(ready, 0, 0, packet)
    other = words(2, 0, 64)
    fabric.post(ready + 400, 2, 0, other)
    fabric.stall(resumes, 1, 0)
    fabric.run(resumes + 460)
    assert fabric.delivered[0] == [(0, other)]
    for node in (1, 2):
        assert [packet for _, packet in fabric.delivered[node]] == packets
    sent = {port: [event.cycle for event in fabric.of(Kind.TX_DATA, SWITCH) if event.port == port] for port in (2, 3)}
    waiting = {port: sum(cycle < resumes for cycle in cycles) for port, cycles in sent.items()}
    # The fourth goes to the third port meanwhile; the fifth is behind it.
    assert waiting == {2: 3, 3: 4}


def test_in_fifo_a_packet_without_credits_holds_those_behind_it() -> None:
    arrived = {}
    for queueing, readers in (("voq", 2), ("fifo", 1)):
        fabric = make(3, 2, queueing=queueing, readers=readers)
        ready = fabric.bring_up(5)
        fabric.stall(ready, 1, 0b11)
        for psn in range(4):
            fabric.post(ready, 0, 0, words(0, 1, MTU, psn=psn))
        fabric.post(ready, 0, 0, words(0, 2, 64))
        fabric.run(ready + 480)
        arrived[queueing] = len(fabric.delivered[2])
    assert arrived == {"voq": 1, "fifo": 0}


@pytest.mark.parametrize("narrow", [0, 1])
def test_packets_pass_between_1x_and_4x(narrow: int) -> None:
    fabric = make(watched=[(SWITCH, 1), (SWITCH, 2), (0, 1), (1, 1)])
    width = {PortRegister.WIDTH: X1}
    ready = fabric.bring_up(5, {(narrow, 1): width, (SWITCH, narrow + 1): width})
    packets = [words(0, 1, size, psn=size) for size in (0, 100, MTU)]
    for packet in packets:
        fabric.post(ready, 0, 0, packet)
    fabric.run(ready + 650)
    assert [packet for _, packet in fabric.delivered[1]] == packets
    into, out = fabric.rows[SWITCH, 1], fabric.rows[1, 1]
    begun, sent = starts(into, Control.SDP), starts(out, Control.SDP)
    if narrow == 0:
        # Row d, without which the output might run dry, lets the packet join: e, g and x_0 follow c_d.
        n = len(packets[0])
        d = n - n // 4
        assert sent[0] - FLIGHT == begun[0] + 4 * d + 2 + 1 + 1 + TO_WIRES
        assert all(cycle % 4 == FLIGHT for cycle, _, _ in into[200:])
    else:
        assert all((cycle - FLIGHT) % 4 == 0 for cycle in sent)
        assert LATENCY <= sent[0] - FLIGHT - begun[0] < LATENCY + 4


def test_what_cannot_be_relayed_is_counted_and_dropped() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    fabric.write(ready - 8, SWITCH, lft_address(5), 1)
    fabric.write(ready - 6, SWITCH, lft_address(6), 2)
    fabric.write(ready - 4, SWITCH, sl_to_vl_address(1, 2, 9), 1)
    for place, (dlid, sl) in enumerate([(4, 0), (15, 0), (16, 0), (5, 0), (6, 9), (6, 0)]):
        fabric.post(ready + 40 * place, 0, 0, words(0, dlid - 1, sl=sl))
    for place, dlid in enumerate([4, 5]):
        fabric.post(ready + 240 + 40 * place, 0, 1, words(0, dlid - 1, vl=VL15))
    fabric.read(ready + 360, SWITCH, port_address(1, Counter.RCV_SWITCH_RELAY_ERRORS))
    fabric.read(ready + 362, SWITCH, port_address(1, Counter.VL15_DROPPED))
    fabric.write(ready + 370, SWITCH, node_address(NodeRegister.LINEAR_FDB_TOP), 5)
    fabric.post(ready + 370, 0, 0, words(0, 5))
    fabric.run(ready + 430)
    received = fabric.of(Kind.RX_DATA, SWITCH)
    assert verdicts(received) == [
        Verdict.NO_ROUTE,
        Verdict.NO_ROUTE,
        Verdict.NO_ROUTE,
        Verdict.LOOP,
        Verdict.VL_MAP,
        Verdict.GOOD,
        Verdict.NO_ROUTE,
        Verdict.LOOP,
        Verdict.NO_ROUTE,
    ]
    assert len(fabric.of(Kind.TX_DATA, SWITCH)) == 1
    assert [value for _, value in fabric.answers[SWITCH]] == [7, 0]


def test_registers_and_tables_are_read_back_after_four_cycles() -> None:
    fabric = make(1, ports=3, vls=4, lft_size=20)
    reads = [
        (node_address(NodeRegister.NUM_PORTS), 3),
        (node_address(NodeRegister.LINEAR_FDB_TOP), 19),
        (lft_address(7), 255),
        (lft_address(20), 0),
        (sl_to_vl_address(3, 2, 6), 2),
        (sl_to_vl_address(2, 3, 6), 15),
        (sl_to_vl_address(2, 4, 6), 0),
        (port_address(3, PortRegister.WIDTH), X4),
        (lft_address(3), 2),
        (lft_address(4), 255),
        (port_address(2, PortRegister.VL_HIGH_LIMIT), 9),
        (vl_arbitration_address(2, VL_ARBITRATION_LOW, 0), 0),
        (0x40_0000 | PortRegister.STATE, 0),
    ]
    fabric.write(4, SWITCH, sl_to_vl_address(2, 3, 6), 15)
    fabric.write(6, SWITCH, lft_address(3), 2)
    fabric.write(8, SWITCH, lft_address(4), 0x102)
    fabric.write(9, SWITCH, lft_address(20), 1)
    fabric.write(5, SWITCH, port_address(2, PortRegister.VL_HIGH_LIMIT), 9)
    fabric.write(7, SWITCH, vl_arbitration_address(2, VL_ARBITRATION_LOW, 0), 0x109)
    for place, (address, _) in enumerate(reads):
        fabric.read(10 + place, SWITCH, address)
    fabric.run(40)
    assert fabric.answers[SWITCH] == [(14 + place, value) for place, (_, value) in enumerate(reads)]
    assert [(event.cycle, *event.words[:2]) for event in fabric.of(Kind.BUS_READ)] == [
        (14 + place, *read) for place, read in enumerate(reads)
    ]


def test_a_write_is_seen_by_the_read_of_the_next_cycle() -> None:
    fabric = make()
    places = [(lft_address(3), 7), (sl_to_vl_address(1, 2, 3), 5), (node_address(NodeRegister.LINEAR_FDB_TOP), 9)]
    for place, (address, value) in enumerate(places):
        fabric.write(10 * place + 5, SWITCH, address, value)
        fabric.read(10 * place + 6, SWITCH, address)
    fabric.run(40)
    assert [value for _, value in fabric.answers[SWITCH]] == [value for _, value in places]


def test_a_packet_that_goes_bad_on_its_way_leaves_marked_bad() -> None:
    fabric = make(watched=[(SWITCH, 1)])
    ready = fabric.bring_up(5)
    packet = words(0, 1, 200)
    fabric.post(ready, 0, 0, packet)
    fabric.post(ready + 200, 0, 0, words(0, 1, 8))
    row_0 = posted_to_link(ready, packet)
    fabric.flip(row_0 + 20, SWITCH, 1, 1)
    fabric.run(ready + 290)
    assert starts(fabric.rows[SWITCH, 1], Control.SDP)[0] == row_0
    assert verdicts(fabric.of(Kind.RX_DATA, SWITCH)) == [Verdict.PHYSICAL, Verdict.GOOD]
    assert [event.words[0] >> 8 & 1 for event in fabric.of(Kind.TX_DATA, SWITCH)] == [1, 0]
    assert verdicts(fabric.of(Kind.RX_DATA, 1)) == [Verdict.REMOTE, Verdict.GOOD]
    assert len(fabric.delivered[1]) == 1


def test_a_packet_known_to_be_bad_before_it_is_sent_is_scrapped() -> None:
    fabric = make(3, watched=[(SWITCH, 1)])
    ready = fabric.bring_up(5)
    fabric.post(ready, 2, 0, words(2, 1, MTU))
    packet = words(0, 1, 8)
    fabric.post(ready + 66, 0, 0, packet)
    row_0 = posted_to_link(ready + 66, packet)
    fabric.flip(row_0 + 4, SWITCH, 1, 1)
    fabric.run(ready + 250)
    assert starts(fabric.rows[SWITCH, 1], Control.SDP) == [row_0]
    (scrapped,) = fabric.of(Kind.SCRAP)
    (sent,) = fabric.of(Kind.TX_DATA, SWITCH)
    # Granted with the other packet's last read.
    x_0 = sent.cycle - TO_WIRES + 1
    assert (scrapped.port, scrapped.words) == (2, (0, len(packet), 0, 0, 0))
    assert scrapped.cycle == x_0 + 2
    assert len(fabric.delivered[1]) == 1


def test_a_store_and_forward_switch_sends_a_packet_when_all_of_it_is_there_and_none_that_is_bad() -> None:
    fabric = make(watched=[(SWITCH, 1), (1, 1)], forwarding="store-and-forward")
    ready = fabric.bring_up(5)
    packets = [words(0, 1, size, psn=psn) for psn, size in enumerate((0, 100, 60))]
    for psn, packet in enumerate(packets):
        fabric.post(ready + 100 * psn, 0, 0, packet)
    fabric.flip(posted_to_link(ready + 100, packets[1]) + 5, SWITCH, 1, 1)
    fabric.run(ready + 420)
    into, out = starts(fabric.rows[SWITCH, 1], Control.SDP), starts(fabric.rows[1, 1], Control.SDP)
    whole = [into[0], into[2]], [packets[0], packets[2]]
    # LATENCY counts from row 1, h; this from the last row.
    assert [cycle - FLIGHT for cycle in out] == [
        before + len(packet) + LATENCY - 1 for before, packet in zip(*whole, strict=True)
    ]
    assert verdicts(fabric.of(Kind.RX_DATA, SWITCH)) == [Verdict.GOOD, Verdict.PHYSICAL, Verdict.GOOD]
    assert fabric.delivered[1] == [(0, packets[0]), (0, packets[2])]
    assert not fabric.of(Kind.SCRAP)


def test_a_packet_beyond_the_neighbor_mtu_is_swallowed() -> None:
    fabric = make(mtu=512, buffer_blocks=32)
    ready = fabric.bring_up(5, {(SWITCH, 2): {PortRegister.NEIGHBOR_MTU: 1}})
    large = words(0, 1, 400)
    fabric.post(ready, 0, 0, large)
    fabric.post(ready, 0, 0, words(0, 1, 256))
    fabric.read(ready + 440, SWITCH, port_address(2, Counter.XMIT_DISCARDS))
    fabric.run(ready + 450)
    (discarded,) = fabric.of(Kind.TX_DISCARD)
    assert (discarded.node, discarded.port) == (SWITCH, 2)
    assert discarded.words[:2] == (0, len(large))
    assert fabric.delivered[1] == [(0, words(0, 1, 256))]
    assert [value for _, value in fabric.answers[SWITCH]] == [1]
