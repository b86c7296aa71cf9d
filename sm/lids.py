"""LID assignment, and the guid2lid file that keeps LIDs the same from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from sm.errors import ManagerError
from sm.subnet import Subnet
from wire.codes import LID_UNICAST_MAX, LID_UNICAST_MIN

__all__ = [
    "MAX_LMC",
    "Guid2LidError",
    "LidError",
    "LidRange",
    "assign_lids",
    "format_guid2lid",
    "parse_guid2lid",
    "remembered_lids",
    "with_lids_in_force",
]

MAX_LMC = 7
"""PortInfo.LMC has three bits (IBTA vol 1, 14.2.5.6)."""

_LINE = re.compile(r"(0[xX][0-9a-fA-F]{1,16})\s+(0[xX][0-9a-fA-F]{1,8}|\d{1,8})\s+(0[xX][0-9a-fA-F]{1,8}|\d{1,8})")


class LidError(ManagerError):
    """LIDs that cannot be given out; the text is one line."""


class Guid2LidError(ManagerError):
    """A guid2lid file that is wrong; the text is one line: file, line number, reason."""


class LidRange(NamedTuple):
    """The LIDs of a port, `first` (the base LID) to `last`, both of them included."""

    first: int
    last: int

    @property
    def lids(self) -> range:
        """Each of them."""
        return range(self.first, self.last + 1)

    @property
    def lmc(self) -> int:
        """Number of low bits of a LID that the port ignores, if the range can be one port's."""
        return (self.last - self.first).bit_length()


def assign_lids(subnet: Subnet, lmc: int = 0, previous: Mapping[int, LidRange] | None = None) -> dict[int, LidRange]:
    """A LID range for each port that takes part, by PortGUID.

    Port 0 of a switch has one LID; other ports have 2^lmc, the first a multiple of 2^lmc, as a port with an LMC
    ignores that many low bits (IBTA vol 1, 4.1.3). A port keeps the range it had in `previous`, or the beginning
    of it if the LMC is smaller now; the others have the lowest free ones. Ranges of `previous` whose ports are
    absent are kept for their return, as long as there are others.

    Raises:
        LidError: an LMC outside 0..7, two ports of one GUID, or more LIDs needed than there are.
    """
    if not 0 <= lmc <= MAX_LMC:
        raise LidError(f"LMC {lmc}: expected 0..{MAX_LMC}")
    counts: dict[int, int] = {}
    for end, port in subnet.reachable_end_ports:
        if port.guid in counts:
            raise LidError(f"port GUID 0x{port.guid:016x} belongs to two ports, expected one")
        counts[port.guid] = 1 if subnet.nodes[end.guid].is_switch else 1 << lmc
    previous = previous or {}
    absent = {guid: lids for guid, lids in previous.items() if guid not in counts}
    assigned = _assign(counts, previous, absent)
    if assigned is None:
        assigned = _assign(counts, previous, {}) or _assign(counts, {}, {})
    if assigned is None:
        raise LidError(
            f"{sum(counts.values())} LIDs for {len(counts)} ports with LMC {lmc}: "
            f"there are {LID_UNICAST_MAX} (0x{LID_UNICAST_MIN:04x}..0x{LID_UNICAST_MAX:04x})"
        )
    return assigned


def _assign(
    counts: Mapping[int, int], previous: Mapping[int, LidRange], reserved: Mapping[int, LidRange]
) -> dict[int, LidRange] | None:
    """A range of its count for each GUID, none of them reserved; None if they do not fit."""
    taken = bytearray(LID_UNICAST_MAX + 1)
    for lids in reserved.values():
        taken[lids.first : lids.last + 1] = b"\1" * len(lids.lids)
    assigned: dict[int, LidRange] = {}
    for guid, count in counts.items():
        had = previous.get(guid)
        if had is not None and had.first % count == 0 and len(had.lids) >= count:
            lids = LidRange(had.first, had.first + count - 1)
            if not any(taken[lids.first : lids.last + 1]):
                assigned[guid] = lids
                taken[lids.first : lids.last + 1] = b"\1" * count
    lowest = dict.fromkeys(counts.values(), 0)
    for guid, count in counts.items():
        if guid in assigned:
            continue
        # Nothing below is free for this count: ranges are only ever taken.
        first = lowest[count] or max(count, LID_UNICAST_MIN)
        while first + count - 1 <= LID_UNICAST_MAX and any(taken[first : first + count]):
            first += count
        lowest[count] = first
        if first + count - 1 > LID_UNICAST_MAX:
            return None
        assigned[guid] = LidRange(first, first + count - 1)
        taken[first : first + count] = b"\1" * count
    return {guid: assigned[guid] for guid in counts}


def with_lids_in_force(subnet: Subnet, previous: Mapping[int, LidRange]) -> dict[int, LidRange]:
    """`previous`, and the LIDs that ports not in it have now, unless `previous` gives them to others."""
    ranges = dict(previous)
    taken = {lid for lids in previous.values() for lid in lids.lids}
    for _end, port in subnet.reachable_end_ports:
        first = port.lid >> port.lmc << port.lmc
        lids = LidRange(first, first + (1 << port.lmc) - 1)
        valid = lids.first >= LID_UNICAST_MIN and lids.last <= LID_UNICAST_MAX
        if valid and port.guid not in ranges and taken.isdisjoint(lids.lids):
            ranges[port.guid] = lids
            taken.update(lids.lids)
    return ranges


def remembered_lids(assigned: Mapping[int, LidRange], previous: Mapping[int, LidRange]) -> dict[int, LidRange]:
    """`assigned`, and those of `previous` that belong to ports not in it and are still free: a port may come back."""
    taken = {lid for lids in assigned.values() for lid in lids.lids}
    absent = {guid: lids for guid, lids in previous.items() if guid not in assigned and taken.isdisjoint(lids.lids)}
    return {**assigned, **absent}


def parse_guid2lid(text: str, file: str) -> dict[int, LidRange]:
    """LID ranges by PortGUID, from a text as OpenSM's guid2lid file; `file` is what errors call it.

    A line is a GUID, the lowest and the highest LID; empty lines and comments (`#`) may come between.

    Raises:
        Guid2LidError: a line of another form, LIDs that are none, or a GUID or LID that occurs twice.
    """
    ranges: dict[int, LidRange] = {}
    lines: dict[int, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        content = line.split("#")[0].strip()
        if not content:
            continue

        def error(reason: str, number: int = number) -> Guid2LidError:
            return Guid2LidError(f"{file}:{number}: {reason}")

        match = _LINE.fullmatch(content)
        if match is None:
            raise error(f"{content!r}: expected 0xGUID 0xLID 0xLID")
        guid = int(match[1], 16)
        lids = LidRange(*(int(lid, 16 if lid[:2] in ("0x", "0X") else 10) for lid in match.groups()[1:]))
        if not LID_UNICAST_MIN <= lids.first <= lids.last <= LID_UNICAST_MAX:
            raise error(
                f"LIDs 0x{lids.first:04x} to 0x{lids.last:04x}: expected "
                f"0x{LID_UNICAST_MIN:04x}..0x{LID_UNICAST_MAX:04x}, the lower one first"
            )
        if guid in ranges:
            raise error(f"GUID 0x{guid:016x} stands twice, expected once")
        for lid in lids.lids:
            if lid in lines:
                raise error(f"LID 0x{lid:04x} is given out in line {lines[lid]} already")
            lines[lid] = number
        ranges[guid] = lids
    return ranges


def format_guid2lid(ranges: Mapping[int, LidRange]) -> str:
    """The text of a guid2lid file, as OpenSM writes it."""
    return "".join(f"0x{guid:016x} 0x{lids.first:04x} 0x{lids.last:04x}\n\n" for guid, lids in ranges.items())
