"""The buffer of a switch found from outside: an ideal switch, made here, that sends two flows in turn."""

import secrets
from itertools import count
from random import Random

import pytest

from capture.wire_packet import Direction, Way
from laboratory.buffer_size import BufferSize
from tests.laboratory.captures import LINKS, follow, rdma_write, write

PACE = 2_076


def ideal_switch(room: int, later_ns: int, packets: int, news_ns: int) -> list[tuple[int, int]]:
    """(start, sender) of what two hosts send whose packets a switch of ROOM packets a port sends to a third in turn.

    NEWS_NS after a packet has left its sender hears of it.
    """
    sent: list[list[int]] = [[], []]
    left: list[list[int]] = [[], []]
    free_at, last = 0, 1
    link_free = [0, later_ns]
    for _ in range(2 * packets):
        # Each host sends what it may by the packets that have left so far.
        for host in (0, 1):
            while len(sent[host]) < min(packets, len(left[host]) + room):
                before = len(sent[host]) - room
                allowed = left[host][before] + news_ns if before >= 0 else 0
                start = max(link_free[host], allowed)
                sent[host].append(start)
                link_free[host] = start + PACE
        waiting = [host for host in (0, 1) if len(left[host]) < len(sent[host])]
        arrives = {host: sent[host][len(left[host])] for host in waiting}
        ready = [host for host in waiting if arrives[host] <= free_at]
        if ready:
            host = next(host for host in (1 - last, last) if host in ready)
        else:
            host = min(waiting, key=lambda one: arrives[one])
        free_at = max(free_at, arrives[host]) + PACE
        left[host].append(free_at)
        last = host
    return sorted((start, host) for host in (0, 1) for start in sent[host])


def held(tmp_path, sends, random: Random | None = None, vl: int = 0, since_ns: int = 0) -> dict[int, float]:
    packets = [rdma_write(2 * host, since_ns + start, vl=vl) for start, host in sends]
    place = write(tmp_path / "c.pcapng", packets)
    return follow(place, BufferSize, random).packets_held(vl)


@pytest.mark.parametrize("room", [1, 2, 3, 15, 62, 124])
def test_the_buffer_is_found_to_within_a_packet(tmp_path, room):
    found = held(tmp_path, ideal_switch(room, later_ns=100_003, packets=4 * room + 60, news_ns=300))
    assert len(found) == 2
    assert all(round(packets) == room for packets in found.values()), found


def test_a_buffer_and_a_time_that_nobody_chose_are_found(tmp_path):
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    random = Random(seed)
    for _ in range(20):
        room, later_ns = random.randint(1, 60), random.randint(50_000, 150_000)
        sends = ideal_switch(room, later_ns, 4 * room + 60 + later_ns // PACE, random.randint(20, 600))
        found = held(tmp_path, sends, random, vl=random.randrange(8))
        assert [round(packets) for packets in found.values()] == [room, room], (room, later_ns, found)


def test_stamps_since_1970_are_not_rounded(tmp_path):
    sends = ideal_switch(15, later_ns=100_003, packets=200, news_ns=300)
    assert held(tmp_path, sends, since_ns=1_700_000_000_123_456_789) == held(tmp_path, sends)


def test_senders_that_wait_for_others_than_each_other_tell_nothing(tmp_path):
    # The earlier one is done with waiting before the later one has sent much: at their pace more would have left.
    earlier = [(number * 2_076, 0) for number in range(97)] + [(203_400 + number * 4_152, 0) for number in range(100)]
    later = [(200_000 + number * 9_000, 1) for number in range(20)] + [
        (380_000 + number * 4_152, 1) for number in range(60)
    ]
    assert held(tmp_path, sorted(earlier + later)) == {}


def test_where_only_one_waits_nothing_is_told(tmp_path):
    sends = [(number * PACE, 0) for number in range(300)] + [(100_000 + number * 4_152, 1) for number in range(120)]
    assert held(tmp_path, sorted(sends)) == {}


def test_what_a_host_captured_itself_is_on_no_link(tmp_path):
    directions = [*LINKS, Direction("A[1] host", is_host=True)]
    sends = ideal_switch(3, later_ns=100_003, packets=100, news_ns=300)
    packets = [rdma_write(3, start // 1_000 * 1_000)._replace(way=Way.OUT) for start, host in sends if not host]
    packets = sorted([*packets, *(rdma_write(2 * host, start) for start, host in sends)], key=lambda one: one.time_ns)
    found = follow(write(tmp_path / "c.pcapng", packets, directions), BufferSize).packets_held(0)
    assert [round(number) for number in found.values()] == [3, 3]


def test_hosts_that_never_wait_tell_nothing(tmp_path):
    apart = [(start * PACE, 0) for start in range(50)] + [(start * PACE, 1) for start in range(60, 110)]
    assert held(tmp_path, apart) == {}


def test_one_host_alone_tells_nothing(tmp_path):
    assert held(tmp_path, [(start * 4_152, 0) for start in range(50)]) == {}


def test_the_ideal_switch_is_fair_and_full():
    sends = ideal_switch(5, 100_000, 200, 0)
    both = [host for start, host in sends if 150_000 < start < 400_000]
    assert abs(both.count(0) - both.count(1)) <= 1
    times = [start for start, host in sends if host == 1]
    slow = next(number for number in count(1) if times[number] - times[number - 1] > PACE)
    assert 9 <= slow <= 11
