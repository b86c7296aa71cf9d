"""Multicast packets in a subnet: where copies of one get to by the masks of switches (IBTA vol 1, 18.2.4.3)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from sm.subnet import End, Subnet


def copies(subnet: Subnet, masks: Mapping[int, set[int]], sender: End) -> Counter[End]:
    """How many copies of a packet get to each port of a host; it fails if one comes back to where it was.

    `masks` are the ports of its group by switch GUID; the sender is a port of a host.
    """
    arrived: Counter[End] = Counter()
    passed: set[End] = set()
    queue = deque([subnet.peer(sender)])
    while queue:
        at = queue.popleft()
        if at is None:
            continue
        if not subnet.nodes[at.guid].is_switch:
            arrived[at] += 1
            continue
        assert at not in passed, f"a packet of {sender} goes round in a circle through {at}"
        passed.add(at)
        queue.extend(subnet.peer(End(at.guid, port)) for port in sorted(masks.get(at.guid, set())) if port != at.port)
    return arrived


def ports_of(mask: int) -> set[int]:
    return {port for port in range(mask.bit_length()) if mask >> port & 1}
