"""Tables: DLID to output port, SL to VL (IBTA vol 1, 7.6.6, 14.2.5.8, 14.2.5.10 and 18.2.4.3)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.restoration import restored_write_port, word_of
from rtl.rotation import select
from rtl.widths import SL_BITS, VL_BITS

__all__ = [
    "ForwardingTable",
    "SlToVl",
    "destination_layout",
    "destination_of",
    "forwarding_write_layout",
    "sl_to_vl_access_layout",
    "table_depth",
]


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


def table_depth(size: int) -> int:
    """Of the memory of a table of so many entries.

    Any LID looked up has one, also one whose answer does not count: Verilog would read X there.
    """
    return 1 << int(ceil_log2(size))


class ForwardingTable(wiring.Component):
    """One copy of a switch's linear forwarding table (LFT), with one reader.

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
        width, depth = len(Value.cast(self.entry)), table_depth(self.size)
        m.submodules.memory = memory = Memory(shape=width, depth=depth, init=[self._init] * depth)
        write = restored_write_port(m, memory, lambda _lid: Const(self._init, width))
        read = memory.read_port()
        m.d.comb += [
            write.addr.eq(self.write.lid),
            write.data.eq(self.write.entry),
            write.en.eq(self.write.valid),
            read.addr.eq(self.lid),
            self.entry.eq(read.data),
        ]
        return m


_SLS = 1 << SL_BITS


def sl_to_vl_access_layout(ports: int) -> data.StructLayout:
    """An access from the register bus, at the node's registered bus stage.

    `write`, `read`: it is for this input port's table. `outputs` is the mask of the output port that it names, if there
    is one.
    """
    return data.StructLayout({"write": 1, "read": 1, "outputs": ports, "sl": SL_BITS, "vl": VL_BITS})


class SlToVl(wiring.Component):
    """One input's SL-to-VL mapping table: (output port, SL) to VL, looked up within the cycle.

    Members:
        sl: what is looked up.
        vls: its VL at each output, in the same cycle.
        access: a write is seen from the next cycle on; `rdata` follows two cycles after a read and is
            0 in all other cycles.
    """

    def __init__(self, ports: int, vls: int) -> None:
        self.ports = ports
        self.vl_count = vls
        super().__init__(
            {
                "sl": In(SL_BITS),
                "vls": Out(data.ArrayLayout(VL_BITS, ports)),
                "access": In(sl_to_vl_access_layout(ports)),
                "rdata": Out(VL_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One distributed RAM: a row for each SL, with the VLs at all outputs."""
        m = Module()
        row = data.ArrayLayout(VL_BITS, self.ports)
        at_reset = [sl % self.vl_count for sl in range(_SLS)]
        m.submodules.memory = memory = Memory(shape=row, depth=_SLS, init=[[vl] * self.ports for vl in at_reset])
        write = restored_write_port(
            m,
            memory,
            lambda sl: Value.cast(word_of(at_reset, VL_BITS, sl)).replicate(self.ports),
            granularity=1,
        )
        lookup = memory.read_port(domain="comb")
        bus = memory.read_port(domain="comb")
        access = self.access
        m.d.comb += [
            lookup.addr.eq(self.sl),
            self.vls.eq(lookup.data),
            write.addr.eq(access.sl),
            write.data.eq(access.vl.replicate(self.ports)),
            write.en.eq(Mux(access.write, access.outputs, 0)),
        ]

        # A bus read returns what is visible in the cycle after its stage.
        reading = Signal(self.ports)
        m.d.sync += [
            bus.addr.eq(access.sl),
            reading.eq(Mux(access.read, access.outputs, 0)),
            self.rdata.eq(select(reading, [bus.data[output] for output in range(self.ports)])),
        ]
        return m
