"""The multicast groups that a port is in for the programs of its host, who are counted (IBTA vol 1, 15.2.5.17).

The Subnet Administrator knows ports, not programs: it is asked when the first program wants to be something in a
group, and told when no program is that any more, as the kernel does. Of one group one thing is asked at a time.
"""

from __future__ import annotations

import errno
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from doors.mads.host_port import HostPort
from doors.rdma_cm.sa_client import Answered, SaClient
from sm.partition_groups import broadcast_mgid
from sm.partitions import FULL_MEMBER
from wire.layout import Record
from wire.mc_member_record import MC_MEMBER_RECORD
from wire.sa import SaAttribute, SaMethod

__all__ = ["Member", "PortGroups"]

_NOTHING: Final = MC_MEMBER_RECORD.record()
_WHO: Final = frozenset({"mgid", "port_gid", "join_state"})


@dataclass(eq=False, slots=True)
class Member:
    """Somebody who is in a group, or asks to be.

    Attributes:
        wanted, names: the record that is asked for, and its components that count.
        tell: hears what came of it, and with ENETRESET that it is over.
        has_left: it wants nothing any more.
        group: as soon as it is known.
    """

    wanted: Record
    names: Collection[str]
    tell: Answered
    has_left: bool = False
    group: _Group | None = None

    @property
    def state(self) -> int:
        """What it is, as bits of `JoinState`."""
        return int(self.wanted.join_state)


@dataclass(eq=False, slots=True)
class _Group:
    """A group at a port.

    Attributes:
        mgid: 0 as long as the Subnet Administrator has not chosen one.
        record: as it was answered; before that, empty.
        held: what the port is in it, as far as was answered.
        members, waiting: who is in it, and who waits for an answer.
        is_busy: something is asked.
    """

    mgid: int
    record: Record = _NOTHING
    held: int = 0
    members: list[Member] = field(default_factory=list)
    waiting: list[Member] = field(default_factory=list)
    is_busy: bool = False


class PortGroups:
    """Those of one port."""

    def __init__(self, port: HostPort, administrator: SaClient) -> None:
        """ADMINISTRATOR is asked for the port."""
        self._port = port
        self._administrator = administrator
        self._groups: list[_Group] = []
        self._lid = 0

    # What programs want.

    def look_up_broadcast(self, p_key: int, answered: Answered) -> None:
        """Asks for the broadcast group of a partition; what it is like the others are like.

        Without it ANSWERED gets EADDRNOTAVAIL, whoever says so: a host whose IPoIB is not up has none.
        """
        wanted = MC_MEMBER_RECORD.record(mgid=broadcast_mgid(p_key | FULL_MEMBER))

        def found(status: int, record: Record) -> None:
            answered(-errno.EADDRNOTAVAIL if status else 0, record)

        self._ask(SaMethod.GET, wanted, {"mgid"}, found)

    def join(self, member: Member) -> None:
        """Makes somebody a member, or tells it why not."""
        mgid = member.wanted.mgid
        group = next((one for one in self._groups if one.mgid == mgid), None) if mgid else None
        if group is None:
            group = _Group(mgid)
            self._groups.append(group)
        member.group = group
        group.waiting.append(member)
        self._go_on(group)

    def leave(self, member: Member) -> None:
        """Somebody is no member any more, and hears nothing any more."""
        member.has_left = True
        group = member.group
        if group is not None:
            for some in (group.members, group.waiting):
                if member in some:
                    some.remove(member)
            self._go_on(group)

    def changed(self) -> None:
        """Something of the port has changed.

        A port that has another LID, that is down, or that a Subnet Manager tells to register again (IBTA vol 1,
        14.4.11) is in no group any more, of which members hear.
        """
        info = self._port.info
        if self._port.sends_data and self._lid in (0, info.lid) and not info.client_reregister:
            return
        self._lid = 0
        for group in [*self._groups]:
            group.held = 0
            lost, group.members = group.members, []
            for member in lost:
                member.tell(-errno.ENETRESET, _NOTHING)
            self._go_on(group)

    # Groups.

    def _go_on(self, group: _Group) -> None:
        """Asks for what is wanted next of a group."""
        while not group.is_busy:
            if group.waiting:
                self._admit(group, group.waiting.pop(0))
                continue
            wanted = 0
            for member in group.members:
                wanted |= member.state
            surplus = group.held & ~wanted
            if not surplus:
                if not group.members and group in self._groups:
                    self._groups.remove(group)
                return
            group.is_busy = True
            gone = group.record.replace(port_gid=self._port.gid, join_state=surplus)
            self._ask(SaMethod.DELETE, gone, _WHO, partial(self._left, group, surplus))

    def _admit(self, group: _Group, member: Member) -> None:
        """Lets somebody in whose state the port has already, or asks for it."""
        if member.state & ~group.held:
            group.is_busy = True
            self._ask(SaMethod.SET, member.wanted, member.names, partial(self._joined, group, member))
        elif any(member.wanted[name] != group.record[name] for name in {*member.names} - _WHO):
            member.tell(-errno.EINVAL, _NOTHING)
        else:
            group.members.append(member)
            member.tell(0, group.record)

    def _joined(self, group: _Group, member: Member, status: int, record: Record) -> None:
        group.is_busy = False
        if not status:
            group.mgid, group.record = record.mgid, record
            group.held |= member.state
            self._lid = self._port.info.lid
        if not member.has_left:
            if not status:
                group.members.append(member)
            member.tell(status, record)
        self._go_on(group)

    def _left(self, group: _Group, surplus: int, _status: int, _record: Record) -> None:
        """Whatever the Subnet Administrator says: who does not answer has lost the port, or will."""
        group.is_busy = False
        group.held &= ~surplus
        self._go_on(group)

    def _ask(self, method: SaMethod, record: Record, names: Collection[str], answered: Answered) -> None:
        self._administrator.ask(method, SaAttribute.MC_MEMBER_RECORD, record, names, answered)
