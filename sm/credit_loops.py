"""Credit loops: links that wait for each other's credits in a circle, found in the channel dependency graph.

A packet that holds the buffer of a VL behind one link and needs credits of the next makes the first of these channels
depend on the second. As long as there is only one path to each LID, traffic can block itself forever if and only if
dependencies form a circle (Dally and Seitz, 1987). Channels of different VLs are different ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from sm.lids import LidRange
from sm.subnet import End, Subnet
from wire.forwarding_tables import LFT_NO_ROUTE

__all__ = ["Channel", "find_credit_loop"]


class Channel(NamedTuple):
    """A VL of a link, in one direction."""

    end: End
    """The port that sends."""
    vl: int = 0

    def __str__(self) -> str:
        return f"{self.end} VL {self.vl}" if self.vl else str(self.end)


def find_credit_loop(
    subnet: Subnet,
    lids: Mapping[int, LidRange],
    tables: Mapping[int, bytearray],
    *,
    management: bool = False,
    service_level: Callable[[int, int], int] | None = None,
    vl: Callable[[End, int], int] = lambda _end, sl: sl,
) -> list[Channel] | None:
    """A credit loop as the channels that wait for each other, each for the next, the last for the first.

    None if there is none. `lids` is by PortGUID, `tables` by switch GUID. `service_level` gives the SL of packets from
    one LID to another, all on SL 0 without it; `vl` the VL on which packets of an SL leave a port. It counts packets
    from every end node to every LID of an end node; with `management` also those from and to port 0 of switches, which
    are on data VLs unless they are SMPs.
    """
    return _circle(_dependencies(subnet, lids, tables, management, service_level, vl))


def _dependencies(
    subnet: Subnet,
    lids: Mapping[int, LidRange],
    tables: Mapping[int, bytearray],
    management: bool,
    service_level: Callable[[int, int], int] | None,
    vl: Callable[[End, int], int],
) -> dict[Channel, set[Channel]]:
    """What each channel between switches waits for."""
    far = {
        switch.guid: {
            port: end.guid for port, end in subnet.neighbours(switch.guid) if subnet.nodes[end.guid].is_switch
        }
        for switch in subnet.switches
    }
    taking_part = list(_taking_part(subnet, lids, management))
    sources: dict[int, set[int]] = {}
    for switch, found in taking_part:
        sources.setdefault(switch, set()).update(found.lids)
    waits: dict[Channel, set[Channel]] = {}
    for lid in (lid for _switch, found in taking_part for lid in found.lids):
        seen: set[tuple[int, int]] = set()
        starts = {(source, 0) for source in sources}
        if service_level is not None:
            starts = {(source, service_level(slid, lid)) for source, slids in sources.items() for slid in slids}
        for here, sl in sorted(starts):
            before: Channel | None = None
            while True:
                port = tables[here][lid] if lid < len(tables[here]) else LFT_NO_ROUTE
                if port not in far[here]:
                    break
                end = End(here, port)
                channel = Channel(end, vl(end, sl))
                waits.setdefault(channel, set())
                if before is not None:
                    waits[before].add(channel)
                if (here, sl) in seen:
                    break
                seen.add((here, sl))
                before, here = channel, far[here][port]
    return waits


def _taking_part(subnet: Subnet, lids: Mapping[int, LidRange], management: bool) -> Iterable[tuple[int, LidRange]]:
    """The switch at which each port is that sends and gets such packets, and its LIDs."""
    for end, port in subnet.reachable_end_ports:
        if port.guid not in lids:
            continue
        if subnet.nodes[end.guid].is_switch:
            if management:
                yield end.guid, lids[port.guid]
        else:
            far = subnet.peer(end)
            if far is not None and subnet.nodes[far.guid].is_switch:
                yield far.guid, lids[port.guid]


def _circle(waits: dict[Channel, set[Channel]]) -> list[Channel] | None:
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


def _way_back(start: Channel, waits: dict[Channel, set[Channel]]) -> list[Channel] | None:
    """The channels of a shortest circle that begins with `start`; None if none comes back to it."""
    reached: dict[Channel, Channel] = {}
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
