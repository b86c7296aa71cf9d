"""Which bit of a ComponentMask is which component: the bits that clients are known to set (OpenSM's ib_types.h)."""

import pytest

from wire.layout import Layout
from wire.mc_member_record import MC_MEMBER_RECORD
from wire.path_record import PATH_RECORD, RATES
from wire.sa import (
    INFORM_INFO_RECORD,
    LINK_RECORD,
    NODE_RECORD,
    P_KEY_TABLE_RECORD,
    PORT_INFO_RECORD,
    SERVICE_RECORD,
    SM_INFO_RECORD,
    components,
)

BITS = {
    NODE_RECORD: {0: "endport_lid", 2: "base_version", 4: "node_type", 7: "node_guid", 8: "port_guid", 13: "vendor_id"},
    PORT_INFO_RECORD: {
        0: "endport_lid",
        1: "port_num",
        5: "lid",
        7: "capability_mask",
        15: "port_state",
        20: "lmc",
        34: "operational_vls",
        45: "subnet_timeout",
        53: "capability_mask2",
        57: "link_speed_ext_enabled",
    },
    P_KEY_TABLE_RECORD: {0: "endport_lid", 1: "block_num", 2: "port_num"},
    LINK_RECORD: {0: "from_lid", 1: "from_port", 2: "to_port", 3: "to_lid"},
    SM_INFO_RECORD: {0: "endport_lid", 2: "guid", 5: "priority", 6: "sm_state"},
    SERVICE_RECORD: {0: "service_id", 1: "service_gid", 4: "service_lease", 6: "service_name", 36: "service_data64_1"},
    INFORM_INFO_RECORD: {
        0: "subscriber_gid",
        3: "gid",
        7: "is_generic",
        8: "subscribe",
        11: "qpn",
        15: "producer_type",
    },
    MC_MEMBER_RECORD: {
        0: "mgid",
        1: "port_gid",
        2: "q_key",
        3: "mlid",
        4: "mtu_selector",
        5: "mtu",
        6: "t_class",
        7: "p_key",
        8: "rate_selector",
        9: "rate",
        11: "packet_life_time",
        12: "sl",
        13: "flow_label",
        14: "hop_limit",
        15: "scope",
        16: "join_state",
        17: "proxy_join",
    },
    PATH_RECORD: {
        0: "service_id",
        1: "service_id",
        2: "dgid",
        3: "sgid",
        4: "dlid",
        5: "slid",
        11: "reversible",
        12: "numb_path",
        13: "p_key",
        15: "sl",
        16: "mtu_selector",
        19: "rate",
        21: "packet_life_time",
    },
}


@pytest.mark.parametrize("layout", BITS, ids=lambda layout: layout.name)
def test_components_have_the_bits_that_clients_set(layout: Layout) -> None:
    named = components(layout)
    assert {bit: named[bit] for bit in BITS[layout]} == BITS[layout]
    assert set(named) - {None} == {field.name for field in layout.fields}


def test_a_rate_says_what_it_is() -> None:
    assert PATH_RECORD["rate"].text(3) == "3 (10 Gbit/s)"
    assert PATH_RECORD["rate"].text(1) == "1 (reserved)"
    assert len(set(RATES.values())) == len(RATES)
