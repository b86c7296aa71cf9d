"""What becomes of packets between receiver and queue (docs/pipeline.md, sections 3.2 to 3.5)."""

import pytest

from wire.codes import PortState
from wire.registers import Counter, Detail, PortRegister, sl_to_vl_address
from wire.stimulus import Injection, Trigger
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData, TxFcp


def test_data_before_armed_is_dropped_without_a_counter(star, ready):
    """The switch's port is sent back to Initialize in the cycle in which a header comes."""
    bench = star(2)
    bench.post(ready, 1, 2, payload=256)
    row_1 = ready + 1 + 72 + 2 + 1 + 4 + 1 + 1
    bench.write_port(0, 1, PortRegister.STATE, PortState.DOWN, row_1 + 1 - 2)
    bench.run(2000)
    # Down in the cycle after row 1: the packet is cut there, and was not active.
    (packet,) = bench.of(Kind.RX_DATA, 0, 1)
    assert (RxData.verdict.read(packet), RxData.end_row.read(packet), packet.d) == (Verdict.PHYSICAL, 2, 0)


@pytest.mark.parametrize(
    ("dlid", "sl", "payload", "moves"),
    [
        (0, 0, 12, {Counter.RCV_SWITCH_RELAY_ERRORS, Detail.DLID_MAPPING_ERRORS}),
        (9, 0, 12, {Counter.RCV_SWITCH_RELAY_ERRORS, Detail.DLID_MAPPING_ERRORS}),
        (1, 0, 12, {Counter.RCV_SWITCH_RELAY_ERRORS, Detail.LOOPING_ERRORS}),
        (2, 3, 12, {Counter.RCV_SWITCH_RELAY_ERRORS, Detail.VL_MAPPING_ERRORS}),
        (2, 0, 400, {Counter.RCV_ERRORS, Detail.MALFORMED_PACKET_ERRORS}),
    ],
)
def test_one_detail_moves_with_each_error(star, ready, dlid, sl, payload, moves):
    bench = star(2, mtu=256, adapter={"mtu": 512})
    bench.write(0, sl_to_vl_address(1, 2, 3), 5, ready - 5)
    bench.post(ready, 1, dlid, payload=payload, sl=sl)
    counters = (Counter.RCV_ERRORS, Counter.RCV_SWITCH_RELAY_ERRORS, Counter.VL15_DROPPED, *Detail)
    for place, counter in enumerate(counters):
        bench.read_port(0, 1, counter, ready + 500 + place)
    bench.run(ready + 600)
    assert {counter for counter, value in zip(counters, bench.values(), strict=True) if value} == moves


def test_a_late_packet_that_turns_bad_before_it_joins_is_cancelled(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.WIDTH, 1, ready - 10)
    bench.write_port(1, 1, PortRegister.WIDTH, 1, ready - 9)
    bench.inject(ready, 0, 1, Injection(Trigger.DATA, first=5, last=5, flip=8 << 32))
    bench.post(ready + 10, 1, 2, payload=256)
    bench.run(4000)
    (received,) = bench.of(Kind.RX_DATA, 0, 1)
    assert (RxData.verdict.read(received), received.d > 0) == (Verdict.PHYSICAL, True)
    assert not bench.of(Kind.TX_DATA, 0, 2)
    assert not bench.of(Kind.SCRAP, 0, 2)
    # Its blocks came back: what the port announces is what it received and all of its buffer.
    last = bench.of(Kind.TX_FCP, 0, 1)[-1]
    assert TxFcp.fccl.read(last) == 512 + received.d
