"""What is written to switches before packets may flow: LFTs, SwitchInfo, SL-to-VL tables (IBTA vol 1, 14.2.5).

Only what differs from what a switch is known to hold is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sm.discovery import Findings
from sm.errors import ManagerError
from sm.events import SetRefused, TablesWritten, Tell, Unsettled
from sm.mad_client import RefusedError, SmpError
from sm.port_settings import wanted_vls
from sm.settings import SubnetSettings
from sm.sma_client import SmaClient
from sm.subnet import MANAGEMENT_PORT, End
from sm.tasks import gather
from wire.codes import data_vls
from wire.forwarding_tables import LFT_NO_ROUTE, LINEAR_FORWARDING_TABLE
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, VLArbitrationBlock

__all__ = ["Programmed", "TableError", "learn_tables", "program_sl_to_vl", "program_switch"]

_BLOCK: Final = LINEAR_FORWARDING_TABLE.count


class TableError(ManagerError):
    """Forwarding tables that a switch cannot hold; the text is one line."""


@dataclass
class Programmed:
    """What nodes are known to hold because it was read from them or written to them."""

    tables: dict[int, bytearray] = field(default_factory=dict)
    """By switch GUID: entries of the linear forwarding table from LID 0 on, in whole blocks up to LinearFDBTop's."""
    multicast: dict[int, dict[int, int]] = field(default_factory=dict)
    """By switch GUID: masks of ports by MLID, where there are any."""
    sl_to_vl: dict[tuple[End, int], tuple[int, ...]] = field(default_factory=dict)
    """By output port, and input port of a switch or 0 of an adapter: the VL of each SL."""

    vl_arbitration: dict[tuple[End, VLArbitrationBlock], bytes] = field(default_factory=dict)
    """By port: the blocks of its lists."""
    p_keys: dict[End, tuple[int, ...]] = field(default_factory=dict)
    """By port: block 0 of its table."""
    given_p_keys: dict[End, tuple[int, ...]] = field(default_factory=dict)
    """By port: the table that it was last to have. A node that was gone or reset gets its P_Keys in their places."""
    congestion_control: dict[End, bool] = field(default_factory=dict)
    """By port: whether its congestion control was set; False if it takes none."""
    told_clients: set[End] = field(default_factory=set)
    """Ports whose clients were told to register with this Subnet Manager's administrator."""

    def forget(self, guid: int) -> None:
        """Forgets all of a node that was reset."""
        self.tables.pop(guid, None)
        self.multicast.pop(guid, None)
        for key in [key for key in self.sl_to_vl if key[0].guid == guid]:
            del self.sl_to_vl[key]
        for port in [port for port in self.vl_arbitration if port[0].guid == guid]:
            del self.vl_arbitration[port]
        for end in [end for end in self.congestion_control if end.guid == guid]:
            del self.congestion_control[end]


async def learn_tables(sma: SmaClient, found: Findings, programmed: Programmed, tell: Tell) -> None:
    """Reads the forwarding tables of switches that already have some, as after another Subnet Manager.

    What is remembered of a node that was reset is forgotten: it has no LID any longer, or another LinearFDBTop. A
    switch that does not answer is reported; nothing is known of it, and all of its tables are written.
    """

    async def learn(guid: int, top: int) -> None:
        path = found.paths[End(guid, MANAGEMENT_PORT)]
        try:
            blocks = await gather([sma.lft_block(path, block) for block in range(top // _BLOCK + 1)])
        except SmpError as error:
            tell(Unsettled(str(error)))
            return
        programmed.tables[guid] = bytearray(b"".join(blocks))

    for node in found.subnet.nodes.values():
        if not all(port.lid for port in node.end_ports.values()):
            programmed.forget(node.guid)
    unread = []
    for guid, info in found.switches.items():
        top = info.linear_fdb_top
        held = programmed.tables.get(guid)
        if held is not None and top // _BLOCK + 1 != len(held) // _BLOCK:
            programmed.forget(guid)
            held = None
        if held is None and top and found.subnet.nodes[guid].end_ports[MANAGEMENT_PORT].lid:
            unread.append(learn(guid, top))
    await gather(unread)


async def program_switch(
    sma: SmaClient,
    guid: int,
    table: Sequence[int],
    found: Findings,
    settings: SubnetSettings,
    programmed: Programmed,
    tell: Tell,
) -> None:
    """Writes a switch's forwarding table; `table` has the port of each LID from 0 on.

    Entries come first and LinearFDBTop, which makes them count, after them. LinearFDBTop is never lowered: what is
    above the highest LID leads nowhere anyway.

    Raises:
        SmpError: the switch does not answer.
        TableError: more LIDs than the switch's table has.
    """
    path = found.paths[End(guid, MANAGEMENT_PORT)]
    info = found.switches[guid]
    if len(table) > info.linear_fdb_cap:
        raise TableError(
            f"switch 0x{guid:016x}: LID 0x{len(table) - 1:04x} is beyond its forwarding table, "
            f"expected at most 0x{max(info.linear_fdb_cap - 1, 0):04x}"
        )
    held = programmed.tables.get(guid, bytearray())
    size = max(-(-len(table) // _BLOCK) * _BLOCK, len(held))
    wanted = bytes(table).ljust(size, bytes([LFT_NO_ROUTE]))
    blocks = [
        block
        for block in range(size // _BLOCK)
        if wanted[block * _BLOCK : (block + 1) * _BLOCK] != held[block * _BLOCK : (block + 1) * _BLOCK]
    ]
    # While they are in transit, nobody knows what the switch holds.
    programmed.tables.pop(guid, None)
    await gather([sma.set_lft_block(path, block, wanted[block * _BLOCK : (block + 1) * _BLOCK]) for block in blocks])
    settled = info.replace(
        linear_fdb_top=max(len(table) - 1, info.linear_fdb_top if held else 0),
        life_time_value=settings.switch_life_time,
        port_state_change=0,
    )
    if settled != info.replace(port_state_change=0):
        found.switches[guid] = await sma.set_switch_info(path, settled)
    programmed.tables[guid] = bytearray(wanted)
    if blocks:
        tell(TablesWritten(guid, tuple(blocks)))


async def program_sl_to_vl(
    sma: SmaClient, guid: int, found: Findings, settings: SubnetSettings, programmed: Programmed, tell: Tell
) -> None:
    """Maps SLs to the VLs in use where a port, at reset, has another table: packets on others would be discarded.

    Raises:
        SmpError: the node does not answer.
    """
    wanted: Mapping[tuple[End, int], tuple[int, ...]] = {
        (out, into): vls for out, vls in _remapped(found, guid, settings) for into in _inputs(found, out)
    }

    async def write(out: End, into: int, vls: tuple[int, ...]) -> None:
        output_port = out.port if found.subnet.nodes[guid].is_switch else 0
        try:
            await sma.set_sl_to_vl(found.path(out), into, output_port, vls)
        except RefusedError as error:
            tell(SetRefused(str(error)))
        programmed.sl_to_vl[out, into] = vls

    await gather([write(*key, vls) for key, vls in wanted.items() if programmed.sl_to_vl.get(key) != vls])


def _remapped(found: Findings, guid: int, settings: SubnetSettings) -> Iterator[tuple[End, tuple[int, ...]]]:
    """Linked ports of a node that are to have another SL-to-VL table than at reset, with that table."""
    for port, _far in found.subnet.neighbours(guid):
        end = End(guid, port)
        wanted, there = wanted_vls(found, end, settings), data_vls(found.ports[end].vl_cap)
        if wanted != tuple(sl % there for sl in range(SL_TO_VL_MAPPING_TABLE.count)):
            yield end, wanted


def _inputs(found: Findings, out: End) -> list[int]:
    """The ports whose packets an output port sends on: in an adapter only itself, written 0."""
    if not found.subnet.nodes[out.guid].is_switch:
        return [0]
    return [0, *(port for port, _far in found.subnet.neighbours(out.guid) if port != out.port)]
