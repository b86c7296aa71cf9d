"""Two adapters with a switch between them: the packet interface, cycle by cycle."""

import pytest

from tests.rtl.switch.bench import SWITCH, TO_WIRES, Fabric
from tests.rtl.switch.test_switch import make, words
from wire.codes import VL15
from wire.crc import fingerprint
from wire.packet import blocks_of_words
from wire.registers import NodeRegister, PortRegister, lft_address, node_address
from wire.trace import Kind, Verdict

# Nothing here is for the agents.
pytestmark = pytest.mark.usefixtures("stand_in")


def test_packets_of_all_slots_are_taken_in_turn() -> None:
    fabric = make()
    packets = [words(0, 1, 8), words(0, 1, 8, vl=VL15)]
    for _ in range(3):
        for slot, packet in enumerate(packets):
            fabric.post(10, 0, slot, packet)
    fabric.run(100)
    n = len(packets[0])
    sent = [(event.cycle, *event.words[:2]) for event in fabric.of(Kind.SEND)]
    assert sent == [(11 + (n + 1) * place, place % 2, n) for place in range(6)]


def test_a_packet_for_which_there_is_no_room_lets_another_slot_pass() -> None:
    fabric = make()
    narrow = {PortRegister.WIDTH: 1}
    ready = fabric.bring_up(5, {(0, 1): narrow, (SWITCH, 1): narrow})
    large = words(0, 1, 256)
    assert 16 // blocks_of_words(len(large)) == 3
    for _ in range(4):
        fabric.post(ready, 0, 0, large)
    # The first is still passing the slow link when the fourth comes up.
    fabric.post(ready + 225, 0, 1, words(0, 1, 8, vl=VL15))
    fabric.run(ready + 260)
    assert [event.words[0] for event in fabric.of(Kind.SEND)] == [0, 0, 0, 1]


def test_words_come_out_with_the_rows_and_deliver_names_them() -> None:
    fabric = make(watched=[(1, 1)])
    ready = fabric.bring_up(5)
    packet = words(0, 1, 100)
    fabric.post(ready, 0, 0, packet)
    fabric.run(ready + 150)
    (delivered,) = fabric.of(Kind.DELIVER)
    (received,) = fabric.of(Kind.RX_DATA, 1)
    n = len(packet)
    # c_e + 2 is e, the head is visible and granted at e + 1, and word n-1 takes row n.
    x_0 = received.cycle + 1 + 1
    assert delivered.cycle == x_0 + n + TO_WIRES
    content = b"".join(word.to_bytes(4) for word in packet)
    assert delivered.words == (0, n, delivered.cycle - n + 1, fingerprint(content), 0)
    assert fabric.delivered[1] == [(0, packet)]


def test_a_stalled_slot_holds_its_packets_only() -> None:
    fabric = make()
    fabric.stall(5, 1, 0b01)
    ready = fabric.bring_up(6)
    fabric.post(ready, 0, 0, words(0, 1, 8))
    fabric.post(ready, 0, 1, words(0, 1, 8, vl=VL15))
    fabric.stall(ready + 150, 1, 0)
    fabric.run(ready + 200)
    first, second = fabric.of(Kind.DELIVER)
    assert (first.words[0], second.words[0]) == (1, 0)
    # Given in the cycle before: granted at once; word 0 takes row 1.
    x_1 = ready + 150 + 1 + 1
    assert second.words[2] == x_1 + TO_WIRES


def test_a_packet_for_another_lid_is_not_delivered() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    fabric.write(ready - 4, SWITCH, lft_address(5), 2)
    fabric.write(ready - 2, SWITCH, lft_address(3), 2)
    fabric.post(ready, 0, 0, words(0, 4))
    fabric.post(ready, 0, 0, words(0, 2))
    fabric.write(ready, 1, node_address(NodeRegister.LMC), 1)
    fabric.read(ready + 10, 1, node_address(NodeRegister.LMC))
    fabric.read(ready + 11, 1, node_address(NodeRegister.LID))
    fabric.read(ready + 12, 1, node_address(NodeRegister.NUM_PORTS))
    fabric.run(ready + 180)
    # LID 2 with LMC 1 is 2 and 3.
    assert [event.words[0] & 0xFF for event in fabric.of(Kind.RX_DATA, 1)] == [Verdict.DLID, Verdict.GOOD]
    assert fabric.delivered[1] == [(0, words(0, 2))]
    assert fabric.answers[1] == [(ready + 14, 1), (ready + 15, 2), (ready + 16, 1)]


def test_a_bad_packet_is_not_delivered_and_its_blocks_are_free_again() -> None:
    fabric: Fabric = make()
    ready = fabric.bring_up(5)
    for psn in range(5):
        fabric.post(ready, 0, 0, words(0, 1, 256, psn=psn))
    # 16 blocks of buffer are 3 such packets: without the blocks of the bad one the last would never come.
    fabric.stall(ready, 1, 0b01)
    fabric.flip(ready + 120, 1, 1, 1)
    fabric.stall(ready + 400, 1, 0)
    fabric.run(ready + 700)
    received = [event.words[0] & 0xFF for event in fabric.of(Kind.RX_DATA, 1)]
    assert received == [Verdict.PHYSICAL, *[Verdict.GOOD] * 4]
    assert [packet for _, packet in fabric.delivered[1]] == [words(0, 1, 256, psn=psn) for psn in range(1, 5)]
