"""Credit loops: links that wait for each other's credits in a circle, found in the channel dependency graph.

A packet that holds the buffer behind one link and needs credits of the next makes the first link depend on the
second. As long as there is only one path to each LID, traffic can block itself forever if and only if
dependencies form a circle (Dally and Seitz, 1987). All packets are taken to be on one VL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from sm.lids import LidRange
from sm.subnet import MANAGEMENT_PORT, End, Subnet
from wire.forwarding_tables import LFT_NO_ROUTE

__all__ = ["find_credit_loop"]


def find_credit_loop(
    subnet: Subnet,
    lids: Mapping[int, LidRange],
    tables: Mapping[int, bytearray],
    *,
    management: bool = False,
) -> list[End] | None:
    """A credit loop as the switch ports whose links wait for each other, each for the next, the last for the first.

    None if there is none. `lids` is by PortGUID, `tables` by switch GUID. It counts packets from every end node to
    every LID of an end node; with `management` also those from and to port 0 of switches, which are on data VLs
    unless they are SMPs.
    """
    return _circle(_dependencies(subnet, lids, tables, management))


def _dependencies(
    subnet: Subnet, lids: Mapping[int, LidRange], tables: Mapping[int, bytearray], management: bool
) -> dict[End, set[End]]:
    """What each link between switches, named by the port that sends into it, waits for."""
    far: dict[int, dict[int, int]] = {}
    sources = []
    for switch in subnet.switches:
        neighbours = list(subnet.neighbours(switch.guid))
        far[switch.guid] = {port: end.guid for port, end in neighbours if subnet.nodes[end.guid].is_switch}
        if management or len(neighbours) > len(far[switch.guid]):
            sources.append(switch.guid)
    waits: dict[End, set[End]] = {}
    for lid in _destinations(subnet, lids, management):
        seen: set[int] = set()
        for source in sources:
            before: End | None = None
            here = source
            while True:
                port = tables[here][lid] if lid < len(tables[here]) else LFT_NO_ROUTE
                if port not in far[here]:
                    break
                channel = End(here, port)
                waits.setdefault(channel, set())
                if before is not None:
                    waits[before].add(channel)
                if here in seen:
                    break
                seen.add(here)
                before, here = channel, far[here][port]
    return waits


def _destinations(subnet: Subnet, lids: Mapping[int, LidRange], management: bool) -> Iterable[int]:
    for end, port in subnet.reachable_end_ports:
        if port.guid in lids and (management or end.port != MANAGEMENT_PORT):
            yield from lids[port.guid].lids


def _circle(waits: dict[End, set[End]]) -> list[End] | None:
    """A shortest circle through the lowest channel that is on one."""
    sorter = TopologicalSorter(waits)
    with suppress(CycleError):
        sorter.prepare()
    left = set(waits)
    while free := sorter.get_ready():
        left.difference_update(free)
        sorter.done(*free)
    # What is left is on a circle or waits for one.
    for start in sorted(left):
        circle = _way_back(start, waits)
        if circle is not None:
            return circle
    return None


def _way_back(start: End, waits: dict[End, set[End]]) -> list[End] | None:
    """The channels of a shortest circle that begins with `start`; None if none comes back to it."""
    reached: dict[End, End] = {}
    edge = [start]
    while edge:
        further = []
        for channel in edge:
            for after in sorted(waits[channel]):
                if after == start:
                    circle = [channel]
                    while circle[-1] != start:
                        circle.append(reached[circle[-1]])
                    return circle[::-1]
                if after not in reached:
                    reached[after] = channel
                    further.append(after)
        edge = further
    return None
