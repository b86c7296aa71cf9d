"""A switch's own registers (`wire.registers.NodeRegister`)."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PortAccess
from rtl.rotation import select
from wire.registers import DATA_BITS, LEASE_SECOND_AT_RESET, NodeRegister

__all__ = ["SwitchRegisters"]

_LID_BITS = 16


class SwitchRegisters(wiring.Component):
    """NUM_PORTS, LINEAR_FDB_TOP and LEASE_SECOND.

    Members:
        access: to the node's page; a write is visible in the next cycle.
        rdata: two cycles after a read what was visible in the cycle between, else 0.
        forwarding_top: LinearFDBTop.
        lease_second: LEASE_SECOND, cycles.
    """

    def __init__(self, ports: int, lft_size: int) -> None:
        self.ports = ports
        self.lft_size = lft_size
        super().__init__(
            {
                "access": In(PortAccess),
                "rdata": Out(32),
                "forwarding_top": Out(_LID_BITS, init=lft_size - 1),
                "lease_second": Out(DATA_BITS, init=LEASE_SECOND_AT_RESET),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two registers to write, one constant."""
        m = Module()
        access = self.access
        values = {
            NodeRegister.NUM_PORTS: Const(self.ports),
            NodeRegister.LINEAR_FDB_TOP: self.forwarding_top,
            NodeRegister.LEASE_SECOND: self.lease_second,
        }
        writes = access.select & access.write
        with m.If(
            writes & (access.offset == NodeRegister.LINEAR_FDB_TOP) & (access.wdata[len(self.forwarding_top) :] == 0)
        ):
            m.d.sync += self.forwarding_top.eq(access.wdata)
        with m.If(writes & (access.offset == NodeRegister.LEASE_SECOND) & (access.wdata != 0)):
            m.d.sync += self.lease_second.eq(access.wdata)

        reading = Signal(len(values))
        m.d.sync += [
            reading.eq(Cat(access.select & access.read & (access.offset == offset) for offset in values)),
            self.rdata.eq(select(reading, values.values())),
        ]
        return m
