"""What VL arbitration is to do: two lists of VLs with weights, and a limit (IBTA vol 1, 7.6.9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .codes import VL15

__all__ = ["VlArbitration", "VlWeight", "check_entries", "weights_of_text"]

_MOST_ENTRIES: Final = 64
"""Of a list."""

_MOST_WEIGHT: Final = 255


class VlWeight(NamedTuple):
    """An entry: a data VL, and how much it may send in its turn, in units of 64 bytes."""

    vl: int
    weight: int


@dataclass(frozen=True, slots=True)
class VlArbitration:
    """What a port that has more than one data VL holds.

    Raises:
        ValueError: a list, an entry or the limit is not allowed.
    """

    high: tuple[VlWeight, ...] = ()
    low: tuple[VlWeight, ...] = ()
    high_limit: int = 0
    """Units of 4096 bytes of the high list before the low one has a chance; 0: a packet, 255: no limit."""

    def __post_init__(self) -> None:
        for name, entries in (("high", self.high), ("low", self.low)):
            try:
                check_entries(entries)
            except ValueError as error:
                raise ValueError(f"{name} list: {error}") from None
        if not 0 <= self.high_limit <= _MOST_WEIGHT:
            raise ValueError(f"high_limit {self.high_limit}: expected 0..255")

    def check_room(self, entries: Iterable[int]) -> None:
        """Check that the lists fit into ports that have room for so many entries; one without any holds no list.

        Raises:
            ValueError: a list is longer.
        """
        least = min((room for room in entries if room), default=_MOST_ENTRIES)
        for name, found in (("high", self.high), ("low", self.low)):
            if len(found) > least:
                raise ValueError(f"{name} list: {len(found)} entries, expected at most the {least} of a port's list")


def check_entries(entries: Sequence[VlWeight]) -> None:
    """Check that a list can be one.

    Raises:
        ValueError: it is too long, or a VL or a weight is not allowed.
    """
    if len(entries) > _MOST_ENTRIES:
        raise ValueError(f"{len(entries)} entries, expected at most {_MOST_ENTRIES}")
    for vl, weight in entries:
        if not (0 <= vl < VL15 and 0 <= weight <= _MOST_WEIGHT):
            raise ValueError(f"{vl}:{weight}: expected VL:WEIGHT with a VL 0..14 and a weight 0..255")


def weights_of_text(text: str) -> tuple[VlWeight, ...]:
    """The entries of a text such as `0:4,1:8`, as OpenSM's options have it.

    Raises:
        ValueError: it is not written so.
    """
    entries = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        vl, colon, weight = part.partition(":")
        if not (colon and part.isascii() and vl.isdecimal() and weight.isdecimal() and len(part) <= 6):
            raise ValueError(f"{part}: expected VL:WEIGHT, as in 0:4,1:8")
        entries.append(VlWeight(int(vl), int(weight)))
    return tuple(entries)
