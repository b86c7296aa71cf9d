"""Error injection (docs/pipeline.md, section 2.1)."""

import pytest

from wire.codes import LinkWidth, PortState
from wire.registers import PortRegister
from wire.stimulus import ROW_MAX, Injection, Trigger
from wire.trace import Kind
from wire.trace_layout import Inject

ALL = (1 << 36) - 1


def data(*, first=0, last=ROW_MAX, at_end=False, keep=ALL, flip=0):
    return Injection(Trigger.DATA, first, last, at_end, keep, flip)


def test_an_operation_replaces_one_that_waits_and_is_lost_to_one_at_work(star, ready):
    bench = star(2)
    bench.inject(ready, 0, 1, data(first=2, last=2, flip=1))
    bench.inject(ready + 1, 0, 1, data(first=4, last=4, flip=1))
    bench.post(ready + 10, 1, 2, payload=256)
    bench.run(ready + 100)  # the packet of 72 words is on the wire
    (injected,) = bench.of(Kind.INJECT)
    assert (Inject.trigger.read(injected), Inject.row.read(injected)) == (Trigger.DATA, 4)


@pytest.mark.parametrize("width_at", [4, 5])
def test_a_packet_whose_end_is_on_no_wire_goes_on_until_another_ends(star, width_at):
    """Of the first flow control packet, due in cycles 6 and 7, nothing comes at 1X; row 0 alone if that shows in 7."""
    bench = star(2, bring_up=False)
    bench.controls.clear()
    bench.write_port(0, 1, PortRegister.WIDTH, LinkWidth.X1, width_at)
    bench.write_port(1, 1, PortRegister.WIDTH, LinkWidth.X1, width_at + 1)
    bench.inject(9, 0, 0, Injection(Trigger.IDLE, keep=0))
    bench.write_port(0, 1, PortRegister.STATE, PortState.ARMED, 40)
    (injected,) = bench.run(100).of(Kind.INJECT, since=0)
    _first, second = bench.of(Kind.TX_FCP, 0, since=0)
    assert injected.cycle == (12 if width_at == 4 else second.cycle + 4)
