"""The linear forwarding table: DLID to output port (IBTA vol 1, 14.2.5.10 and 18.2.4.3)."""

from amaranth.hdl import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from wire.registers import NO_ROUTE

__all__ = ["ForwardingTable", "ForwardingWrite"]

ForwardingWrite = data.StructLayout(
    {
        "valid": 1,
        "lid": 16,
        "port": 8,
    }
)
"""A write to every copy of the table, at the node's registered bus stage."""


class ForwardingTable(wiring.Component):
    """One copy of the linear forwarding table, with one reader.

    Members:
        write: seen by lookups of the next cycle on.
        lid: the LID looked up, below `size` (others yield anything).
        port: its entry, in the cycle after.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__({"write": In(ForwardingWrite), "lid": In(16), "port": Out(8)})

    def elaborate(self, platform: object) -> Module:
        """One block RAM."""
        m = Module()
        m.submodules.memory = memory = Memory(shape=unsigned(8), depth=self.size, init=[NO_ROUTE] * self.size)
        write = memory.write_port()
        read = memory.read_port()
        m.d.comb += [
            write.addr.eq(self.write.lid),
            write.data.eq(self.write.port),
            write.en.eq(self.write.valid),
            read.addr.eq(self.lid),
            self.port.eq(read.data),
        ]
        return m
