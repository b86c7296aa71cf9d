"""Where a MAD is in its packet, and how the packet is changed (docs/management.md, sections 1 and 2)."""

from collections.abc import Mapping
from typing import Final

from wire.crc import ICRC_BYTES, icrc
from wire.headers import BTH, DETH, LRH
from wire.layout import Layout
from wire.mad import MAD_BYTES

__all__ = ["BTH_AT", "DETH_AT", "LRH_AT", "MAD_AT", "MAD_END", "PACKET_BYTES", "Changes", "changed"]

LRH_AT: Final = 0
BTH_AT: Final = LRH.size_bytes
DETH_AT: Final = BTH_AT + BTH.size_bytes
MAD_AT: Final = DETH_AT + DETH.size_bytes
MAD_END: Final = MAD_AT + MAD_BYTES
PACKET_BYTES: Final = MAD_END + ICRC_BYTES
"""72 words, from LRH to ICRC."""

Changes = tuple[Layout, int, Mapping[str, int]]
"""A header, where it is, and its fields that change."""


def changed(data: bytes, *headers: Changes) -> bytes:
    """A packet with these fields changed and a right ICRC; every other bit is as it came."""
    for layout, place, fields in headers:
        for name, value in fields.items():
            data = layout[name].write(data, value, place)
    body = data[:-ICRC_BYTES]
    return body + icrc(body)
