"""Timer codes in words: 4.096 us times 2 to the code."""

from __future__ import annotations

from .codes import TIMER_LIMIT, timer_ns

__all__ = ["life_text", "timer_text"]


def timer_text(code: int) -> str:
    """The time of a code, as in SubnetTimeOut.

    Raises:
        ValueError: a code outside 0..31.
    """
    nanoseconds = timer_ns(code)
    for unit, size in (("s", 10**9), ("ms", 10**6)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.6g} {unit}"
    return f"{nanoseconds / 1000:.6g} us"


def life_text(code: int) -> str:
    """The time of a code of which the largest mean no limit, as in HOQLife.

    Raises:
        ValueError: a code outside 0..31.
    """
    return "infinite" if code > TIMER_LIMIT else timer_text(code)
