"""A port's tables by Get and Set (docs/management.md, section 4.1)."""

import pytest

from tests.model.management.agent_bench import BLOCK, IDENTITY, START, Bench
from wire.mad import MadStatus
from wire.parameters import AdapterParameters, SwitchParameters
from wire.port_tables import GUID_INFO, P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE, VL_ARBITRATION_TABLE
from wire.registers import (
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    p_key_address,
    sl_to_vl_address,
    vl_arbitration_address,
)
from wire.sma import SmaAttribute

A = SmaAttribute


def test_guid_0_is_the_port_s(switch):
    first = GUID_INFO.pack([IDENTITY.port_guid])
    assert switch.read(A.GUID_INFO) == (MadStatus.OK, first)
    guids = GUID_INFO.pack([99, 1, 2, 3, 4, 5, 6, 7])
    assert switch.write(A.GUID_INFO, guids) == (MadStatus.OK, first[:8] + guids[8:])
    assert switch.read(A.GUID_INFO) == (MadStatus.OK, first[:8] + guids[8:])


@pytest.mark.parametrize(
    ("attribute", "same", "others"),
    [
        (A.P_KEY_TABLE, [0, 1 << 16, 0xFFFF << 16], [1, 0xFFFF]),
        (A.SL_TO_VL_MAPPING_TABLE, [0, 0x101, 0xFFFF_FFFF], []),
        (A.VL_ARBITRATION_TABLE, [1 << 16, 1 << 16 | 1, 1 << 16 | 0xFFFF], [0, 1, 2 << 16, 4 << 16]),
        (A.LED_INFO, [0, 1], [2, 1 << 31]),
        (A.PORT_INFO, [0, 1, 1 << 31, 1 << 31 | 1], [2, 1 << 31 | 2]),
    ],
)
def test_an_adapter_has_one_port(adapter, attribute, same, others):
    adapter.write(attribute, b"\x80" + bytes(63), same[0])
    assert len({adapter.read(attribute, modifier) for modifier in same}) == 1
    assert adapter.read(attribute, same[0])[1][0] == 0x80
    for modifier in others:
        assert adapter.read(attribute, modifier)[0] == MadStatus.INVALID_ATTRIBUTE_VALUE


def test_the_halves_of_an_adapter_s_vl_arbitration_are_two(adapter):
    adapter.write(A.VL_ARBITRATION_TABLE, BLOCK, 1 << 16)
    assert adapter.read(A.VL_ARBITRATION_TABLE, 3 << 16) == (MadStatus.OK, bytes(64))


def test_an_sl_to_vl_table_is_written_sl_by_sl(switch):
    data = SL_TO_VL_MAPPING_TABLE.pack(range(16))
    switch.write(A.SL_TO_VL_MAPPING_TABLE, data, 2 << 8 | 3)
    assert switch.of("write") == [
        (START + 16 + 8 * (sl // 8) + 2 + sl % 8, sl_to_vl_address(2, 3, sl), sl) for sl in range(16)
    ]


@pytest.mark.parametrize("modifier", [0, 3, 2 << 8])
def test_port_0_has_no_sl_to_vl_registers(switch, modifier):
    switch.write(A.SL_TO_VL_MAPPING_TABLE, BLOCK, modifier)
    assert not switch.of("write")


def test_the_p_keys_of_a_switch_s_port_are_written_one_by_one(switch):
    data = P_KEY_TABLE.pack([0xFFFF - entry for entry in range(32)])
    assert switch.write(A.P_KEY_TABLE, data, 3 << 16) == (MadStatus.OK, data)
    assert switch.of("write") == [
        (START + 16 + 8 * (entry // 2) + 2 + entry % 2, p_key_address(3, entry), 0xFFFF - entry) for entry in range(32)
    ]


@pytest.mark.parametrize("port", [0, 3, 5])
def test_a_set_of_a_switch_s_p_keys_has_long_slots_whatever_the_port(switch, port):
    switch.write(A.P_KEY_TABLE, BLOCK, port << 16)
    assert switch.of("offer")[0][0] == START + 16 + 8 * 16 + 3 * 16 + 8


def test_port_0_has_no_p_key_registers(switch):
    switch.write(A.P_KEY_TABLE, BLOCK, 0)
    assert switch.read(A.P_KEY_TABLE, 0) == (MadStatus.OK, BLOCK)
    assert not switch.of("write")


def test_an_adapter_stores_its_p_keys_in_short_slots(adapter):
    adapter.write(A.P_KEY_TABLE, BLOCK, 0)
    assert adapter.of("offer")[0][0] == START + 16 + 3 * 16 + 3 * 16 + 8


def test_an_adapter_writes_no_table(adapter):
    for attribute, modifier in ((A.SL_TO_VL_MAPPING_TABLE, 0x101), (A.P_KEY_TABLE, 0), (A.GUID_INFO, 0)):
        adapter.write(attribute, BLOCK, modifier)
    assert not adapter.of("write")


@pytest.mark.parametrize(("vls", "entries"), [(1, 0), (2, 8), (4, 8), (8, 16), (15, 16)])
@pytest.mark.parametrize(("block", "offset"), [(1, VL_ARBITRATION_LOW), (3, VL_ARBITRATION_HIGH)])
@pytest.mark.parametrize("is_switch", [False, True])
def test_the_entries_that_a_port_has_of_its_vl_arbitration_are_written_one_by_one(
    is_switch, block, offset, vls, entries
):
    """Without the four bits that are reserved, which are read back as the other entries are."""
    kind = SwitchParameters if is_switch else AdapterParameters
    bench = Bench(kind(vls=vls))
    data = VL_ARBITRATION_TABLE.pack([place << 12 | place % 16 << 8 | 255 - place for place in range(16)] * 2)
    assert bench.write(A.VL_ARBITRATION_TABLE, data, block << 16 | 3) == (MadStatus.OK, data)
    port = 3 if is_switch else 1
    assert bench.of("write") == [
        (
            START + 16 + 8 * (place // 2) + 2 + place % 2,
            vl_arbitration_address(port, offset, place),
            place << 8 | 255 - place,
        )
        for place in range(entries)
    ]
    # The slots of words with accesses have eight steps, all others three.
    steps = 16 + 8 * (entries // 2) + 3 * (16 - entries // 2) + 3 * 16 + 8
    assert bench.of("offer")[0][0] == START + steps
