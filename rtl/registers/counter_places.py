"""Which counters a port has, how often each may move, and where they are kept (docs/pipeline.md, section 10)."""

from typing import Final, NamedTuple

from amaranth.lib import data

from rtl.widths import INDEX_BITS, LENGTH_BITS
from wire.codes import MIN_PKT_LEN_RAW, VL15
from wire.registers import (
    COUNTER_WIDTHS,
    DATA_BITS,
    DETAIL_BITS,
    HIGH_OF_COUNTER,
    VL_XMIT_WAIT,
    Counter,
    Detail,
    PacketCounter,
)

__all__ = [
    "COLUMN_BITS",
    "COUNTED_LATE",
    "COUNTED_TWICE",
    "DETAIL_WORDS",
    "LANES",
    "LANE_BITS",
    "LENGTHS",
    "VL_XMIT_WAITS",
    "WHOLE_WORDS",
    "XMIT_WAIT_WORD",
    "amounts_layout",
    "bits_of_counters",
    "counts_layout",
    "most_constraints",
    "most_counted",
    "most_violations",
    "names_of_counters",
    "narrow_widths",
    "places_of_counters",
    "vls_of_slots",
    "word_bits",
]

LANE_BITS: Final = 16
LANES: Final = 2 * DATA_BITS // LANE_BITS
COLUMN_BITS: Final = 4
"""A counter is in a word of lanes: in one, in two, or in all. Words and lanes are little more than offsets' bits."""

DETAIL_WORDS: Final = 0x4
XMIT_WAIT_WORD: Final = 0x7
WHOLE_WORDS: Final = 0x8
_FREE_LANES: Final = [(XMIT_WAIT_WORD, 2), (XMIT_WAIT_WORD, 3), (0x6, 2)] + [
    (word, lane) for word in (0x3, 0x10, 0x11, 0x12) for lane in range(LANES)
]
"""Where no others are than the counters by VL."""

_EACH_CYCLE: Final = (
    Counter.SYMBOL_ERROR,
    Counter.LINK_ERROR_RECOVERY,
    Counter.RCV_ERRORS,
    Counter.XMIT_WAIT,
    Detail.LOCAL_PHYSICAL_ERRORS,
)
"""These may move in every cycle, and those by VL; others move in every other one, as packets and link packets have two
rows at least. (Two discards may be neighbours, behind a packet's end one without rows; but each takes four cycles.)"""
LENGTHS: Final = (Counter.XMIT_DATA, Counter.RCV_DATA)
"""These move by the words of a packet."""

VL_XMIT_WAITS: Final = {vl: f"VL_XMIT_WAIT_{vl}" for vl in range(VL15 + 1)}
"""What the counters by VL are called."""

COUNTED_LATE: Final = (
    Counter.RCV_ERRORS.name,
    Counter.XMIT_CONSTRAINT_ERRORS.name,
    Counter.XMIT_WAIT.name,
    Detail.LOCAL_PHYSICAL_ERRORS.name,
    Detail.P_KEY_VIOLATIONS.name,
    *VL_XMIT_WAITS.values(),
)
"""What a cycle counts of these is known late in it, or far from the port: counters have it a cycle later."""

COUNTED_TWICE: Final = (Counter.RCV_ERRORS.name, Detail.LOCAL_PHYSICAL_ERRORS.name)
"""These, of them, move by 2 at most: link and agent at once."""


def vls_of_slots(vls: int) -> list[int]:
    """The VL of each slot."""
    return [*range(vls), VL15]


def bits_of_counters(vls: int) -> dict[int, int]:
    """Of a counter's register; those of `HIGH_OF_COUNTER` have as many bits again above it."""
    return {
        **{counter: COUNTER_WIDTHS[counter] for counter in Counter},
        **dict.fromkeys(PacketCounter, DATA_BITS),
        **dict.fromkeys(Detail, DETAIL_BITS),
        **{VL_XMIT_WAIT + vl: DETAIL_BITS for vl in vls_of_slots(vls)},
    }


def narrow_widths(vls: int) -> list[int]:
    """Of registers, those that are less than a lane."""
    return sorted({bits for bits in bits_of_counters(vls).values() if bits < LANE_BITS})


def names_of_counters(vls: int) -> dict[int, str]:
    """Of those counters."""
    named = {counter: counter.name for counters in (Counter, PacketCounter, Detail) for counter in counters}
    return named | {VL_XMIT_WAIT + vl: VL_XMIT_WAITS[vl] for vl in vls_of_slots(vls)}


def counts_layout(vls: int) -> data.StructLayout:
    """Which counters move in a cycle."""
    return data.StructLayout(dict.fromkeys(names_of_counters(vls).values(), 1))


def most_constraints(others: int) -> int:
    """Packets in a cycle that may not leave by a port: one from each of the others, and a copy."""
    return others + 1


def most_violations(others: int) -> int:
    """Packets in a cycle that are rejected at a port for their P_Keys: of each port a verdict's, of others a copy."""
    return 2 * others + 1


def amounts_layout(vls: int, others: int) -> data.StructLayout:
    """By how much those counters move that do not move by 1.

    Words, the watchdogs of several VLs, the packets of other ports, or link and agent at once.
    """
    return data.StructLayout(
        {
            Counter.XMIT_DATA.name: INDEX_BITS,
            Counter.RCV_DATA.name: INDEX_BITS,
            **({Counter.LINK_ERROR_RECOVERY.name: vls.bit_length()} if vls > 1 else {}),
            Counter.XMIT_CONSTRAINT_ERRORS.name: most_constraints(others).bit_length(),
            Detail.P_KEY_VIOLATIONS.name: most_violations(others).bit_length(),
            **dict.fromkeys(COUNTED_TWICE, 2),
        }
    )


def most_counted(register: int, vls: int, others: int, cycles: int) -> int:
    """The most that a counter may have counted in so many cycles, of a port beside so many others.

    A packet's words have come, or gone, one a cycle. Packets of which a port objects to the partition have headers, and
    it discards one copy at a time; an input inspects no packet more often than the shortest come. The agent has one
    packet at a time.
    """
    if register in LENGTHS:
        return (1 << LENGTH_BITS) - 1 + cycles
    packets = -(-cycles // (MIN_PKT_LEN_RAW + 1))  # by one port, with headers
    if register == Counter.XMIT_CONSTRAINT_ERRORS:
        return others * packets + (cycles + 1) // 2
    if register == Detail.P_KEY_VIOLATIONS:
        return most_violations(others) * packets
    if register == Counter.LINK_ERROR_RECOVERY:
        return vls * cycles
    agents = register in (Counter.RCV_ERRORS, Detail.LOCAL_PHYSICAL_ERRORS)
    return cycles + agents if register in _EACH_CYCLE or register >= VL_XMIT_WAIT else (cycles + 1) // 2


class _Place(NamedTuple):
    """Where what is counted waits, and is kept."""

    word: int
    lane: int
    lanes: int


def places_of_counters(vls: int) -> dict[int, _Place]:
    """By counter, where it is."""
    places = {}
    free = iter(_FREE_LANES)
    for register, bits in bits_of_counters(vls).items():
        row, column = divmod(register, 1 << COLUMN_BITS)
        if register in HIGH_OF_COUNTER:
            # In the row of those of one lane they are at its end.
            places[register] = _Place(WHOLE_WORDS | column & 0x7, 0, LANES)
        elif bits == DATA_BITS:
            places[register] = _Place(XMIT_WAIT_WORD, 0, 2)
        elif register >= VL_XMIT_WAIT:
            places[register] = _Place(*next(free), 1)
        else:
            # The first detail is counted late, and so not in the lane where the adder's carries begin.
            is_detail = row == Detail.LOCAL_PHYSICAL_ERRORS >> COLUMN_BITS
            first = DETAIL_WORDS if is_detail else 0
            places[register] = _Place(first | column >> 2, column % LANES ^ is_detail, 1)
    return places


def word_bits(vls: int) -> int:
    """Of words' numbers."""
    return max(place.word for place in places_of_counters(vls).values()).bit_length()
