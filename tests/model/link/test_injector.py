"""Error injection (docs/pipeline.md, section 2.1)."""

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
