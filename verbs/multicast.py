"""Multicast groups as an adapter knows them: which queue pairs take what is sent to a group (IBTA vol 1, 10.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from verbs.limits import AdapterLimits
from verbs.queue_pair import QueuePair, name_of
from verbs.states import QpType
from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, is_multicast_lid

__all__ = ["MULTICAST_QP", "MulticastGroups"]

MULTICAST_QP: Final = 0xFF_FFFF
"""BTH.DestQP of what is sent to a group."""

_PREFIX: Final = 0xFF
"""The first byte of a multicast GID."""


class MulticastGroups:
    """Who is attached to what: groups by GID and LID."""

    def __init__(self, limits: AdapterLimits) -> None:
        self._limits = limits
        self._members: dict[tuple[int, int], list[QueuePair]] = {}

    def attach(self, queue_pair: QueuePair, mgid: int, mlid: int) -> None:
        """From now on it gets a copy of what comes for the group; once more changes nothing.

        Raises:
            LimitError: more groups, or members of one, than there may be.
            ValueError: not a queue pair for datagrams, or no GID or LID of a group.
        """
        if queue_pair.pair.kind is not QpType.UD:
            raise ValueError(f"{name_of(queue_pair)} is {queue_pair.pair.kind.name}: allowed in multicast groups is UD")
        if mgid >> 120 != _PREFIX:
            raise ValueError(f"GID {mgid:#034x} is no multicast GID: allowed are those that begin with {_PREFIX:#x}")
        if not is_multicast_lid(mlid):
            raise ValueError(
                f"LID {mlid:#x} is no multicast LID: allowed {LID_MULTICAST_MIN:#x}..{LID_MULTICAST_MAX:#x}"
            )
        members = self._members.get((mgid, mlid), [])
        if queue_pair in members:
            return
        self._limits.check(max_mcast_grp=len(self._members) + (not members), max_mcast_qp_attach=len(members) + 1)
        self._members[mgid, mlid] = [*members, queue_pair]

    def detach(self, queue_pair: QueuePair, mgid: int, mlid: int) -> None:
        """It gets no copies any more.

        Raises:
            ValueError: it is not attached.
        """
        members = self._members.get((mgid, mlid), [])
        if queue_pair not in members:
            raise ValueError(f"{name_of(queue_pair)} is not attached to group {mgid:#034x} with LID {mlid:#x}")
        left = [member for member in members if member is not queue_pair]
        if left:
            self._members[mgid, mlid] = left
        else:
            del self._members[mgid, mlid]

    def of(self, queue_pair: QueuePair) -> list[tuple[int, int]]:
        """GID and LID of each group that it is attached to."""
        return [group for group, members in self._members.items() if queue_pair in members]

    def members(self, mgid: int, mlid: int) -> Sequence[QueuePair]:
        """Who gets what comes for a group."""
        return self._members.get((mgid, mlid), ())
