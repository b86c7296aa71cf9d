"""SMInfo: who manages the subnet, and its handover (IBTA vol 1, 14.2.5.13 and 14.4)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from .layout import Field, Layout
from .meaning import HEX, Code

__all__ = ["SM_INFO", "SM_INFO_MODIFIER", "SMControl", "SMState"]


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
"""21 bytes used of 24. ``act_count`` counts the Subnet Manager's actions: one whose count stops is dead."""

SM_INFO_MODIFIER: Final = Layout("SMInfo AttributeModifier", 4, [Field("control", 0, 32, meaning=Code(SMControl))])
