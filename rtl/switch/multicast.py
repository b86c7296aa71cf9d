"""Where a multicast packet goes (docs/pipeline.md, section 3.7; IBTA vol 1, 14.2.5.4, 14.2.5.12 and 18.2.4.3)."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE
from wire.registers import MFT_PAGE
from wire.trace import Verdict

__all__ = [
    "MulticastRoute",
    "default_ports_layout",
    "multicast_settings_layout",
    "multicast_write_layout",
    "multicast_written",
    "output_named",
    "parts_of_mask",
]

_PART_BITS = MULTICAST_FORWARDING_TABLE.entry.width
_MLID_BITS = (LID_MULTICAST_MAX - LID_MULTICAST_MIN).bit_length()
"""Of a multicast LID, those that say which it is."""


def parts_of_mask(ports: int) -> list[int]:
    """The bits of each part in which a switch with so many ports has an entry's mask written."""
    return [min(_PART_BITS, ports + 1 - begin) for begin in range(0, ports + 1, _PART_BITS)]


def multicast_write_layout(ports: int) -> data.StructLayout:
    """A write to the multicast forwarding table (MFT), at the node's registered bus stage.

    `part`: the part of the entry that is written, one-hot, or none.
    """
    return data.StructLayout({"part": len(parts_of_mask(ports)), "entry": _MLID_BITS, "mask": _PART_BITS})


def multicast_written(m: Module, access: data.View, ports: int, size: int) -> Signal:
    """What an access to the node's registers writes to the MFT of so many entries."""
    write = Signal(multicast_write_layout(ports))
    fits = access.write & (access.offset < size) & (access.wdata[_PART_BITS:] == 0)
    m.d.comb += [
        write.part.eq(Cat(fits & (access.page == MFT_PAGE + part) for part in range(len(parts_of_mask(ports))))),
        write.entry.eq(access.offset),
        write.mask.eq(access.wdata),
    ]
    return write


def output_named(port: Value, ports: int) -> Value:
    """The mask of the output that a port's number means, for port 0 the last; none if there is no such port."""
    return Cat(*(port == output + 1 for output in range(ports)), port == 0)


def default_ports_layout(ports: int) -> data.StructLayout:
    """The masks of the outputs that the two default ports are."""
    return data.StructLayout({"primary": ports + 1, "not_primary": ports + 1})


def multicast_settings_layout(ports: int) -> data.StructLayout:
    """The highest LID that the MFT is asked for; to which outputs others go that come by an input's port."""
    return data.StructLayout({"top": 16, "missed": ports + 1})


class MulticastRoute(wiring.Component):
    """Looks up one input port's multicast packets; h is the cycle of a packet's row 1.

    Members:
        settings: what the switch's registers will say in the next cycle.
        lid: in cycle h, the DLID.
        entry, own, no_vl: in cycle h+1, its entry in the MFT, the mask of the input port's output, and of the outputs
            where the packet has no VL.
        copies: the mask of the outputs that get a copy, in that cycle.
        verdict: why there is none (`NO_ROUTE`, `LOOP`, `VL_MAP`).
    """

    def __init__(self, ports: int, mft_size: int) -> None:
        self._ports = ports
        self._mft_size = mft_size
        super().__init__(
            {
                "settings": In(multicast_settings_layout(ports)),
                "lid": In(16),
                "entry": In(ports + 1),
                "own": In(ports + 1),
                "no_vl": In(ports + 1),
                "copies": Out(ports + 1),
                "verdict": Out(Verdict),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Entry or default port, less those that get nothing. The entry is the last to be known."""
        m = Module()
        settings = self.settings
        found, missed, ports = (Signal(self._ports + 1) for _ in range(3))
        known = Signal()
        in_table = below(self.lid[:_MLID_BITS], self._mft_size)
        m.d.sync += [known.eq(in_table & (self.lid <= settings.top)), missed.eq(settings.missed)]
        m.d.comb += [
            ports.eq(Mux(known, self.entry, missed)),
            found.eq(ports & ~self.own),
            self.copies.eq(found & ~self.no_vl),
        ]
        with m.If(~ports.any()):
            m.d.comb += self.verdict.eq(Verdict.NO_ROUTE)
        with m.Elif(~found.any()):
            m.d.comb += self.verdict.eq(Verdict.LOOP)
        with m.Elif(~self.copies.any()):
            m.d.comb += self.verdict.eq(Verdict.VL_MAP)
        return m
