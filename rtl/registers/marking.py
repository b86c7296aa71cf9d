"""What a switch's Subnet Manager has set about marking (docs/pipeline.md, section 7.3)."""

from typing import Final

from amaranth.lib import data

from rtl.widths import MARKING_RATE_BITS, PACKET_SIZE_BITS, THRESHOLD_BITS
from wire.congestion_control import SWITCH_PORT_CONGESTION_ELEMENT

__all__ = ["Element", "MarkingSettings", "PortMarking", "switch_marking_layout"]

MarkingSettings: Final = data.StructLayout(
    {"marking_rate": MARKING_RATE_BITS, "packet_size": PACKET_SIZE_BITS, "threshold": THRESHOLD_BITS}
)
"""How many packets that could be marked go between two that are; blocks of the smallest such packet; from 0, never, to
15, soonest, how much has to wait."""

PortMarking: Final = data.StructLayout({"valid": 1, "settings": MarkingSettings})
"""A port's own: these count, if `valid`."""

Element: Final = data.StructLayout(
    {
        **MarkingSettings.members,
        "reserved": 2,
        **{name: SWITCH_PORT_CONGESTION_ELEMENT[name].width for name in ("control_type", "valid")},
    }
)
"""An element of SwitchPortCongestionSetting, as it is in a word."""


def switch_marking_layout(ports: int) -> data.StructLayout:
    """For ports without settings of their own; `victims`: mask of those that mark even what has waited for credits."""
    return data.StructLayout({"victims": ports, "settings": MarkingSettings})
