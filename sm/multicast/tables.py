"""Multicast forwarding tables, set so that no packet goes in circles meanwhile (IBTA vol 1, 14.2.5.12).

A packet goes round in a circle where the masks of switches lead out of one and, by others, into it again by another
port. The masks of one tree never do; those of an old tree here and of a new one there may. Therefore masks are first
narrowed to what the old and the new tree have in common, at all switches, and only when each of them has answered are
they widened to the new tree. So at all times all masks of an MLID are within the old tree, or all within the new one.
What this does not prevent is that a packet on its way just then reaches a member twice or never.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, TypeAlias

from sm.discovery import Findings
from sm.events import MulticastTablesWritten, Tell, Unsettled
from sm.mad_client import SmpError
from sm.programming import Programmed
from sm.sma_client import SmaClient
from sm.subnet import MANAGEMENT_PORT, End
from sm.tasks import gather
from wire.codes import LID_MULTICAST_MIN, is_multicast_lid
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE, mft_block
from wire.port_info import CapabilityMask

__all__ = ["MulticastMasks", "learn_multicast_tables", "multicast_caps", "program_multicast"]

MulticastMasks: TypeAlias = Mapping[int, Mapping[int, int]]
"""By switch GUID and MLID: the ports that packets leave by, bit i for port i, where there are any."""

_MLIDS: Final = MULTICAST_FORWARDING_TABLE.count
"""Of a block."""
_PORTS: Final = MULTICAST_FORWARDING_TABLE.entry.width
"""Of a position."""
_ALL_PORTS: Final = MULTICAST_FORWARDING_TABLE.entry.max

_TOP_OF_NONE: Final = LID_MULTICAST_MIN - 1
_TOP_UNSET: Final = 0


def multicast_caps(found: Findings) -> dict[int, int]:
    """MulticastFDBCap by the GUIDs of those switches that have a multicast forwarding table."""
    return {guid: info.multicast_fdb_cap for guid, info in found.switches.items() if info.multicast_fdb_cap}


async def learn_multicast_tables(sma: SmaClient, found: Findings, programmed: Programmed, tell: Tell) -> None:
    """Reads the tables of switches of which nothing is known, before they get LIDs.

    Nobody has given one without a LID any masks: they are 0. One that does not answer is reported, and nothing is
    known of it.
    """

    async def learn(guid: int, mlids: int) -> None:
        path = found.paths[End(guid, MANAGEMENT_PORT)]
        positions = found.subnet.nodes[guid].ports // _PORTS + 1
        places = [(block, position) for block in range(-(-mlids // _MLIDS)) for position in range(positions)]
        try:
            parts = await gather([sma.mft_block(path, *place) for place in places])
        except SmpError as error:
            tell(Unsettled(str(error)))
            return
        masks: dict[int, int] = {}
        for (block, position), part in zip(places, parts, strict=True):
            for mlid, mask in zip(_mlids(block), part, strict=True):
                if mask and mlid < LID_MULTICAST_MIN + mlids and is_multicast_lid(mlid):
                    masks[mlid] = masks.get(mlid, 0) | mask << _PORTS * position
        programmed.multicast[guid] = masks

    unread = []
    for guid, cap in multicast_caps(found).items():
        if guid not in programmed.multicast:
            if found.subnet.nodes[guid].end_ports[MANAGEMENT_PORT].lid:
                unread.append(learn(guid, cap))
            else:
                programmed.multicast[guid] = {}
    await gather(unread)


async def program_multicast(
    sma: SmaClient, found: Findings, wanted: MulticastMasks, programmed: Programmed, tell: Tell
) -> bool:
    """Sets the masks of all switches to those of `wanted`, where they are others; whether every one has answered.

    As long as one has not, masks are narrowed and none is widened.
    """
    caps = multicast_caps(found)

    async def at_all(write: Callable[[int], Coroutine[Any, None, None]]) -> bool:
        async def at(guid: int) -> bool:
            try:
                await write(guid)
            except SmpError as error:
                tell(Unsettled(str(error)))
                return False
            return True

        known = [guid for guid in caps if guid in programmed.multicast]
        return all(await gather(map(at, known))) and len(known) == len(caps)

    async def narrow(guid: int) -> None:
        of_switch = wanted.get(guid, {})
        held = programmed.multicast[guid]
        await _write(sma, guid, {mlid: mask & of_switch.get(mlid, 0) for mlid, mask in held.items()}, found, programmed)

    async def widen(guid: int) -> None:
        of_switch = wanted.get(guid, {})
        await _write(sma, guid, of_switch, found, programmed)
        await _set_top(sma, guid, of_switch, found)

    before = {guid: programmed.multicast[guid] for guid in caps if guid in programmed.multicast}
    done = await at_all(narrow) and await at_all(widen)
    for guid, held in before.items():
        after = programmed.multicast.get(guid, {})
        changed = tuple(mlid for mlid in sorted(held.keys() | after.keys()) if held.get(mlid) != after.get(mlid))
        if changed and guid in programmed.multicast:
            tell(MulticastTablesWritten(guid, changed))
    return done


async def _write(sma: SmaClient, guid: int, masks: Mapping[int, int], found: Findings, programmed: Programmed) -> None:
    """Sets a switch's masks.

    Raises:
        SmpError: it does not answer, or refuses; what it holds is not known then.
    """
    path = found.paths[End(guid, MANAGEMENT_PORT)]
    held = programmed.multicast.pop(guid)
    after = {mlid: mask for mlid, mask in masks.items() if mask}
    await gather(
        [
            sma.set_mft_block(
                path, block, position, [after.get(mlid, 0) >> _PORTS * position & _ALL_PORTS for mlid in _mlids(block)]
            )
            for block, position in dict.fromkeys(_differing(held, after))
        ]
    )
    programmed.multicast[guid] = after


async def _set_top(sma: SmaClient, guid: int, masks: Mapping[int, int], found: Findings) -> None:
    """Sets MulticastFDBTop, up to which masks count, where a switch has it: to the last MLID of the last block in use.

    Raises:
        SmpError: it does not answer, or refuses.
    """
    end = End(guid, MANAGEMENT_PORT)
    info = found.switches[guid]
    if not found.ports[end].capability_mask & CapabilityMask.IS_MULTICAST_FDB_TOP_SUPPORTED:
        return
    if masks:
        top = min(_mlids(mft_block(max(masks))[0])[-1], LID_MULTICAST_MIN + info.multicast_fdb_cap - 1)
    else:
        # Unset, all masks count, and they are 0.
        top = _TOP_UNSET if info.multicast_fdb_top == _TOP_UNSET else _TOP_OF_NONE
    if info.multicast_fdb_top != top:
        settled = info.replace(multicast_fdb_top=top, port_state_change=0)
        found.switches[guid] = await sma.set_switch_info(found.paths[end], settled)


def _differing(held: Mapping[int, int], after: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Block and position of each part of a mask that is to be another."""
    for mlid in sorted(held.keys() | after.keys()):
        differing = held.get(mlid, 0) ^ after.get(mlid, 0)
        for position in range(-(-differing.bit_length() // _PORTS)):
            if differing >> _PORTS * position & _ALL_PORTS:
                yield mft_block(mlid)[0], position


def _mlids(block: int) -> range:
    """The MLIDs of a block."""
    return range(LID_MULTICAST_MIN + _MLIDS * block, LID_MULTICAST_MIN + _MLIDS * (block + 1))
