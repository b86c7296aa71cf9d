"""The SL-to-VL mapping table of one input port (IBTA vol 1, 7.6.6 and 14.2.5.8)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.rotation import select
from rtl.widths import SL_BITS, VL_BITS

__all__ = ["SlToVl", "SlToVlAccess"]

_SLS = 1 << SL_BITS

SlToVlAccess = data.StructLayout({"select": 1, "write": 1, "read": 1, "offset": 16, "vl": VL_BITS})
"""An access from the register bus, at the node's registered bus stage.

`select` says that it is for this input port's table; `offset` is `out_port << 4 | sl`.
"""


class SlToVl(wiring.Component):
    """(output port, SL) to VL, looked up within the cycle.

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
                "access": In(SlToVlAccess),
                "rdata": Out(VL_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One distributed RAM: a row for each SL, with the VLs at all outputs."""
        m = Module()
        row = data.ArrayLayout(VL_BITS, self.ports)
        init = [[sl % self.vl_count] * self.ports for sl in range(_SLS)]
        m.submodules.memory = memory = Memory(shape=row, depth=_SLS, init=init)
        write = memory.write_port(granularity=1)
        lookup = memory.read_port(domain="comb")
        bus = memory.read_port(domain="comb")
        access = self.access
        addressed = Signal(self.ports)
        m.d.comb += [
            addressed.eq(Cat(access.select & (access.offset[SL_BITS:] == output + 1) for output in range(self.ports))),
            lookup.addr.eq(self.sl),
            self.vls.eq(lookup.data),
            write.addr.eq(access.offset),
            write.data.eq(access.vl.replicate(self.ports)),
            write.en.eq(Mux(access.write, addressed, 0)),
        ]

        # A bus read returns what is visible in the cycle after its stage.
        reading = Signal(self.ports)
        m.d.sync += [
            bus.addr.eq(access.offset),
            reading.eq(Mux(access.read, addressed, 0)),
            self.rdata.eq(select(reading, [bus.data[output] for output in range(self.ports)])),
        ]
        return m
