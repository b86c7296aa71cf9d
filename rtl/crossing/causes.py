"""Why a packet is swallowed, as its output tells its reader (docs/pipeline.md, section 8.1)."""

from typing import Final

from amaranth.hdl import Value

from rtl.widths import REASON_BITS
from wire.trace import Discard

__all__ = ["CAUSE_BITS", "NOT_SWALLOWED", "cause_of", "reason_of"]

NOT_SWALLOWED: Final = 0
"""The cause of what is sent. All others are one more than their reason."""

CAUSE_BITS: Final = (max(Discard) + 1).bit_length()


def cause_of(reason: Discard) -> int:
    """The cause of this reason."""
    return reason + 1


def reason_of(cause: Value) -> Value:
    """The reason of a cause, of a packet that is swallowed."""
    return (cause - 1)[:REASON_BITS]
