"""What is written to the packet that the agent works on."""

from typing import Final

from amaranth.lib import data

from rtl.management.mad_packet import MAD_WORDS
from rtl.management.place import WORD_BITS, Place
from wire.packet import WORD_BYTES

__all__ = ["WHOLE", "PacketWrite", "bytes_of"]

PacketWrite = data.StructLayout({"bytes": WORD_BYTES, "index": range(MAD_WORDS), "word": WORD_BITS})
"""Bytes to write in one word; bit 0 of `bytes` is its last byte."""

WHOLE: Final = (1 << WORD_BYTES) - 1


def bytes_of(*fields: Place) -> int:
    """The bytes of their word in which these fields stand, as `PacketWrite` has them."""
    return sum(1 << byte for byte in range(WORD_BYTES) if any(field.mask >> 8 * byte & 0xFF for field in fields))
