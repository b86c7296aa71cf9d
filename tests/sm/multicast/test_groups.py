"""Groups and their MLIDs: which are given out, and when a group is there for the first time and the last."""

from __future__ import annotations

import pytest

from sm.multicast.groups import ALL_MLIDS, MulticastGroup, MulticastGroups
from wire.mc_member_record import MC_MEMBER_RECORD, MGID, JoinState
from wire.notice import TrapNumber

FULL, NON, SEND_ONLY_FULL = JoinState.FULL, JoinState.NON, JoinState.SEND_ONLY_FULL
MADE, OTHER = 0xFF12 << 112 | 1, 0xFF12 << 112 | 2


@pytest.fixture
def groups() -> MulticastGroups:
    return MulticastGroups([MC_MEMBER_RECORD.record(mgid=MADE), MC_MEMBER_RECORD.record(mgid=MADE, sl=3)])


def create(groups: MulticastGroups, mgid: int = OTHER, room: int = ALL_MLIDS, wanted: int = 0) -> MulticastGroup | None:
    return groups.create(MC_MEMBER_RECORD.record(mgid=mgid), room, wanted)


def notices(groups: MulticastGroups) -> list[tuple[TrapNumber, int]]:
    told: list[tuple[TrapNumber, int]] = []
    groups.on_notice = lambda trap, mgid: told.append((trap, mgid))
    return told


def test_each_group_has_the_lowest_mlid_that_no_other_has(groups):
    assert groups.by_mgid[MADE].mlid == 0xC000
    assert [create(groups, OTHER + number).mlid for number in range(3)] == [0xC001, 0xC002, 0xC003]
    assert create(groups, OTHER + 3, wanted=0xC008).mlid == 0xC008
    assert create(groups, OTHER + 4, wanted=0xC008).mlid == 0xC004
    assert create(groups, OTHER + 5, room=5) is None
    assert create(groups, OTHER + 6, room=6, wanted=0x1234).mlid == 0xC005


def test_a_group_is_told_of_when_its_first_member_joins_and_its_last_full_one_leaves(groups):
    told = notices(groups)
    group = create(groups)
    assert told == []
    groups.join(group, 1, SEND_ONLY_FULL)
    groups.join(group, 2, FULL | NON)
    assert told == [(TrapNumber.GROUP_CREATED, OTHER)]
    assert groups.leave(group, 2, FULL) == NON
    assert len(told) == 1, "one that only sends is a full member too"
    groups.leave(group, 1, SEND_ONLY_FULL)
    assert told[1:] == [(TrapNumber.GROUP_DELETED, OTHER)]
    assert create(groups, OTHER + 1).mlid == group.mlid


def test_a_group_of_the_managers_stays_and_is_told_of_by_nobody(groups):
    told = notices(groups)
    group = groups.by_mgid[MADE]
    groups.join(group, 1, FULL)
    groups.join(group, 2, NON)
    groups.leave(group, 1, FULL)
    assert (groups.by_mgid[MADE], group.members, told) == (group, {2: NON}, [])


def test_ports_that_are_gone_leave_their_groups(groups):
    told = notices(groups)
    group = create(groups)
    for guid in (1, 2):
        groups.join(group, guid, FULL)
        groups.join(groups.by_mgid[MADE], guid, FULL)
    groups.keep([2, 3])
    assert (group.members, groups.by_mgid[MADE].members) == ({2: FULL}, {2: FULL})
    groups.keep([])
    assert list(groups.by_mgid) == [MADE]
    assert told[1:] == [(TrapNumber.GROUP_DELETED, OTHER)]


def test_mgids_that_are_given_out_are_of_the_subnet_and_all_different(groups):
    mgids = [groups.new_mgid(5, 0xFE80 << 48) for _time in range(3)]
    assert len(set(mgids)) == 3
    assert {(MGID.from_int(mgid).scope, mgid >> 112, mgid >> 32 & 0xFE80 << 48) for mgid in mgids} == {
        (5, 0xFF15, 0xFE80 << 48)
    }
