"""A switch's own registers (`wire.registers.NodeRegister`)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.bus import PortAccess
from wire.registers import NodeRegister

__all__ = ["SwitchRegisters"]

_LID_BITS = 16


class SwitchRegisters(wiring.Component):
    """NUM_PORTS and LINEAR_FDB_TOP.

    Members:
        access: to the node's page; a write is visible in the next cycle.
        rdata: two cycles after a read what was visible in the cycle between, else 0.
        forwarding_top: LinearFDBTop.
    """

    def __init__(self, ports: int, lft_size: int) -> None:
        self.ports = ports
        self.lft_size = lft_size
        super().__init__(
            {
                "access": In(PortAccess),
                "rdata": Out(32),
                "forwarding_top": Out(_LID_BITS, init=lft_size - 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two registers, one of them writable."""
        m = Module()
        access = self.access
        with m.If(
            access.select
            & access.write
            & (access.offset == NodeRegister.LINEAR_FDB_TOP)
            & (access.wdata[_LID_BITS:] == 0)
        ):
            m.d.sync += self.forwarding_top.eq(access.wdata)

        read_ports = Signal()
        read_top = Signal()
        reading = access.select & access.read
        m.d.sync += [
            read_ports.eq(reading & (access.offset == NodeRegister.NUM_PORTS)),
            read_top.eq(reading & (access.offset == NodeRegister.LINEAR_FDB_TOP)),
            self.rdata.eq(Mux(read_ports, self.ports, Mux(read_top, self.forwarding_top, 0))),
        ]
        return m
