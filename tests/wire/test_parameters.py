"""What nodes and fabrics are built with: ports of adapters, and who they are."""

import re

import pytest

from wire.node_info import NodeType
from wire.parameters import (
    AdapterParameters,
    FabricParameters,
    LinkParameters,
    NodeIdentity,
    SwitchParameters,
    adapter_port,
    adapter_port_name,
    node_text,
    port_text,
)

HOST = AdapterParameters()
NODES = {"S": SwitchParameters(ports=3), "H.1": HOST, "H.2": HOST, "K": HOST}


def test_a_port_of_an_adapter_that_has_several_is_a_node_of_its_own_name():
    assert adapter_port(adapter_port_name("H", 2)) == ("H", 2)
    assert adapter_port("K") == ("K", 0)


def test_people_call_ports_by_their_numbers_in_their_adapters():
    assert [node_text(name) for name in NODES] == ["S", "H[1]", "H[2]", "K"]
    assert [port_text("S", 3), port_text("H.2", 1), port_text("K", 1)] == ["S[3]", "H[2]", "K[1]"]


def test_ports_of_an_adapter_are_one_node_with_a_guid_each():
    fabric = FabricParameters(NODES)
    first, second, other = (fabric.identity(name) for name in ("H.1", "H.2", "K"))
    assert first.node_guid == second.node_guid != other.node_guid
    assert (first.description, first.ports, first.port) == ("H", 2, 1)
    assert (second.description, second.ports, second.port) == ("H", 2, 2)
    assert (other.description, other.ports, other.port) == ("K", 1, 1)
    guids = [first.port_guid, second.port_guid, other.port_guid]
    assert len({first.node_guid, other.node_guid, *guids}) == 5


def test_management_calls_a_port_by_its_number_in_its_adapter():
    fabric = FabricParameters(NODES)
    assert [fabric.port_number(*end) for end in (("S", 3), ("H.1", 1), ("H.2", 1), ("K", 1))] == [3, 1, 2, 1]


def test_ports_need_no_link_but_may_have_one_only():
    FabricParameters(NODES)
    twice = LinkParameters("H.2", 1, "S", 1), LinkParameters("S", 2, "H.2", 1)
    with pytest.raises(ValueError, match=r"^port H\[2\] is used by two links: expected one$"):
        FabricParameters(NODES, twice)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ports": 65}, "ports 65: expected 1..64"),
        ({"ports": 2, "port": 3}, "port 3: expected 1..2"),
        ({"port": 0}, "port 0: expected 1..1"),
        (
            {"type": NodeType.SWITCH},
            "type <NodeType.SWITCH: 2>: expected one of <NodeType.CA: 1>, <NodeType.ROUTER: 3>",
        ),
    ],
)
def test_an_identity_that_cannot_be_is_refused(wrong, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        NodeIdentity(1, 2, "", **wrong)
