"""Blocks of a buffer, and when they return (docs/pipeline.md, section 8.1)."""

from model.crossing.buffer import Buffer
from model.packet import Packet


def test_two_readers_done_at_once_release_one_after_the_other():
    heard = []
    buffer = Buffer([10, 10])
    buffer.watch(heard.append)
    packets = [Packet(need=3), Packet(need=4)]
    for slot, packet in enumerate(packets):
        packet.slot_in = slot
        buffer.free[slot] -= packet.need
    for reader in (1, 0):
        buffer.release(1 << reader, packets[reader], 6)
    free = []
    for cycle in (6, 7, 8):
        buffer.settle(cycle)
        free.append(list(buffer.free))
    assert free == [[7, 6], [10, 6], [10, 10]]
    assert set(heard) == {7}
