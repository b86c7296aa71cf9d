"""Whether a packet's DLID is a multicast LID (docs/management.md, sections 1 and 6)."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN
from wire.symbols import LANES

__all__ = ["MulticastDlid", "is_multicast"]

_BYTE_BITS = 8


def is_multicast(dlid: Value) -> Value:
    """A DLID is a multicast LID."""
    return ~below(dlid, LID_MULTICAST_MIN) & below(dlid, LID_MULTICAST_MAX + 1)


class MulticastDlid(wiring.Component):
    """Says it of packets whose rows pass.

    Members:
        row: a row of 32 bits in this cycle, `first`, `second`: row 0, row 1.
        multicast: from the cycle after row 1 on.
    """

    row: In(_BYTE_BITS * LANES)
    first: In(1)
    second: In(1)
    multicast: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Row 0 ends with the DLID's first byte, row 1 begins with its second; of 0xFFFF both are all ones."""
        m = Module()
        high, low = self.row[:_BYTE_BITS], self.row[-_BYTE_BITS:]
        all_ones = Signal(reset_less=True)
        with m.If(self.first):
            m.d.sync += [
                self.multicast.eq(~below(high, LID_MULTICAST_MIN >> _BYTE_BITS)),
                all_ones.eq(high.all()),
            ]
        with m.If(self.second & all_ones & low.all()):
            m.d.sync += self.multicast.eq(0)
        return m
