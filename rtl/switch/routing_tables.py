"""An input's copies of both forwarding tables (IBTA vol 1, 14.2.5.10 and 14.2.5.12)."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.restoration import restored_write_port
from rtl.switch.multicast import multicast_write_layout, parts_of_mask
from rtl.switch.tables import destination_layout, forwarding_write_layout, table_depth

__all__ = ["RoutingTables", "routing_words"]

_LID_BITS = 16
_MULTICAST_BITS = _LID_BITS - 2
"""Below those that are 1 in all multicast LIDs, and in the permissive one."""


def routing_words(lft_size: int, mft_size: int) -> int:
    """Words of the memory that has the LFT, and behind it the MFT, of so many entries."""
    return table_depth(lft_size) + table_depth(mft_size)


class RoutingTables(wiring.Component):
    """Linear forwarding table (LFT) and multicast forwarding table (MFT), with one reader.

    A packet is looked up in one of them. So a block RAM has both, and of masks as much as goes with an entry of the
    LFT; other parts of masks, which switches of more than 15 ports have, are in memories of their own.

    Args:
        ports: of the switch.
        lft_size, mft_size: entries.

    Members:
        forwarding_write, multicast_write: not both in a cycle; seen by lookups of the next cycle on.
        lid: the LID looked up.
        destination: its entry in the LFT, in the cycle after; anything, if it is multicast or beyond the table.
        outputs: its mask of outputs in the MFT, in the cycle after; anything, if it is not multicast, or beyond.
    """

    def __init__(self, ports: int, lft_size: int, mft_size: int) -> None:
        self._ports = ports
        self._lft_bits, self._mft_bits = (ceil_log2(table_depth(size)) for size in (lft_size, mft_size))
        self._words = routing_words(lft_size, mft_size)
        super().__init__(
            {
                "forwarding_write": In(forwarding_write_layout(destination_layout(ports))),
                "multicast_write": In(multicast_write_layout(ports)),
                "lid": In(_LID_BITS),
                "destination": Out(destination_layout(ports)),
                "outputs": Out(ports + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The memory of both, looked up by what a block RAM takes without much before it; the other parts."""
        m = Module()
        lft, mft, lid = self.forwarding_write, self.multicast_write, self.lid
        first_part, *other_parts = parts_of_mask(self._ports)
        destination = Shape.cast(destination_layout(self._ports)).width
        m.submodules.memory = both = Memory(shape=max(destination, first_part), depth=self._words, init=[])
        write, read = restored_write_port(m, both, lambda _: Const(0)), both.read_port()
        m.d.comb += [
            write.en.eq(lft.valid | mft.part[0]),
            write.addr.eq(Mux(lft.valid, lft.lid, self._behind_lft(mft.entry))),
            write.data.eq(Mux(lft.valid, lft.entry, mft.mask)),
            read.addr.eq(Mux(lid[_MULTICAST_BITS:].all(), self._behind_lft(lid), lid[: self._lft_bits])),
            self.destination.eq(read.data),
        ]

        masks: list[Value] = [read.data[:first_part]]
        for part, width in enumerate(other_parts, start=1):
            m.submodules[f"part_{part}"] = memory = Memory(shape=width, depth=1 << self._mft_bits, init=[])
            write, read = restored_write_port(m, memory, lambda _: Const(0)), memory.read_port()
            m.d.comb += [
                write.en.eq(mft.part[part]),
                write.addr.eq(mft.entry),
                write.data.eq(mft.mask),
                read.addr.eq(lid),
            ]
            masks.append(read.data)
        by_port = Cat(masks)
        m.d.comb += self.outputs.eq(Cat(by_port[1:], by_port[0]))
        return m

    def _behind_lft(self, entry: Value) -> Value:
        """The word of this entry of the MFT."""
        within = entry[: min(self._mft_bits, self._lft_bits)]
        beyond = entry[self._lft_bits : self._mft_bits] if self._mft_bits > self._lft_bits else Const(0)
        return Cat(within, Const(0, self._lft_bits - len(within)), beyond + 1)
