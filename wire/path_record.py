"""PathRecord, the Subnet Administrator's answer to how one port reaches another (IBTA vol 1, 15.2.5.16)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .codes import life_text, mtu_bytes
from .layout import Field, Layout
from .meaning import GID, HEX, Derived

__all__ = ["EXACTLY", "GREATER", "LARGEST", "LESS", "MTU_MEANING", "PATH_RECORD", "RATES", "RATE_MEANING"]

GREATER: Final = 0
LESS: Final = 1
EXACTLY: Final = 2
LARGEST: Final = 3
"""Selectors: how the value asked for is to be to the one that stands beside; the last asks for the best there is."""

# fmt: off
RATES: Final[Mapping[int, float]] = {
    2: 2.5, 3: 10, 4: 30, 5: 5, 6: 20, 7: 40, 8: 60, 9: 80, 10: 120, 11: 14, 12: 56, 13: 112, 14: 168, 15: 25, 16: 100,
    17: 200, 18: 300, 19: 28, 20: 50, 21: 400, 22: 600,
}
# fmt: on
"""Gbit/s of each code of ``rate``: those of 1X, 2X, 4X, 8X and 12X of each speed."""


def _rate_text(code: int) -> str:
    if code not in RATES:
        raise ValueError(f"rate code {code}, allowed 2..22")
    return f"{RATES[code]:g} Gbit/s"


def _mtu_text(code: int) -> str:
    return f"{mtu_bytes(code)} bytes"


MTU_MEANING: Final = Derived(_mtu_text)
RATE_MEANING: Final = Derived(_rate_text)

PATH_RECORD: Final = Layout(
    "PathRecord",
    64,
    [
        Field("service_id", 0, 64, meaning=HEX),
        Field("dgid", 64, 128, meaning=GID),
        Field("sgid", 192, 128, meaning=GID),
        Field("dlid", 320, 16),
        Field("slid", 336, 16),
        Field("raw_traffic", 352, 1),
        Field("flow_label", 356, 20, meaning=HEX),
        Field("hop_limit", 376, 8),
        Field("t_class", 384, 8, meaning=HEX),
        Field("reversible", 392, 1),
        Field("numb_path", 393, 7),
        Field("p_key", 400, 16, meaning=HEX),
        Field("qos_class", 416, 12),
        Field("sl", 428, 4),
        Field("mtu_selector", 432, 2),
        Field("mtu", 434, 6, meaning=MTU_MEANING),
        Field("rate_selector", 440, 2),
        Field("rate", 442, 6, meaning=RATE_MEANING),
        Field("packet_life_time_selector", 448, 2),
        Field("packet_life_time", 450, 6, meaning=Derived(life_text)),
        Field("preference", 456, 8),
    ],
)
"""58 bytes used of 64."""
