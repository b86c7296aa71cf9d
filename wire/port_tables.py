"""A port's tables: GUIDs, P_Keys, SL to VL, VL arbitration (IBTA vol 1, 14.2.5.5 and 14.2.5.7 to 14.2.5.9)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from .codes import SERVICE_LEVELS
from .layout import Field, Layout
from .meaning import HEX, Amount, Code
from .table import Table

__all__ = [
    "GUID_INFO",
    "P_KEY_TABLE",
    "P_KEY_TABLE_MODIFIER",
    "SL_TO_VL_MAPPING_TABLE",
    "SL_TO_VL_MODIFIER",
    "VL_ARBITRATION_ENTRY",
    "VL_ARBITRATION_MODIFIER",
    "VL_ARBITRATION_TABLE",
    "VLArbitrationBlock",
]


class VLArbitrationBlock(IntEnum):
    """Which half of which list a VLArbitrationTable block is."""

    LOW_0_31 = 1
    LOW_32_63 = 2
    HIGH_0_31 = 3
    HIGH_32_63 = 4


GUID_INFO: Final = Table("GUIDInfo", 8, Field("guid", 0, 64, meaning=HEX))
"""Block b holds GUIDs 8 b to 8 b + 7; GUID 0 is read only."""

P_KEY_TABLE: Final = Table("P_KeyTable", 32, Field("p_key", 0, 16, meaning=HEX))
"""Block b holds P_Keys 32 b to 32 b + 31; 0 is an empty entry."""

P_KEY_TABLE_MODIFIER: Final = Layout("P_KeyTable AttributeModifier", 4, [Field("port", 0, 16), Field("block", 16, 16)])
"""``port`` is that of a switch; adapters hold 0."""

SL_TO_VL_MAPPING_TABLE: Final = Table("SLtoVLMappingTable", SERVICE_LEVELS, Field("vl", 0, 4))
"""The VL of each SL; VL 15 discards."""

SL_TO_VL_MODIFIER: Final = Layout(
    "SLtoVLMappingTable AttributeModifier", 4, [Field("input_port", 16, 8), Field("output_port", 24, 8)]
)
"""The two ports of a switch between which the mapping holds; adapters hold 0."""

VL_ARBITRATION_ENTRY: Final = Layout(
    "VLArbitrationTable entry", 2, [Field("vl", 4, 4), Field("weight", 8, 8, meaning=Amount("x 64 bytes"))]
)
"""A VL and how much it may send in its turn; weight 0 skips the entry."""

VL_ARBITRATION_TABLE: Final = Table(
    "VLArbitrationTable", 32, Field("entry", 0, 16, meaning=HEX), parts=VL_ARBITRATION_ENTRY
)
"""Half of a list of up to 64 entries."""

VL_ARBITRATION_MODIFIER: Final = Layout(
    "VLArbitrationTable AttributeModifier",
    4,
    [Field("block", 0, 16, meaning=Code(VLArbitrationBlock)), Field("port", 16, 16)],
)
"""``block`` is a VLArbitrationBlock."""
