"""An adapter's own registers (`wire.registers.NodeRegister`)."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PortAccess
from rtl.rotation import select
from wire.registers import DATA_BITS, LEASE_SECOND_AT_RESET, NodeRegister

__all__ = ["AdapterRegisters"]

_LID_BITS = 16
_LMC_BITS = 3


class AdapterRegisters(wiring.Component):
    """NUM_PORTS, LID, LMC and LEASE_SECOND.

    Members:
        access: to the node's page; a write is visible in the next cycle.
        rdata: two cycles after a read what was visible in the cycle between, else 0.
        lid, lmc, lease_second: the registers.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "access": In(PortAccess),
                "rdata": Out(32),
                "lid": Out(_LID_BITS),
                "lmc": Out(_LMC_BITS),
                "lease_second": Out(DATA_BITS, init=LEASE_SECOND_AT_RESET),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Three registers to write, one constant."""
        m = Module()
        access = self.access
        values = {
            NodeRegister.NUM_PORTS: Const(1),
            NodeRegister.LID: self.lid,
            NodeRegister.LMC: self.lmc,
            NodeRegister.LEASE_SECOND: self.lease_second,
        }
        writes = access.select & access.write
        for offset, register in ((NodeRegister.LID, self.lid), (NodeRegister.LMC, self.lmc)):
            fits = access.wdata[len(register) :] == 0
            with m.If(writes & (access.offset == offset) & fits):
                m.d.sync += register.eq(access.wdata)
        with m.If(writes & (access.offset == NodeRegister.LEASE_SECOND) & (access.wdata != 0)):
            m.d.sync += self.lease_second.eq(access.wdata)

        reading = Signal(len(values))
        m.d.sync += [
            reading.eq(Cat(access.select & access.read & (access.offset == offset) for offset in values)),
            self.rdata.eq(select(reading, values.values())),
        ]
        return m
