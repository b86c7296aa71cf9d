"""The tick of PortXmitWait found from a capture and the counter, which is counted here tick by tick."""

import secrets
from itertools import pairwise
from random import Random

import pytest

from laboratory.wait_tick import WaitTick
from tests.laboratory.captures import follow, rdma_write, write

CYCLE_NS = 4
SIZE = 256
ROWS = 71


def sends(random: Random, packets: int, longest: int) -> list[int]:
    """The first cycle of each packet of a port that waits, now and then, up to so many cycles."""
    starts = [random.randrange(1000)]
    for _ in range(packets - 1):
        starts.append(starts[-1] + ROWS + random.choice((0, 0, random.randint(1, longest))))
    return starts


def counted(starts: list[int], tick: int, phase: int) -> int:
    """What the counter says: ticks in which no cycle has a part of a packet."""
    count = 0
    for before, after in pairwise(starts):
        first = before + ROWS
        begin = first + (phase - first) % tick
        count += max(0, after - begin) // tick
    return count


def waits_of(tmp_path, starts: list[int], random: Random | None = None, port: str = "", since_ns: int = 0) -> WaitTick:
    place = write(tmp_path / "c.pcapng", [rdma_write(0, since_ns + start * CYCLE_NS, size=SIZE) for start in starts])
    return follow(place, lambda capture: WaitTick(capture, port), random)


@pytest.mark.parametrize("tick", [1, 2, 31, 32, 33, 100, 255, 256])
def test_the_tick_is_found(tmp_path, tick):
    starts = sends(Random(tick), 1_000, 20_000)
    waits = waits_of(tmp_path, starts)
    for phase in {0, tick // 2, tick - 1}:
        assert [fit.cycles for fit in waits.best(counted(starts, tick, phase))] == [tick]


def test_stamps_since_1970_are_not_rounded(tmp_path):
    starts = sends(Random(7), 1_000, 2_000)
    waits = waits_of(tmp_path, starts, since_ns=1_700_000_000_123_456_789)
    assert waits.waits == sum(after - before > ROWS for before, after in pairwise(starts))
    assert waits.waited_cycles == sum(after - before - ROWS for before, after in pairwise(starts))
    assert [fit.cycles for fit in waits.best(counted(starts, 32, 5))] == [32]


def test_a_tick_that_nobody_chose_is_found(tmp_path):
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    random = Random(seed)
    for _ in range(10):
        tick, starts = random.randint(1, 256), sends(random, 3_000, 2_000)
        waits = waits_of(tmp_path, starts, random)
        assert waits.waits == sum(after - before > ROWS for before, after in pairwise(starts))
        found = [fit.cycles for fit in waits.best(counted(starts, tick, random.randrange(tick)))]
        # Few waits may leave it between two neighbours.
        assert tick in found
        assert found[-1] - found[0] <= 2 + tick // 50, found


def test_of_each_tick_the_least_and_the_most_are_right(tmp_path):
    starts = sends(Random(5), 60, 700)
    fits = waits_of(tmp_path, starts).fits()
    for tick in (1, 2, 3, 7, 40, 256):
        counts = [counted(starts, tick, phase) for phase in range(tick)]
        assert (fits[tick - 1].least, fits[tick - 1].most) == (min(counts), max(counts))


def test_a_port_that_never_waits_has_no_tick(tmp_path):
    assert waits_of(tmp_path, [ROWS * number for number in range(20)]).waits == 0


@pytest.mark.parametrize("port", ["A", "A[1]", "A[1] -> S[1]"])
def test_a_port_is_chosen_by_its_name(tmp_path, port):
    assert waits_of(tmp_path, [0, 1000, 2000], port=port).waits == 2
    assert waits_of(tmp_path, [0, 1000, 2000], port="B[1]").waits == 0
