"""The model of a host's clock: as late, as uneven and as lossy as hosts in a laboratory were found to be."""

from collections import Counter

import numpy as np
import pytest

from capture.host_clock import LEAST_PAUSE_US, RECORD_BYTES, RING_PACKETS, WRITTEN_BYTES, HostClock
from capture.published_intervals import PUBLISHED, interval_classes, total_variation
from capture.records import Integers

PACKETS = 65_536
PACKET_BYTES = 2_074
"""RDMA write with 2 KiB, LRH to VCRC."""
STEP_NS = 2_076
"""From one to the next on a 4X link at SDR."""
SMALL_BYTES = 290
SMALL_STEP_NS = 292
MOST_APART = 0.1

EXPERIMENTS = {
    # Time between packets on the link, whether the host sends them, how many flows they are of.
    "one flow, at its sender": (STEP_NS, True, 1),
    "one flow, at its receiver": (STEP_NS, False, 1),
    "one of two flows, at its sender": (2 * STEP_NS, True, 1),
    "one of two flows, at its receiver": (STEP_NS, False, 2),
}


def stamps(clock: HostClock, count: int, step_ns: int, *, sent: bool, length: int = PACKET_BYTES) -> list[int | None]:
    return [clock.stamp(number * step_ns, length, sent=sent) for number in range(count)]


def captured(clock: HostClock, count: int, step_ns: int, *, sent: bool) -> Integers:
    found = stamps(clock, count, step_ns, sent=sent)
    assert clock.lost == 0
    return np.array(found, np.int64)


@pytest.mark.parametrize("host", ["A[1]", "B[1]", "H7[2]"])
@pytest.mark.parametrize("table", EXPERIMENTS)
def test_a_host_has_intervals_as_published(table: str, host: str) -> None:
    step_ns, sent, flows = EXPERIMENTS[table]
    found = captured(HostClock(host), flows * PACKETS, step_ns, sent=sent)
    counts = interval_classes(Counter((np.diff(found[::flows]) // 1_000).tolist()))
    apart = total_variation(counts, PUBLISHED[table])
    print(f"\n{table}, host {host}: {counts}, total variation {apart:.3f}")
    assert apart <= MOST_APART


def test_every_published_table_is_tried() -> None:
    assert EXPERIMENTS.keys() == PUBLISHED.keys()


@pytest.mark.parametrize("sent", [True, False])
def test_stamps_are_late_and_in_order_and_whole_microseconds(sent: bool) -> None:
    found = captured(HostClock("A[1]"), 5_000, STEP_NS, sent=sent)
    assert np.all(found % 1_000 == 0)
    assert np.all(np.diff(found) >= 0)
    assert np.all(found > np.arange(len(found)) * STEP_NS - 1_000)


def test_a_host_writes_2_mib_at_a_time_and_takes_no_packets_meanwhile() -> None:
    found = captured(HostClock("A[1]"), 3_000, STEP_NS, sent=True)
    pauses = np.flatnonzero(np.diff(found) > LEAST_PAUSE_US * 1_000 - 1_000)
    assert np.all(np.abs(np.diff(pauses) - WRITTEN_BYTES / (PACKET_BYTES + RECORD_BYTES)) <= 1)
    assert len(pauses) == 3


@pytest.mark.parametrize("sent", [True, False])
def test_of_short_packets_at_full_rate_a_host_loses_some_and_counts_them(sent: bool) -> None:
    clock = HostClock("A[1]")
    found = stamps(clock, 20_000, SMALL_STEP_NS, sent=sent, length=SMALL_BYTES)
    assert None not in found[:RING_PACKETS]
    assert clock.lost == found.count(None) > 1_000
    assert clock.captured + clock.lost == len(found)
    # Nothing is lost any more once it has caught up.
    assert clock.stamp(10**9, SMALL_BYTES, sent=sent) is not None


def test_as_many_packets_wait_as_the_ring_has_room_for() -> None:
    clock = HostClock("A[1]", ring_packets=7)
    assert [clock.stamp(0, SMALL_BYTES, sent=True) is None for _ in range(9)] == [False] * 7 + [True] * 2


def test_a_host_repeats_itself_and_no_other() -> None:
    first, again, other = (captured(HostClock(host), 500, STEP_NS, sent=True) for host in ("A[1]", "A[1]", "B[1]"))
    assert first.tolist() == again.tolist() != other.tolist()
