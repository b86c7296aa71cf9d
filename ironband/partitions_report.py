"""What `ironband up` says of partitions: which there are, who is in them, and what switch ports check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sm.discovery import Findings
from sm.partitions import FULL_MEMBER, Enforcement, Partitions, enforced, partitions_of_ports
from sm.settings import SubnetSettings
from sm.subnet import MANAGEMENT_PORT, End

__all__ = ["partition_lines", "partition_settings_json", "partitions_json"]


def partition_lines(settings: SubnetSettings, found: Findings) -> Iterator[tuple[str, str]]:
    """For people, each with what it is about; nothing where there are no partitions."""
    if settings.partitions is None:
        return
    members = _members(settings.partitions, found)
    yield "partitions", str(len(members))
    for p_key, (full, limited) in members.items():
        counts = [f"{len(some)} {what}" for some, what in ((full, "full"), (limited, "limited")) if some]
        yield f"  0x{p_key:04x} {settings.partitions.names[p_key]}", ", ".join(counts)
    ports = [found.ports[end] for end in _switch_ports_at_hosts(found)]
    yield "ports that check P_Keys", f"{sum(enforced(info) > 0 for info in ports)} of {len(ports)} of switches at hosts"
    absent = _absent(settings.partitions, found)
    if absent:
        yield "PortGUIDs of nobody", ", ".join(absent)


def partitions_json(settings: SubnetSettings, found: Findings | None) -> dict[str, Any]:
    """For programs."""
    if settings.partitions is None or found is None:
        return {"partitions": None}
    return {
        "partitions": [
            {"p_key": f"0x{key:04x}", "name": settings.partitions.names[key], "full": full, "limited": limited}
            for key, (full, limited) in _members(settings.partitions, found).items()
        ],
        "enforce": _word(settings.enforcement),
        "checks": [
            {"guid": f"0x{end.guid:016x}", "port": end.port, "in": Enforcement.IN in how, "out": Enforcement.OUT in how}
            for end in _switch_ports_at_hosts(found)
            if (how := enforced(found.ports[end]))
        ],
        "port_guids_of_nobody": _absent(settings.partitions, found),
    }


def partition_settings_json(settings: SubnetSettings | None) -> dict[str, Any]:
    """For programs, where what came of it is not known; partitions by their P_Keys."""
    if settings is None or settings.partitions is None:
        return {"partitions": None}
    return {
        "partitions": {f"0x{key:04x}": settings.partitions.names[key] for key in settings.partitions.names},
        "enforce": _word(settings.enforcement),
    }


def _word(enforcement: Enforcement) -> str:
    return (enforcement.name or "").lower()


def _members(partitions: Partitions, found: Findings) -> dict[int, tuple[list[str], list[str]]]:
    """PortGUIDs of full and of limited members by partition; partitions without members are none."""
    members: dict[int, tuple[list[str], list[str]]] = {}
    for end, of_port in partitions_of_ports(partitions, found).items():
        guid = found.subnet.nodes[end.guid].end_ports[end.port].guid
        for p_key in of_port.p_keys:
            full, limited = members.setdefault(p_key & ~FULL_MEMBER, ([], []))
            (full if p_key & FULL_MEMBER else limited).append(f"0x{guid:016x}")
    return {p_key: members[p_key] for p_key in sorted(members)}


def _switch_ports_at_hosts(found: Findings) -> list[End]:
    return [
        far
        for end, _port in found.subnet.reachable_end_ports
        if end.port != MANAGEMENT_PORT and (far := found.subnet.peer(end)) is not None and far.guid in found.switches
    ]


def _absent(partitions: Partitions, found: Findings) -> list[str]:
    """PortGUIDs that the partitions name, and no port has."""
    there = {port.guid for _end, port in found.subnet.reachable_end_ports}
    named = dict.fromkeys(one.who for one in partitions.memberships if isinstance(one.who, int))
    return [f"0x{guid:016x}" for guid in named if guid not in there]
