"""Congestion control on a switch's register bus (docs/management.md, section 7; docs/pipeline.md, section 10)."""

import pytest

from wire.congestion_control import (
    CC_CLASS_PORT_INFO,
    CC_RESP_TIME,
    CONGESTION_INFO,
    CcAttribute,
    CongestionInfo,
)
from wire.registers import CONGESTION_PAGE, PortRegister, congestion_address

A = CcAttribute
PORTS = 3


@pytest.fixture
def bench(star):
    return star(PORTS, vls=2, bring_up=False)


def window(attribute, word):
    return congestion_address(attribute, word)


def written(bench, attribute, word, value, at):
    bench.write(0, window(attribute, word), value, at)


def words_read(bench, attribute, words=range(56), at=200):
    """What all of these read, one after the other."""
    for cycle, word in enumerate(words, at):
        bench.read(0, window(attribute, word), cycle)
    bench.run(at + 100)
    return bench.values()[-len(words) :]


def data(words):
    return b"".join(word.to_bytes(4, "big") for word in words)


def test_class_port_info(bench):
    info = CC_CLASS_PORT_INFO.unpack(data(words_read(bench, A.CLASS_PORT_INFO)))
    fixed = {"base_version": 1, "class_version": 2, "capability_mask": 1, "resp_time_value": CC_RESP_TIME}
    assert info == CC_CLASS_PORT_INFO.record(fixed)


def test_class_port_info_holds_where_traps_go(bench):
    """One without a GRH: neither GID nor traffic class, flow label and hop limit."""
    for word in range(56):
        written(bench, A.CLASS_PORT_INFO, word, 0xFFFF_FFFF, 100 + word)
    words = words_read(bench, A.CLASS_PORT_INFO)
    traps = {22: 0x00F0_0000, 23: 0xFFFF_FFFF, 24: 0x00FF_FFFF, 25: 0xFFFF_FFFF}
    assert words == [{8: 0x0102_0001, 9: CC_RESP_TIME, **traps}.get(word, 0) for word in range(56)]


@pytest.mark.parametrize("word", [22, 23, 24, 25])
def test_class_port_info_is_written_word_by_word(bench, word):
    written(bench, A.CLASS_PORT_INFO, word, 0x1234_5678, 100)
    words = words_read(bench, A.CLASS_PORT_INFO, range(22, 26))
    held = {22: 0x0030_0000, 23: 0x1234_5678, 24: 0x0034_5678, 25: 0x1234_5678}
    assert words == [held[at] if at == word else 0 for at in range(22, 26)]


def test_class_port_info_is_visible_two_cycles_after_its_write_is_given(bench):
    written(bench, A.CLASS_PORT_INFO, 23, 0x0005_8001, 100)
    # A read gives what is visible two cycles later, so one given in the next cycle is the first behind the write.
    bench.read(0, window(A.CLASS_PORT_INFO, 23), 99)
    bench.read(0, window(A.CLASS_PORT_INFO, 23), 101)
    bench.run(200)
    assert bench.values() == [0, 0x0005_8001]


def test_congestion_info(bench):
    info = CONGESTION_INFO.unpack(data(words_read(bench, A.CONGESTION_INFO)))
    can_do = CongestionInfo.PORT_THRESHOLD | CongestionInfo.PORT_PACKET_SIZE | CongestionInfo.PORT_MARKING_RATE
    assert (info.congestion_info, info.control_table_cap) == (can_do, 0)


@pytest.mark.parametrize("attribute", [A.NOTICE, A.CONGESTION_INFO, A.CONGESTION_LOG, A.TIME_STAMP])
def test_these_take_no_write(bench, attribute):
    for word in range(56):
        written(bench, attribute, word, 0xFFFF_FFFF, 100 + word)
    words = words_read(bench, attribute)
    assert 0xFFFF_FFFF not in words


def test_the_time_stamp_is_that_of_what_is_visible_when_a_read_is(bench):
    for cycle in (253, 254, 10_000):
        bench.read(0, window(A.TIME_STAMP, 8), cycle)
        bench.read(0, window(A.CONGESTION_LOG, 1), cycle + 256)
    bench.run(11_000)
    assert bench.values() == [0, 1, 1, 2, 39, 40]


def test_all_of_the_log_is_0_at_reset_but_its_type_and_its_time(bench):
    words = words_read(bench, A.CONGESTION_LOG, at=0x300)
    assert words == [0x0100_0000, 3, *[0] * 54]


@pytest.mark.parametrize(
    ("word", "holds"),
    [
        (8, 0x1F),
        *((word, 0) for word in range(9, 16)),
        (16, 0b1110),
        *((word, 0) for word in range(17, 25)),
        (25, 0xF0FF_0000),
        (26, 0x0000_FFFF),
        (27, 0),
    ],
)
def test_switch_congestion_setting_holds_what_it_has_fields_for(bench, word, holds):
    written(bench, A.SWITCH_CONGESTION_SETTING, 8, 0x1F, 100)
    written(bench, A.SWITCH_CONGESTION_SETTING, word, 0xFFFF_FFFF, 101)
    words = words_read(bench, A.SWITCH_CONGESTION_SETTING)
    assert words == [holds if at == word else 0x1F if at == 8 else 0 for at in range(56)]


@pytest.mark.parametrize(("word", "bit"), [(16, 0), (25, 2), (26, 4)])
def test_what_control_map_does_not_name_is_not_written(bench, word, bit):
    written(bench, A.SWITCH_CONGESTION_SETTING, 8, 0x1F ^ 1 << bit, 100)
    written(bench, A.SWITCH_CONGESTION_SETTING, word, 0xFFFF_FFFF, 101)
    bench.read(0, window(A.SWITCH_CONGESTION_SETTING, word), 110)
    written(bench, A.SWITCH_CONGESTION_SETTING, 8, 1 << bit, 120)
    written(bench, A.SWITCH_CONGESTION_SETTING, word, 0xFFFF_FFFF, 121)
    bench.read(0, window(A.SWITCH_CONGESTION_SETTING, word), 130)
    bench.run(200)
    before, after = bench.values()
    assert before == 0
    assert after != 0


def test_the_key_and_its_lease_are_written_word_by_word(bench):
    for word in range(12):
        written(bench, A.CONGESTION_KEY_INFO, word, 0xFFFF_FFFF, 100 + word)
    words = words_read(bench, A.CONGESTION_KEY_INFO)
    assert words == [*[0] * 8, 0xFFFF_FFFF, 0xFFFF_FFFF, 0x8000_FFFF, 0, *[0] * 44]


def test_words_of_ports_are_in_no_window(bench):
    for word in range(56):
        written(bench, A.SWITCH_PORT_CONGESTION_SETTING, word, 0x8F00_0000, 100 + word)
    assert not any(words_read(bench, A.SWITCH_PORT_CONGESTION_SETTING))
    for cycle, port in enumerate(range(1, PORTS + 1), 400):
        bench.read_port(0, port, PortRegister.CONGESTION, cycle)
    bench.run(500)
    assert bench.values()[-PORTS:] == [0] * PORTS


@pytest.mark.parametrize("offset", [0, 0x11 << 6 | 63, 0x10 << 6 | 8, 0x19 << 6 | 8, 0xFFFF])
def test_outside_windows_nothing_is_read_or_written(bench, offset):
    address = CONGESTION_PAGE << 16 | offset
    bench.write(0, address, 0xFFFF_FFFF, 100)
    bench.read(0, address, 110)
    bench.run(200)
    assert bench.values() == [0]


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (0x8F02_0003, 0x8F02_0003),
        (0xBFFF_FFFF, 0x8FFF_FFFF),
        (0x0F00_0001, 0x0F00_0001),
        (0xC100_0000, 0x8300_0000),  # credit starvation
    ],
)
def test_a_port_has_an_element(bench, value, holds):
    bench.write_port(0, 2, PortRegister.CONGESTION, 0x8300_0000, 100)
    bench.write_port(0, 2, PortRegister.CONGESTION, value, 110)
    for cycle, port in enumerate((1, 2, 3), 120):
        bench.read_port(0, port, PortRegister.CONGESTION, cycle)
    bench.run(200)
    assert bench.values() == [0, holds, 0]


def test_an_adapter_has_none_of_it(bench):
    places = window(A.CLASS_PORT_INFO, 8), window(A.SWITCH_CONGESTION_SETTING, 8), window(A.CONGESTION_KEY_INFO, 8)
    for cycle, place in enumerate(places, 100):
        bench.write(1, place, 0xFFFF_FFFF, cycle)
        bench.read(1, place, cycle + 10)
    bench.write_port(1, 1, PortRegister.CONGESTION, 0x8F00_0000, 130)
    bench.read_port(1, 1, PortRegister.CONGESTION, 140)
    bench.run(200)
    assert bench.values() == [0, 0, 0, 0]
