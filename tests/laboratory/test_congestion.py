"""Rates over time, and marks."""

import pytest

from laboratory.congestion import Congestion
from laboratory.flow_intervals import FlowKey
from tests.laboratory.captures import follow, rdma_write, write

FLOW = FlowKey(0, 1, 3)


def congestion(tmp_path, packets) -> Congestion:
    return follow(write(tmp_path / "c.pcapng", packets), lambda capture: Congestion())


def test_marks_are_counted(tmp_path):
    packets = [rdma_write(0, 3_000 * number, size=64, fecn=number % 2, becn=number % 5 == 0) for number in range(20)]
    marks = congestion(tmp_path, packets).flows[FLOW]
    assert (marks.packets, marks.fecn, marks.becn) == (20, 10, 4)


def test_a_rate_that_halves_is_seen_to_halve(tmp_path):
    times = [*range(0, 2_076 * 400, 2_076), *range(2_076 * 400, 2_076 * 800, 4_152)]
    found = congestion(tmp_path, [rdma_write(0, time_ns) for time_ns in times])
    starts, rates = found.gbps(FLOW)
    assert starts[1] - starts[0] == found.window_ns
    assert rates[len(rates) // 4] == pytest.approx(8, rel=0.15)
    assert rates[3 * len(rates) // 4] == pytest.approx(4, rel=0.25)
    assert sum(rates) * found.window_ns / 8 == pytest.approx(2_074 * len(times))


def test_windows_stay_few_however_long_a_capture_is(tmp_path):
    found = congestion(tmp_path, [rdma_write(0, 1_000_000 * number, size=0) for number in range(5_000)])
    assert len(found.gbps(FLOW)[0]) <= 128
    assert found.flows[FLOW].bytes == 26 * 5_000
