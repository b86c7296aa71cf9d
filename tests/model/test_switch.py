"""Relaying (docs/pipeline.md, sections 3 to 8)."""

from itertools import pairwise

import pytest

from wire.codes import VL15, LinkWidth
from wire.registers import Counter, PortRegister, lft_address, sl_to_vl_address
from wire.stimulus import Injection, Trigger
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData, TxData, TxDiscard

HALF = 8  # payload bytes of a packet of 10 words


def relayed(star):
    """(first row in, first row out) of the packets that adapter 1 sent through port 2."""
    sent = [record.c for record in star.of(Kind.TX_DATA, 1)]
    out = [record.c for record in star.of(Kind.TX_DATA, 0, 2)]
    return list(zip((cycle + star.flight for cycle in sent), out, strict=True))


@pytest.mark.parametrize("flight", [1, 5])
def test_the_first_row_crosses_an_idle_switch_in_eight_cycles(star, ready, flight):
    bench = star(2, flight=flight)
    bench.post(ready, 1, 2, payload=256)
    bench.run(2000)
    assert [out - into for into, out in relayed(bench)] == [8]


@pytest.mark.parametrize("width", [LinkWidth.X4, LinkWidth.X1])
def test_a_store_and_forward_switch_waits_for_the_last_row(star, ready, width):
    bench = star(2, forwarding="store-and-forward")
    for node, port in ((0, 1), (1, 1)):
        bench.write_port(node, port, PortRegister.WIDTH, width)
    bench.post(ready, 1, 2, payload=256)
    bench.run(3000)
    ((into, out),) = relayed(bench)
    pitch = 1 if width == LinkWidth.X4 else 4
    assert out - into == pitch * len(bench.words(1, 2, payload=256)) + 7


def test_a_store_and_forward_switch_sends_no_bad_packet_on(star, ready):
    bench = star(2, forwarding="store-and-forward")
    bench.inject(ready, 0, 1, Injection(Trigger.DATA, 20, 20, flip=1))
    bench.post(ready + 10, 1, 2, payload=256)
    bench.run(3000)
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, 1)] == [Verdict.PHYSICAL]
    assert not bench.of(Kind.TX_DATA, 0, 2)
    assert not bench.of(Kind.SCRAP)
    assert not bench.delivered


def test_a_packet_travels_from_host_to_host(star, ready):
    bench = star(2)
    bench.post(ready, 1, 2, payload=HALF)
    bench.run(2000)
    (delivery,) = bench.delivered
    words = bench.words(1, 2, payload=HALF)
    assert delivery.data == b"".join(word.to_bytes(4, "big") for word in words)
    # Taken at 1000, received by row n at c_n = 1001 + 10, joined 2 later, head, grant, read, wire.
    (first,) = [record.c for record in bench.of(Kind.TX_DATA, 1)]
    assert first == ready + 1 + 10 + 2 + 1 + 4
    # Joins with its verdict, 2 cycles after its end row; word 0 leaves with row 1.
    end = first + 1 + 8 + 10 + 1
    (given,) = bench.of(Kind.DELIVER, 2)
    assert given.c == end + 2 + 1 + 1 + 1 + 3
    assert delivery.cycle == given.cycle == given.c + 10 - 1


def test_packets_of_one_flow_follow_each_other_without_a_gap(star, ready):
    bench = star(2)
    for _ in range(5):
        bench.post(ready, 1, 2, payload=256)
    bench.run(3000)
    starts = [record.c for record in bench.of(Kind.TX_DATA, 0, 2)]
    n = len(bench.words(1, 2, payload=256))
    # Two flow control packets may stand between them, one row pair each; the reads overlap by one.
    assert all(later - earlier - (n + 1) in (0, 2) for earlier, later in pairwise(starts))


def test_the_lft_decides_the_output_and_its_absence_is_a_relay_error(star, ready):
    bench = star(3)
    bench.write(0, lft_address(2), 3, ready)
    bench.post(ready + 10, 1, 2, payload=HALF)  # to port 3, whose adapter has another LID
    bench.post(ready + 200, 1, 9, payload=HALF)
    bench.post(ready + 400, 1, 1, payload=HALF)
    bench.read_port(0, 1, Counter.RCV_SWITCH_RELAY_ERRORS, 1900)
    bench.run(2000)
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, 1)] == [
        Verdict.GOOD,
        Verdict.NO_ROUTE,
        Verdict.LOOP,
    ]
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 3)] == [Verdict.DLID]
    assert bench.values() == [2]


def test_the_sl_to_vl_table_moves_a_packet_to_another_vl(star, ready):
    bench = star(2, vls=4)
    bench.write(0, sl_to_vl_address(1, 2, 5), 3, ready)
    bench.write(0, sl_to_vl_address(1, 2, 6), 7, ready + 1)
    bench.post(ready + 10, 1, 2, slot=2, sl=5, payload=HALF)
    bench.post(ready + 100, 1, 2, slot=2, sl=6, payload=HALF)
    bench.run(2000)
    assert [TxData.slot.read(record) for record in bench.of(Kind.TX_DATA, 0, 2)] == [3]
    assert [RxData.vl.read(record) for record in bench.of(Kind.RX_DATA, 2)] == [3]
    assert RxData.verdict.read(bench.of(Kind.RX_DATA, 0, 1)[1]) == Verdict.VL_MAP
    (delivery,) = bench.delivered
    assert delivery.data[0] >> 4 == 3


def test_a_voq_switch_does_not_hold_a_packet_behind_one_for_a_stalled_output(star, ready):
    delivered = {}
    for queueing in ("voq", "fifo"):
        bench = star(
            3, queueing=queueing, readers=1, mtu=256, buffer_blocks=60, adapter={"mtu": 256, "receive_blocks": 7}
        )
        bench.stall(ready, 2, 0b11)
        for _ in range(4):
            bench.post(ready + 10, 1, 2, payload=256)
        bench.post(ready + 20, 1, 3, payload=256)
        bench.run(8000)
        delivered[queueing] = [delivery.node for delivery in bench.delivered]
    assert delivered == {"voq": [3], "fifo": []}


def test_vl15_needs_no_credits_and_goes_first(star, ready):
    bench = star(2, mtu=256, buffer_blocks=7, adapter={"mtu": 256, "receive_blocks": 7})
    bench.stall(ready, 2, 0b01)
    for _ in range(4):
        bench.post(ready + 10, 1, 2, payload=256)
    bench.post(ready + 1500, 1, 2, slot=1, vl=VL15, payload=256)
    bench.run(4000)
    assert [delivery.slot for delivery in bench.delivered] == [1]
    assert bench.delivered[0].data[0] >> 4 == VL15


def test_vl15_without_room_is_dropped(star, ready):
    """While the first leaves by a 1X link the switch has no room for the others."""
    bench = star(2, mtu=256, vl15_blocks=7)
    bench.write_port(0, 2, PortRegister.WIDTH, LinkWidth.X1, ready - 10)
    bench.write_port(2, 1, PortRegister.WIDTH, LinkWidth.X1, ready - 9)
    for _ in range(3):
        bench.post(ready + 10, 1, 2, slot=1, vl=VL15, payload=256)
    bench.read_port(0, 1, Counter.VL15_DROPPED, 3990)
    bench.run(4000)
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, 1)] == [Verdict.GOOD] + [
        Verdict.VL15_DROPPED
    ] * 2
    assert bench.values() == [2]


def test_vl15_for_a_link_in_activedefer_is_swallowed_at_once(star, ready):
    bench = star(2)
    bench.link(ready, 1, up=False)
    bench.post(ready + 10, 1, 2, slot=1, vl=VL15, payload=256)
    bench.run(ready + 400)
    assert len(bench.of(Kind.TX_DISCARD, 0, 2)) == 1
    assert not bench.delivered


def test_a_packet_larger_than_the_neighbour_takes_is_swallowed(star, ready):
    bench = star(2)
    bench.write_port(0, 2, PortRegister.NEIGHBOR_MTU, 1, ready)
    bench.post(ready + 10, 1, 2, payload=512)
    bench.post(ready + 20, 1, 2, payload=256)
    bench.read_port(0, 2, Counter.XMIT_DISCARDS, 2900)
    bench.run(3000)
    assert [TxDiscard.pkt_len.read(record) for record in bench.of(Kind.TX_DISCARD, 0, 2)] == [
        len(bench.words(1, 2, payload=512))
    ]
    assert len(bench.delivered) == 1
    assert bench.values() == [1]


def test_from_1x_to_4x_a_packet_waits_so_that_its_output_never_runs_dry(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.WIDTH, 1, ready - 10)
    bench.write_port(1, 1, PortRegister.WIDTH, 1, ready - 9)
    bench.post(ready, 1, 2, payload=256)
    bench.run(4000)
    n = len(bench.words(1, 2, payload=256))
    ((into, out),) = relayed(bench)
    joined = into + 4 * (n - n // 4) + 2
    assert out == joined + 1 + 4


def test_a_permissive_packet_on_vl15_is_for_the_switch_itself_and_no_other_is(star, ready):
    bench = star(2)
    bench.post(ready, 1, 0xFFFF, slot=1, vl=VL15, payload=256)
    bench.post(ready, 1, 0xC001, slot=1, vl=VL15, payload=256)
    bench.post(ready + 300, 1, 0xFFFF, payload=256)
    bench.run(2000)
    verdicts = [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, 1)]
    assert verdicts == [Verdict.GOOD, Verdict.VL, Verdict.NO_ROUTE]
    assert len(bench.of(Kind.DELIVER, 0, port=0)) == 1
