"""The MTU and rate of ports, and which of them a request selects (IBTA vol 1, 15.2.5.16 and 15.2.5.17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sm.discovery import Findings
from sm.subnet import MANAGEMENT_PORT, End, Speed
from wire.codes import LinkWidth
from wire.path_record import GREATER, LARGEST, LESS, RATES
from wire.sa import SaStatus

__all__ = ["BY_RATE", "MTUS", "Capacity", "RequestError", "capacity", "fitting_code", "is_selected", "least"]

_LANES: Final[Mapping[int, int]] = {
    LinkWidth.X1: 1,
    LinkWidth.X2: 2,
    LinkWidth.X4: 4,
    LinkWidth.X8: 8,
    LinkWidth.X12: 12,
}
_GBPS: Final[Mapping[int, float]] = {
    Speed.SDR: 2.5,
    Speed.DDR: 5,
    Speed.QDR: 10,
    Speed.FDR10: 10,
    Speed.FDR: 14,
    Speed.EDR: 25,
    Speed.HDR: 50,
    Speed.NDR: 100,
    Speed.XDR: 200,
}
"""Of a lane."""

MTUS: Final = (1, 2, 3, 4, 5)
"""Codes of MTUs, ascending by what they say."""
BY_RATE: Final = sorted(RATES, key=RATES.__getitem__)
"""Codes of rates, ascending by what they say."""


class RequestError(Exception):
    """A request that cannot be done.

    Attributes:
        status: says why.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status:#06x}")
        self.status = status


class Capacity(NamedTuple):
    """What a port or a way lets through; of all its links the least."""

    mtu: int
    rate: int


def capacity(found: Findings, end: End) -> Capacity:
    """What a port lets through."""
    info = found.ports[end]
    mtu = info.mtu_cap if end.port == MANAGEMENT_PORT else info.neighbor_mtu
    return Capacity(mtu, _rate(info.link_width_active, info.link_speed_ext_active << 4 or info.link_speed_active))


def least(one: Capacity, other: Capacity) -> Capacity:
    """What both let through."""
    return Capacity(min(one.mtu, other.mtu), min(one.rate, other.rate, key=RATES.__getitem__))


def fitting_code(best: int, selector: int, wanted: int, order: Sequence[int]) -> int | None:
    """The greatest code up to `best` that a selector allows beside `wanted`; codes in ascending order of what they say.

    Raises:
        RequestError: a code that says nothing.
    """
    if selector == LARGEST:
        return best
    if wanted not in order:
        raise RequestError(SaStatus.REQ_INVALID)
    if best not in order:
        return None
    at, limit = order.index(wanted), order.index(best)
    match selector:
        case selector if selector == GREATER:
            return best if limit > at else None
        case selector if selector == LESS:
            return order[min(limit, at - 1)] if at else None
        case _:
            return wanted if limit >= at else None


def is_selected(code: int, selector: int, wanted: int, order: Sequence[int]) -> bool:
    """Whether a selector allows a code beside `wanted`; codes in ascending order of what they say.

    Raises:
        RequestError: a code that says nothing.
    """
    if selector == LARGEST:
        return True
    if wanted not in order:
        raise RequestError(SaStatus.REQ_INVALID)
    at, limit = order.index(wanted), order.index(code)
    match selector:
        case selector if selector == GREATER:
            return limit > at
        case selector if selector == LESS:
            return limit < at
        case _:
            return limit == at


def _rate(width: int, speed: int) -> int:
    """The code of a port's rate; that of 2.5 Gbit/s where width or speed are not known."""
    gbps = _LANES.get(width, 1) * _GBPS.get(speed, 2.5)
    return max((code for code in BY_RATE if RATES[code] <= gbps), key=RATES.__getitem__)
