"""Port 0 of a switch: what is sent to the agent, and what it sends, cycle by cycle (docs/management.md, 1 and 2)."""

from typing import Any

import pytest

from rtl.management.mad_packet import MAD_WORDS
from tests.rtl.switch.bench import SWITCH, TO_WIRES, Event, Fabric
from tests.rtl.switch.test_switch import X1, make, posted_to_link, starts, verdicts, words
from wire.codes import LID_PERMISSIVE, VL15
from wire.crc import fingerprint
from wire.registers import (
    Counter,
    NodeRegister,
    PortRegister,
    lft_address,
    node_address,
    port_address,
    sl_to_vl_address,
)
from wire.symbols import Control
from wire.trace import Kind, Verdict

pytestmark = [pytest.mark.usefixtures("stand_in"), pytest.mark.slow]

QUEUEING = pytest.mark.parametrize("switch", [{}, {"queueing": "fifo", "readers": 1}], ids=["voq", "fifo"])

VL15_SLOT = 1
TO_AGENT = LID_PERMISSIVE - 1
"""Destination of `words`, which is a LID less 1."""


def to_agent(source: int = 0, **more: Any) -> tuple[int, ...]:
    """A packet to the agent. It has an SMP's length, but another DestQP: the adapters' agents leave it alone."""
    packet = words(source, TO_AGENT, 256, vl=VL15, **more)
    assert len(packet) == MAD_WORDS
    return packet


def content(packet: tuple[int, ...]) -> bytes:
    return b"".join(word.to_bytes(4) for word in packet)


def agent(fabric: Fabric, kind: Kind) -> list[Event]:
    return [event for event in fabric.of(kind, SWITCH) if event.port == 0]


def after(first: Event, second: Event) -> int:
    return second.cycle - first.cycle


@QUEUEING
def test_a_packet_to_the_permissive_lid_goes_to_the_agent_and_what_it_sends_to_a_port(switch: dict[str, Any]) -> None:
    fabric = make(watched=[(SWITCH, 1), (0, 1)], **switch)
    packet = to_agent()
    fabric.post(20, 0, VL15_SLOT, packet)
    fabric.run(450)
    (came,) = starts(fabric.rows[SWITCH, 1], Control.SDP)
    (delivered,), (sent,) = agent(fabric, Kind.DELIVER), agent(fabric, Kind.SEND)
    # h, e, g and x_0 follow row 0.
    x_0 = came + 1 + 2 + 1 + 1
    assert delivered.cycle == x_0 + MAD_WORDS + TO_WIRES
    assert delivered.words == (VL15_SLOT, MAD_WORDS, x_0 + 1 + TO_WIRES, fingerprint(content(packet)), 0)

    # Offered in the next cycle and taken at once; it joins when it is whole. g and x_0 follow e.
    offered = delivered.cycle + 1
    assert (sent.cycle, sent.words[:2]) == (offered + 1, (VL15_SLOT, MAD_WORDS))
    (leaves,) = fabric.of(Kind.TX_DATA, SWITCH)
    assert leaves.words[2] == offered + MAD_WORDS + 3 + 1 + 1 + TO_WIRES
    # Port 0 is the input behind those of the ports.
    assert (leaves.port, leaves.words[0] >> 16) == (1, 2)
    assert fabric.delivered[0] == [(VL15_SLOT, packet)]


@QUEUEING
@pytest.mark.parametrize("vl", [0, VL15])
def test_a_lid_of_port_0_leads_to_the_agent_on_any_vl_whatever_sl_to_vl_says(vl: int, switch: dict[str, Any]) -> None:
    fabric = make(vls=2, **switch)
    ready = fabric.bring_up(5)
    fabric.write(ready - 8, SWITCH, lft_address(5), 0)
    for place, port in enumerate((1, 2)):
        fabric.write(ready - 6 + 2 * place, SWITCH, sl_to_vl_address(1, port, 3), VL15)
    slot = 2 if vl == VL15 else vl
    packet = words(0, 4, 256, vl=vl, sl=3)
    fabric.post(ready, 0, slot, packet)
    fabric.run(ready + 200)
    (received,) = fabric.of(Kind.RX_DATA, SWITCH)
    assert received.words[0] & 0xFF == Verdict.GOOD
    (delivered,) = agent(fabric, Kind.DELIVER)
    assert delivered.words[0] == slot
    assert delivered.words[3] == fingerprint(content(packet))


@QUEUEING
def test_what_the_agent_sends_on_a_data_vl_leaves_on_it(switch: dict[str, Any]) -> None:
    fabric = make(vls=2, **switch)
    ready = fabric.bring_up(5)
    fabric.write(ready - 8, SWITCH, lft_address(5), 0)
    packet = words(0, 4, 256, vl=1)
    # The stand-in sends it back to the adapter, which has LID 5 now.
    fabric.write(ready - 6, 0, node_address(NodeRegister.LID), 5)
    fabric.post(ready, 0, 1, packet)
    fabric.run(ready + 450)
    (sent,) = agent(fabric, Kind.SEND)
    assert sent.words[:2] == (1, MAD_WORDS)
    (left,) = fabric.of(Kind.TX_DATA, SWITCH)
    assert (left.port, left.words[0] & 0xF, left.words[0] >> 16) == (1, 1, 2)
    assert fabric.delivered[0] == [(1, packet)]


def test_the_permissive_lid_is_for_vl15_alone() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    fabric.post(ready, 0, 0, words(0, TO_AGENT, 256))
    fabric.run(ready + 200)
    assert verdicts(fabric.of(Kind.RX_DATA, SWITCH)) == [Verdict.NO_ROUTE]
    assert not agent(fabric, Kind.DELIVER)


def test_a_lid_of_port_0_above_linear_fdb_top_has_no_route() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    fabric.write(ready - 4, SWITCH, lft_address(5), 0)
    fabric.write(ready - 2, SWITCH, node_address(NodeRegister.LINEAR_FDB_TOP), 4)
    fabric.post(ready, 0, 0, words(0, 4))
    fabric.post(ready, 0, VL15_SLOT, words(0, 4, vl=VL15))
    fabric.run(ready + 120)
    assert verdicts(fabric.of(Kind.RX_DATA, SWITCH)) == [Verdict.NO_ROUTE] * 2


@QUEUEING
def test_the_agent_works_on_one_packet_at_a_time(switch: dict[str, Any]) -> None:
    fabric = make(**switch)
    for psn in range(2):
        for source in range(2):
            fabric.post(20, source, VL15_SLOT, to_agent(source, psn=psn))
    fabric.run(900)
    delivered, sent = agent(fabric, Kind.DELIVER), agent(fabric, Kind.SEND)
    assert [event.kind for event in sorted(delivered + sent)] == [Kind.DELIVER, Kind.SEND] * 4
    # The agent is free in the cycle after its last word: g, x_0, and so on to the last row.
    for before, behind in zip(sent, delivered[1:], strict=False):
        assert after(before, behind) == MAD_WORDS + 1 + MAD_WORDS + TO_WIRES
    # The two inputs take turns, and each gets its own packets back.
    back = [event.port for event in fabric.of(Kind.TX_DATA, SWITCH)]
    assert back in ([1, 2, 1, 2], [2, 1, 2, 1])
    for source in range(2):
        assert fabric.delivered[source] == [(VL15_SLOT, to_agent(source, psn=psn)) for psn in range(2)]


def test_vl15_without_room_is_dropped_while_the_agent_is_busy() -> None:
    fabric = make(vl15_blocks=10)
    for psn in range(6):
        fabric.post(20, 0, VL15_SLOT, to_agent(psn=psn))
    fabric.read(700, SWITCH, port_address(1, Counter.VL15_DROPPED))
    fabric.run(900)
    found = verdicts(fabric.of(Kind.RX_DATA, SWITCH))
    # 10 blocks are two packets; a third is with the agent by then.
    dropped = found.count(Verdict.VL15_DROPPED)
    assert found[:4] == [*[Verdict.GOOD] * 3, Verdict.VL15_DROPPED]
    assert [value for _, value in fabric.answers[SWITCH]] == [dropped]
    assert len(agent(fabric, Kind.DELIVER)) == 6 - dropped


def test_from_a_1x_port_words_follow_each_other_without_a_gap() -> None:
    fabric = make(watched=[(SWITCH, 1)])
    width = {PortRegister.WIDTH: X1}
    ready = fabric.bring_up(5, {(0, 1): width, (SWITCH, 1): width})
    packet = to_agent()
    fabric.post(ready, 0, VL15_SLOT, packet)
    fabric.run(ready + 420)
    (came,) = starts(fabric.rows[SWITCH, 1], Control.SDP)
    # Port 0 is 4X: the packet joins when the rest of it arrives in time.
    d = MAD_WORDS - MAD_WORDS // 4
    x_0 = came + 4 * d + 2 + 1 + 1
    (delivered,) = agent(fabric, Kind.DELIVER)
    assert (delivered.words[2], delivered.cycle) == (x_0 + 1 + TO_WIRES, x_0 + MAD_WORDS + TO_WIRES)
    assert delivered.words[3] == fingerprint(content(packet))


def test_a_packet_that_goes_bad_on_its_way_is_delivered_and_dropped_by_the_agent() -> None:
    fabric = make()
    packet = to_agent()
    fabric.post(20, 0, VL15_SLOT, packet)
    place, bits = 20, 0x100
    fabric.flip(posted_to_link(20, packet) + 1 + place, SWITCH, 1, bits << 8)
    fabric.run(250)
    assert verdicts(fabric.of(Kind.RX_DATA, SWITCH)) == [Verdict.PHYSICAL]
    (delivered,) = agent(fabric, Kind.DELIVER)
    # A word is the last three bytes of a row and the first of the next.
    came = list(packet)
    came[place + 1] ^= bits << 16
    assert delivered.words[:2] == (VL15_SLOT, MAD_WORDS)
    assert delivered.words[3] == fingerprint(content(tuple(came)))
    assert not agent(fabric, Kind.SEND)


def test_a_packet_that_ends_early_is_delivered_with_the_words_that_came_and_dropped() -> None:
    fabric = make(watched=[(SWITCH, 1)])
    packet = to_agent()
    fabric.post(20, 0, VL15_SLOT, packet)
    # PktLen says 80 words instead of 72. It is in the rows' second word.
    longer = 80
    row_1 = posted_to_link(20, packet) + 1
    fabric.flip(row_1, SWITCH, 1, (MAD_WORDS ^ longer) << 8)
    fabric.run(250)
    (received,) = fabric.of(Kind.RX_DATA, SWITCH)
    assert received.words[1] == longer | MAD_WORDS << 16
    x_0 = row_1 + 2 + 1 + 1
    (delivered,) = agent(fabric, Kind.DELIVER)
    came = list(packet)
    came[1] ^= (MAD_WORDS ^ longer) << 16
    assert delivered.cycle == x_0 + MAD_WORDS + TO_WIRES
    assert delivered.words[:2] == (VL15_SLOT, longer)
    assert delivered.words[3] == fingerprint(content(tuple(came)))
    assert not agent(fabric, Kind.SEND)


@QUEUEING
def test_a_packet_found_bad_before_the_agent_was_free_is_scrapped(switch: dict[str, Any]) -> None:
    fabric = make(**switch)
    packets = [to_agent(psn=psn) for psn in range(3)]
    for packet in packets:
        fabric.post(20, 0, VL15_SLOT, packet)
    # The second follows the first: its row 0 comes n + 1 cycles later, and one of its rows is damaged.
    fabric.flip(posted_to_link(20, packets[0]) + MAD_WORDS + 1 + 30, SWITCH, 1, 1)
    fabric.run(620)
    assert verdicts(fabric.of(Kind.RX_DATA, SWITCH)) == [Verdict.GOOD, Verdict.PHYSICAL, Verdict.GOOD]
    (scrapped,) = fabric.of(Kind.SCRAP)
    delivered, sent = agent(fabric, Kind.DELIVER), agent(fabric, Kind.SEND)
    assert len(delivered) == len(sent) == 2
    # Granted in the cycle after the agent's last word.
    x_0 = sent[0].cycle + MAD_WORDS + 1
    assert (scrapped.port, scrapped.cycle, scrapped.words[:2]) == (0, x_0 + 2, (VL15_SLOT, MAD_WORDS))
    # The stand-in is free in the cycle after `ended`, x_0 + 3.
    assert delivered[1].cycle == x_0 + 4 + 1 + MAD_WORDS + TO_WIRES
    assert [packet for _, packet in fabric.delivered[0]] == [packets[0], packets[2]]


def test_what_the_agent_sends_leaves_behind_vl15_of_other_inputs_in_turn_and_before_data() -> None:
    fabric = make(3)
    ready = fabric.bring_up(5)
    # Data keeps output 1 busy; the agent's packet waits for the end of one of them only.
    for psn in range(6):
        fabric.post(ready, 1, 0, words(1, 0, 256, psn=psn))
    fabric.post(ready, 0, VL15_SLOT, to_agent())
    fabric.run(ready + 740)
    left = [event.words[0] for event in fabric.of(Kind.TX_DATA, SWITCH) if event.port == 1]
    assert len(left) == 7
    slots, inputs = [word & 0xF for word in left], [word >> 16 for word in left]
    place = slots.index(VL15_SLOT)
    assert inputs == [1] * place + [3] + [1] * (6 - place)
    assert 2 <= place <= 4
