"""The Local Route Header as rows 0 and 1 of a packet hold it."""

from amaranth.hdl import Value

from wire.headers import LRH

__all__ = ["HEAD_BITS", "ROUTE_BITS", "head_field", "route_field"]

HEAD_BITS = 24
"""Row 0 holds bytes 0..2 after SDP."""

ROUTE_BITS = HEAD_BITS + 32
"""Rows 0 and 1 together hold bytes 0..6."""


def _field(vector: Value, name: str) -> Value:
    field = LRH[name]
    high = len(vector) - field.offset_bits
    return vector[high - field.width : high]


def head_field(head: Value, name: str) -> Value:
    """A field of the LRH in its bytes 0..2, `head` (24 bits, byte 0 highest)."""
    return _field(head, name)


def route_field(route: Value, name: str) -> Value:
    """A field of the LRH in its bytes 0..6, `route` (56 bits, byte 0 highest)."""
    return _field(route, name)
