"""Packets whose stamps are later than they are come in the order of their stamps."""

from random import Random

from capture.time_order import TimeOrder
from capture.wire_packet import WirePacket


def packet(time_ns: int, direction: int = 0) -> WirePacket:
    return WirePacket(direction, time_ns, False, bytes(30))


def test_a_packet_waits_until_none_can_come_before_it() -> None:
    written: list[WirePacket] = []
    order = TimeOrder(written.append)
    order.add(packet(9))
    order.add(packet(4))
    order.until(4)
    assert written == []
    order.until(9)
    assert written == [packet(4)]
    order.end()
    assert written == [packet(4), packet(9)]


def test_packets_of_one_time_stay_in_the_order_in_which_they_came() -> None:
    written: list[WirePacket] = []
    order = TimeOrder(written.append)
    random = Random(5)
    given = [packet(random.randrange(8), number) for number in range(100)]
    for one in given:
        order.add(one)
    order.end()
    assert written == sorted(given, key=lambda one: one.time_ns)
