"""A switch's forwarding tables, linear, random and multicast, in blocks (IBTA vol 1, 14.2.5.10 to 14.2.5.12)."""

from __future__ import annotations

from typing import Final

from .codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, LID_UNICAST_MAX, is_multicast_lid
from .layout import Field, Layout
from .meaning import HEX
from .table import Table

__all__ = [
    "BLOCK_MODIFIER",
    "LFT_NO_ROUTE",
    "LINEAR_FORWARDING_TABLE",
    "MFT_MODIFIER",
    "MULTICAST_FORWARDING_TABLE",
    "RANDOM_ENTRY",
    "RANDOM_FORWARDING_TABLE",
    "lft_block",
    "mft_block",
    "mft_ports",
]

LFT_NO_ROUTE: Final = 0xFF
"""LFT entry of a LID that goes nowhere: its packets are discarded."""

LINEAR_FORWARDING_TABLE: Final = Table("LinearForwardingTable", 64, Field("port", 0, 8, LFT_NO_ROUTE))
"""Block b holds the output ports of LIDs 64 b to 64 b + 63."""

RANDOM_ENTRY: Final = Layout(
    "RandomForwardingTable entry",
    4,
    [Field("lid", 0, 16), Field("valid", 16, 1), Field("lmc", 17, 3), Field("port", 24, 8)],
)
"""A LID, with LMC, and its output port."""

RANDOM_FORWARDING_TABLE: Final = Table(
    "RandomForwardingTable", 16, Field("entry", 0, 32, meaning=HEX), parts=RANDOM_ENTRY
)
"""Block b holds entries 16 b to 16 b + 15."""

MULTICAST_FORWARDING_TABLE: Final = Table("MulticastForwardingTable", 32, Field("port_mask", 0, 16, meaning=HEX))
"""At position p, block b holds the masks of MLIDs 0xC000 + 32 b to 0xC000 + 32 b + 31; bit i of a mask is port
16 p + i."""

BLOCK_MODIFIER: Final = Layout("block AttributeModifier", 4, [Field("block", 0, 32)])
"""Linear and random forwarding tables, GUIDInfo, congestion control's tables: the number of the block."""

MFT_MODIFIER: Final = Layout(
    "MulticastForwardingTable AttributeModifier", 4, [Field("position", 0, 4), Field("block", 4, 28)]
)
"""The position of 16 ports, and the block of 32 MLIDs."""


def lft_block(lid: int) -> tuple[int, int]:
    """Block of the linear forwarding table, and entry in it, of a unicast LID.

    Raises:
        ValueError: a LID outside 0..0xBFFF.
    """
    if not 0 <= lid <= LID_UNICAST_MAX:
        raise ValueError(f"LID {lid:#06x}, allowed 0..{LID_UNICAST_MAX:#06x}")
    return divmod(lid, LINEAR_FORWARDING_TABLE.count)


def mft_block(mlid: int) -> tuple[int, int]:
    """Block of the multicast forwarding table, and entry in it, of a multicast LID.

    Raises:
        ValueError: a LID outside 0xC000..0xFFFE.
    """
    if not is_multicast_lid(mlid):
        raise ValueError(f"MLID {mlid:#06x}, allowed {LID_MULTICAST_MIN:#06x}..{LID_MULTICAST_MAX:#06x}")
    return divmod(mlid - LID_MULTICAST_MIN, MULTICAST_FORWARDING_TABLE.count)


def mft_ports(position: int, mask: int) -> tuple[int, ...]:
    """The ports that a mask at a position names."""
    width = MULTICAST_FORWARDING_TABLE.entry.width
    return tuple(width * position + bit for bit in range(width) if mask >> bit & 1)
