"""Multicast groups: their MLIDs, and which ports are in them (IBTA vol 1, 10.5.3 and 15.2.5.17)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN
from wire.layout import Record
from wire.mc_member_record import MGID, JoinState, MgidSignature
from wire.notice import TrapNumber

__all__ = ["ALL_MLIDS", "RECEIVES", "STAYS", "MulticastGroup", "MulticastGroups"]

ALL_MLIDS: Final = LID_MULTICAST_MAX - LID_MULTICAST_MIN + 1

RECEIVES: Final = JoinState.FULL | JoinState.NON
"""The members to which packets are led."""
STAYS: Final = JoinState.FULL | JoinState.SEND_ONLY_FULL
"""The members without which a group is deleted."""

_NOT_PERMANENTLY_ASSIGNED: Final = 1


@dataclass
class MulticastGroup:
    """A group."""

    record: Record
    """Its MCMemberRecord: of a port only the JoinState of the one that has created it; selectors say exactly."""
    is_made: bool = False
    """Whether the Subnet Manager has made it: it stays without members."""
    members: dict[int, JoinState] = field(default_factory=dict)
    """By PortGUID."""

    @property
    def mlid(self) -> int:
        """The LID that its packets are sent to."""
        return self.record.mlid


class MulticastGroups:
    """The groups of a subnet; no two have one MLID."""

    def __init__(self, made: Iterable[Record] = ()) -> None:
        """`made` are MCMemberRecords of those that the Subnet Manager makes; of one MGID the first counts."""
        self.by_mgid: dict[int, MulticastGroup] = {}
        self.on_members: Callable[[], None] = lambda: None
        """Called when ports have joined or left."""
        self.on_notice: Callable[[TrapNumber, int], None] = lambda trap, mgid: None
        """Called when a group, which has this MGID, is created or deleted."""
        self._numbered = 0
        for record in made:
            if record.mgid not in self.by_mgid:
                self.create(record, ALL_MLIDS, is_made=True)

    def create(
        self, record: Record, room: int, wanted_mlid: int = 0, *, is_made: bool = False
    ) -> MulticastGroup | None:
        """A new group with this MGID; None if the first `room` MLIDs are all in use.

        It gets the MLID that is wanted if that is one and free, and the lowest free one if not. Nobody hears of it
        until it has a member.
        """
        free = range(LID_MULTICAST_MIN, LID_MULTICAST_MIN + room)
        used = {group.mlid for group in self.by_mgid.values()}
        if wanted_mlid in free and wanted_mlid not in used:
            mlid = wanted_mlid
        else:
            mlid = next((mlid for mlid in free if mlid not in used), 0)
        if not mlid:
            return None
        group = self.by_mgid[record.mgid] = MulticastGroup(record.replace(mlid=mlid), is_made)
        return group

    def join(self, group: MulticastGroup, guid: int, state: JoinState) -> JoinState:
        """Makes a port a member, or more of one; all that it is then."""
        is_new = not (group.is_made or any(group.members.values()))
        before = group.members.get(guid, JoinState(0))
        group.members[guid] = before | state
        if is_new:
            self.on_notice(TrapNumber.GROUP_CREATED, group.record.mgid)
        if before != before | state:
            self.on_members()
        return before | state

    def leave(self, group: MulticastGroup, guid: int, state: JoinState) -> JoinState:
        """Takes from a member what it is; what is left of it. With its last full member a group is deleted."""
        left = group.members[guid] & ~state
        if left:
            group.members[guid] = left
        else:
            del group.members[guid]
        self._delete_if_left(group)
        self.on_members()
        return left

    def keep(self, guids: Collection[int]) -> None:
        """Only these ports are there: others leave their groups. It is for the caller to find the trees again."""
        for group in list(self.by_mgid.values()):
            gone = group.members.keys() - set(guids)
            for guid in gone:
                del group.members[guid]
            if gone:
                self._delete_if_left(group)

    def new_mgid(self, scope: int, gid_prefix: int) -> int:
        """A multicast GID that no group has, of those that the Subnet Administrator gives out (IBTA vol 1, 4.1.1)."""
        while True:
            self._numbered += 1
            low = gid_prefix << 32 | self._numbered & 0xFFFF_FFFF
            form = MGID.to_int(
                flags=_NOT_PERMANENTLY_ASSIGNED, scope=scope, signature=MgidSignature.ADMINISTRATOR, group=0
            )
            if form | low not in self.by_mgid:
                return form | low

    def _delete_if_left(self, group: MulticastGroup) -> None:
        if not group.is_made and not any(state & STAYS for state in group.members.values()):
            del self.by_mgid[group.record.mgid]
            self.on_notice(TrapNumber.GROUP_DELETED, group.record.mgid)
