"""The attributes of Subnet Management Agents, read and written by directed route."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from sm.mad_client import MadClient
from wire.forwarding_tables import BLOCK_MODIFIER, MFT_MODIFIER, MULTICAST_FORWARDING_TABLE
from wire.layout import Record
from wire.node_info import NODE_INFO, node_description_text
from wire.port_info import PORT_INFO, PORT_INFO_MODIFIER
from wire.port_tables import (
    P_KEY_TABLE,
    P_KEY_TABLE_MODIFIER,
    SL_TO_VL_MAPPING_TABLE,
    SL_TO_VL_MODIFIER,
    VL_ARBITRATION_MODIFIER,
    VLArbitrationBlock,
)
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO

__all__ = ["Path", "SmaClient"]

Path: TypeAlias = tuple[int, ...]
"""A directed route: the port to leave each node by, the Subnet Manager's own first; an empty one stays there."""


class SmaClient:
    """Each attribute by its name. All may raise SmpError."""

    def __init__(self, mads: MadClient) -> None:
        self._mads = mads

    async def node_info(self, path: Path, *, retries: int | None = None) -> Record:
        """NodeInfo; `retries` as the MAD client has them unless given."""
        return NODE_INFO.unpack(await self._mads.get(path, SmaAttribute.NODE_INFO, retries=retries))

    async def node_description(self, path: Path) -> str:
        """The text of NodeDescription."""
        return node_description_text(await self._mads.get(path, SmaAttribute.NODE_DESCRIPTION))

    async def switch_info(self, path: Path) -> Record:
        """SwitchInfo."""
        return SWITCH_INFO.unpack(await self._mads.get(path, SmaAttribute.SWITCH_INFO))

    async def set_switch_info(self, path: Path, info: Record) -> Record:
        """Sets SwitchInfo; the result is what it is then."""
        return SWITCH_INFO.unpack(await self._mads.set(path, SmaAttribute.SWITCH_INFO, info.pack()))

    async def port_info(self, path: Path, port: int) -> Record:
        """PortInfo of a port of the node."""
        modifier = PORT_INFO_MODIFIER.to_int(port=port)
        return PORT_INFO.unpack(await self._mads.get(path, SmaAttribute.PORT_INFO, modifier))

    async def set_port_info(self, path: Path, port: int, info: Record) -> Record:
        """Sets PortInfo; the result is what it is then."""
        modifier = PORT_INFO_MODIFIER.to_int(port=port)
        return PORT_INFO.unpack(await self._mads.set(path, SmaAttribute.PORT_INFO, info.pack(), modifier))

    async def lft_block(self, path: Path, block: int) -> bytes:
        """The 64 entries of a block of the linear forwarding table, a byte each."""
        modifier = BLOCK_MODIFIER.to_int(block=block)
        return await self._mads.get(path, SmaAttribute.LINEAR_FORWARDING_TABLE, modifier)

    async def set_lft_block(self, path: Path, block: int, entries: bytes) -> None:
        """Sets the 64 entries of a block of the linear forwarding table."""
        modifier = BLOCK_MODIFIER.to_int(block=block)
        await self._mads.set(path, SmaAttribute.LINEAR_FORWARDING_TABLE, entries, modifier)

    async def mft_block(self, path: Path, block: int, position: int) -> tuple[int, ...]:
        """The masks of 32 MLIDs, for 16 ports, of a block of the multicast forwarding table."""
        modifier = MFT_MODIFIER.to_int(position=position, block=block)
        data = await self._mads.get(path, SmaAttribute.MULTICAST_FORWARDING_TABLE, modifier)
        return MULTICAST_FORWARDING_TABLE.unpack(data)

    async def set_mft_block(self, path: Path, block: int, position: int, masks: Sequence[int]) -> None:
        """Sets the masks of 32 MLIDs, for 16 ports, of a block of the multicast forwarding table."""
        modifier = MFT_MODIFIER.to_int(position=position, block=block)
        data = MULTICAST_FORWARDING_TABLE.pack(masks)
        await self._mads.set(path, SmaAttribute.MULTICAST_FORWARDING_TABLE, data, modifier)

    async def set_sl_to_vl(self, path: Path, input_port: int, output_port: int, vls: Sequence[int]) -> None:
        """Sets the VL of each of the 16 SLs between two ports of a switch; an adapter's ports are both 0."""
        modifier = SL_TO_VL_MODIFIER.to_int(input_port=input_port, output_port=output_port)
        data = SL_TO_VL_MAPPING_TABLE.pack(vls)
        await self._mads.set(path, SmaAttribute.SL_TO_VL_MAPPING_TABLE, data, modifier)

    async def set_vl_arbitration(self, path: Path, block: VLArbitrationBlock, port: int, entries: bytes) -> None:
        """Sets a block of a VL arbitration list of a switch's port; an adapter's is 0."""
        modifier = VL_ARBITRATION_MODIFIER.to_int(block=block, port=port)
        await self._mads.set(path, SmaAttribute.VL_ARBITRATION_TABLE, entries, modifier)

    async def p_keys(self, path: Path, port: int) -> tuple[int, ...]:
        """The first 32 P_Keys of a switch's port; an adapter's is 0."""
        modifier = P_KEY_TABLE_MODIFIER.to_int(port=port)
        return P_KEY_TABLE.unpack(await self._mads.get(path, SmaAttribute.P_KEY_TABLE, modifier))

    async def set_p_keys(self, path: Path, port: int, p_keys: Sequence[int]) -> None:
        """Sets the first 32 P_Keys of a switch's port; an adapter's is 0."""
        modifier = P_KEY_TABLE_MODIFIER.to_int(port=port)
        await self._mads.set(path, SmaAttribute.P_KEY_TABLE, P_KEY_TABLE.pack(p_keys), modifier)
