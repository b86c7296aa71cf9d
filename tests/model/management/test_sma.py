"""Every attribute of the agent, by Get and Set (docs/management.md, section 4.1)."""

import pytest

from tests.model.management.agent_bench import ADAPTER, IDENTITY, SWITCH, Bench, change, get
from wire.mad import MadMethod, MadStatus, mad_data
from wire.node_info import NODE_INFO, NodeType, node_description_text
from wire.parameters import SwitchParameters
from wire.port_tables import GUID_INFO, P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE
from wire.registers import NodeRegister, lft_address, node_address, sl_to_vl_address
from wire.sma import SMA_ATTRIBUTES, SmaAttribute
from wire.switch_info import SWITCH_INFO

START = 104
BLOCK = bytes(range(64))
A = SmaAttribute

BOTH = {A.NODE_DESCRIPTION, A.NODE_INFO, A.GUID_INFO, A.PORT_INFO, A.P_KEY_TABLE, A.SL_TO_VL_MAPPING_TABLE}
BOTH |= {A.VL_ARBITRATION_TABLE, A.VENDOR_DIAG, A.LED_INFO}
SWITCHES = {A.SWITCH_INFO, A.LINEAR_FORWARDING_TABLE, A.MULTICAST_FORWARDING_TABLE}
MODIFIERS = {A.VL_ARBITRATION_TABLE: 0x10001, A.LED_INFO: 1}
"""Where 0 is not allowed."""


def read(bench, attribute, modifier=0):
    """Status and data that a Get is answered."""
    answer = bench.carry_out(get(attribute, modifier))
    return answer.status, mad_data(answer)


def write(bench, attribute, data, modifier=0):
    answer = bench.carry_out(change(attribute, data, modifier))
    return answer.status, mad_data(answer)


def padded(data):
    return data.ljust(64, b"\0")


# What there is.


@pytest.mark.parametrize("attribute", [*SMA_ATTRIBUTES, 0, 0xFF00])
@pytest.mark.parametrize("is_switch", [True, False])
def test_the_attributes_of_a_node(attribute, is_switch):
    bench = Bench(SWITCH if is_switch else ADAPTER)
    known = attribute in BOTH or (is_switch and attribute in SWITCHES)
    if attribute == A.SM_INFO and not is_switch:
        bench.ask(get(attribute))
        assert bench.run().answer().method == MadMethod.GET, "it goes to the host"
        return
    for data in (bytes(64), BLOCK):
        request = get(attribute, MODIFIERS.get(attribute, 0)).replace(data=int.from_bytes(data, "big"))
        answer = bench.carry_out(request)
        assert answer.status == (MadStatus.OK if known else MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
        assert known or mad_data(answer) == data


@pytest.mark.parametrize("attribute", [A.NODE_DESCRIPTION, A.NODE_INFO, A.VENDOR_DIAG])
def test_what_a_node_is_cannot_be_set(switch, attribute):
    before = read(switch, attribute)
    assert write(switch, attribute, BLOCK) == (MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED, BLOCK)
    assert read(switch, attribute) == before


@pytest.mark.parametrize("attribute", [A.NODE_DESCRIPTION, A.NODE_INFO, A.SWITCH_INFO, A.GUID_INFO, A.VENDOR_DIAG])
@pytest.mark.parametrize("modifier", [1, 1 << 16, 1 << 31])
def test_an_attribute_without_modifier_has_none(switch, attribute, modifier):
    data = bytes(64)
    assert read(switch, attribute, modifier) == (MadStatus.INVALID_ATTRIBUTE_VALUE, data)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_class_version_is_answered_so(switch, version):
    answer = switch.carry_out(get(0, class_version=version, attribute_modifier=99))
    assert answer.status == MadStatus.BAD_VERSION


def test_a_directed_answer_s_status_leaves_room_for_d(switch):
    answer = switch.carry_out(get(0))
    assert (answer.d, answer.status) == (1, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


# What a node is.


@pytest.mark.parametrize(("arrival", "local_port"), [(1, 1), (4, 4)])
def test_node_info_of_a_switch(switch, arrival, local_port):
    answer = switch.carry_out(get(A.NODE_INFO), arrival=arrival)
    assert NODE_INFO.unpack(mad_data(answer)) == NODE_INFO.record(
        node_type=NodeType.SWITCH,
        num_ports=4,
        system_image_guid=IDENTITY.node_guid,
        node_guid=IDENTITY.node_guid,
        port_guid=IDENTITY.port_guid,
        partition_cap=32,
        device_id=0x1B00,
        revision=1,
        local_port_num=local_port,
    )


@pytest.mark.parametrize("arrival", [0, 1])
def test_node_info_of_an_adapter(adapter, arrival):
    info = NODE_INFO.unpack(mad_data(adapter.carry_out(get(A.NODE_INFO), arrival=arrival)))
    assert (info.node_type, info.num_ports, info.local_port_num) == (NodeType.CA, 1, 1)


def test_node_description(switch):
    assert node_description_text(read(switch, A.NODE_DESCRIPTION)[1]) == IDENTITY.description


def test_vendor_diag_knows_nothing(switch):
    assert read(switch, A.VENDOR_DIAG) == (MadStatus.OK, bytes(64))


# SwitchInfo.


def switch_info(bench):
    return SWITCH_INFO.unpack(read(bench, A.SWITCH_INFO)[1])


RESET = SWITCH_INFO.record(linear_fdb_cap=100, multicast_fdb_cap=64, linear_fdb_top=99, partition_enforcement_cap=32)


def test_switch_info_at_reset(switch):
    assert switch_info(switch) == RESET


def test_what_a_set_of_switch_info_writes(switch):
    ones = SWITCH_INFO.from_int((1 << 160) - 1).replace(linear_fdb_top=50)
    status, data = write(switch, A.SWITCH_INFO, ones.pack())
    assert status == MadStatus.OK
    assert SWITCH_INFO.unpack(data) == RESET.replace(
        linear_fdb_top=50,
        default_port=255,
        default_multicast_primary_port=255,
        default_multicast_not_primary_port=255,
        life_time_value=31,
        multicast_fdb_top=0xFFFF,
    )
    assert switch_info(switch) == SWITCH_INFO.unpack(data)
    assert switch.of("write") == [(START + 26, node_address(NodeRegister.LINEAR_FDB_TOP), 50)]


@pytest.mark.parametrize("top", [100, 0xBFFF, 0xFFFF])
def test_a_linear_fdb_top_beyond_the_table_is_refused_and_the_rest_is_done(switch, top):
    status, data = write(switch, A.SWITCH_INFO, RESET.replace(linear_fdb_top=top, default_port=3).pack())
    assert status == MadStatus.INVALID_ATTRIBUTE_VALUE
    assert SWITCH_INFO.unpack(data) == RESET.replace(default_port=3)
    assert not switch.of("write")


# Tables.


def test_guid_0_is_the_port_s(switch):
    first = GUID_INFO.pack([IDENTITY.port_guid])
    assert read(switch, A.GUID_INFO) == (MadStatus.OK, first)
    guids = GUID_INFO.pack([99, 1, 2, 3, 4, 5, 6, 7])
    assert write(switch, A.GUID_INFO, guids) == (MadStatus.OK, first[:8] + guids[8:])
    assert read(switch, A.GUID_INFO) == (MadStatus.OK, first[:8] + guids[8:])


DEFAULT_P_KEYS = P_KEY_TABLE.pack([0xFFFF])


@pytest.mark.parametrize(
    ("attribute", "modifiers", "reset"),
    [
        (A.P_KEY_TABLE, [port << 16 for port in range(5)], DEFAULT_P_KEYS),
        (
            A.SL_TO_VL_MAPPING_TABLE,
            [0, 1, 4, 0x100, 0x104, 0x404, 0x203, 0x302],
            padded(SL_TO_VL_MAPPING_TABLE.pack([0, 1] * 8)),
        ),
        (A.VL_ARBITRATION_TABLE, [block << 16 | port for block in (1, 3) for port in (1, 2, 4)], bytes(64)),
        (A.LINEAR_FORWARDING_TABLE, [0, 1], b"\xff" * 64),
        (A.MULTICAST_FORWARDING_TABLE, [0, 1], bytes(64)),
        (A.LED_INFO, [1, 2, 3, 4], bytes(64)),
    ],
)
def test_each_block_of_a_switch_keeps_what_is_set(switch, attribute, modifiers, reset):
    size = SMA_ATTRIBUTES[attribute].format.size_bytes
    stored = {}
    for modifier in modifiers:
        assert read(switch, attribute, modifier) == (MadStatus.OK, reset)
    for at, modifier in enumerate(modifiers):
        data = bytes((i * 7 + at * 13 + 128) & 0xFF for i in range(64))
        stored[modifier] = bytes([0x80, 0, 0, 0]) if attribute == A.LED_INFO else data[:size]
        if attribute == A.LED_INFO and at % 2:
            data, stored[modifier] = bytes(64), bytes(4)
        assert write(switch, attribute, data, modifier) == (MadStatus.OK, padded(stored[modifier]))
    for modifier in modifiers:
        assert read(switch, attribute, modifier) == (MadStatus.OK, padded(stored[modifier]))


@pytest.mark.parametrize(
    ("attribute", "modifiers"),
    [
        (A.P_KEY_TABLE, [1, 5 << 16, 1 << 16 | 1, 0x8000_0000]),
        (A.SL_TO_VL_MAPPING_TABLE, [5, 0x500, 0x505, 1 << 16, 1 << 31]),
        (A.VL_ARBITRATION_TABLE, [0, 1, 1 << 16, 1 << 16 | 5, 2 << 16 | 1, 4 << 16 | 1, 5 << 16 | 1, 3 << 16]),
        (A.LINEAR_FORWARDING_TABLE, [2, 1 << 16, 1 << 31]),
        (A.MULTICAST_FORWARDING_TABLE, [2, 1 << 28, 1 << 16]),
        (A.LED_INFO, [0, 5, 1 << 16 | 1]),
        (A.PORT_INFO, [5, 1 << 30, 1 << 31 | 5]),
    ],
)
def test_a_modifier_that_is_not_allowed_is_answered_so(switch, attribute, modifiers):
    for modifier in modifiers:
        assert read(switch, attribute, modifier)[0] == MadStatus.INVALID_ATTRIBUTE_VALUE, hex(modifier)
        assert write(switch, attribute, BLOCK, modifier) == (MadStatus.INVALID_ATTRIBUTE_VALUE, BLOCK)
    assert not switch.of("write")


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
    write(adapter, attribute, b"\x80" + bytes(63), same[0])
    assert len({read(adapter, attribute, modifier) for modifier in same}) == 1
    assert read(adapter, attribute, same[0])[1][0] == 0x80
    for modifier in others:
        assert read(adapter, attribute, modifier)[0] == MadStatus.INVALID_ATTRIBUTE_VALUE


def test_the_halves_of_an_adapter_s_vl_arbitration_are_two(adapter):
    write(adapter, A.VL_ARBITRATION_TABLE, BLOCK, 1 << 16)
    assert read(adapter, A.VL_ARBITRATION_TABLE, 3 << 16) == (MadStatus.OK, bytes(64))


def test_multicast_positions_count_port_0():
    for ports, positions in ((2, 1), (15, 1), (16, 2), (31, 2), (32, 3)):
        bench = Bench(SwitchParameters(ports=ports))
        good = [
            position
            for position in range(16)
            if read(bench, A.MULTICAST_FORWARDING_TABLE, position << 28)[0] == MadStatus.OK
        ]
        assert good == list(range(positions))


@pytest.mark.parametrize(("size", "blocks"), [(64, 1), (65, 2), (128, 2), (129, 3)])
def test_the_blocks_of_an_lft(size, blocks):
    bench = Bench(SwitchParameters(lft_size=size))
    good = [block for block in range(5) if read(bench, A.LINEAR_FORWARDING_TABLE, block)[0] == MadStatus.OK]
    assert good == list(range(blocks))


# What is written to registers.


def test_a_block_of_the_lft_is_written_entry_by_entry(switch):
    write(switch, A.LINEAR_FORWARDING_TABLE, BLOCK)
    assert switch.of("write") == [
        (START + 16 + 8 * (entry // 4) + 2 + entry % 4, lft_address(entry), entry) for entry in range(64)
    ]


def test_of_the_last_block_only_the_lids_of_the_table_are_written(switch):
    assert write(switch, A.LINEAR_FORWARDING_TABLE, BLOCK, 1) == (MadStatus.OK, BLOCK)
    assert [address for _, address, _ in switch.of("write")] == [lft_address(lid) for lid in range(64, 100)]


def test_an_sl_to_vl_table_is_written_sl_by_sl(switch):
    data = SL_TO_VL_MAPPING_TABLE.pack(range(16))
    write(switch, A.SL_TO_VL_MAPPING_TABLE, data, 2 << 8 | 3)
    assert switch.of("write") == [
        (START + 16 + 8 * (sl // 8) + 2 + sl % 8, sl_to_vl_address(2, 3, sl), sl) for sl in range(16)
    ]


@pytest.mark.parametrize("modifier", [0, 3, 2 << 8])
def test_port_0_has_no_sl_to_vl_registers(switch, modifier):
    write(switch, A.SL_TO_VL_MAPPING_TABLE, BLOCK, modifier)
    assert not switch.of("write")


def test_an_adapter_writes_no_table(adapter):
    for attribute, modifier in ((A.SL_TO_VL_MAPPING_TABLE, 0x101), (A.P_KEY_TABLE, 0), (A.GUID_INFO, 0)):
        write(adapter, attribute, BLOCK, modifier)
    assert not adapter.of("write")


def test_what_the_test_bus_writes_is_not_what_is_stored(switch):
    switch.registers[lft_address(0)] = 3
    switch.registers[node_address(NodeRegister.LINEAR_FDB_TOP)] = 3
    assert read(switch, A.LINEAR_FORWARDING_TABLE) == (MadStatus.OK, b"\xff" * 64)
    assert switch_info(switch) == RESET
