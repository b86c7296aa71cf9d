"""What becomes of packets between receiver and queue (docs/pipeline.md, sections 3.2 to 3.5)."""

from wire.codes import PortState
from wire.registers import PortRegister
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
