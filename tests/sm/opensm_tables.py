"""Forwarding tables as OpenSM dumps them (opensm.fdbs)."""

from __future__ import annotations

import re
from pathlib import Path

_SWITCH = re.compile(r"dump_ucast_routes: Switch 0x([0-9a-f]{16})")
_ENTRY = re.compile(r"0x([0-9A-F]{4}) : (\d{3})  : (\d{2})   : (?:yes|No .*)")


def read_fdbs(path: Path) -> tuple[dict[int, bytearray], dict[int, dict[int, int]]]:
    """Port by LID, and links to each LID, of each switch GUID."""
    tables: dict[int, bytearray] = {}
    hops: dict[int, dict[int, int]] = {}
    for line in path.read_text().splitlines():
        if match := _SWITCH.fullmatch(line):
            guid = int(match[1], 16)
            tables[guid], hops[guid] = bytearray(b"\xff" * 64), {}
        elif match := _ENTRY.fullmatch(line):
            lid = int(match[1], 16)
            tables[guid][lid] = int(match[2])
            hops[guid][lid] = int(match[3])
    return tables, hops
