"""The linear forwarding table: DLID to output port (IBTA vol 1, 14.2.5.10 and 18.2.4.3)."""

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["ForwardingTable", "destination_layout", "destination_of", "forwarding_write_layout"]


def destination_layout(ports: int) -> data.StructLayout:
    """What an entry means to a switch's inputs, which store that instead of the port's number.

    `known`: it is one of the switch's ports. `output`: that port's, which for port 0 is the last.
    """
    return data.StructLayout({"known": 1, "output": range(ports + 1)})


def destination_of(port: Value, ports: int) -> Value:
    """What the entry `port` means, see `destination_layout`."""
    output_bits = ports.bit_length()
    return Cat(port <= ports, Mux(port == 0, ports, port - 1)[:output_bits])


def forwarding_write_layout(entry: data.StructLayout | int) -> data.StructLayout:
    """A write to a table of such entries, at the node's registered bus stage."""
    return data.StructLayout({"valid": 1, "lid": 16, "entry": entry})


class ForwardingTable(wiring.Component):
    """One copy of a switch's linear forwarding table, with one reader.

    Args:
        size: entries.
        entry: what is stored of each.
        init: each at reset.

    Members:
        write: seen by lookups of the next cycle on.
        lid: the LID looked up, below `size` (others yield anything).
        entry: its entry, in the cycle after.
    """

    def __init__(self, size: int, entry: data.StructLayout | int, init: int) -> None:
        self.size = size
        self._init = init
        super().__init__({"write": In(forwarding_write_layout(entry)), "lid": In(16), "entry": Out(entry)})

    def elaborate(self, platform: object) -> Module:
        """One block RAM: its clock-to-output time is long enough without decoding behind it."""
        m = Module()
        # Any LID looked up has an entry, also one whose answer does not count: Verilog would read X there.
        width, depth = len(Value.cast(self.entry)), 1 << ceil_log2(self.size)
        m.submodules.memory = memory = Memory(shape=width, depth=depth, init=[self._init] * depth)
        write = memory.write_port()
        read = memory.read_port()
        m.d.comb += [
            write.addr.eq(self.write.lid),
            write.data.eq(self.write.entry),
            write.en.eq(self.write.valid),
            read.addr.eq(self.lid),
            self.entry.eq(read.data),
        ]
        return m
