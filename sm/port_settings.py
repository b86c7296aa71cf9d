"""What each port's PortInfo is to hold: LID, MTU, VLs, timers (IBTA vol 1, 14.2.5.6)."""

from __future__ import annotations

from collections.abc import Mapping

from sm.discovery import Findings
from sm.errors import RoutingError
from sm.lids import LidRange
from sm.partitions import Enforcement
from sm.settings import SubnetSettings
from sm.subnet import MANAGEMENT_PORT, End, Subnet
from wire.codes import DATA_VL_COUNTS, data_vls, operational_vls

__all__ = ["check_vls", "operational_vl_count", "port_settings", "wanted_vls"]


def port_settings(
    found: Findings,
    lids: Mapping[int, LidRange],
    settings: SubnetSettings,
    checks: Mapping[End, Enforcement],
) -> dict[End, dict[str, int]]:
    """The fields of PortInfo to be set, of port 0 of every switch and of both ends of every link.

    `lids` is by PortGUID; `checks` are what switch ports are to check of P_Keys, others stay as they are. Ends of a
    link follow each other, links in the order in which their nodes were found.
    """
    subnet = found.subnet
    master = lids[subnet.nodes[found.origin.guid].end_ports[found.origin.port].guid].first
    ends: dict[End, None] = {}
    for node in subnet.nodes.values():
        if node.is_switch:
            ends[End(node.guid, MANAGEMENT_PORT)] = None
    for node in subnet.nodes.values():
        for port, far in subnet.neighbours(node.guid):
            ends[End(node.guid, port)] = ends[far] = None
    wanted = {end: _wanted(found, end, lids, master, settings) for end in ends}
    for end, checked in checks.items():
        wanted[end]["partition_enforcement_inbound"] = int(Enforcement.IN in checked)
        wanted[end]["partition_enforcement_outbound"] = int(Enforcement.OUT in checked)
    return wanted


def operational_vl_count(found: Findings, end: End, settings: SubnetSettings) -> int:
    """Data VLs that a linked port is to use: as many as both ends have, and the settings allow."""
    far = found.subnet.peer(end) or end
    most = min(
        min(data_vls(found.ports[one].vl_cap), settings.qos_of(found.subnet.nodes[one.guid].type).max_vls)
        for one in (end, far)
    )
    return max(count for count in DATA_VL_COUNTS if count <= max(most, 1))


def wanted_vls(found: Findings, end: End, settings: SubnetSettings) -> tuple[int, ...]:
    """The VL of each SL at a linked port."""
    used = operational_vl_count(found, end, settings)
    return tuple(vl % used for vl in settings.qos_of(found.subnet.nodes[end.guid].type).sl_to_vl)


def check_vls(found: Findings, routed: Subnet, needed: int, settings: SubnetSettings) -> None:
    """Check that the links between switches of `routed` can keep the SLs from 0 on apart that routes need.

    Raises:
        RoutingError: one cannot.
    """
    for link in routed.links if needed > 1 else ():
        if routed.nodes[link.a.guid].is_switch and routed.nodes[link.b.guid].is_switch:
            there = len(set(wanted_vls(found, link.a, settings)[:needed]))
            if there < needed:
                raise RoutingError(
                    f"routes without credit loops need {needed} data VLs, and link {link.a} to {link.b} has {there}: "
                    "expected more, or up/down routing, which needs 1"
                )


def _wanted(
    found: Findings, end: End, lids: Mapping[int, LidRange], master: int, settings: SubnetSettings
) -> dict[str, int]:
    node = found.subnet.nodes[end.guid]
    info = found.ports[end]
    values: dict[str, int] = {}
    if end.port in node.end_ports:
        given = lids[node.end_ports[end.port].guid]
        values |= {
            "lid": given.first,
            "lmc": given.lmc,
            "master_sm_lid": master,
            "master_sm_sl": 0,
            "gid_prefix": settings.gid_prefix,
            "subnet_timeout": settings.subnet_timeout,
        }
    far = found.subnet.peer(end)
    if far is not None:
        values["neighbor_mtu"] = min(info.mtu_cap, found.ports[far].mtu_cap, settings.max_mtu)
        values["operational_vls"] = operational_vls(operational_vl_count(found, end, settings))
        arbitration = settings.qos_of(node.type).vl_arbitration
        if arbitration is not None and info.vl_arbitration_high_cap:
            values["vl_high_limit"] = arbitration.high_limit
        if node.is_switch:
            leaf = not found.subnet.nodes[far.guid].is_switch
            values["hoq_life"] = settings.leaf_hoq_life if leaf else settings.hoq_life
            values["vl_stall_count"] = settings.vl_stall_count
    return values
