"""ClassPortInfo: what an agent of a management class can do, and where else to ask (IBTA vol 1, 13.4.8.1)."""

from __future__ import annotations

from typing import Final

from .layout import Field, Layout
from .mad import BASE_VERSION, CLASS_VERSION
from .meaning import GID, HEX, Derived
from .timer_text import timer_text

__all__ = ["CLASS_PORT_INFO"]

CLASS_PORT_INFO: Final = Layout(
    "ClassPortInfo",
    72,
    [
        Field("base_version", 0, 8, BASE_VERSION),
        Field("class_version", 8, 8, CLASS_VERSION),
        Field("capability_mask", 16, 16, meaning=HEX),
        Field("capability_mask2", 32, 27, meaning=HEX),
        Field("resp_time_value", 59, 5, meaning=Derived(timer_text)),
        Field("redirect_gid", 64, 128, meaning=GID),
        Field("redirect_tc", 192, 8, meaning=HEX),
        Field("redirect_sl", 200, 4),
        Field("redirect_fl", 204, 20, meaning=HEX),
        Field("redirect_lid", 224, 16),
        Field("redirect_p_key", 240, 16, meaning=HEX),
        Field("redirect_qp", 264, 24, meaning=HEX),
        Field("redirect_q_key", 288, 32, meaning=HEX),
        Field("trap_gid", 320, 128, meaning=GID),
        Field("trap_tc", 448, 8, meaning=HEX),
        Field("trap_sl", 456, 4),
        Field("trap_fl", 460, 20, meaning=HEX),
        Field("trap_lid", 480, 16),
        Field("trap_p_key", 496, 16, meaning=HEX),
        Field("trap_hl", 512, 8),
        Field("trap_qp", 520, 24, meaning=HEX),
        Field("trap_q_key", 544, 32, meaning=HEX),
    ],
)
"""72 bytes. Bits 15:8 of ``capability_mask`` belong to the class."""
