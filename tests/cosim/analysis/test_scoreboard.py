"""End to end: a packet that is changed, comes twice, late or to another host does not go unseen."""

import pytest

from cosim.analysis.scoreboard import DeliveryCheck
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.flows import scenario_packets
from tests.cosim.analysis.jam_trace import HOST_A, HOST_B, jam
from wire.headers import LRH
from wire.stimulus import Delivery


@pytest.fixture
def check() -> DeliveryCheck:
    run = jam()
    check = DeliveryCheck(run.topology)
    for packet in run.packets:
        check.offer(packet)
    return check


def delivery(number: int, node: int = HOST_B, slot: int = 0, flip: int = 0) -> Delivery:
    data = bytearray(jam().packets[number].data)
    data[80] ^= flip
    return Delivery(cycle=5_000 + number, node=node, slot=slot, data=bytes(data))


def test_all_packets_in_order_are_all_right(check):
    for number in range(5):
        check.deliver(delivery(number))
    assert (check.delivered, check.lost, check.under_way, check.fault_count) == (5, 0, 0, 0)


def test_the_vl_of_the_last_link_is_not_a_change(check):
    first = delivery(0)
    check.deliver(first._replace(data=LRH["vl"].write(first.data, 3)))
    assert check.fault_count == 0


def test_packets_that_others_look_at_are_left_out():
    check = DeliveryCheck(jam().topology, left_out=lambda data: data == delivery(1).data)
    check.deliver(delivery(1))
    assert check.fault_count == 0
    check.deliver(delivery(2))
    assert check.fault_count == 1


def test_an_overtaken_packet_is_lost(check):
    for number in (0, 3):
        check.deliver(delivery(number))
    assert (check.delivered, check.lost, check.under_way, check.fault_count) == (2, 2, 1, 0)


@pytest.mark.parametrize(
    "deliveries",
    [
        [delivery(0), delivery(0)],
        [delivery(1), delivery(0)],
        [delivery(0, flip=1)],
        [delivery(0, node=HOST_A)],
        [delivery(0)._replace(cycle=0)],
        [delivery(0, slot=1)],
    ],
    ids=["twice", "late", "changed", "elsewhere", "before it was sent", "on another VL"],
)
def test_a_wrong_delivery_is_a_fault(check, deliveries):
    for one in deliveries:
        check.deliver(one)
    assert check.fault_count == 1
    assert str(check.faults[0]).startswith(f"cycle {deliveries[-1].cycle}, ")


def test_packets_are_expected_when_they_are_offered():
    run = jam()
    check = DeliveryCheck(run.topology)
    assert check.under_way == 0
    for packet in [*run.packets, run.packets[0]._replace(destination=None, sequence=9)]:
        check.offer(packet)
    assert check.under_way == 5


def test_a_managed_fabric_has_packets_on_vl15_that_are_not_looked_at():
    run = jam()
    on_vl15 = delivery(0)._replace(slot=run.topology.fabric.nodes["B"].vls)
    for managed, faults in ((True, 0), (False, 1)):
        check = DeliveryCheck(run.topology, managed=managed)
        check.deliver(on_vl15)
        assert check.fault_count == faults


def test_packets_of_one_flow_may_overtake_those_to_another_host():
    scenario = uniform_load(3, cycles=20_000, size=64)
    topology = scenario.topology
    packets = list(scenario_packets(scenario, topology, 0, 1))
    first = packets[0]
    other = next(p for p in packets if p.flow == first.flow and p.destination != first.destination)
    check = DeliveryCheck(topology)
    for packet in packets:
        check.offer(packet)
    for packet in (other, first):
        check.deliver(Delivery(19_999, topology.index[packet.destination], packet.slot, packet.data))
    assert (check.delivered, check.lost, check.fault_count) == (2, 0, 0)


@pytest.fixture
def to_a_group():
    """Three hosts, two packets of which H2 and H3 should get one each, and the deliveries of these."""
    scenario = uniform_load(3, cycles=20_000, size=64)
    topology = scenario.topology
    copies = (("H2", 0), ("H3", 0))
    unicast = [packet for packet in scenario_packets(scenario, topology, 0, 1) if packet.source == "H1"][:2]
    packets = [
        packet._replace(
            flow=9, sequence=number, destination=None, copies=copies, data=LRH["dlid"].write(packet.data, 0xC000)
        )
        for number, packet in enumerate(unicast)
    ]

    def delivery(number, host):
        return Delivery(10_000 + number, topology.index[host], 0, packets[number].data)

    return topology, packets, delivery


@pytest.mark.parametrize("misses", [False, True])
def test_a_multicast_packet_is_one_for_each_host_that_should_get_it(to_a_group, misses):
    topology, packets, delivery = to_a_group
    check = DeliveryCheck(topology, misses_multicast=misses)
    for packet in packets:
        check.offer(packet)
    check.deliver(delivery(0, "H2"))
    assert (check.delivered, check.under_way) == (1, 0 if misses else 3)
    check.deliver(delivery(0, "H2"))
    check.deliver(delivery(0, "H1"))
    assert check.fault_count == 2
    check.deliver(delivery(1, "H3"))  # overtakes
    assert (check.delivered, check.lost, check.under_way) == (2, not misses, 0 if misses else 1)
