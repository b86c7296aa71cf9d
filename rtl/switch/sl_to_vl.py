"""The SL-to-VL mapping table of one input port (IBTA vol 1, 7.6.6 and 14.2.5.8)."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["SlToVl", "SlToVlAccess"]

_SLS = 16

SlToVlAccess = data.StructLayout(
    {
        "select": 1,
        "write": 1,
        "read": 1,
        "offset": 16,
        "vl": 4,
    }
)
"""An access from the register bus, at the node's registered bus stage.

`select` says that it is for this input port's table; `offset` is `out_port << 4 | sl`.
"""


class SlToVl(wiring.Component):
    """(output port, SL) to VL, looked up within the cycle.

    Members:
        out_port, sl: what is looked up; a port above `ports` yields anything.
        vl: the entry, in the same cycle.
        access: a write is seen from the next cycle on; `rdata` follows two cycles after a read and is
            0 in all other cycles.
    """

    def __init__(self, ports: int, vls: int) -> None:
        self.ports = ports
        self.vls = vls
        super().__init__(
            {
                "out_port": In(8),
                "sl": In(4),
                "vl": Out(4),
                "access": In(SlToVlAccess),
                "rdata": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One distributed RAM, port 0's entries unused."""
        m = Module()
        depth = _SLS * (self.ports + 1)
        m.submodules.memory = memory = Memory(
            shape=unsigned(4), depth=depth, init=[entry % _SLS % self.vls for entry in range(depth)]
        )
        write = memory.write_port()
        lookup = memory.read_port(domain="comb")
        bus = memory.read_port(domain="comb")
        access = self.access
        known = Signal()
        m.d.comb += [
            known.eq(access.select & (access.offset >= _SLS) & (access.offset < depth)),
            lookup.addr.eq(Cat(self.sl, self.out_port)),
            self.vl.eq(lookup.data),
            write.addr.eq(access.offset),
            write.data.eq(access.vl),
            write.en.eq(known & access.write),
        ]

        # A bus read returns what is visible in the cycle after its stage.
        reading = Signal()
        m.d.sync += [
            bus.addr.eq(access.offset),
            reading.eq(known & access.read),
            self.rdata.eq(Mux(reading, bus.data, 0)),
        ]
        return m
