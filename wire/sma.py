"""The attributes of the Subnet Management Agent: codes, formats, modifiers, methods (IBTA vol 1, 14.2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from .forwarding_tables import (
    BLOCK_MODIFIER,
    LINEAR_FORWARDING_TABLE,
    MFT_MODIFIER,
    MULTICAST_FORWARDING_TABLE,
    RANDOM_FORWARDING_TABLE,
)
from .layout import Field, Layout
from .mad import GET, GET_SET, Attribute, MadMethod
from .meaning import HEX, Code
from .node_info import NODE_DESCRIPTION, NODE_INFO
from .notice import NOTICE
from .port_info import PORT_INFO, PORT_INFO_MODIFIER
from .port_tables import (
    GUID_INFO,
    P_KEY_TABLE,
    P_KEY_TABLE_MODIFIER,
    SL_TO_VL_MAPPING_TABLE,
    SL_TO_VL_MODIFIER,
    VL_ARBITRATION_MODIFIER,
    VL_ARBITRATION_TABLE,
)
from .switch_info import SWITCH_INFO

__all__ = [
    "INDEX_MODIFIER",
    "LED_INFO",
    "LINK_SPEED_WIDTH_PAIRS_TABLE",
    "PORT_MODIFIER",
    "SMA_ATTRIBUTES",
    "SM_INFO",
    "SM_INFO_MODIFIER",
    "VENDOR_DIAG",
    "SMControl",
    "SMState",
    "SmaAttribute",
]


class SmaAttribute(IntEnum):
    """AttributeIDs of the subnet management class (IBTA vol 1, 14.2.5)."""

    NOTICE = 0x0002
    NODE_DESCRIPTION = 0x0010
    NODE_INFO = 0x0011
    SWITCH_INFO = 0x0012
    GUID_INFO = 0x0014
    PORT_INFO = 0x0015
    P_KEY_TABLE = 0x0016
    SL_TO_VL_MAPPING_TABLE = 0x0017
    VL_ARBITRATION_TABLE = 0x0018
    LINEAR_FORWARDING_TABLE = 0x0019
    RANDOM_FORWARDING_TABLE = 0x001A
    MULTICAST_FORWARDING_TABLE = 0x001B
    LINK_SPEED_WIDTH_PAIRS_TABLE = 0x001C
    SM_INFO = 0x0020
    VENDOR_DIAG = 0x0030
    LED_INFO = 0x0031


class SMState(IntEnum):
    """SMInfo.SMState."""

    NOT_ACTIVE = 0
    DISCOVERING = 1
    STANDBY = 2
    MASTER = 3


class SMControl(IntEnum):
    """AttributeModifier of Set(SMInfo), a command to a Subnet Manager; of Get it is 0."""

    NONE = 0
    HANDOVER = 1
    ACKNOWLEDGE = 2
    DISABLE = 3
    STANDBY = 4
    DISCOVER = 5


SM_INFO: Final = Layout(
    "SMInfo",
    24,
    [
        Field("guid", 0, 64, meaning=HEX),
        Field("sm_key", 64, 64, meaning=HEX),
        Field("act_count", 128, 32),
        Field("priority", 160, 4),
        Field("sm_state", 164, 4, meaning=Code(SMState)),
    ],
)
"""Who manages the subnet; 21 bytes used of 24 (IBTA vol 1, 14.2.5.13 and 14.4). ``act_count`` counts the Subnet
Manager's actions: one whose count stops is dead."""

SM_INFO_MODIFIER: Final = Layout("SMInfo AttributeModifier", 4, [Field("control", 0, 32, meaning=Code(SMControl))])

VENDOR_DIAG: Final = Layout("VendorDiag", 64, [Field("next_index", 0, 16), Field("diag_data", 32, 480, meaning=HEX)])
"""64 bytes (IBTA vol 1, 14.2.5.14). ``next_index`` is the AttributeModifier that reads on, 0 at the end."""

LED_INFO: Final = Layout("LedInfo", 4, [Field("led_mask", 0, 1)])
"""4 bytes (IBTA vol 1, 14.2.5.15): 1 lights the port's LED."""

LINK_SPEED_WIDTH_PAIRS_TABLE: Final = Layout(
    "LinkSpeedWidthPairsTable",
    36,
    [
        Field("num_tables", 0, 8),
        Field("port_mask", 8, 256, meaning=HEX),
        Field("speed_2_5_gbps", 264, 8, meaning=HEX),
        Field("speed_5_gbps", 272, 8, meaning=HEX),
        Field("speed_10_gbps", 280, 8, meaning=HEX),
    ],
)
"""36 bytes, as Wireshark's dissector reads them: for each speed the widths that go with it."""

PORT_MODIFIER: Final = Layout("port AttributeModifier", 4, [Field("port", 0, 32)])
INDEX_MODIFIER: Final = Layout("index AttributeModifier", 4, [Field("index", 0, 32)])

SMA_ATTRIBUTES: Final[Mapping[int, Attribute]] = {
    attribute.code: attribute
    for attribute in (
        Attribute(SmaAttribute.NOTICE, NOTICE, GET_SET | {MadMethod.TRAP, MadMethod.TRAP_REPRESS}),
        Attribute(SmaAttribute.NODE_DESCRIPTION, NODE_DESCRIPTION, GET),
        Attribute(SmaAttribute.NODE_INFO, NODE_INFO, GET),
        Attribute(SmaAttribute.SWITCH_INFO, SWITCH_INFO, GET_SET),
        Attribute(SmaAttribute.GUID_INFO, GUID_INFO, GET_SET, BLOCK_MODIFIER),
        Attribute(SmaAttribute.PORT_INFO, PORT_INFO, GET_SET, PORT_INFO_MODIFIER),
        Attribute(SmaAttribute.P_KEY_TABLE, P_KEY_TABLE, GET_SET, P_KEY_TABLE_MODIFIER),
        Attribute(SmaAttribute.SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MAPPING_TABLE, GET_SET, SL_TO_VL_MODIFIER),
        Attribute(SmaAttribute.VL_ARBITRATION_TABLE, VL_ARBITRATION_TABLE, GET_SET, VL_ARBITRATION_MODIFIER),
        Attribute(SmaAttribute.LINEAR_FORWARDING_TABLE, LINEAR_FORWARDING_TABLE, GET_SET, BLOCK_MODIFIER),
        Attribute(SmaAttribute.RANDOM_FORWARDING_TABLE, RANDOM_FORWARDING_TABLE, GET_SET, BLOCK_MODIFIER),
        Attribute(SmaAttribute.MULTICAST_FORWARDING_TABLE, MULTICAST_FORWARDING_TABLE, GET_SET, MFT_MODIFIER),
        Attribute(SmaAttribute.LINK_SPEED_WIDTH_PAIRS_TABLE, LINK_SPEED_WIDTH_PAIRS_TABLE, GET_SET),
        Attribute(SmaAttribute.SM_INFO, SM_INFO, GET_SET, SM_INFO_MODIFIER),
        Attribute(SmaAttribute.VENDOR_DIAG, VENDOR_DIAG, GET, INDEX_MODIFIER),
        Attribute(SmaAttribute.LED_INFO, LED_INFO, GET_SET, PORT_MODIFIER),
    )
}
"""Every attribute of the class by its code."""
