"""A switch's forwarding tables (docs/management.md, sections 4.1 and 4.3)."""

from wire.codes import LID_MULTICAST_MIN
from wire.forwarding_tables import (
    BLOCK_MODIFIER,
    LINEAR_FORWARDING_TABLE,
    MFT_MODIFIER,
    MULTICAST_FORWARDING_TABLE,
)
from wire.parameters import SwitchParameters
from wire.registers import lft_address, mft_address

from .agent_node import AgentNode
from .attribute import StoredBlock, set_step

__all__ = ["LinearForwardingTable", "MulticastForwardingTable"]

_LIDS_IN_WORD = 4
_MASKS_IN_WORD = 2


class LinearForwardingTable(StoredBlock):
    """Blocks of 64 LIDs. What is stored is what Sets wrote; the data path looks at its own table."""

    set_words = frozenset(range(LINEAR_FORWARDING_TABLE.count // _LIDS_IN_WORD))

    def __init__(self, node: AgentNode, parameters: SwitchParameters) -> None:
        super().__init__(node, LINEAR_FORWARDING_TABLE.pack())
        self._size = parameters.lft_size

    def select(self, modifier: int, data: bytes) -> int | None:
        """A block."""
        block = BLOCK_MODIFIER.from_int(modifier).block
        return block if block * LINEAR_FORWARDING_TABLE.count < self._size else None

    def writes(self, which: int, data: bytes) -> list[tuple[int, int, int]]:
        """The entries of LIDs below the table's size."""
        first = which * LINEAR_FORWARDING_TABLE.count
        return [
            (set_step(entry // _LIDS_IN_WORD, entry % _LIDS_IN_WORD), lft_address(first + entry), port)
            for entry, port in enumerate(LINEAR_FORWARDING_TABLE.unpack(data))
            if first + entry < self._size
        ]


class MulticastForwardingTable(StoredBlock):
    """Blocks of 32 multicast LIDs, for each 16 ports. As with the LFT, the data path looks at its own table."""

    set_words = frozenset(range(MULTICAST_FORWARDING_TABLE.count // _MASKS_IN_WORD))

    def __init__(self, node: AgentNode, parameters: SwitchParameters) -> None:
        super().__init__(node, MULTICAST_FORWARDING_TABLE.pack())
        self._size = parameters.mft_size
        self._ports = parameters.ports

    def select(self, modifier: int, data: bytes) -> int | None:
        """A block at a position; port 0 is a port."""
        fields = MFT_MODIFIER.from_int(modifier)
        is_block = fields.block * MULTICAST_FORWARDING_TABLE.count < self._size
        is_position = fields.position * MULTICAST_FORWARDING_TABLE.entry.width <= self._ports
        return modifier if is_block and is_position else None

    def writes(self, which: int, data: bytes) -> list[tuple[int, int, int]]:
        """The position's part of each entry."""
        fields = MFT_MODIFIER.from_int(which)
        first = LID_MULTICAST_MIN + fields.block * MULTICAST_FORWARDING_TABLE.count
        return [
            (
                set_step(entry // _MASKS_IN_WORD, entry % _MASKS_IN_WORD),
                mft_address(first + entry, fields.position),
                mask,
            )
            for entry, mask in enumerate(MULTICAST_FORWARDING_TABLE.unpack(data))
        ]
