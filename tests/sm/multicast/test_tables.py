"""Multicast forwarding tables: which blocks are read and written, MulticastFDBTop, and masks of another manager."""

from __future__ import annotations

from collections.abc import Iterator

from sm.subnet import End
from tests.sm.managed import Managed
from tests.sm.multicast.members import BROADCAST, CREATE, GROUP, host_guids, join, leave, masks, reached
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, fat_tree, ring, star
from wire.forwarding_tables import MFT_MODIFIER, MULTICAST_FORWARDING_TABLE
from wire.layout import Record
from wire.mad import MadMethod
from wire.port_info import CapabilityMask
from wire.sma import SmaAttribute

MFT, SWITCH_INFO = SmaAttribute.MULTICAST_FORWARDING_TABLE, SmaAttribute.SWITCH_INFO


def requests(up: Managed, method: MadMethod, attribute: SmaAttribute) -> list[Record]:
    """Those that come to SMAs from now on."""
    found: list[Record] = []

    def look(_end: End, smp: Record) -> None:
        if (smp.method, smp.attribute_id) == (method, attribute):
            found.append(smp)

    up.fabric.on_request = look
    return found


def places(smps: list[Record]) -> Iterator[tuple[int, int]]:
    for smp in smps:
        where = MFT_MODIFIER.from_int(smp.attribute_modifier)
        yield where.block, where.position


def top(up: Managed) -> int:
    return up.fabric.nodes[SWITCH_GUID].switch_info.multicast_fdb_top


def test_a_block_is_of_32_mlids_and_a_position_of_16_ports():
    up = Managed(star(20, ports=36), mft_cap=64).bring_up()
    hosts = host_guids(up)
    join(up, hosts[0], mlid=0xC021)
    written = requests(up, MadMethod.SET, MFT)
    join(up, hosts[17])
    assert set(places(written)) == {(1, 0), (1, 1)}
    assert up.fabric.nodes[SWITCH_GUID].mft[1, 1][1] == 1 << 18 - 16
    written.clear()
    join(up, hosts[18])
    assert list(places(written)) == [(1, 1)], "nothing else differs"
    assert reached(up, hosts[0], 0xC021) == [hosts[17], hosts[18]]


def test_multicast_fdb_top_is_that_of_the_last_block_in_use():
    up = Managed(star(3), mft_cap=48).bring_up()
    hosts = host_guids(up)
    assert top(up) == 0, "no mask has been set"
    for guid in hosts[:2]:
        join(up, guid, BROADCAST)
    assert top(up) == 0xC01F
    for guid in hosts[:2]:
        join(up, guid, mlid=0xC028)
    assert top(up) == 0xC000 + 47, "the table ends there"
    assert reached(up, hosts[0], 0xC028) == [hosts[1]]
    for guid in hosts[:2]:
        leave(up, guid)
    assert top(up) == 0xC01F
    for guid in hosts[:2]:
        leave(up, guid, BROADCAST)
    assert top(up) == 0xBFFF, "none"


def test_a_switch_without_multicast_fdb_top_is_left_it():
    up = Managed(star(3), mft_cap=48).bring_up()
    up.fabric.nodes[SWITCH_GUID].change(0, capability_mask=CapabilityMask(0))
    up.fabric.cut(next(iter(up.subnet.links)).a)
    up.until_quiet()
    written = requests(up, MadMethod.SET, SWITCH_INFO)
    for guid in host_guids(up):
        join(up, guid, BROADCAST)
    assert top(up) == 0
    assert not written


def test_masks_that_another_manager_has_left_are_read_once_and_give_way():
    up = Managed(ring(4), mft_cap=40)
    for guid, node in up.fabric.nodes.items():
        if node.node.is_switch:
            node.change(0, lid=guid & 0xFF | 0x40)
            # All ports: a packet would go round and round.
            node.mft[0, 0] = MULTICAST_FORWARDING_TABLE.unpack(MULTICAST_FORWARDING_TABLE.pack([0xE] * 32))
    read = requests(up, MadMethod.GET, MFT)
    up.bring_up()
    assert sorted(places(read)) == sorted([(0, 0), (1, 0)] * 4)
    assert not any(any(ports for ports in masks(up, mlid).values()) for mlid in (0xC000, 0xC01F))
    read.clear()
    first, second, *_ = host_guids(up)
    for guid in (first, second):
        join(up, guid, BROADCAST)
    up.until_quiet()
    assert reached(up, first) == [second]
    assert not read


def test_a_switch_that_was_reset_gets_its_masks_again():
    up = Managed(fat_tree(2, 1, 2), mft_cap=32).bring_up()
    members = sorted(host_guids(up))
    for guid in members:
        join(up, guid, BROADCAST)
    spine = up.fabric.nodes[up.subnet.switches[2].guid]
    spine.mft.clear()
    spine.change(0, lid=0, lmc=0, master_sm_lid=0)
    spine.switch_info = spine.switch_info.replace(linear_fdb_top=0, multicast_fdb_top=0)
    up.fabric.fall_back(End(spine.guid, 1))
    up.until_quiet()
    for guid in members:
        assert reached(up, guid) == [other for other in members if other != guid]


def test_an_mlid_that_is_free_again_leads_to_its_new_groups_members_alone():
    up = Managed(ring(4), mft_cap=32).bring_up()
    hosts = host_guids(up)
    for guid in hosts[:2]:
        join(up, guid)
    for guid in hosts[:2]:
        leave(up, guid)
    for guid in hosts[2:]:
        assert join(up, guid, GROUP + 1, **CREATE).records[0].mlid == 0xC001
    assert reached(up, hosts[2], 0xC001) == [hosts[3]]
    assert reached(up, HOST_GUID + 1, 0xC001) == []
