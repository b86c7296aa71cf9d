"""Traffic patterns of the literature: to which host each host sends.

W. J. Dally and B. Towles, Principles and Practices of Interconnection Networks (2004), 3.2; the hot spot is that of
G. F. Pfister and V. A. Norton, "Hot spot" contention and combining in multistage interconnection networks (1985).
Hosts are numbered 0 to `hosts` - 1.
"""

from __future__ import annotations

from math import isqrt
from random import Random
from typing import Final, Literal, get_args

__all__ = ["PATTERNS", "PERMUTATIONS", "PatternName", "check_pattern", "partners", "turns"]

PatternName = Literal["uniform", "transpose", "bit_complement", "permutation", "all_to_all", "hotspot"]

PATTERNS: Final[tuple[PatternName, ...]] = get_args(PatternName)

PERMUTATIONS: Final[frozenset[PatternName]] = frozenset({"transpose", "bit_complement", "permutation"})
"""Patterns in which all packets of a host go to one other, and no two hosts send to the same."""


def check_pattern(pattern: PatternName, hosts: int) -> None:
    """Refuse a pattern that is not defined for so many hosts.

    Raises:
        ValueError: transpose without a square of hosts, bit complement without a power of two, a hot spot without
            two hosts beside it.
    """
    if pattern == "hotspot" and hosts < 3:
        raise ValueError(f"{pattern!r} of {hosts} hosts: expected three or more")
    if pattern == "transpose" and (isqrt(hosts) ** 2 != hosts or hosts < 4):
        raise ValueError(f"{pattern!r} of {hosts} hosts: expected a square number of them, 4, 9, 16, ...")
    if pattern == "bit_complement" and (hosts < 2 or hosts & hosts - 1):
        raise ValueError(f"{pattern!r} of {hosts} hosts: expected a power of two, 2, 4, 8, ...")


def partners(pattern: PatternName, hosts: int, seed: str) -> list[int]:
    """To which host each host sends, in one of PERMUTATIONS; itself: it sends nothing.

    transpose: hosts are the places of a square matrix, row by row, and (x, y) sends to (y, x). With 4^k hosts that is
    Dally and Towles' rotation of the number by half of its bits. bit_complement: every bit of the number inverted.
    permutation: a random one, of those in which no host is its own partner; only this depends on `seed`.

    Raises:
        ValueError: as check_pattern.
    """
    check_pattern(pattern, hosts)
    if pattern == "transpose":
        side = isqrt(hosts)
        return [host % side * side + host // side for host in range(hosts)]
    if pattern == "bit_complement":
        return [hosts - 1 - host for host in range(hosts)]
    order, random = list(range(hosts)), Random(seed)
    # About one permutation in e leaves none in its place.
    while any(host == partner for host, partner in enumerate(order)):
        random.shuffle(order)
    return order


def turns(host: int, hosts: int) -> list[int]:
    """All others in the order in which a host of all_to_all sends to them, again and again.

    The next first, then the one after it: in step, no two hosts send to the same one.
    """
    return [(host + distance) % hosts for distance in range(1, hosts)]
