"""Records of nodes, ports and links, and which of any records a request means (IBTA vol 1, 15.2.5 and 15.4).

Who asks hears only of ports that it shares a partition with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sm.sa.view import SubnetView
from sm.subnet import End
from wire.layout import Layout, Record
from wire.node_info import NODE_DESCRIPTION
from wire.port_tables import P_KEY_TABLE
from wire.sa import LINK_RECORD, NODE_RECORD, P_KEY_TABLE_RECORD, PORT_INFO_RECORD, components

__all__ = ["link_records", "matching", "named", "node_records", "p_key_table_records", "port_info_records"]

_LIDS: Final = ("endport_lid", "from_lid", "to_lid")
"""Components for which any LID of a port stands for the port."""

_ALL_OF_MASK: Final = 1 << 31
"""In the AttributeModifier of a request for PortInfoRecords: ports that have all these capabilities, and maybe others
(IBTA vol 1, 15.2.5.3)."""


def node_records(view: SubnetView, asker: End | None) -> Iterator[Record]:
    """The NodeRecord of each port that has LIDs."""
    for end in view.guids:
        if not view.is_told(asker, end):
            continue
        # What was no UTF-8 may have become longer as it was read.
        text = view.subnet.nodes[end.guid].description.encode()[: NODE_DESCRIPTION.size_bytes]
        string = int.from_bytes(text.ljust(NODE_DESCRIPTION.size_bytes, b"\0"), "big")
        yield NODE_RECORD.record(view.found.infos[end], endport_lid=view.lid_range(end).first, node_string=string)


def port_info_records(view: SubnetView, asker: End | None) -> Iterator[Record]:
    """The PortInfoRecord of each port that was read; the M_Key is nobody's business."""
    for end, info in view.found.ports.items():
        lid = view.node_lid(end)
        if lid and view.is_told(asker, end):
            yield PORT_INFO_RECORD.record({**info, "m_key": 0}, endport_lid=lid, port_num=end.port)


def link_records(view: SubnetView, asker: End | None) -> Iterator[Record]:
    """Two LinkRecords of each link, the ends of which have to share a partition with each other too."""
    for link in view.subnet.links:
        if not (view.is_told(asker, link.a, link.b) and view.is_told(link.a, link.b)):
            continue
        for near, far in ((link.a, link.b), (link.b, link.a)):
            yield LINK_RECORD.record(
                from_lid=view.node_lid(near), from_port=near.port, to_port=far.port, to_lid=view.node_lid(far)
            )


def p_key_table_records(view: SubnetView, asker: End | None) -> Iterator[Record]:
    """The P_KeyTableRecord of each port whose table is known, which are those that the partitions are about."""
    for end, table in (view.p_keys or {}).items():
        lid = view.node_lid(end)
        if lid and view.is_told(asker, end):
            keys = {P_KEY_TABLE.field(index).name: key for index, key in enumerate(table)}
            yield P_KEY_TABLE_RECORD.record(keys, endport_lid=lid, port_num=end.port)


def named(layout: Layout, mask: int) -> set[str]:
    """The components that a ComponentMask says count."""
    return {name for bit, name in enumerate(components(layout)) if name is not None and mask >> bit & 1}


def matching(records: Iterable[Record], query: Record, mask: int, modifier: int, view: SubnetView) -> list[Record]:
    """The records whose components are those of a query, as far as the ComponentMask says that they count."""
    names = named(query.layout, mask)
    wanted = {name: view.base_lid(query[name]) if name in _LIDS else query[name] for name in names}
    capabilities = wanted.pop("capability_mask", 0) if modifier & _ALL_OF_MASK else 0
    return [
        record
        for record in records
        if all(record[name] == value for name, value in wanted.items())
        and (not capabilities or record.capability_mask & capabilities == capabilities)
    ]
