"""A switch's PMA among its ports: what it answers, and that nobody waits for an answer that cannot leave."""

import pytest

from tests.rtl.switch.bench import FLIGHT, SWITCH, TO_WIRES, Fabric
from tests.rtl.switch.test_switch import make, words
from wire.codes import VL15
from wire.layout import Record
from wire.mad import MadMethod, MadStatus
from wire.mad_packet import gmp_packet, smp_packet
from wire.pma import PERF_MAD, PORT_COUNTERS, PORT_COUNTERS_EXTENDED, PmaAttribute, perf_request
from wire.registers import Counter, CounterHigh, PortRegister, lft_address, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.trace import Kind

pytestmark = pytest.mark.slow

OWN = 5
VL15_SLOT = 1
MAD_START = 28


def in_words(data: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(data[place : place + 4]) for place in range(0, len(data), 4))


def request(method: MadMethod, attribute: PmaAttribute, record: Record) -> tuple[int, ...]:
    """A request of the host at port 1."""
    return in_words(gmp_packet(perf_request(method, attribute, record.pack(), transaction_id=1), 1, OWN).data)


def answers(fabric: Fabric) -> list[bytes]:
    """What the host at port 1 got, in bytes."""
    return [b"".join(word.to_bytes(4) for word in packet) for _, packet in fabric.delivered[0]]


def agent(fabric: Fabric, kind: Kind) -> list[int]:
    return [event.cycle for event in fabric.of(kind, SWITCH) if event.port == 0]


def managed() -> tuple[Fabric, int]:
    """A fabric whose switch has a LID and whose buffers hold one answer, and the cycle from which data flows."""
    fabric = make(buffer_blocks=6)
    ready = fabric.bring_up(5)
    fabric.write(ready - 8, SWITCH, lft_address(OWN), 0)
    return fabric, ready


def test_port_counters_are_those_of_the_bus() -> None:
    fabric, ready = managed()
    counts = {Counter.SYMBOL_ERROR: 0x1234, Counter.LINK_DOWNED: 0x56, Counter.XMIT_WAIT: 0x789A}
    for place, (counter, value) in enumerate(counts.items()):
        fabric.write(ready + 2 * place, SWITCH, port_address(2, counter), value)
    asked = PORT_COUNTERS.record(port_select=2, counter_select=1, symbol_error_counter=7)
    fabric.post(ready, 0, 0, request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, asked))
    fabric.post(ready, 0, 0, request(MadMethod.SET, PmaAttribute.PORT_COUNTERS, asked))
    fabric.read(ready + 1150, SWITCH, port_address(2, Counter.SYMBOL_ERROR))
    fabric.run(ready + 1160)
    before, after = (PORT_COUNTERS.unpack(data, MAD_START + 64) for data in answers(fabric))
    assert (before.symbol_error_counter, before.link_downed_counter, before.port_xmit_wait) == (0x1234, 0x56, 0x789A)
    assert after == before.replace(symbol_error_counter=7)
    assert fabric.answers[SWITCH][-1][1] == 7


def test_a_wrong_icrc_is_an_error_of_the_port_that_it_came_by() -> None:
    fabric, ready = managed()
    *right, icrc = request(MadMethod.GET, PmaAttribute.CLASS_PORT_INFO, PORT_COUNTERS.record())
    fabric.post(ready, 0, 0, (*right, icrc ^ 1))
    n = len(right) + 1
    row_1 = ready + 1 + n + 2 + 1 + 1 + TO_WIRES + FLIGHT + 1  # through the host's adapter
    came = row_1 + 2 + 1 + 1 + n + TO_WIRES
    for cycle in (came + 4, came + 5):
        fabric.read(cycle - 2, SWITCH, port_address(1, Counter.RCV_ERRORS))
    fabric.run(came + 300)
    assert agent(fabric, Kind.DELIVER) == [came]
    assert [value for _, value in fabric.answers[SWITCH]] == [0, 1]
    assert not agent(fabric, Kind.SEND)


def test_data_and_packets_are_counted_beyond_32_bits() -> None:
    fabric, ready = managed()
    packet = words(0, 1, 100)
    for place, (high, port) in enumerate(((CounterHigh.RCV_DATA_HIGH, 1), (CounterHigh.XMIT_PKTS_HIGH, 2))):
        fabric.write(ready + 4 * place, SWITCH, port_address(port, PortRegister.EXTENDED_LOW), 0xFFFF_FFFF)
        fabric.write(ready + 4 * place + 2, SWITCH, port_address(port, high), 0x55)
    fabric.post(ready + 20, 0, 0, packet)
    asked = ready + 150
    for port in (1, 2):
        record = PORT_COUNTERS_EXTENDED.record(port_select=port)
        fabric.post(asked, 0, 0, request(MadMethod.GET, PmaAttribute.PORT_COUNTERS_EXTENDED, record))
    fabric.read(asked - 4, SWITCH, port_address(1, Counter.RCV_DATA))
    fabric.read(asked - 2, SWITCH, port_address(1, CounterHigh.RCV_DATA_HIGH))
    fabric.run(asked + 1160)
    assert [value for _, value in fabric.answers[SWITCH]] == [0xFFFF_FFFF, 0x56]
    first, second = (PORT_COUNTERS_EXTENDED.unpack(data, MAD_START + 64) for data in answers(fabric))
    # The requests themselves have come by port 1.
    asked_words = len(request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, PORT_COUNTERS.record()))
    assert first.port_rcv_data - 0x55_FFFF_FFFF - len(packet) in (asked_words, 2 * asked_words)
    assert second.port_xmit_pkts == 0x56_0000_0000


def test_an_answer_that_finds_no_room_is_dropped_and_the_subnet_manager_gets_through() -> None:
    fabric, ready = managed()
    fabric.stall(ready, 0, 0b01)
    asked = request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, PORT_COUNTERS.record(port_select=1))
    for _ in range(4):
        fabric.post(ready, 0, 0, asked)
    ask_agent = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=2)
    fabric.post(ready + 1900, 0, VL15_SLOT, in_words(smp_packet(ask_agent, 1, OWN).data))
    fabric.stall(ready + 3000, 0, 0)
    fabric.post(ready + 3150, 0, 0, asked)
    fabric.run(ready + 3900)
    # The host's buffer holds one answer; a second waits in the buffer of port 0, two are dropped.
    assert len(agent(fabric, Kind.DELIVER)) == 4 + 1 + 1
    assert len(agent(fabric, Kind.SEND)) == 2 + 1 + 1
    slots = [slot for slot, _ in fabric.delivered[0]]
    assert slots == [VL15_SLOT, *[0] * 3]
    found = [PERF_MAD.unpack(data, MAD_START) for data in answers(fabric)]
    assert {(mad.method, mad.status) for mad in found} == {(MadMethod.GET_RESP, MadStatus.OK)}
    assert in_words(answers(fabric)[0])[0] >> 28 == VL15
