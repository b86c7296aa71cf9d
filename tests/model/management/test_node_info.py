"""What a node is: NodeInfo, NodeDescription, VendorDiag (docs/management.md, section 4.1)."""

import pytest

from tests.model.management.agent_bench import BLOCK, IDENTITY, get
from wire.mad import MadStatus, mad_data
from wire.node_info import NODE_INFO, NodeType, node_description_text
from wire.sma import SmaAttribute

A = SmaAttribute


@pytest.mark.parametrize("attribute", [A.NODE_DESCRIPTION, A.NODE_INFO, A.VENDOR_DIAG])
def test_what_a_node_is_cannot_be_set(switch, attribute):
    before = switch.read(attribute)
    assert switch.write(attribute, BLOCK) == (MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED, BLOCK)
    assert switch.read(attribute) == before


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
    assert node_description_text(switch.read(A.NODE_DESCRIPTION)[1]) == IDENTITY.description


def test_vendor_diag_knows_nothing(switch):
    assert switch.read(A.VENDOR_DIAG) == (MadStatus.OK, bytes(64))
