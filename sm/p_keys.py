"""P_Key tables of end ports and of the switch ports that they are behind (IBTA vol 1, 10.9.1 and 14.2.5.7).

Only what differs from what a port holds is written, and an entry that is right stays where it is: programs name P_Keys
by their index, and a switch port that checks must not miss one for a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from sm.discovery import Findings
from sm.events import NotEnforced, PKeysLeftOut, PKeysWritten, SetRefused, Tell, Unsettled
from sm.mad_client import RefusedError, SmpError
from sm.partitions import (
    FULL_MEMBER,
    P_KEY_BASE,
    Enforcement,
    PartitionError,
    PortPartitions,
    enforced,
    partitions_of_ports,
)
from sm.programming import Programmed
from sm.settings import SubnetSettings
from sm.sma_client import SmaClient
from sm.subnet import MANAGEMENT_PORT, End
from sm.tasks import gather
from wire.port_tables import P_KEY_TABLE

__all__ = ["PKeyTable", "arranged", "checks", "learn_p_keys", "program_p_keys"]

PKeyTable: TypeAlias = tuple[int, ...]
"""Block 0 of a port's table: 32 P_Keys, 0 where there is none."""

_ENTRIES: Final = P_KEY_TABLE.count


async def learn_p_keys(
    sma: SmaClient, found: Findings, settings: SubnetSettings, programmed: Programmed, tell: Tell
) -> dict[End, PKeyTable]:
    """Reads P_Key tables, which programs other than this may have written; what ports are to hold.

    That is nothing of no port if the settings have no partitions. A node that does not answer is reported; nothing is
    known of its tables, and they are written.

    Raises:
        PartitionError: in the first sweep, more P_Keys than an end port has room for.
    """
    if settings.partitions is None:
        return {}
    partitions = partitions_of_ports(settings.partitions, found)
    facing = {end: far for end in partitions if (far := _facing(found, end, settings)) is not None}
    given = programmed.given_p_keys
    programmed.p_keys.clear()

    async def read(end: End) -> None:
        try:
            programmed.p_keys[end] = await sma.p_keys(found.path(end), _named(found, end))
        except SmpError as error:
            tell(Unsettled(str(error)))

    await gather([read(end) for end in (*partitions, *facing.values())])
    wanted = {}
    for end, all_of_port in partitions.items():
        room = max(1, min(found.infos[end].partition_cap, _ENTRIES))
        of_port = all_of_port.within(room)
        if of_port != all_of_port:
            if not given:
                raise _no_room(found, end, len(all_of_port.is_full), room)
            # All was well before the port came: traffic goes on.
            left_out = [key for key in all_of_port.p_keys if key not in of_port.p_keys]
            tell(PKeysLeftOut(end, tuple(left_out), room))
        wanted[end] = arranged(of_port, room, programmed.p_keys.get(end, ()), given.get(end, ()))
        far = facing.get(end)
        if far is None:
            continue
        room = min(found.switches[far.guid].partition_enforcement_cap, _ENTRIES)
        if len(of_port.is_full) > room:
            tell(NotEnforced(far, len(of_port.is_full), room))
        else:
            held = programmed.p_keys.get(far, given.get(far, ())) if enforced(found.ports[far]) else ()
            wanted[far] = _beside(wanted[end], room, held)
    given |= wanted
    return wanted


async def program_p_keys(
    sma: SmaClient, guid: int, wanted: Mapping[End, PKeyTable], found: Findings, programmed: Programmed, tell: Tell
) -> None:
    """Writes the tables of a node's ports that hold others.

    Raises:
        SmpError: the node does not answer.
    """

    async def write(end: End, table: PKeyTable) -> None:
        try:
            await sma.set_p_keys(found.path(end), _named(found, end), table)
        except RefusedError as error:
            tell(SetRefused(str(error)))
            return
        programmed.p_keys[end] = table
        tell(PKeysWritten(end, tuple(filter(None, table))))

    ends = [End(guid, port) for port in range(found.subnet.nodes[guid].ports + 1)]
    tables = {end: wanted[end] for end in ends if end in wanted}
    await gather([write(end, table) for end, table in tables.items() if programmed.p_keys.get(end) != table])


def checks(
    found: Findings, wanted: Mapping[End, PKeyTable], programmed: Programmed, settings: SubnetSettings
) -> dict[End, Enforcement]:
    """What each linked switch port is to check; those that are not in it stay as they are.

    Only by a table that it is known to hold does a port check. Between switches, and without partitions, none does.
    """
    result = {}
    for switch in found.subnet.switches:
        info = found.switches[switch.guid]
        able = Enforcement.IN * info.inbound_enforcement_cap | Enforcement.OUT * info.outbound_enforcement_cap
        for port, _far in found.subnet.neighbours(switch.guid):
            end = End(switch.guid, port)
            if end not in wanted:
                result[end] = Enforcement.OFF
            elif programmed.p_keys.get(end) == wanted[end]:
                result[end] = Enforcement(settings.enforcement & able)
    return result


def arranged(partitions: PortPartitions, room: int, held: Sequence[int], before: Sequence[int] = ()) -> PKeyTable:
    """An end port's table, arranged as OpenSM does: its P_Keys stay where they are in a table that it holds.

    Others go where they were in the one that it had `before`, or else behind all others, and where there is no room
    in between. The port has `room` for so many, which are no fewer than its P_Keys. Index 0 is of one of them; another
    gets it only where there is no room elsewhere.
    """
    table = [0] * room
    table[0] = next((key for key in partitions.p_keys if key & P_KEY_BASE == partitions.first), 0)
    left = [key for key in partitions.p_keys if key & P_KEY_BASE != partitions.first]
    for places in (_places(held[:room]), _places(before[:room])):
        for key in left:
            index = places.get(key & P_KEY_BASE, 0)
            if index and not table[index]:
                table[index] = key
        left = [key for key in left if key not in table]
    for key in left:
        behind = 1 + max((index for index in range(1, room) if table[index]), default=0)
        table[behind if behind < room else next(index for index in (*range(1, room), 0) if not table[index])] = key
    return _block(table)


def _beside(table: PKeyTable, room: int, held: Sequence[int]) -> PKeyTable:
    """The table of a switch port: that of the end port behind it without gaps, as OpenSM has it.

    What the port holds of it stays where it is. The port has `room` for so many, which are no fewer than there are.
    """
    places = _places(held[:room])
    result = [0] * room
    left = []
    for key in filter(None, table):
        index = places.get(key & P_KEY_BASE)
        if index is None:
            left.append(key)
        else:
            result[index] = key
    for key in left:
        result[result.index(0)] = key
    return _block(result)


def _block(entries: Sequence[int]) -> PKeyTable:
    """Block 0 with these first entries."""
    return (*entries, *[0] * (_ENTRIES - len(entries)))


def _places(table: Iterable[int]) -> dict[int, int]:
    """By P_Keys without the bit of full members: their indices, of one that is there twice that of the full member."""
    places: dict[int, int] = {}
    ranked = sorted(enumerate(table), key=lambda entry: entry[1] & FULL_MEMBER, reverse=True)
    for index, key in ranked:
        if key & P_KEY_BASE:
            places.setdefault(key & P_KEY_BASE, index)
    return places


def _facing(found: Findings, end: End, settings: SubnetSettings) -> End | None:
    """The switch port that an end port is behind, if that can check P_Keys and is to do so."""
    far = found.subnet.peer(end)
    if settings.enforcement is Enforcement.OFF or far is None or end.port == MANAGEMENT_PORT:
        return None
    switch = found.switches.get(far.guid)
    return far if switch is not None and switch.partition_enforcement_cap else None


def _named(found: Findings, end: End) -> int:
    """The port as the attribute's modifier names it."""
    return end.port if found.subnet.nodes[end.guid].is_switch else 0


def _no_room(found: Findings, end: End, partitions: int, room: int) -> PartitionError:
    guid = found.subnet.nodes[end.guid].end_ports[end.port].guid
    return PartitionError(f"port 0x{guid:016x} is in {partitions} partitions, and its P_Key table has room for {room}")
