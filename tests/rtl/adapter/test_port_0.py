"""The agent of an adapter, between its link and its host (docs/management.md, sections 1 and 2).

A stand-in for the agent passes packets on to the other side.
"""

from typing import Any

import pytest

from rtl.management.mad_packet import MAD_WORDS
from tests.rtl.switch.bench import SWITCH, TO_WIRES, Event, Fabric
from tests.rtl.switch.test_switch import X1, make, words
from wire.codes import VL15
from wire.crc import fingerprint
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet, smp_packet
from wire.pma import PmaAttribute, perf_request
from wire.registers import NodeRegister, PortRegister, node_address
from wire.smp import smp_request
from wire.trace import Kind

pytestmark = [pytest.mark.usefixtures("stand_in"), pytest.mark.slow]

VL15_SLOT = 1
LINK, HOST, AGENT = range(3)


def smp(source: int, destination: int, transaction_id: int = 1) -> tuple[int, ...]:
    request = smp_request(MadMethod.GET, 0x11, transaction_id=transaction_id)
    data = smp_packet(request, slid=source + 1, dlid=destination + 1).data
    return tuple(int.from_bytes(data[place : place + 4]) for place in range(0, len(data), 4))


def request(source: int, destination: int, transaction_id: int = 1) -> tuple[int, ...]:
    mad = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, transaction_id=transaction_id)
    data = gmp_packet(mad, source + 1, destination + 1).data
    return tuple(int.from_bytes(data[place : place + 4]) for place in range(0, len(data), 4))


def at(fabric: Fabric, kind: Kind, node: int, port: int) -> list[Event]:
    return [event for event in fabric.of(kind, node) if event.port == port]


def content(packet: tuple[int, ...]) -> bytes:
    return b"".join(word.to_bytes(4) for word in packet)


def test_an_smp_passes_the_agents_of_both_adapters() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    packet = smp(0, 1)
    fabric.post(ready, 0, VL15_SLOT, packet)
    fabric.run(ready + 600)
    assert fabric.delivered[1] == [(VL15_SLOT, packet)]
    digest = fingerprint(content(packet))

    # From the host: it joins when it is whole, e = c_n + 2; g and x_0 follow.
    (posted,), (taken,), (offered,) = (
        at(fabric, Kind.SEND, 0, 1),
        at(fabric, Kind.DELIVER, 0, 0),
        at(fabric, Kind.SEND, 0, 0),
    )
    x_0 = posted.cycle + MAD_WORDS + 2 + 1 + 1
    assert taken.cycle == x_0 + MAD_WORDS + TO_WIRES
    assert taken.words == (VL15_SLOT, MAD_WORDS, x_0 + 1 + TO_WIRES, digest, 0)
    assert offered.cycle == taken.cycle + 2
    (sent,) = fabric.of(Kind.TX_DATA, 0)
    assert sent.words[2] == offered.cycle + MAD_WORDS + 2 + 1 + 1 + TO_WIRES
    assert sent.words[0] >> 16 == AGENT

    # From the link: e = c_e + 2, as the record of what was received.
    (received,), (taken,), (offered,) = (
        fabric.of(Kind.RX_DATA, 1),
        at(fabric, Kind.DELIVER, 1, 0),
        at(fabric, Kind.SEND, 1, 0),
    )
    (delivered,) = at(fabric, Kind.DELIVER, 1, 1)
    assert taken.cycle == received.cycle + 1 + 1 + MAD_WORDS + TO_WIRES
    assert delivered.cycle == offered.cycle + MAD_WORDS + 2 + 1 + 1 + MAD_WORDS + TO_WIRES
    assert delivered.words[3] == taken.words[3] == digest


def test_what_is_no_smp_does_not_meet_the_agent() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    packets = [(0, words(0, 1, 256)), (VL15_SLOT, words(0, 1, 256, vl=VL15)), (VL15_SLOT, words(0, 1, 16, vl=VL15))]
    for slot, packet in packets:
        fabric.post(ready, 0, slot, packet)
    fabric.run(ready + 400)
    assert sorted(fabric.delivered[1]) == sorted(packets)
    assert {event.words[0] >> 16 for event in fabric.of(Kind.TX_DATA, 0)} == {HOST}
    assert {event.port for event in fabric.of(Kind.DELIVER)} == {1}


def test_a_request_from_the_link_goes_to_the_agent_and_one_to_another_lid_to_the_link() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    packet = request(0, 1)
    fabric.post(ready, 0, 0, packet)
    fabric.run(ready + 450)
    # At its own end the request is the host's, from there on the agent's.
    (sent,) = fabric.of(Kind.TX_DATA, 0)
    assert sent.words[0] >> 16 == HOST
    assert not at(fabric, Kind.DELIVER, 0, 0)
    (taken,) = at(fabric, Kind.DELIVER, 1, 0)
    assert (taken.words[0], taken.words[3]) == (0, fingerprint(content(packet)))
    assert fabric.delivered[1] == [(0, packet)]


@pytest.mark.parametrize(
    ("lmc", "lid", "own"), [(0, 1, True), (0, 2, False), (2, 3, True), (2, 4, False), (7, 0, False)]
)
def test_a_hosts_request_for_a_lid_of_its_own_goes_to_the_agent(lmc: int, lid: int, own: bool) -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    fabric.write(ready - 10, 0, node_address(NodeRegister.LMC), lmc)
    if lid == 0:
        fabric.write(ready - 8, 0, node_address(NodeRegister.LID), 0)
    fabric.post(ready, 0, 0, request(0, lid - 1))
    fabric.run(ready + 180)
    (offered,) = at(fabric, Kind.SEND, 0, 1)
    assert offered.words[:2] == (0, MAD_WORDS)
    assert len(at(fabric, Kind.DELIVER, 0, 0)) == own
    if not own:
        (sent,) = fabric.of(Kind.TX_DATA, 0)
        assert sent.words[0] >> 16 == HOST


@pytest.mark.parametrize(("late", "own"), [(0, True), (1, False)])
@pytest.mark.parametrize("register", [NodeRegister.LID, NodeRegister.LMC])
def test_a_lid_counts_as_visible_in_the_cycle_of_the_requests_last_row(
    register: NodeRegister, late: int, own: bool
) -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    # LID 4; with an LMC of 1 its LIDs are 4 and 5.
    fabric.write(ready - 10, 0, node_address(NodeRegister.LID), 4)
    destination, value = {NodeRegister.LID: (8, 8), NodeRegister.LMC: (5, 1)}[register]
    fabric.post(ready, 0, 0, request(0, destination - 1))
    # Taken in the cycle in which it is posted; row r counts as received at a + 1 + r.
    last_row = ready + 1 + MAD_WORDS
    fabric.write(last_row - 2 + late, 0, node_address(register), value)
    fabric.run(ready + 180)
    assert len(at(fabric, Kind.DELIVER, 0, 0)) == own


def test_a_host_that_stalls_is_sent_smps_all_the_same() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    fabric.stall(ready, 1, 1 | 1 << VL15_SLOT)
    for psn in range(3):
        fabric.post(ready, 0, 0, words(0, 1, 200, psn=psn))
    fabric.post(ready, 0, VL15_SLOT, smp(0, 1))
    fabric.stall(ready + 700, 1, 0)
    fabric.run(ready + 950)
    first, *data = at(fabric, Kind.DELIVER, 1, 1)
    assert first.words[0] == VL15_SLOT
    assert first.cycle < ready + 700
    assert [event.words[0] for event in data] == [0, 0, 0]
    assert all(event.cycle > ready + 700 for event in data)


def test_smps_of_the_host_and_of_the_link_take_turns() -> None:
    fabric = make()
    ready = fabric.bring_up(5)
    count = 4
    for number in range(count):
        for source, destination in ((0, 1), (1, 0)):
            fabric.post(ready + 100 * number, source, VL15_SLOT, smp(source, destination, number))
    fabric.run(ready + 1450)
    for source, destination in ((0, 1), (1, 0)):
        expected = [(VL15_SLOT, smp(source, destination, number)) for number in range(count)]
        assert fabric.delivered[destination] == expected


def test_an_agents_packet_leaves_on_a_1x_link() -> None:
    fabric = make()
    width: dict[Any, dict[int, int]] = {end: {PortRegister.WIDTH: X1} for end in ((0, 1), (SWITCH, 1))}
    ready = fabric.bring_up(5, width)
    fabric.post(ready, 0, VL15_SLOT, smp(0, 1))
    fabric.run(ready + 850)
    assert fabric.delivered[1] == [(VL15_SLOT, smp(0, 1))]
    (sent,) = fabric.of(Kind.TX_DATA, 0)
    assert sent.words[2] % 4 == 0
    assert sent.cycle == sent.words[2] + 4 * MAD_WORDS


def test_a_second_of_the_lease_can_be_written_but_not_to_0() -> None:
    fabric = make()
    address = node_address(NodeRegister.LEASE_SECOND)
    for node in (0, SWITCH):
        fabric.read(10, node, address)
        fabric.write(11, node, address, 0xFFFF_FFFF)
        fabric.write(12, node, address, 0)
        fabric.read(13, node, address)
    fabric.run(30)
    for node in (0, SWITCH):
        assert fabric.answers[node] == [(14, 250_000_000), (17, 0xFFFF_FFFF)]
