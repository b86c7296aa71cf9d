"""Transports in a fabric: messages between hosts, room, time, and the same on every engine."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tests.cosim.hosts.verbs_fabric import VerbsFabric
from tests.verbs.congestion_control.settings import settings_with
from verbs.completions import CompletionStatus
from verbs.hosts import REACTION_CYCLES
from verbs.work import SendOpcode
from wire.packet import rows_of_words
from wire.trace import Kind

MESSAGE = Random(1).randbytes(20_000)


def send(fabric: VerbsFabric) -> None:
    one, two = fabric.ends
    two.receive(0, len(MESSAGE), wr_id=7)
    one.put(0, MESSAGE)
    one.send(0, len(MESSAGE), wr_id=5)


@pytest.mark.parametrize("engine", ["model", "verilator"])
def test_a_message_crosses_a_fabric_and_both_hosts_get_a_completion(engine, tmp_path):
    fabric = VerbsFabric("H1", "H2")
    one, two = fabric.ends
    fabric.run(lambda: send(fabric), lambda: len(one.send_cq) > 0, tmp_path, engine)
    (sent,), (received,) = one.sent(), two.received()
    assert (sent.wr_id, sent.status) == (5, CompletionStatus.SUCCESS)
    assert (received.wr_id, received.status, received.byte_len) == (7, CompletionStatus.SUCCESS, len(MESSAGE))
    assert two.get(0, len(MESSAGE)) == MESSAGE


def test_every_engine_gets_the_same_posts(tmp_path):
    posts = []
    for engine in ("model", "verilator"):
        fabric = VerbsFabric("H1", "H2")
        one = fabric.ends[0]
        fabric.run(lambda fabric=fabric: send(fabric), lambda one=one: len(one.send_cq) > 0, tmp_path / engine, engine)
        posts.append(fabric.posts)
    assert posts[0] == posts[1]
    assert len(posts[0]) > 10


def test_a_packet_is_posted_a_fixed_time_after_the_doorbell(tmp_path):
    fabric = VerbsFabric("H1", "H2")
    rung = []

    def begin() -> None:
        send(fabric)
        rung.append(fabric.finished)

    fabric.run(begin, lambda: len(fabric.ends[0].send_cq) > 0, tmp_path)
    assert fabric.posts[0].cycle == rung[0] + REACTION_CYCLES


def test_congestion_control_spaces_packets_to_the_cycle_also_within_a_step(tmp_path):
    fabric = VerbsFabric("H1", "H2", mtu=256)
    one, two = fabric.ends
    one.adapter.congestion_control[0].set(settings_with(ccti_min=1), 0)

    def begin() -> None:
        for place in range(5):
            one.send(place, 256 * 10, SendOpcode.RDMA_WRITE, to=(two, 0))

    fabric.run(begin, lambda: len(one.send_cq) == 5, tmp_path)
    first_rows, rows, node = 75, 71, fabric.topology.index["H1"]
    cycles = [post.cycle for post in fabric.posts if post.node == node]
    gaps = [later - earlier for earlier, later in pairwise(cycles)]
    assert gaps == ([2 * first_rows] + [2 * rows] * 9) * 4 + [2 * first_rows] + [2 * rows] * 8
    assert 2 * rows < REACTION_CYCLES


def test_one_flow_keeps_its_link_busy(tmp_path):
    fabric = VerbsFabric("H1", "H2")
    one, two = fabric.ends
    size, count = 1 << 16, 16

    def begin() -> None:
        for number in range(count):
            one.send(0, size, SendOpcode.RDMA_WRITE, wr_id=number, to=(two, 0))

    records = fabric.run(begin, lambda: len(one.send_cq) == count, tmp_path)
    source = fabric.topology.index["H1"]
    ends = [record.cycle for record in records if record.kind == Kind.TX_DATA and record.source >> 8 == source]
    packets = size * count // 2048
    assert len(ends) == packets
    # The first packet pays for the credits of the first ACK; then one follows the other.
    in_steady_state = ends[packets // 8 :]
    cycles = (in_steady_state[-1] - in_steady_state[0]) / (len(in_steady_state) - 1)
    words = 2 + 3 + 2048 // 4 + 1
    assert cycles <= rows_of_words(words) / 0.97


def test_what_has_no_answer_is_told_in_simulated_time(tmp_path):
    fabric = VerbsFabric("H1", "H2", timeout=1, retry_cnt=2)
    one, two = fabric.ends
    two.adapter.destroy_qp(two.qp)
    fabric.run(lambda: send(fabric), lambda: len(one.send_cq) > 0, tmp_path)
    (sent,) = one.sent()
    assert sent.status is CompletionStatus.RETRY_EXC_ERR
