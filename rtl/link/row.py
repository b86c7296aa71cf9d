"""A row: the four symbols that a 4X link carries in one symbol time."""

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from wire.symbols import LANES

__all__ = ["RowSignature"]


RowSignature = wiring.Signature({"data": Out(8 * LANES), "k": Out(LANES), "valid": Out(1)})
"""Rows on a port's wires, from their transmitter.

Members:
    data: 32 bits, lane 0 in the most significant byte, as the bytes follow on the wire.
    k: 4 bits, lane 0 in the most significant; 1 marks a control symbol.
    valid: there is a row in this cycle (a 1X port has one in every fourth).
"""
