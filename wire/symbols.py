"""Symbols of an 8b/10b link: control symbols, rows of four lanes, framing and idle data."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

__all__ = [
    "BITS_PER_SYMBOL",
    "DELIMITERS",
    "IDLE_LFSR_BITS",
    "IDLE_LFSR_SEED",
    "IDLE_LFSR_STEPS",
    "IDLE_LFSR_TAPS",
    "IDLE_PERIOD",
    "LANES",
    "LINK_PACKET_BYTES",
    "SKIP_ORDERED_SET",
    "Control",
    "Frame",
    "Row",
    "deframe",
    "frame_data_packet",
    "frame_link_packet",
    "idle_byte",
    "idle_row",
    "row_symbols",
    "row_text",
]

LANES: Final = 4
"""Lanes of a 4X link."""

BITS_PER_SYMBOL: Final = 10
"""Of a byte or a control symbol, by 8b/10b."""

DELIMITERS: Final = 2
"""Symbols around the bytes of a packet."""

LINK_PACKET_BYTES: Final = 6
"""Bytes of a link packet between SLP and EGP, LPCRC included (IBTA vol 1, 7.9.4)."""

_K_ALL = (1 << LANES) - 1
_K_LANE_0 = 1 << LANES - 1
_K_LANE_3 = 1


class Control(IntEnum):
    """Control symbols, valued by their 8 data bits (IBTA vol 2)."""

    COM = 0xBC
    """K28.5, comma: starts training and SKIP ordered sets."""
    SDP = 0xFB
    """K27.7, start of data packet."""
    SLP = 0x5C
    """K28.2, start of link packet."""
    EGP = 0xFD
    """K29.7, end of good packet."""
    EBP = 0xFE
    """K30.7, end of bad packet."""
    PAD = 0xF7
    """K23.7, fills lanes after an end delimiter on links wider than 4X."""
    SKP = 0x1C
    """K28.0, added or dropped for clock tolerance."""

    @property
    def symbol(self) -> int:
        """The 9-bit form: K bit (1) above the 8 data bits."""
        return 0x100 | self


class Row(NamedTuple):
    """What a 4X link carries in one symbol time.

    Attributes:
        data: 32 bits, lane 0 in the most significant byte, as the bytes follow on the wire.
        k: 4 bits, lane 0 in the most significant; 1 marks a control symbol.
    """

    data: int
    k: int


def row_symbols(row: Row) -> tuple[int, int, int, int]:
    """The four 9-bit symbols of a row, lane 0 first."""
    a, b, c, d = row.data.to_bytes(LANES, "big")
    k = row.k
    return (k & 8) << 5 | a, (k & 4) << 6 | b, (k & 2) << 7 | c, (k & 1) << 8 | d


_SKIP_ROW = Row(int.from_bytes(bytes([Control.SKP] * LANES), "big"), _K_ALL)
_COM_ROW = Row(int.from_bytes(bytes([Control.COM] * LANES), "big"), _K_ALL)

SKIP_ORDERED_SET: Final = (_COM_ROW, _SKIP_ROW, _SKIP_ROW, _SKIP_ROW)
"""COM and three SKP on every lane; repeaters may leave 1 to 5 SKP. Never inside a packet."""


def _frame(start: Control, body: bytes, good: bool) -> list[Row]:
    symbols = bytes([start]) + body + bytes([Control.EGP if good else Control.EBP])
    words = struct.unpack(f">{len(symbols) // LANES}I", symbols)
    return list(map(Row, words, (_K_LANE_0, *[0] * (len(words) - 2), _K_LANE_3)))


def frame_data_packet(body_with_vcrc: bytes, good: bool = True) -> list[Row]:
    """The PktLen + 1 rows of a data packet on a 4X link, SDP on lane 0 and EGP on lane 3.

    ``body_with_vcrc`` holds the 4 * PktLen + 2 bytes from LRH to VCRC; ``good=False`` ends the
    packet with EBP. The VCRC is sent as given.

    Raises:
        ValueError: a length that is not 4n + 2 with n of at least 1.
    """
    size = len(body_with_vcrc)
    if size % LANES != 2 or size < 6:
        raise ValueError(f"data packet of {size} bytes LRH to VCRC, allowed 4n + 2, from 6")
    return _frame(Control.SDP, body_with_vcrc, good)


def frame_link_packet(six: bytes, good: bool = True) -> list[Row]:
    """The two rows of a link packet on a 4X link, SLP on lane 0 and EGP (or EBP) on lane 3.

    Raises:
        ValueError: not 6 bytes.
    """
    if len(six) != LINK_PACKET_BYTES:
        raise ValueError(f"link packet of {len(six)} bytes, allowed {LINK_PACKET_BYTES}")
    return _frame(Control.SLP, six, good)


class Frame(NamedTuple):
    """A packet as it stood between its delimiters.

    Attributes:
        start: SDP for a data packet, SLP for a link packet.
        body: the bytes between the delimiters, VCRC or LPCRC included.
        good: True for EGP, False for EBP.
        first_row: index of the row that held ``start``.
    """

    start: Control
    body: bytes
    good: bool
    first_row: int

    @property
    def rows(self) -> int:
        """Rows that the packet took."""
        return (len(self.body) + 2) // LANES


def deframe(rows: Iterable[Row]) -> Iterator[Frame]:
    """The packets in a stream of 4X rows, in order; idle data and SKIP ordered sets are passed over.

    Raises:
        ValueError: a control symbol where none may stand, naming row and symbol; or rows that
            end inside a packet.
    """
    start: Control | None = None
    first_row = 0
    body = bytearray()
    for index, row in enumerate(rows):
        data, k = row
        if k == 0:
            if start is not None:
                body += data.to_bytes(LANES, "big")
        elif start is None:
            if k == _K_LANE_0 and data >> 24 in (Control.SDP, Control.SLP):
                start = Control(data >> 24)
                first_row = index
                body = bytearray((data & 0xFFFFFF).to_bytes(LANES - 1, "big"))
            elif row not in (_COM_ROW, _SKIP_ROW):
                raise ValueError(
                    f"row {index}: {row_text(row)} outside a packet, allowed idle, SKIP, SDP or SLP on lane 0"
                )
        elif k == _K_LANE_3 and data & 0xFF in (Control.EGP, Control.EBP):
            body += (data >> 8).to_bytes(LANES - 1, "big")
            yield Frame(start, bytes(body), data & 0xFF == Control.EGP, first_row)
            start = None
        else:
            raise ValueError(f"row {index}: {row_text(row)} inside a packet, allowed data, EGP or EBP on lane 3")
    if start is not None:
        raise ValueError(f"rows end inside the packet that {start.name} began in row {first_row}")


def row_text(row: Row) -> str:
    """The symbols of a row in words, lane 0 first: such as `SDP 0_12 0_00 0_48`, K symbols by name."""
    names = {control.symbol: control.name for control in Control}
    return " ".join(names.get(symbol, f"{symbol >> 8}_{symbol & 0xFF:02X}") for symbol in row_symbols(row))


IDLE_LFSR_BITS: Final = 11
IDLE_LFSR_SEED: Final = 0x7FF

IDLE_LFSR_TAPS: Final = (10, 8)
"""State bits whose XOR is shifted in at bit 0: x^11 + x^9 + 1."""

IDLE_LFSR_STEPS: Final = 8
"""Shifts in a row. They and the seed are a choice: receivers pass over idle data."""

IDLE_PERIOD: Final = (1 << IDLE_LFSR_BITS) - 1
"""Rows after which idle data repeats."""


def _idle_table() -> bytes:
    table = bytearray()
    state = IDLE_LFSR_SEED
    high, low = IDLE_LFSR_TAPS
    for _ in range(IDLE_PERIOD):
        table.append(state >> IDLE_LFSR_BITS - 8)
        for _ in range(IDLE_LFSR_STEPS):
            state = (state << 1 | (state >> high ^ state >> low) & 1) & IDLE_PERIOD
    return bytes(table)


_IDLE = _idle_table()


def idle_byte(step: int) -> int:
    """The idle data byte ``step`` rows after the LFSR held its seed.

    The LFSR shifts eight times a row; the byte is the upper eight of its eleven bits.
    """
    return _IDLE[step % IDLE_PERIOD]


def idle_row(step: int) -> Row:
    """The idle row of that step: the same data byte on all four lanes."""
    return Row(_IDLE[step % IDLE_PERIOD] * 0x01010101, 0)
