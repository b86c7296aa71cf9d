"""Hosts of a managed subnet that join and leave groups, and what reaches them."""

from __future__ import annotations

from sm.events import MulticastTablesWritten
from sm.partition_groups import broadcast_mgid
from sm.subnet import End
from tests.sm.managed import Managed
from tests.sm.multicast.packets import copies
from tests.sm.sa_client import Answer, SaClient
from wire.codes import PortState
from wire.mc_member_record import JoinState
from wire.sa import SaAttribute, SaMethod

__all__ = ["BROADCAST", "CREATE", "GROUP", "gid_of", "host_guids", "join", "leave", "reached", "recorded"]

RECORD = SaAttribute.MC_MEMBER_RECORD
BROADCAST = broadcast_mgid()
GROUP = 0xFF12_0000 << 96 | 7
"""An MGID of nobody's."""
CREATE = {"q_key": 5, "t_class": 0, "p_key": 0xFFFF, "flow_label": 0, "sl": 0}


def host_guids(up: Managed) -> list[int]:
    """PortGUIDs of the hosts that have LIDs."""
    return [guid for end, guid in ends_of(up) if not up.subnet.nodes[end.guid].is_switch]


def ends_of(up: Managed) -> list[tuple[End, int]]:
    return [(end, port.guid) for end, port in up.subnet.reachable_end_ports if port.guid in up.manager.lids]


def gid_of(guid: int) -> int:
    return 0xFE80 << 112 | guid


def client(up: Managed, guid: int) -> SaClient:
    return SaClient(up, up.manager.lids[guid].first)


def join(up: Managed, guid: int, mgid: int = GROUP, state: int = JoinState.FULL, **values: int) -> Answer:
    """A port joins, and creates a group if there is none; the tables follow before this is over."""
    values = {"mgid": mgid, "port_gid": gid_of(guid), "join_state": state} | (CREATE if mgid == GROUP else {}) | values
    answer = client(up, guid).ask(SaMethod.SET, RECORD, **values)
    up.settle()
    return answer


def leave(up: Managed, guid: int, mgid: int = GROUP, state: int = JoinState.FULL) -> Answer:
    answer = client(up, guid).ask(SaMethod.DELETE, RECORD, mgid=mgid, port_gid=gid_of(guid), join_state=state)
    up.settle()
    return answer


def reached(up: Managed, sender: int, mlid: int = 0xC000) -> list[int]:
    """The PortGUIDs of who gets a copy of a packet that a port sends; it fails if somebody gets two."""
    guids = dict(ends_of(up))
    sender_end = next(end for end, guid in guids.items() if guid == sender)
    found = copies(up.subnet, masks(up, mlid), sender_end)
    assert set(found.values()) <= {1}
    return sorted(guids[end] for end in found)


def masks(up: Managed, mlid: int) -> dict[int, set[int]]:
    """The ports that the SMAs of switches really hold, over which packets can leave."""
    return {
        guid: {port for port in node.multicast_ports(mlid) if up.fabric.state(End(guid, port)) == PortState.ACTIVE}
        for guid, node in up.fabric.nodes.items()
        if node.node.is_switch
    }


def recorded(up: Managed) -> list[int]:
    """GUIDs of switches whose masks were written."""
    return [event.guid for event in up.told(MulticastTablesWritten)]
