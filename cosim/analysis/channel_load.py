"""How much of each link's time a traffic pattern asks for, and at which load the busiest link is full.

W. J. Dally and B. Towles, Principles and Practices of Interconnection Networks (2004), 3.3: no fabric delivers
more than its busiest link carries, whatever its buffers and its arbitration are like.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from cosim.topology.topology import Port, Topology

__all__ = ["busiest_link", "channel_loads"]


def channel_loads(topology: Topology, shares: Mapping[tuple[str, str], float]) -> dict[Port, float]:
    """By the port that a link is entered by: the share of its time that is asked for if every source offers load 1.

    Args:
        topology: with its routes.
        shares: of each source's packets, by source and destination.
    """
    loads: defaultdict[Port, float] = defaultdict(float)
    for (source, destination), share in shares.items():
        for port in topology.path(source, destination) or ():
            loads[port] += share * topology.pace(port) / topology.pace(Port(source, 1))
    return dict(loads)


def busiest_link(topology: Topology, shares: Mapping[tuple[str, str], float]) -> tuple[Port, float]:
    """The busiest link (the first of equally busy ones), and the offered load of each host at which it is full.

    The load may be above 1: no host can fill it.
    """
    loads = channel_loads(topology, shares)
    most = max(loads.values())
    port = next(port for port, load in loads.items() if load > most - 1e-9)
    return port, 1 / most
