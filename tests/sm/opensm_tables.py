"""Forwarding tables as OpenSM dumps them (opensm.fdbs), and as they are recorded."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sm.lids import LidRange

OPENSM: Final = Path(__file__).with_name("opensm")
OUR_ENGINES: Final = {
    "minhop": "min-hop",
    "updn": "up-down",
    "ftree": "fat-tree",
    "dor": "dor",
    "lash": "lash",
    "dfsssp": "lash",
}
"""By OpenSM's, the engine of ours that stands beside it."""

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


@dataclass
class Recorded:
    """What a routing engine of OpenSM made of a fabric."""

    lids: dict[int, LidRange]
    """By PortGUID."""
    vls: int
    """That it needs."""
    tables: dict[int, bytearray] = field(default_factory=dict)
    """By switch GUID."""
    service_levels: dict[int, list[int]] = field(default_factory=dict)
    """By LID of a host, of which not all paths are on SL 0: the SL to each LID from 0 on."""

    def service_level(self, slid: int, dlid: int) -> int:
        """Of packets from one host's LID to another's."""
        return self.service_levels[slid][dlid] if slid in self.service_levels else 0


def read_engines(path: Path) -> dict[tuple[str, str], Recorded]:
    """By fabric and engine; the file says how it is written."""
    recorded: dict[tuple[str, str], Recorded] = {}
    lids: dict[int, LidRange] = {}
    found = Recorded(lids, 0)
    for line in path.read_text().splitlines():
        match line.split():
            case ["#", *_]:
                pass
            case [_fabric, "lids", *given]:
                pairs = [entry.split("=") for entry in given]
                lids = {int(guid, 16): LidRange(int(lid), int(lid)) for guid, lid in pairs}
            case ["sl", lid, service_levels]:
                found.service_levels[int(lid)] = [0, *(int(digit, 16) for digit in service_levels)]
            case [fabric, engine, vls]:
                recorded[fabric, engine] = found = Recorded(lids, int(vls))
            case [guid, ports]:
                found.tables[int(guid, 16)] = bytearray(b"\xff" + bytes.fromhex(ports))
    return recorded
