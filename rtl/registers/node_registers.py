"""A node's own registers (`wire.registers.NodeRegister`)."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PortAccess
from rtl.rotation import select
from wire.registers import DATA_BITS, LEASE_SECOND_AT_RESET, NodeRegister

__all__ = ["NodeRegisters"]


class NodeRegisters(wiring.Component):
    """NUM_PORTS, LEASE_SECOND, and those that only one kind of node has.

    Args:
        ports: what NUM_PORTS reads.
        others: width and value at reset of each of the latter.

    Members:
        access: to the node's page; a write is visible in the next cycle, one of a value that does not fit is ignored.
        rdata: two cycles after a read what was visible in the cycle between, else 0.
        lease_second, and of each of the others its name in small letters: the register.
        changed: which of the others will be another in the next cycle.
    """

    def __init__(self, ports: int, others: Mapping[NodeRegister, tuple[int, int]]) -> None:
        self._ports = ports
        self._others = tuple(others)
        super().__init__(
            {
                "access": In(PortAccess),
                "rdata": Out(DATA_BITS),
                "lease_second": Out(DATA_BITS, init=LEASE_SECOND_AT_RESET),
                **{register.name.lower(): Out(bits, init=init) for register, (bits, init) in others.items()},
                "changed": Out(data.StructLayout({register.name.lower(): 1 for register in others})),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Registers to write, one constant."""
        m = Module()
        access = self.access
        others = {register: getattr(self, register.name.lower()) for register in self._others}
        values = {NodeRegister.NUM_PORTS: Const(self._ports), **others, NodeRegister.LEASE_SECOND: self.lease_second}
        writes = access.select & access.write
        for offset, register in others.items():
            with m.If(writes & (access.offset == offset) & (access.wdata[len(register) :] == 0)):
                m.d.comb += self.changed[offset.name.lower()].eq(access.wdata[: len(register)] != register)
                m.d.sync += register.eq(access.wdata)
        with m.If(writes & (access.offset == NodeRegister.LEASE_SECOND) & (access.wdata != 0)):
            m.d.sync += self.lease_second.eq(access.wdata)

        reading = Signal(len(values))
        m.d.sync += [
            reading.eq(Cat(access.select & access.read & (access.offset == offset) for offset in values)),
            self.rdata.eq(select(reading, values.values())),
        ]
        return m
