"""An adapter's own registers (`wire.registers.NodeRegister`)."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.bus import PortAccess
from rtl.rotation import select
from wire.registers import NodeRegister

__all__ = ["AdapterRegisters"]

_LID_BITS = 16
_LMC_BITS = 3


class AdapterRegisters(wiring.Component):
    """NUM_PORTS, LID and LMC.

    Members:
        access: to the node's page; a write is visible in the next cycle.
        rdata: two cycles after a read what was visible in the cycle between, else 0.
        lid, lmc: the registers.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "access": In(PortAccess),
                "rdata": Out(32),
                "lid": Out(_LID_BITS),
                "lmc": Out(_LMC_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two registers to write, one constant."""
        m = Module()
        access = self.access
        values = {
            NodeRegister.NUM_PORTS: Const(1),
            NodeRegister.LID: self.lid,
            NodeRegister.LMC: self.lmc,
        }
        for offset, register in ((NodeRegister.LID, self.lid), (NodeRegister.LMC, self.lmc)):
            fits = access.wdata[len(register) :] == 0
            with m.If(access.select & access.write & (access.offset == offset) & fits):
                m.d.sync += register.eq(access.wdata)

        reading = Signal(len(values))
        m.d.sync += [
            reading.eq(Cat(access.select & access.read & (access.offset == offset) for offset in values)),
            self.rdata.eq(select(reading, values.values())),
        ]
        return m
