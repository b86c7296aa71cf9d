"""LIDs, LMCs and VLs drawn at random for `ironband check`, in place of LIDs 1, 2, ... and one VL for each SL."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import Final

from cosim.topology.topology import Topology, forwarding_tables
from wire.codes import SERVICE_LEVELS
from wire.parameters import SwitchParameters

__all__ = ["has_own_addresses", "has_vls_of_pairs", "random_addresses"]

_SHARE: Final = 0.5
"""Of the runs of one fabric with several seeds, those with such addresses."""

_LMCS: Final = (0, 0, 1, 2, 3)
_OWN_VLS_SHARE: Final = 0.5
"""Of the fabrics, those where VLs depend on input and output; there, of the pairs, those with VLs of their own."""

_OF_PAIRS_SHARE: Final = 0.02
"""Of the runs, those where all pairs have them, and in half of the pairs all SLs the same."""


def has_own_addresses(seed: int) -> bool:
    """Whether a run has them of a fabric that does not follow from its seed."""
    return Random(f"{seed}/with addresses").random() < _SHARE


def has_vls_of_pairs(seed: int) -> bool:
    """Whether, if it has such addresses, each input and output of a switch have VLs of their own, some of them one for
    all SLs: what comes on several VLs leaves on one."""
    return Random(f"{seed}/VLs of each pair").random() < _OF_PAIRS_SHARE


def random_addresses(topology: Topology, random: Random, *, of_pairs: bool = False) -> Topology:
    """A fabric with LIDs all over its forwarding tables, LMCs, a path to each LID, and VLs by input and output.

    OF_PAIRS: as `has_vls_of_pairs` says.
    """
    nodes = topology.fabric.nodes
    # Behind those of hosts there is room for LIDs of switches.
    size = min(node.lft_size for node in nodes.values() if isinstance(node, SwitchParameters)) - len(nodes)
    lids: dict[str, int] = {}
    lmcs: dict[str, int] = {}
    free = set(range(1, size))
    for host in topology.lids:
        lmc = random.choice(_LMCS)
        firsts = [lid for lid in range(1 << lmc, size, 1 << lmc) if free.issuperset(range(lid, lid + (1 << lmc)))]
        lids[host] = random.choice(firsts)
        if lmc:
            lmcs[host] = lmc
        free.difference_update(range(lids[host], lids[host] + (1 << lmc)))
    tables = forwarding_tables(topology.fabric, lids, lmcs)
    return replace(
        topology, lids=lids, lmcs=lmcs, tables=tables, vls_at=(_vls_of_pairs if of_pairs else _vls)(topology, random)
    )


def _vls(topology: Topology, random: Random) -> dict[tuple[str, int, int], tuple[int, ...]]:
    """Of some pairs of linked ports of a switch, the VL of each SL."""
    if random.random() >= _OWN_VLS_SHARE:
        return {}
    ports = topology.linked_ports()
    return {
        (out.node, into.number, out.number): tuple(random.randrange(topology.vls(out)) for _ in range(SERVICE_LEVELS))
        for into in ports
        for out in ports
        if into.node == out.node and out.node in topology.tables and random.random() < _OWN_VLS_SHARE
    }


def _vls_of_pairs(topology: Topology, random: Random) -> dict[tuple[str, int, int], tuple[int, ...]]:
    """Of all pairs of linked ports of a switch, the VL of each SL, in half of them the same one."""
    vls_at = {}
    for into, out in product(topology.linked_ports(), repeat=2):
        if into.node == out.node and out.node in topology.tables:
            one = [random.randrange(topology.vls(out))]
            each = [random.randrange(topology.vls(out)) for _ in range(SERVICE_LEVELS)]
            vls_at[out.node, into.number, out.number] = tuple(random.choice((one * SERVICE_LEVELS, each)))
    return vls_at
