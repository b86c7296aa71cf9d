"""A row: the four symbols that a 4X link carries in one symbol time; and the LRH in rows 0 and 1 of a packet."""

from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from wire.headers import LRH
from wire.symbols import LANES

__all__ = ["HEAD_BITS", "ROUTE_BITS", "RowSignature", "lrh_field"]

RowSignature = wiring.Signature({"data": Out(8 * LANES), "k": Out(LANES), "valid": Out(1)})
"""Rows on a port's wires, from their transmitter.

Members:
    data: 32 bits, lane 0 in the most significant byte, as the bytes follow on the wire.
    k: 4 bits, lane 0 in the most significant; 1 marks a control symbol.
    valid: there is a row in this cycle (a 1X port has one in every fourth).
"""

HEAD_BITS = 24
"""Row 0 holds bytes 0..2 of the LRH after SDP."""

ROUTE_BITS = HEAD_BITS + 32
"""Rows 0 and 1 together hold bytes 0..6."""


def lrh_field(first_bytes: Value, name: str) -> Value:
    """A field of the LRH in its first bytes (`HEAD_BITS` or `ROUTE_BITS`), byte 0 highest."""
    field = LRH[name]
    high = len(first_bytes) - field.offset_bits
    return first_bytes[high - field.width : high]
