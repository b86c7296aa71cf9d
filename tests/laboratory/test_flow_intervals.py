"""Times between the packets of a flow, and in what order flows take turns."""

import secrets
from collections import Counter
from itertools import groupby
from random import Random

from laboratory.flow_intervals import FlowIntervals, FlowKey
from tests.laboratory.captures import follow, rdma_write, write


def intervals(tmp_path, packets, random: Random | None = None) -> FlowIntervals:
    return follow(write(tmp_path / "c.pcapng", packets), lambda capture: FlowIntervals(), random)


def test_a_flow_alone_has_the_interval_of_its_link(tmp_path):
    found = intervals(tmp_path, [rdma_write(0, 2_076 * number, size=64) for number in range(100)])
    times = found.flows[FlowKey(0, 1, 3)]
    assert (times.packets, times.usual_ns, times.mean_ns, times.usual_share) == (100, 2_076, 2_076, 1.0)
    assert times.microseconds == {2: 99}
    assert found.turns == {0: Counter()}


def test_flows_that_take_turns_are_fair_to_the_packet(tmp_path):
    found = intervals(tmp_path, [rdma_write(0, 2_076 * number, slid=1 + number % 2, size=64) for number in range(100)])
    assert {key.slid: times.usual_ns for key, times in found.flows.items()} == {1: 4_152, 2: 4_152}
    assert found.turns == {0: {1: 98}}


def test_what_is_found_does_not_depend_on_how_a_capture_is_cut_up(tmp_path):
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    random = Random(seed)
    time_ns, packets = 0, [rdma_write(0, 0, size=16)]
    for _ in range(500):
        time_ns += random.choice((300, 2_076, 50_000))
        packets.append(rdma_write(random.randrange(2), time_ns, slid=random.randint(1, 3), size=16))
    whole, pieces = intervals(tmp_path, packets), intervals(tmp_path, packets, random)
    assert whole.flows == pieces.flows
    assert whole.turns == pieces.turns
    for direction in (0, 1):
        order = [packet.data[6:8] for packet in packets if packet.direction == direction]
        turns = [len(list(turn)) for _, turn in groupby(order)]
        assert whole.turns[direction] == Counter(turns[1:-1])
