"""A subnet as ibswitches, ibhosts, iblinkinfo and ibroute of infiniband-diags 44.0 print it."""

from cosim.topology.subnet_text import forwarding_table, host_line, link_lines, switch_line
from sm.discovery import Findings
from sm.lids import LidRange
from sm.subnet import End
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, star
from wire.codes import LinkSpeed, LinkWidth, PortPhysicalState, PortState
from wire.node_info import NodeType
from wire.port_info import PORT_INFO


def up_and_down() -> Findings:
    """A switch of three ports: a host that is Active, one at a narrow link that is not yet, and nothing."""
    subnet = star(hosts=2, ports=3)
    for node, name, lid in zip(subnet.nodes.values(), ("the switch", "H 1", "H\n2"), (3, 1, 12), strict=True):
        node.description = name
        for port in node.end_ports.values():
            port.lid = lid
    subnet.nodes[HOST_GUID + 4].end_ports[1].lmc = 1
    found = Findings(End(HOST_GUID, 1), subnet)
    for end in [End(SWITCH_GUID, port) for port in (1, 2, 3)] + [End(HOST_GUID, 1), End(HOST_GUID + 4, 1)]:
        found.ports[end] = PORT_INFO.record(
            port_state=PortState.ACTIVE,
            port_physical_state=PortPhysicalState.LINK_UP,
            link_width_active=LinkWidth.X4,
            link_speed_active=LinkSpeed.SDR,
        )
    narrow = End(SWITCH_GUID, 2)
    found.ports[narrow] = found.ports[narrow].replace(
        port_state=PortState.INITIALIZE, link_width_active=LinkWidth.X1, link_speed_active=LinkSpeed.QDR
    )
    down = End(SWITCH_GUID, 3)
    found.ports[down] = found.ports[down].replace(
        port_state=PortState.DOWN, port_physical_state=PortPhysicalState.POLLING
    )
    return found


def test_switches_and_hosts():
    subnet = up_and_down().subnet
    assert (
        switch_line(subnet.nodes[SWITCH_GUID])
        == 'Switch\t: 0x0000000000200000 ports 3 "the switch" base port 0 lid 3 lmc 0'
    )
    assert host_line(subnet.nodes[HOST_GUID]) == 'Ca\t: 0x0000000000100000 ports 1 "H 1"'


def test_a_router_is_called_one():
    found = up_and_down()
    node = found.subnet.nodes[HOST_GUID]
    node.type = NodeType.ROUTER
    assert host_line(node) == 'Router\t: 0x0000000000100000 ports 1 "H 1"'
    assert next(iter(link_lines(found, node))) == "Router: H 1:"


def test_links_of_a_switch():
    found = up_and_down()
    assert list(link_lines(found, found.subnet.nodes[SWITCH_GUID])) == [
        "Switch: 0x0000000000200000 the switch:",
        '           3    1[  ] ==( 4X           2.5 Gbps Active/  LinkUp)==>       1    1[  ] "H 1" ( )',
        '           3    2[  ] ==( 1X          10.0 Gbps Initialize/  LinkUp)==>      12    1[  ] "H 2" ( )',
        '           3    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )',
    ]


def test_links_of_a_host():
    found = up_and_down()
    assert list(link_lines(found, found.subnet.nodes[HOST_GUID])) == [
        "CA: H 1:",
        "      0x0000000000100001      1    1[  ] ==( 4X           2.5 Gbps Active/  LinkUp)==>"
        '       3    1[  ] "the switch" ( )',
    ]


def test_a_forwarding_table():
    subnet = up_and_down().subnet
    lids = {HOST_GUID + 1: LidRange(1, 1), SWITCH_GUID: LidRange(3, 3), HOST_GUID + 5: LidRange(12, 13)}
    table = bytearray([255, 1, 7, 0, 255, 255, 255, 255, 255, 255, 2, 255, 2, 2])
    assert list(forwarding_table(subnet, subnet.nodes[SWITCH_GUID], lids, table)) == [
        "Unicast lids [0x0-0xd] of switch Lid 3 guid 0x0000000000200000 (the switch):",
        "  Lid  Out   Destination",
        "       Port     Info",
        "0x0001 001 : (Channel Adapter portguid 0x0000000000100001: 'H 1')",
        "0x0003 000 : (Switch portguid 0x0000000000200000: 'the switch')",
        "0x000a 002 : (node info not available fabric scan)",
        "0x000c 002 : (Channel Adapter portguid 0x0000000000100005: 'H 2')",
        "0x000d 002 : (Channel Adapter portguid 0x0000000000100005: 'H 2')",
        "5 valid lids dumped",
    ]
