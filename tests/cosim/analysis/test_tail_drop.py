"""Without credits a full buffer drops: counted for the same packets on the same links."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from cosim.analysis.tail_drop import TailDrop
from cosim.scenario.scenario_file import parse_scenario
from cosim.stimulus.flows import scenario_packets
from cosim.stimulus.packet import Packet
from cosim.topology.topology import Topology
from tests.cosim.analysis.jam_trace import jam

STAR = """
cycles = 100_000
[switches.S]
ports = 3
mtu = 256
buffer_blocks = {room}
[hosts.A]
mtu = 256
[hosts.B]
mtu = 256
[hosts.C]
mtu = 256
receive_blocks = 10
[[links]]
ends = ["A", "S[1]"]
[[links]]
ends = ["B", "S[2]"]
[[links]]
ends = ["C", "S[3]"]
[[flows]]
from = "A"
to = "C"
count = 20
[[flows]]
from = "B"
to = "C"
count = {others}
"""


def sent(packets: Iterable[Packet], topology: Topology, stalls=None) -> TailDrop:
    """What becomes of packets."""
    drops = TailDrop(topology, stalls)
    for packet in packets:
        drops.offer(packet)
    drops.finish()
    return drops


def drops(room: int, others: int, stalls=None) -> TailDrop:
    scenario = parse_scenario(STAR.format(room=room, others=others), "star.toml")
    topology = scenario.topology
    return sent(scenario_packets(scenario, topology, 0, 0), topology, stalls)


def test_the_jam_would_have_cost_two_packets():
    run = jam()
    jammed = sent(run.packets, run.topology)
    assert (jammed.sent, jammed.delivered, jammed.dropped) == (5, 3, 2)


def test_with_room_for_all_nothing_is_dropped():
    run = jam()
    switch = replace(run.topology.fabric.nodes["S"], buffer_blocks=25)
    fabric = replace(run.topology.fabric, nodes={**run.topology.fabric.nodes, "S": switch})
    assert sent(run.packets, replace(run.topology, fabric=fabric)).dropped == 0


def test_one_sender_at_the_pace_of_the_link_loses_nothing():
    assert drops(room=10, others=1).dropped <= 1


def test_two_senders_to_one_host_overflow_a_small_buffer():
    small, large = drops(room=10, others=20), drops(room=200, others=20)
    assert small.sent == large.sent == 40
    assert small.dropped > 5
    assert large.dropped == 0
    assert small.delivered + small.dropped == 40


def test_a_host_that_takes_nothing_loses_what_its_buffer_cannot_hold():
    stalled = drops(room=200, others=1, stalls={"C": [(0, 50_000)]})
    assert stalled.delivered == pytest.approx(2, abs=1)
    assert stalled.dropped == stalled.sent - stalled.delivered
