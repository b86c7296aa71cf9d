"""Widths of the values that travel with a packet."""

from typing import Final

from wire.codes import LINK_WIDTHS, max_pkt_len, mtu_code
from wire.congestion_control import SWITCH_PORT_CONGESTION_ELEMENT
from wire.flow_control import FLOW_CONTROL
from wire.headers import LRH
from wire.packet import BLOCK_BYTES
from wire.parameters import largest_blocks
from wire.port_info import PORT_INFO
from wire.port_tables import VL_ARBITRATION_ENTRY
from wire.symbols import LANES
from wire.trace import Discard

__all__ = [
    "CREDIT_BITS",
    "FREE_BITS",
    "INDEX_BITS",
    "LENGTH_BITS",
    "LIFE_BITS",
    "MARKING_RATE_BITS",
    "NEED_BITS",
    "OFFERED_BITS",
    "PACKET_SIZE_BITS",
    "PORT_BITS",
    "REASON_BITS",
    "ROW_BITS",
    "SLOT_BITS",
    "SL_BITS",
    "STALL_COUNT_BITS",
    "THRESHOLD_BITS",
    "VL_BITS",
    "VL_LIMIT_BITS",
    "VL_WEIGHT_BITS",
    "length_bits",
    "need_bits",
]

LENGTH_BITS: Final = LRH["pkt_len"].width
"""A packet's length in words (PktLen)."""

INDEX_BITS: Final = LENGTH_BITS + 1
"""A row's index in its packet; one that is too long is cut beyond the longest."""

ROW_BITS: Final = (BLOCK_BYTES // LANES - 1).bit_length()
"""A row's place in its block."""

NEED_BITS: Final = LENGTH_BITS - ROW_BITS
"""Blocks of a packet."""


def length_bits(mtu: int) -> int:
    """Of the words of packets that are no larger than an MTU in bytes allows."""
    return max_pkt_len(mtu_code(mtu)).bit_length()


def need_bits(mtu: int) -> int:
    """Of their blocks."""
    return largest_blocks(mtu).bit_length()


VL_BITS: Final = LRH["vl"].width

SL_BITS: Final = LRH["sl"].width

SLOT_BITS: Final = VL_BITS
"""A slot: a data VL, or their number for VL15."""

VL_WEIGHT_BITS: Final = VL_ARBITRATION_ENTRY["weight"].width

VL_LIMIT_BITS: Final = PORT_INFO["vl_high_limit"].width

LIFE_BITS: Final = PORT_INFO["hoq_life"].width
"""The exponent of a time limit."""

STALL_COUNT_BITS: Final = PORT_INFO["vl_stall_count"].width

THRESHOLD_BITS: Final = SWITCH_PORT_CONGESTION_ELEMENT["threshold"].width

PACKET_SIZE_BITS: Final = SWITCH_PORT_CONGESTION_ELEMENT["packet_size"].width
"""Blocks of the smallest packet that is marked for congestion."""

MARKING_RATE_BITS: Final = SWITCH_PORT_CONGESTION_ELEMENT["marking_rate"].width

CREDIT_BITS: Final = FLOW_CONTROL["fccl"].width
"""All counts of blocks on the wires are modulo 4096."""

FREE_BITS: Final = CREDIT_BITS + 1
"""Free blocks of a buffer."""

PORT_BITS: Final = 7
"""A port's number, 0 for the management port; at most 64."""

REASON_BITS: Final = max(Discard).bit_length()
"""Why a packet is discarded (`wire.trace.Discard`)."""

OFFERED_BITS: Final = LINK_WIDTHS.bit_length()
"""Widths that a port offers: bits of `LinkWidth`."""
