"""Exponents of time limits in a switch: HOQLife, LifeTimeValue (docs/pipeline.md, 7.2; IBTA vol 1, 18.2.5.4)."""

from typing import Final

__all__ = ["EXPIRED_TICKS", "LIFE_TIME_STAMPS", "MAX_EXPONENT", "NO_LIMIT", "STALL_TICKS", "TICK_CYCLES"]

MAX_EXPONENT: Final = 19
"""Above it there is no limit."""

NO_LIMIT: Final = 31
"""What the exponents are at reset."""

TICK_CYCLES: Final = 256
"""Cycles between two ticks of exponent 0, a quarter of the limit; those of exponent k are 2^k times as far apart."""

EXPIRED_TICKS: Final = 4
"""What has seen so many ticks is at its limit."""

STALL_TICKS: Final = 32
"""Ticks for which a stalled VL discards: eight times the limit."""

LIFE_TIME_STAMPS: Final = 32
"""Ticks of the life time are counted modulo this."""
