"""Where a multicast packet goes (docs/pipeline.md, section 3.7; IBTA vol 1, 14.2.5.4, 14.2.5.12 and 18.2.4.3)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.restoration import restored_write_port
from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE
from wire.registers import MFT_PAGE
from wire.trace import Verdict

__all__ = [
    "MulticastRoute",
    "MulticastTable",
    "multicast_settings_layout",
    "multicast_write_layout",
    "multicast_written",
    "output_named",
]

_PART_BITS = MULTICAST_FORWARDING_TABLE.entry.width
_MLID_BITS = (LID_MULTICAST_MAX - LID_MULTICAST_MIN).bit_length()
"""Of a multicast LID, those that say which it is."""


def _parts(ports: int) -> int:
    """Masks in which a switch with so many ports has an entry written."""
    return -(-(ports + 1) // _PART_BITS)


def multicast_write_layout(ports: int) -> data.StructLayout:
    """A write to the multicast forwarding table (MFT), at the node's registered bus stage.

    `part`: the part of the entry that is written, one-hot, or none.
    """
    return data.StructLayout({"part": _parts(ports), "entry": _MLID_BITS, "mask": _PART_BITS})


def multicast_written(m: Module, access: data.View, ports: int, size: int) -> Signal:
    """What an access to the node's registers writes to the MFT of so many entries."""
    write = Signal(multicast_write_layout(ports))
    fits = access.write & (access.offset < size) & (access.wdata[_PART_BITS:] == 0)
    m.d.comb += [
        write.part.eq(Cat(fits & (access.page == MFT_PAGE + part) for part in range(_parts(ports)))),
        write.entry.eq(access.offset),
        write.mask.eq(access.wdata),
    ]
    return write


def output_named(port: Value, ports: int) -> Value:
    """The mask of the output that a port's number means, for port 0 the last; none if there is no such port."""
    return Cat(*(port == output + 1 for output in range(ports)), port == 0)


def multicast_settings_layout(ports: int) -> data.StructLayout:
    """The highest LID that the MFT is asked for; the masks of the outputs that the two default ports are."""
    return data.StructLayout({"top": 16, "primary": ports + 1, "not_primary": ports + 1})


class MulticastTable(wiring.Component):
    """One copy of a switch's MFT, with one reader.

    Args:
        size: entries.

    Members:
        write: seen by lookups of the next cycle on.
        entry: the one looked up, below `size` (others yield anything).
        outputs: its mask of outputs, in the cycle after.
    """

    def __init__(self, ports: int, size: int) -> None:
        self._ports = ports
        self._size = size
        super().__init__(
            {"write": In(multicast_write_layout(ports)), "entry": In(_MLID_BITS), "outputs": Out(ports + 1)}
        )

    def elaborate(self, platform: object) -> Module:
        """A block RAM for each part of a mask, by the numbers of ports."""
        m = Module()
        masks: list[Value] = []
        for part in range(_parts(self._ports)):
            width = min(_PART_BITS, self._ports + 1 - _PART_BITS * part)
            memory = Memory(shape=width, depth=self._size, init=[])
            m.submodules[f"part_{part}"] = memory
            write = restored_write_port(m, memory, lambda _entry: Const(0))
            read = memory.read_port()
            m.d.comb += [
                write.addr.eq(self.write.entry),
                write.data.eq(self.write.mask),
                write.en.eq(self.write.part[part]),
                read.addr.eq(self.entry),
            ]
            masks.append(read.data)
        by_port = Cat(masks)
        m.d.comb += self.outputs.eq(Cat(by_port[1:], by_port[0]))
        return m


class MulticastRoute(wiring.Component):
    """Looks up one input port's multicast packets; h is the cycle of a packet's row 1.

    Members:
        settings, write: the switch's registers, and to the input's copy of its MFT.
        lookup_dlid: the DLID, in cycle h.
        dlid, own, no_vl: in cycle h+1, that DLID, the mask of the input port's output, and of the outputs where
            the packet has no VL.
        copies: the mask of the outputs that get a copy, in that cycle.
        verdict: why there is none (`NO_ROUTE`, `LOOP`, `VL_MAP`).
    """

    def __init__(self, ports: int, mft_size: int) -> None:
        self._ports = ports
        self._mft_size = mft_size
        super().__init__(
            {
                "settings": In(multicast_settings_layout(ports)),
                "write": In(multicast_write_layout(ports)),
                "lookup_dlid": In(16),
                "dlid": In(16),
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
        m.submodules.table = table = MulticastTable(self._ports, self._mft_size)
        m.d.comb += [table.write.eq(self.write), table.entry.eq(self.lookup_dlid)]
        found, missed, ports = (Signal(self._ports + 1) for _ in range(3))
        in_table = below(self.dlid[:_MLID_BITS], self._mft_size)
        known = in_table & (self.dlid <= settings.top)
        by_primary = (self.own & settings.primary).any()
        m.d.comb += [
            missed.eq(Mux(by_primary, settings.not_primary, settings.primary)),
            ports.eq(Mux(known, table.outputs, missed)),
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
