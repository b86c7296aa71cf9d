"""Credits followed through a capture: each block is counted, and what is not is seen."""

import secrets
from random import Random

import pytest

from laboratory.credit_trace import CreditTrace
from tests.laboratory.captures import flow_control, follow, rdma_write, write
from wire.flow_control import FlowControlOp
from wire.trace import Delimiter

INIT = FlowControlOp.INIT
BLOCKS = 33


def trace(tmp_path, packets, random: Random | None = None) -> CreditTrace:
    return follow(write(tmp_path / "c.pcapng", packets), lambda capture: CreditTrace(), random)


def test_26_packets_of_2_kib_move_fctbs_as_on_a_real_link(tmp_path):
    data = [rdma_write(0, 10_000 + 2_076 * number) for number in range(26)]
    lane = trace(tmp_path, [flow_control(0, 0, 1404, 9), *data, flow_control(0, 90_000, 2262, 9)]).lanes[0, 0]
    assert (lane.packets, lane.blocks, lane.fctbs, lane.miscounted) == (26, 858, [1404, 2262], 0)


@pytest.mark.parametrize("off", [-1, 1, 33])
def test_a_block_that_is_not_counted_is_seen(tmp_path, off):
    packets = [flow_control(0, 0, 0, 9), rdma_write(0, 100), flow_control(0, 9_000, BLOCKS + off, 9)]
    packets += [rdma_write(0, 10_000), flow_control(0, 20_000, 2 * BLOCKS + off, 9)]
    assert trace(tmp_path, packets).lanes[0, 0].miscounted == 1


def test_counts_go_round_at_4096(tmp_path):
    packets = []
    for number in range(300):
        packets += [flow_control(0, 3_000 * number, BLOCKS * number, 512 + number), rdma_write(0, 3_000 * number + 100)]
    lane = trace(tmp_path, packets).lanes[0, 0]
    assert (lane.fctbs, lane.miscounted) == ([0, 299 * BLOCKS], 0)
    assert lane.fccl == [512, 811]


def test_room_that_a_receiver_takes_back_is_a_step_back(tmp_path):
    packets = [flow_control(1, 0, 0, 512), flow_control(1, 500, 0, 510), flow_control(1, 900, 0, 511)]
    lane = trace(tmp_path, packets).lanes[0, 0]
    assert [(step.blocks, step.count, step.median_ns) for step in lane.steps()] == [(-2, 1, 500), (1, 1, 400)]
    assert lane.fccl == [512, 511]


def test_a_link_that_comes_up_again_counts_from_the_beginning(tmp_path):
    before = [flow_control(0, 0, 0, 512, op=INIT), rdma_write(0, 100), flow_control(0, 9_000, BLOCKS, 545)]
    again = [flow_control(0, 90_000 + 100 * number, 0, 512, op=INIT) for number in range(3)]
    after = [rdma_write(0, 100_000), flow_control(0, 110_000, BLOCKS, 513)]
    lane = trace(tmp_path, [*before, rdma_write(0, 10_000), *again, *after]).lanes[0, 0]
    assert (lane.restarts, lane.miscounted, lane.fctbs) == (1, 0, [0, 2 * BLOCKS])
    assert [(step.blocks, step.count) for step in lane.steps()] == [(1, 1), (33, 1)]
    assert lane.fccl == [512, 546]
    assert lane.period_ns == 100


@pytest.mark.parametrize("damage", [{"ending": Delimiter.CUT}, {"data": bytes(2074)}])
def test_with_a_damaged_packet_on_the_link_nobody_can_say_what_was_counted(tmp_path, damage):
    broken = rdma_write(0, 100, vl=1)._replace(**damage)
    packets = [flow_control(0, 0, 0, 9), flow_control(0, 8, 0, 9, vl=1), broken]
    packets += [flow_control(0, 9_000, BLOCKS, 9), flow_control(0, 9_008, BLOCKS, 9, vl=1)]
    packets += [flow_control(0, 10_000, BLOCKS, 9), flow_control(0, 10_008, BLOCKS + 1, 9, vl=1)]
    lanes = trace(tmp_path, packets).lanes
    assert [(lanes[0, vl].unjudged, lanes[0, vl].miscounted, lanes[0, vl].packets) for vl in (0, 1)] == [
        (1, 0, 0),
        (1, 1, 0),
    ]


def test_a_damaged_flow_control_packet_says_nothing(tmp_path):
    wrong = flow_control(0, 500, 7, 99)
    wrong = wrong._replace(data=wrong.data[:-1] + bytes([wrong.data[-1] ^ 1]))
    lane = trace(tmp_path, [flow_control(0, 0, 0, 9), wrong, flow_control(0, 900, 0, 9)]).lanes[0, 0]
    assert (lane.told, lane.miscounted, lane.fccl) == (2, 0, [9, 9])


def test_the_idle_period_is_that_between_flow_control_packets_without_news(tmp_path):
    packets = [flow_control(1, 48_488 * 4 * number, 0, 512) for number in range(5)]
    packets += [flow_control(1, 1_000_000 + 576 * number, 0, 513 + number) for number in range(9)]
    lane = trace(tmp_path, packets).lanes[0, 0]
    assert lane.period_ns == 193_952
    drains = next(step for step in lane.steps() if step.blocks == 1)
    assert (drains.count, drains.median_ns, drains.least_ns) == (9, 576, 576)


def test_vls_and_directions_are_apart(tmp_path):
    packets = [flow_control(0, 0, 0, 9), flow_control(0, 8, 0, 9, vl=3), rdma_write(0, 20, vl=3)]
    packets += [flow_control(0, 9_000, 0, 9), flow_control(0, 9_008, BLOCKS, 9, vl=3), flow_control(1, 9_500, 7, 9)]
    lanes = trace(tmp_path, packets).lanes
    assert set(lanes) == {(0, 0), (0, 3), (1, 0)}
    assert not any(lane.miscounted for lane in lanes.values())


def test_what_is_found_does_not_depend_on_how_a_capture_is_cut_up(tmp_path):
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    random = Random(seed)
    packets, time_ns, sent, limit = [], 0, {}, {}
    for _ in range(600):
        time_ns += random.randrange(100, 5_000)
        lane = random.randrange(2), random.randrange(3)
        if random.random() < 0.5:
            packets.append(rdma_write(lane[0], time_ns, vl=lane[1], size=random.randrange(0, 2048, 4)))
            sent[lane] = sent.get(lane, 0) + (len(packets[-1].data) + 63) // 64
        else:
            limit[lane] = limit.get(lane, 0) + random.choice((0, 1, 33))
            wrong = random.random() < 0.05
            if random.random() < 0.05:
                packets.append(rdma_write(lane[0], time_ns - 50)._replace(ending=Delimiter.CUT))
            packets.append(flow_control(lane[0], time_ns, sent.get(lane, 0) + wrong, limit[lane], vl=lane[1]))
    whole, pieces = trace(tmp_path, packets), trace(tmp_path, packets, random)
    assert whole.lanes.keys() == pieces.lanes.keys()
    for key, lane in whole.lanes.items():
        other = pieces.lanes[key]
        for name in ("packets", "blocks", "told", "miscounted", "unjudged"):
            assert getattr(lane, name) == getattr(other, name), name
        assert (lane.fctbs, lane.fccl, lane.period_ns) == (other.fctbs, other.fccl, other.period_ns)
        assert list(lane.steps()) == list(other.steps())
    assert any(lane.miscounted for lane in whole.lanes.values())
    assert any(lane.unjudged for lane in whole.lanes.values())
