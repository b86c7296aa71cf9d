"""VL arbitration lists, written to the ports that arbitrate (IBTA vol 1, 7.6.9 and 14.2.5.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sm.discovery import Findings
from sm.events import SetRefused, Tell
from sm.mad_client import RefusedError
from sm.port_settings import operational_vl_count
from sm.programming import Programmed
from sm.settings import SubnetSettings
from sm.sma_client import SmaClient
from sm.subnet import End
from sm.tasks import gather
from wire.port_tables import VL_ARBITRATION_ENTRY, VL_ARBITRATION_TABLE, VLArbitrationBlock

__all__ = ["program_vl_arbitration"]

_BLOCK: Final = VL_ARBITRATION_TABLE.count


async def program_vl_arbitration(
    sma: SmaClient, guid: int, found: Findings, settings: SubnetSettings, programmed: Programmed, tell: Tell
) -> None:
    """Writes the lists of each linked port of a node that has some, where they are not what is known to be there.

    What does not fit a port is treated as OpenSM does: VLs are modulo those in use, and a list ends where there is
    no room for more.

    Raises:
        SmpError: the node does not answer.
    """

    async def write(end: End, block: VLArbitrationBlock, entries: bytes) -> None:
        port = end.port if found.subnet.nodes[guid].is_switch else 0
        try:
            await sma.set_vl_arbitration(found.path(end), block, port, entries)
        except RefusedError as error:
            tell(SetRefused(str(error)))
        programmed.vl_arbitration[end, block] = entries

    await gather(
        [
            write(end, block, entries)
            for end, block, entries in _wanted(guid, found, settings)
            if programmed.vl_arbitration.get((end, block)) != entries
        ]
    )


def _wanted(guid: int, found: Findings, settings: SubnetSettings) -> Iterator[tuple[End, VLArbitrationBlock, bytes]]:
    """The blocks of each linked port: VLs modulo those that it uses, and as many entries as it has room for."""
    lists = settings.qos_of(found.subnet.nodes[guid].type).vl_arbitration
    if lists is None:
        return
    for port, _far in found.subnet.neighbours(guid):
        end = End(guid, port)
        used = operational_vl_count(found, end, settings)
        for priority, entries, first in (
            ("low", lists.low, VLArbitrationBlock.LOW_0_31),
            ("high", lists.high, VLArbitrationBlock.HIGH_0_31),
        ):
            room = found.ports[end][f"vl_arbitration_{priority}_cap"]
            packed = [VL_ARBITRATION_ENTRY.to_int(vl=one.vl % used, weight=one.weight) for one in entries[:room]]
            packed += [0] * (room - len(packed))
            for half in range(-(-room // _BLOCK)):
                block = VL_ARBITRATION_TABLE.pack(packed[half * _BLOCK : (half + 1) * _BLOCK])
                yield end, VLArbitrationBlock(first + half), block
