"""Packets that leave by a congested port with FECN, and the log of them (docs/pipeline.md, section 7.3)."""

from itertools import pairwise

import pytest

from wire.codes import PortState
from wire.congestion_control import CONGESTION_LOG, CcAttribute, SwitchControl
from wire.crc import fingerprint, icrc_good, vcrc
from wire.packet import parse
from wire.registers import PortRegister, congestion_address
from wire.symbols import Control
from wire.trace import Kind
from wire.trace_layout import TxData, TxDiscard

MARKED_ROW = 3
BLOCKS = 24
SLOT_WORD = {"control": 8, "victims": 16, "threshold": 25, "rate": 26}
ELEMENT = 0x8F00_0000
"""Threshold 15, whatever the packet's size, every packet."""


def setting(bench, word, value, at):
    bench.write(0, congestion_address(CcAttribute.SWITCH_CONGESTION_SETTING, SLOT_WORD[word]), value, at)


def log_word(word):
    return congestion_address(CcAttribute.CONGESTION_LOG, word)


@pytest.fixture
def crowd(star, ready):
    """A switch at which hosts 1 and 2 have sent to host 3 for a while, from whom nobody has heard yet."""

    def made(count=20, **more):
        bench = star(3, buffer_blocks=BLOCKS, mtu=256, adapter={"mtu": 256}, **more)
        for source in (1, 2):
            for seed in range(count):
                bench.post(ready, source, 3, payload=64, seed=seed)
        return bench

    return made


def sent(bench, port=3):
    """Their records, and whether they are marked."""
    records = bench.of(Kind.TX_DATA, 0, port)
    return [(record, bool(TxData.fecn.read(record))) for record in records]


def is_told(delivery):
    return bool(parse(delivery.data).bth.fecn)


def test_nothing_is_marked_without_a_threshold(crowd):
    bench = crowd().run(4_000)
    assert len(sent(bench)) == 40
    assert not any(fecn for _, fecn in sent(bench))
    assert not any(is_told(one) for one in bench.delivered)


def test_a_marked_packet_arrives_with_fecn_and_right_crcs(crowd):
    bench = crowd()
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    bench.run(4_000)
    records = sent(bench)
    assert any(fecn for _, fecn in records)
    # The last ones have nothing behind them.
    assert not records[-1][1]
    for (record, fecn), delivery in zip(records, bench.delivered, strict=True):
        assert is_told(delivery) == fecn
        assert icrc_good(delivery.data)
        symbols = bytes([Control.SDP]) + delivery.data + vcrc(delivery.data) + bytes([Control.EGP])
        assert TxData.fingerprint.read(record) == fingerprint(symbols)


def test_marking_ends_with_the_threshold(crowd):
    bench = crowd()
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT & 0x80FF_FFFF, 1_400)
    bench.run(4_000)
    marked = [TxData.first_cycle.read(record) for record, fecn in sent(bench) if fecn]
    assert marked
    # Granted four cycles before, it is crowded two cycles after that.
    assert max(marked) - 4 + 2 < 1_402


def test_a_port_that_has_none_of_its_own_goes_by_the_switchs_setting(crowd):
    bench = crowd()
    setting(bench, "control", sum(SwitchControl), 900)
    setting(bench, "threshold", 15 << 28, 901)
    bench.write_port(0, 3, PortRegister.CONGESTION, 0, 902)
    assert any(fecn for _, fecn in sent(bench.run(4_000)))


def test_its_own_goes_before_the_switchs(crowd):
    bench = crowd()
    setting(bench, "control", sum(SwitchControl), 900)
    setting(bench, "threshold", 15 << 28, 901)
    bench.write_port(0, 3, PortRegister.CONGESTION, 0x8000_0000, 902)
    assert not any(fecn for _, fecn in sent(bench.run(4_000)))


@pytest.mark.parametrize("rate", [1, 2, 5])
def test_between_two_marked_packets_are_so_many_that_could_have_been(crowd, rate):
    bench = crowd(30)
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT | rate, 900)
    numbers = [number for number, (_, fecn) in enumerate(sent(bench.run(6_000))) if fecn]
    assert len(numbers) > 3
    assert {later - earlier for earlier, later in pairwise(numbers)} == {rate + 1}


def test_packets_with_less_blocks_are_not_marked(crowd):
    """Packets of 64 bytes have two blocks."""
    for size, are_marked in ((2, True), (3, False)):
        bench = crowd()
        bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT | size << 16, 900)
        assert any(fecn for _, fecn in sent(bench.run(4_000))) == are_marked


@pytest.mark.parametrize("is_victim_marked", [False, True])
def test_a_port_that_waits_for_credits_is_a_victim(star, ready, is_victim_marked):
    """The host lets nothing go for a while, so that packets before it have to wait for credits, each anew."""
    bench = star(3, buffer_blocks=BLOCKS, mtu=256, adapter={"mtu": 256, "receive_blocks": 6})
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    setting(bench, "control", sum(SwitchControl), 901)
    setting(bench, "victims", is_victim_marked << 3, 902)
    for source in (1, 2):
        for seed in range(8):
            bench.post(ready, source, 3, payload=256, seed=seed)
    bench.stall(ready - 50, 3, 1)
    bench.stall(ready + 2_000, 3, 0)
    bench.run(ready + 6_000)
    late = [fecn for record, fecn in sent(bench) if record.cycle > ready + 2_000]
    assert len(late) > 12
    assert late[0] == is_victim_marked


def test_a_packet_whose_marked_row_is_refused_is_not_logged(crowd):
    """The port goes down while row 0 of a packet that is to be marked is on the wires, but for that as ever."""
    bench = crowd()
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    first = next(TxData.first_cycle.read(record) for record, fecn in sent(bench.run(4_000)) if fecn)
    bench = crowd()
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    bench.write_port(0, 3, PortRegister.STATE, PortState.DOWN, first - 1)
    bench.read(0, log_word(0), first + 300)
    bench.run(first + 400)
    assert not any(fecn for _, fecn in sent(bench))
    discards = bench.of(Kind.TX_DISCARD, 0, 3)
    assert TxDiscard.end_row.read(discards[0]) > MARKED_ROW
    assert bench.values() == [0x0100_0000]


# The log.


def test_an_event_is_in_the_log_two_cycles_after_its_row_is_on_the_wire(crowd):
    bench = crowd()
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    first = next(TxData.first_cycle.read(record) for record, fecn in sent(bench.run(4_000)) if fecn)
    shown = first + MARKED_ROW + 2
    bench = crowd()
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    for word, given in ((0, shown - 3), (0, shown - 2), (9, shown - 1), (10, shown), (12, shown + 1)):
        bench.read(0, log_word(word), given)
    bench.run(4_000)
    values = bench.values()
    assert values[:3] == [0x0100_0000, 0x0100_0001, 1 << 3]
    assert values[3] & 0xFFFF == 3
    assert values[3] >> 16 in (1, 2)
    assert values[4] == (first + MARKED_ROW) // 256


@pytest.mark.parametrize("late", range(4))
def test_a_read_clears_and_an_event_that_shows_then_counts_from_0(crowd, late):
    bench = crowd()
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    marked = [TxData.first_cycle.read(record) for record, fecn in sent(bench.run(4_000)) if fecn]
    second = marked[1] + MARKED_ROW + 2
    bench = crowd()
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    given = second - late
    bench.read(0, log_word(0), given)
    bench.read(0, log_word(0), given + 4)
    bench.read(0, log_word(9), given + 5)
    bench.run(given + 10)
    # What is read is visible two cycles after the read is given; in the next cycle it is cleared.
    seen = given + 2 >= second
    assert bench.values() == [0x0100_0001 + seen, 0x0100_0000 + (not seen), 1 << 3]


def test_the_log_has_the_latest_events_first(crowd):
    bench = crowd(30)
    bench.write_port(0, 3, PortRegister.CONGESTION, ELEMENT, 900)
    for word in range(55):
        bench.read(0, log_word(word), 6_000 + word)
    bench.run(7_000)
    log = CONGESTION_LOG.unpack(b"".join(word.to_bytes(4, "big") for word in bench.values()))
    marked = [record for record, fecn in sent(bench) if fecn]
    assert log.log_events_counter == len(marked) > 15
    stamps = [(TxData.first_cycle.read(record) + MARKED_ROW) // 256 for record in reversed(marked)]
    assert [log[f"event{index}"] & 0xFFFF_FFFF for index in range(15)] == stamps[:15]


def test_of_the_rows_of_a_cycle_the_lowest_ports_is_logged(star, ready):
    """Two outputs in step, each with two inputs of its own."""
    bench = star(6, buffer_blocks=BLOCKS, mtu=256, adapter={"mtu": 256})
    for seed in range(20):
        for source, target in ((1, 2), (3, 2), (4, 5), (6, 5)):
            bench.post(ready, source, target, payload=64, seed=seed)
    for port in (2, 5):
        bench.write_port(0, port, PortRegister.CONGESTION, ELEMENT, 900 + port)
    for word in range(55):
        bench.read(0, log_word(word), 6_000 + word)
    bench.run(7_000)
    log = CONGESTION_LOG.unpack(b"".join(word.to_bytes(4, "big") for word in bench.values()))
    by_port = {port: [record.cycle for record, fecn in sent(bench, port) if fecn] for port in (2, 5)}
    assert by_port[2] == by_port[5]
    assert log.log_events_counter == len(by_port[2]) > 15
    assert {log[f"event{index}"] >> 64 & 0xFFFF for index in range(15)} == {2}
    assert log.port_map == 1 << 2 | 1 << 5
