"""A node's own registers (`wire.registers.NodeRegister`)."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PageAccess
from rtl.rotation import select
from wire.registers import DATA_BITS, LEASE_SECOND_AT_RESET, NodeRegister

__all__ = ["NodeRegisters"]

_LEASE_SECOND = NodeRegister.LEASE_SECOND


class NodeRegisters(wiring.Component):
    """NUM_PORTS, LEASE_SECOND, and those that only one kind of node has.

    Args:
        ports: what NUM_PORTS reads.
        others: width and value at reset of each of the latter.

    Members:
        given: an access to the node's page, in the cycle in which it is given (c). A write is visible at c+2, one of a
            value that does not fit is ignored.
        rdata: at c+3 what a read finds visible at c+2, else 0.
        lease_second, and of each of the others its name in small letters: the register.
        follows: what each of the others will be in the next cycle.
        written, changed: which of them a write of c-1 sets, and which of these will be another than now.
    """

    def __init__(self, ports: int, others: Mapping[NodeRegister, tuple[int, int]]) -> None:
        self._ports = ports
        self._others = tuple(others)
        super().__init__(
            {
                "given": In(PageAccess),
                "rdata": Out(DATA_BITS),
                "lease_second": Out(DATA_BITS, init=LEASE_SECOND_AT_RESET),
                **{register.name.lower(): Out(bits, init=init) for register, (bits, init) in others.items()},
                "follows": Out(
                    data.StructLayout({register.name.lower(): bits for register, (bits, _) in others.items()})
                ),
                "written": Out(data.StructLayout({register.name.lower(): 1 for register in others})),
                "changed": Out(data.StructLayout({register.name.lower(): 1 for register in others})),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Which register it is, and whether the value fits, is found out before the access is registered."""
        m = Module()
        others = {register: getattr(self, register.name.lower()) for register in self._others}
        values = {NodeRegister.NUM_PORTS: Const(self._ports), **others, _LEASE_SECOND: self.lease_second}

        # Cycle c.
        given = self.given
        wdata = Signal(DATA_BITS)
        writes_second = Signal()
        reading = [Signal(len(values), name=f"reading_{stage}") for stage in (1, 2)]
        is_to = {register: given.select & (given.offset == register) for register in values}
        fits = {register: given.wdata[len(value) :] == 0 for register, value in others.items()}
        m.d.sync += [
            wdata.eq(given.wdata),
            *(
                self.written[register.name.lower()].eq(given.write & is_to[register] & fits[register])
                for register in others
            ),
            writes_second.eq(given.write & is_to[_LEASE_SECOND] & (given.wdata != 0)),
            reading[0].eq(Cat(given.read & to for to in is_to.values())),
        ]

        # Cycle c+1.
        for offset, register in others.items():
            name = offset.name.lower()
            follows = self.follows[name]
            m.d.comb += follows.eq(Mux(self.written[name], wdata, register))
            m.d.sync += [
                register.eq(follows),
                self.changed[name].eq(
                    given.write & is_to[offset] & fits[offset] & (given.wdata[: len(register)] != follows)
                ),
            ]
        with m.If(writes_second):
            m.d.sync += self.lease_second.eq(wdata)

        # And what a read gives, from there on.
        m.d.sync += [reading[1].eq(reading[0]), self.rdata.eq(select(reading[1], values.values()))]
        return m
