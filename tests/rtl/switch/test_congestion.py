"""A switch whose ports are congested: what it marks, what it logs (docs/pipeline.md, section 7.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rtl.switch.bench import SWITCH, Event, Fabric
from tests.rtl.switch.test_switch import make, verdicts
from wire.codes import LNH
from wire.congestion_control import (
    CC_DATA_BYTES,
    CONGESTION_INFO,
    CONGESTION_LOG,
    CONGESTION_LOG_EVENT,
    SWITCH_CONGESTION_INFO,
    SWITCH_CONGESTION_SETTING,
    SWITCH_PORT_CONGESTION_ELEMENT,
    CcAttribute,
    SwitchControl,
)
from wire.crc import icrc
from wire.headers import BTH, GRH, LRH
from wire.layout import Layout, Record
from wire.packet import blocks_of_words
from wire.registers import PortRegister, congestion_address, mft_address, port_address
from wire.trace import Kind, Verdict
from wire.trace_layout import TxData

# Nothing here is for the agents.
pytestmark = pytest.mark.usefixtures("stand_in")

OUT = 3
"""The port that two hosts send to."""

N = 40
"""Words of a packet, of which each host sends a burst; ever more of them wait."""

BURST = 4
ALL = SwitchControl.VICTIM_MASK | SwitchControl.THRESHOLD | SwitchControl.MARKING_RATE
SOONEST = 15
STAMP_CYCLES = 256


def words(source: int, *, lnh: int = LNH.IBA_LOCAL, n: int = N, destination: int = OUT) -> tuple[int, ...]:
    """A packet from adapter to port."""
    body = LRH.pack(sl=source, lnh=lnh, dlid=destination, pkt_len=n, slid=source + 1)
    if lnh == LNH.IBA_GLOBAL:
        body += GRH.pack()
    if lnh >= LNH.IBA_LOCAL:
        body += BTH.pack()
    body = body.ljust(4 * n - 4, b"\x5a")
    body += icrc(body) if lnh >= LNH.IBA_LOCAL else bytes(4)
    return tuple(int.from_bytes(body[place : place + 4]) for place in range(0, 4 * n, 4))


def in_words(record: Record) -> dict[int, int]:
    """The words of an attribute of congestion control that are in its management data or log."""
    content = record.pack().ljust(CC_DATA_BYTES, b"\0")
    return {word: int.from_bytes(content[4 * word : 4 * word + 4]) for word in range(CC_DATA_BYTES // 4)}


def element(**fields: int) -> int:
    return int.from_bytes(SWITCH_PORT_CONGESTION_ELEMENT.pack(fields))


def settings(**fields: int) -> dict[int, int]:
    """Writes of SwitchCongestionSetting, by address."""
    record = SWITCH_CONGESTION_SETTING.record({"control_map": ALL} | fields)
    return {
        congestion_address(CcAttribute.SWITCH_CONGESTION_SETTING, word): value
        for word, value in in_words(record).items()
        if 8 <= word <= 26
    }


def congested(
    writes: dict[int, int], packets: tuple[tuple[int, ...], ...] = (), senders: tuple[int, ...] = (0, 1), **more: Any
) -> tuple[Fabric, int]:
    """A fabric with this written to its switch, and two hosts that have as much for the third as they can send.

    And the cycle from which they do.
    """
    fabric = make(3, **more)
    ready = fabric.bring_up(10) + len(writes)
    for place, (address, value) in enumerate(writes.items()):
        fabric.write(ready - len(writes) + place, SWITCH, address, value)
    for source in senders:
        for packet in packets or (words(source),) * BURST:
            fabric.post(ready + 20, source, 0, packet)
    return fabric, ready + 20


def sent(fabric: Fabric, port: int = OUT) -> list[Event]:
    return [event for event in fabric.of(Kind.TX_DATA, SWITCH) if event.port == port]


def fecn_of(fabric: Fabric, port: int = OUT) -> list[int]:
    """Of each packet that left, whether it was marked."""
    return [event.words[0] >> TxData.fecn.lsb & TxData.fecn.mask for event in sent(fabric, port)]


def fecn_in(packet: tuple[int, ...]) -> int:
    row_of_lnh = {LNH.IBA_LOCAL: 3, LNH.IBA_GLOBAL: 13}
    lnh = packet[0] >> 16 & 3
    return packet[row_of_lnh[LNH(lnh)]] >> 31


def run(fabric: Fabric, ready: int, cycles: int = 2 * BURST * (N + 10) + 150) -> list[int]:
    """Simulate, and say which packets were marked; they say so themselves, and are right."""
    fabric.run(ready + cycles)
    came = [packet for _, packet in fabric.delivered[OUT - 1]]
    marked = fecn_of(fabric)
    assert [fecn_in(packet) for packet in came if packet[0] >> 16 & 3 >= LNH.IBA_LOCAL] == marked
    assert set(verdicts(fabric.of(Kind.RX_DATA, OUT - 1))) == {Verdict.GOOD}, "with right CRCs"
    return marked


@pytest.mark.parametrize("lnh", [LNH.IBA_LOCAL, LNH.IBA_GLOBAL])
def test_what_leaves_others_behind_is_marked(lnh: LNH) -> None:
    fabric, ready = congested(settings(threshold=SOONEST), (words(0, lnh=lnh),) * BURST)
    marked = run(fabric, ready)
    assert len(marked) == 2 * BURST
    assert marked == [1] * (2 * BURST - 1) + [0], "but for the last, behind which nothing waits"


def test_at_reset_nothing_is_marked_nor_with_threshold_0() -> None:
    assert not any(run(*congested({})))
    assert not any(run(*congested(settings(victim_mask=0b1110))))


@pytest.mark.parametrize("threshold", [12, pytest.param(10, marks=pytest.mark.deep)])
def test_a_threshold_is_so_many_sixteenths_of_the_buffer_less(threshold: int) -> None:
    need = blocks_of_words(N)
    limit = 16 * (16 - threshold) // 16
    marked = run(*congested(settings(threshold=threshold)))
    assert 0 < sum(marked) < 2 * BURST - 1
    behind = marked[::-1].index(1)
    assert need * (behind - 1) <= limit < need * (behind + 1), "these leave too little behind"


def test_between_two_that_are_marked_so_many_could_have_been() -> None:
    marked = run(*congested(settings(threshold=SOONEST, marking_rate=2)))
    assert marked[:-1] == [1, 0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("blocks", "marks"),
    [pytest.param(blocks_of_words(N), True, marks=pytest.mark.deep), (blocks_of_words(N) + 1, False)],
)
def test_smaller_packets_are_not_marked(blocks: int, marks: bool) -> None:
    assert any(run(*congested(settings(threshold=SOONEST, packet_size=blocks)))) == marks


@pytest.mark.deep
def test_raw_packets_are_not_marked() -> None:
    fabric, ready = congested(settings(threshold=SOONEST), (words(0, lnh=LNH.RAW),) * BURST)
    fabric.run(ready + 2 * BURST * N)
    assert not any(fecn_of(fabric))


@pytest.mark.deep
def test_a_packet_that_ends_with_the_row_of_its_fecn_is_not_marked() -> None:
    shortest = LRH.record(lnh=LNH.IBA_GLOBAL, dlid=OUT, pkt_len=13, slid=1).pack().ljust(52, b"\x5a")
    packet = tuple(int.from_bytes(shortest[place : place + 4]) for place in range(0, 52, 4))
    fabric, ready = congested(settings(threshold=SOONEST), (packet,) * BURST)
    fabric.run(ready + 2 * BURST * 30)
    assert fecn_of(fabric) == [0] * (2 * BURST)


def test_a_port_has_settings_of_its_own_where_they_are_valid() -> None:
    def own(**fields: int) -> dict[int, int]:
        return {port_address(OUT, PortRegister.CONGESTION): element(**fields)}

    common = settings(threshold=SOONEST)
    assert not any(run(*congested(common | own(valid=1, threshold=0))))
    assert any(run(*congested(own(valid=1, threshold=SOONEST))))
    assert not any(run(*congested(own(valid=1, control_type=1, threshold=SOONEST)))), "about credit starvation"


@pytest.mark.parametrize("victim", [False, True])
def test_what_has_waited_for_credits_is_marked_by_victims_alone(victim: bool) -> None:
    mask = 1 << OUT if victim else 0b111
    fabric, ready = congested(settings(threshold=SOONEST, victim_mask=mask))
    fabric.stall(ready, OUT - 1, 0b01)
    fabric.stall(ready + 600, OUT - 1, 0)
    marked = run(fabric, ready, 1400)
    room = 16 // blocks_of_words(N)
    assert marked[:room] == [1] * room, "with credits"
    assert marked[room] == victim


def test_multicast_packets_are_neither_counted_nor_marked() -> None:
    group = 0xC003
    fabric, ready = congested(settings(threshold=SOONEST), (words(0, destination=group),) * BURST)
    fabric.write(3, SWITCH, mft_address(group, 0), 1 << OUT)
    assert run(fabric, ready) == [0] * (2 * BURST)


def read(fabric: Fabric, cycle: int, attribute: CcAttribute, words: range) -> None:
    for place, word in enumerate(words):
        fabric.read(cycle + place, SWITCH, congestion_address(attribute, word))


def values(fabric: Fabric) -> list[int]:
    return [value for _, value in fabric.answers[SWITCH]]


def record(layout: Layout, read: list[int]) -> Record:
    return layout.unpack(b"".join(value.to_bytes(4) for value in read))


def test_the_log_has_the_latest_first_and_begins_anew_when_it_is_read() -> None:
    fabric, ready = congested(settings(threshold=SOONEST))
    end = ready + 2 * BURST * (N + 10) + 150
    whole = range(55)
    for start in (end, end + 100):
        read(fabric, start, CcAttribute.CONGESTION_LOG, whole)
    fabric.run(end + 200)
    first, again = (record(CONGESTION_LOG, values(fabric)[start : start + 55]) for start in (0, 55))
    marked = [event for event, fecn in zip(sent(fabric), fecn_of(fabric), strict=True) if fecn]
    assert len(marked) == 2 * BURST - 1
    assert first["log_type"] == 1
    assert (first["log_events_counter"], first["port_map"]) == (len(marked), 1 << OUT)
    assert (again["log_events_counter"], again["port_map"]) == (0, 0)
    assert first["current_time_stamp"] == (end + 3) // STAMP_CYCLES
    assert [first[f"event{number}"] for number in range(15)] == [again[f"event{number}"] for number in range(15)]
    for number, event in enumerate(reversed(marked)):
        logged = CONGESTION_LOG_EVENT.from_int(first[f"event{number}"])
        lrh = event.words[4]
        row = event.words[2] + 3
        assert (logged["dlid"], logged["sl"]) == (lrh & 0xFFFF, lrh >> 20 & 15)
        assert logged["slid"] == (1, 2)[event.words[0] >> 16]
        assert logged["time_stamp"] == row // STAMP_CYCLES
    assert not any(first[f"event{number}"] for number in range(len(marked), 15))


def test_the_log_counts_from_0_what_comes_in_the_cycle_in_which_it_is_cleared() -> None:
    fabric, ready = congested(settings(threshold=SOONEST))
    fabric.run(ready + 200)
    first = next(event.words[2] for event, fecn in zip(sent(fabric), fecn_of(fabric), strict=True) if fecn)
    visible = first + 3 + 2
    seen = []
    for given in (visible - 4, visible - 3, visible - 2):
        fabric, _ = congested(settings(threshold=SOONEST))
        fabric.read(given, SWITCH, congestion_address(CcAttribute.CONGESTION_LOG, 0))
        fabric.read(given + 10, SWITCH, congestion_address(CcAttribute.CONGESTION_LOG, 0))
        fabric.run(given + 20)
        seen.append(tuple(value & 0xFFFF for value in values(fabric)))
    assert seen == [(0, 1), (0, 1), (1, 0)]


def test_what_is_not_in_the_control_map_stays_as_it_is() -> None:
    fabric = make(3)
    kept = settings(threshold=7, packet_size=3, marking_rate=9, victim_mask=0xFFFF)
    ignored = settings(control_map=SwitchControl.CREDIT_MASK, threshold=1, packet_size=1, marking_rate=1)
    for cycle, (address, value) in enumerate([*kept.items(), *ignored.items()]):
        fabric.write(cycle + 2, SWITCH, address, value)
    read(fabric, 60, CcAttribute.SWITCH_CONGESTION_SETTING, range(27))
    fabric.run(100)
    found = record(SWITCH_CONGESTION_SETTING, values(fabric))
    assert found.replace(control_map=0) == SWITCH_CONGESTION_SETTING.record(
        threshold=7, packet_size=3, marking_rate=9, victim_mask=0b1110
    )
    assert found["control_map"] == SwitchControl.CREDIT_MASK


def test_what_a_switch_can_do_is_read_and_not_written() -> None:
    fabric = make(3)
    fabric.write(2, SWITCH, congestion_address(CcAttribute.CONGESTION_INFO, 8), 0)
    fabric.read(10, SWITCH, congestion_address(CcAttribute.CONGESTION_INFO, 8))
    fabric.run(20)
    info = in_words(CONGESTION_INFO.record(congestion_info=SWITCH_CONGESTION_INFO))
    assert values(fabric) == [info[8]]


def test_a_ports_element_reads_as_written_but_for_what_is_reserved() -> None:
    fabric = make(3)
    register = port_address(2, PortRegister.CONGESTION)
    for cycle, value in ((2, 0xBFFF_FFFF), (12, 0x4000_0001), (22, 0)):
        fabric.write(cycle, SWITCH, register, value)
        fabric.read(cycle + 1, SWITCH, register)
    fabric.run(40)
    assert values(fabric) == [0x8FFF_FFFF, 0x8FFF_FFFF, 0]


def test_the_clock_counts_256_cycles() -> None:
    fabric = make(3)
    for cycle in (2, 253, 254, 509, 510):
        fabric.read(cycle, SWITCH, congestion_address(CcAttribute.TIME_STAMP, 8))
    fabric.run(520)
    assert values(fabric) == [0, 0, 1, 1, 2]
