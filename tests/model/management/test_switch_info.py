"""SwitchInfo by Get and Set (docs/management.md, sections 4.1 and 4.3)."""

import pytest

from tests.agent_steps import cycles_to
from tests.model.management.agent_bench import START
from wire.mad import MadMethod, MadStatus
from wire.registers import NodeRegister, node_address
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO

A = SmaAttribute


def switch_info(bench):
    return SWITCH_INFO.unpack(bench.read(A.SWITCH_INFO)[1])


RESET = SWITCH_INFO.record(
    linear_fdb_cap=100,
    linear_fdb_top=99,
    multicast_fdb_cap=64,
    default_multicast_primary_port=255,
    default_multicast_not_primary_port=255,
    life_time_value=31,
    partition_enforcement_cap=32,
    inbound_enforcement_cap=1,
    outbound_enforcement_cap=1,
    filter_raw_inbound_cap=1,
    filter_raw_outbound_cap=1,
)
MULTICAST = (
    NodeRegister.DEFAULT_MULTICAST_PRIMARY,
    NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY,
    NodeRegister.MULTICAST_FDB_TOP,
)


def test_switch_info_at_reset(switch):
    assert switch_info(switch) == RESET


def test_what_a_set_of_switch_info_writes(switch):
    ones = SWITCH_INFO.from_int((1 << 160) - 1).replace(
        linear_fdb_top=50, life_time_value=18, default_multicast_primary_port=3, default_multicast_not_primary_port=4
    )
    status, data = switch.write(A.SWITCH_INFO, ones.pack())
    assert status == MadStatus.OK
    assert SWITCH_INFO.unpack(data) == RESET.replace(
        linear_fdb_top=50,
        default_port=255,
        default_multicast_primary_port=3,
        default_multicast_not_primary_port=4,
        life_time_value=18,
        multicast_fdb_top=0xFFFF,
    )
    assert switch_info(switch) == SWITCH_INFO.unpack(data)
    step_26, step_34, step_50 = (START + cycles_to(step, MadMethod.SET, A.SWITCH_INFO) for step in (26, 34, 50))
    assert switch.of("write") == [
        (step_26, node_address(NodeRegister.LINEAR_FDB_TOP), 50),
        (step_34, node_address(NodeRegister.LIFE_TIME), 18),
        (step_34 + 1, node_address(NodeRegister.DEFAULT_MULTICAST_PRIMARY), 3),
        (step_34 + 2, node_address(NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY), 4),
        (step_50, node_address(NodeRegister.MULTICAST_FDB_TOP), 0xFFFF),
    ]


@pytest.mark.parametrize("top", [100, 0xBFFF, 0xFFFF])
def test_a_linear_fdb_top_beyond_the_table_is_refused_and_the_rest_is_done(switch, top):
    status, data = switch.write(
        A.SWITCH_INFO, RESET.replace(linear_fdb_top=top, default_port=3, life_time_value=1).pack()
    )
    assert status == MadStatus.INVALID_ATTRIBUTE_VALUE
    assert SWITCH_INFO.unpack(data) == RESET.replace(default_port=3, life_time_value=1)
    others = NodeRegister.LIFE_TIME, *MULTICAST
    assert [address for _, address, _ in switch.of("write")] == [node_address(register) for register in others]
