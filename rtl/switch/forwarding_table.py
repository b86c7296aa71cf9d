"""The linear forwarding table: DLID to output port (IBTA vol 1, 14.2.5.10 and 18.2.4.3)."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from wire.forwarding_tables import LFT_NO_ROUTE

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
    """One copy of the linear forwarding table of a switch of `ports` ports, with one reader.

    Members:
        write: seen by lookups of the next cycle on.
        lid: the LID looked up, below `size` (others yield anything).
        port: its entry, in the cycle after. All that follows belongs to that cycle.
        known, output: the entry is one of the switch's ports, and that port's output, which for port 0 is the last.
    """

    def __init__(self, size: int, ports: int) -> None:
        self.size = size
        self.ports = ports
        super().__init__(
            {
                "write": In(ForwardingWrite),
                "lid": In(16),
                "port": Out(8),
                "known": Out(1),
                "output": Out(range(ports + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One block RAM. What an entry means is stored with it: its clock-to-output time is long enough."""
        m = Module()
        entry = data.StructLayout({"port": 8, "known": 1, "output": range(self.ports + 1)})
        unknown = {"port": LFT_NO_ROUTE, "known": 0, "output": 0}
        # Any LID looked up has an entry, also one whose answer does not count: Verilog would read X there.
        depth = 1 << ceil_log2(self.size)
        m.submodules.memory = memory = Memory(shape=entry, depth=depth, init=[unknown] * depth)
        write = memory.write_port()
        read = memory.read_port()
        port = self.write.port
        m.d.comb += [
            write.addr.eq(self.write.lid),
            write.data.port.eq(port),
            write.data.known.eq(port <= self.ports),
            write.data.output.eq(Mux(port == 0, self.ports, port - 1)),
            write.en.eq(self.write.valid),
            read.addr.eq(self.lid),
            self.port.eq(read.data.port),
            self.known.eq(read.data.known),
            self.output.eq(read.data.output),
        ]
        return m
