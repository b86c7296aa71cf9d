"""SwitchInfo: tables and settings of a switch as a whole (IBTA vol 1, 14.2.5.4)."""

from __future__ import annotations

from typing import Final

from .codes import life_text
from .layout import Field, Layout
from .meaning import HEX, Derived

__all__ = ["SWITCH_INFO"]

SWITCH_INFO: Final = Layout(
    "SwitchInfo",
    20,
    [
        Field("linear_fdb_cap", 0, 16),
        Field("random_fdb_cap", 16, 16),
        Field("multicast_fdb_cap", 32, 16),
        Field("linear_fdb_top", 48, 16),
        Field("default_port", 64, 8),
        Field("default_multicast_primary_port", 72, 8),
        Field("default_multicast_not_primary_port", 80, 8),
        Field("life_time_value", 88, 5, meaning=Derived(life_text)),
        Field("port_state_change", 93, 1),
        Field("optimized_sl_to_vl_mapping_programming", 94, 2),
        Field("lids_per_port", 96, 16),
        Field("partition_enforcement_cap", 112, 16),
        Field("inbound_enforcement_cap", 128, 1),
        Field("outbound_enforcement_cap", 129, 1),
        Field("filter_raw_inbound_cap", 130, 1),
        Field("filter_raw_outbound_cap", 131, 1),
        Field("enhanced_port0", 132, 1),
        Field("multicast_fdb_top", 144, 16, meaning=HEX),
    ],
)
"""20 bytes. The ``cap`` fields of the tables count entries; ``linear_fdb_top`` is the highest LID routed;
writing 1 to ``port_state_change`` clears it."""
