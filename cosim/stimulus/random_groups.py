"""Multicast groups drawn at random for `ironband check`."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from cosim.topology.topology import Topology
from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN
from wire.parameters import SwitchParameters

__all__ = ["has_groups", "random_group", "random_groups"]

_GROUPED_SHARE: Final = 0.5
"""Of the runs, those with groups."""

_MOST_GROUPS: Final = 4
_FIRST_LIDS: Final = 8
_OTHER_SHARE: Final = 0.1
"""Of what is drawn for groups, that for LIDs of none; that for the last of all LIDs."""

_LAST_SHARE: Final = 0.02
_BEYOND_SHARE: Final = 0.02
"""That for the first behind the MFT."""


def has_groups(seed: int) -> bool:
    """Whether there are any."""
    return Random(f"{seed}/groups").random() < _GROUPED_SHARE


def random_groups(hosts: Sequence[str], size: int, random: Random) -> dict[int, tuple[str, ...]]:
    """In some runs groups of two hosts or more, by LID, in an MFT of so many LIDs; the last LID often is one."""
    if random.random() >= _GROUPED_SHARE:
        return {}
    lids = random.sample([*range(_FIRST_LIDS), size - 1], random.randint(1, _MOST_GROUPS))
    return {LID_MULTICAST_MIN + lid: tuple(random.sample(hosts, random.randint(2, len(hosts)))) for lid in sorted(lids)}


def random_group(topology: Topology, random: Random, *, others: bool) -> int:
    """LID of one of the groups; with OTHERS sometimes of none."""
    if others and (drawn := random.random()) < _OTHER_SHARE:
        lid = random.randint(LID_MULTICAST_MIN, LID_MULTICAST_MAX)
        if drawn < _LAST_SHARE:
            return LID_MULTICAST_MAX
        return LID_MULTICAST_MIN + _mft_size(topology) if drawn < _LAST_SHARE + _BEYOND_SHARE else lid
    return random.choice(list(topology.groups))


def _mft_size(topology: Topology) -> int:
    """LIDs of the multicast forwarding table of a switch."""
    return next(node.mft_size for node in topology.fabric.nodes.values() if isinstance(node, SwitchParameters))
