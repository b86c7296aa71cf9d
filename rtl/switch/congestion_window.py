"""The page of congestion control: a window of words for each attribute (docs/management.md, section 7)."""

from typing import Final

from amaranth.hdl import Value
from amaranth.lib import data

from rtl.management.place import WORD_BITS, masks
from wire.congestion_control import CC_DATA_BYTES, CcAttribute
from wire.layout import Field
from wire.packet import WORD_BYTES
from wire.registers import congestion_address, place_of_address

__all__ = ["WINDOW_WORDS", "bits_by_word", "of_attribute", "word_of_access"]

_WORD_BITS: Final = (CC_DATA_BYTES // WORD_BYTES - 1).bit_length()
_FIRST: Final = {attribute: place_of_address(congestion_address(attribute, 0))[1] for attribute in CcAttribute}

WINDOW_WORDS: Final = 1 << _WORD_BITS
"""From one window to the next; not all of them are in it."""


def of_attribute(access: data.View, attribute: CcAttribute) -> Value:
    """The access, to this page, is to the attribute's window."""
    return access.select & (access.offset[_WORD_BITS:] == _FIRST[attribute] >> _WORD_BITS)


def word_of_access(access: data.View) -> Value:
    """The word of its window."""
    return access.offset[:_WORD_BITS]


def bits_by_word(field: Field, ports: int) -> dict[int, slice]:
    """By word of a mask of which bit p is port p's, the ports 1 to PORTS that it has, beginning with 0 for port 1."""
    last = max(masks(field))
    return {
        last - lowest // WORD_BITS: slice(max(lowest, 1) - 1, min(lowest + WORD_BITS - 1, ports))
        for lowest in range(0, ports + 1, WORD_BITS)
    }
