"""The register bus at its node: stage, answer and record, what a page sees of it (docs/pipeline.md, section 10)."""

from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.trace import TraceSignature, report
from wire.registers import ADDRESS_BITS, DATA_BITS
from wire.trace import Kind
from wire.trace_layout import BusRead

__all__ = ["BUS_KINDS", "BusSignature", "NodeAccess", "NodeBus", "PageAccess", "of_page"]

BusSignature = wiring.Signature(
    {
        "addr": Out(ADDRESS_BITS),
        "wdata": Out(DATA_BITS),
        "write": Out(1),
        "read": Out(1),
        "rdata": In(DATA_BITS),
        "rvalid": In(1),
    }
)
"""The register bus, from its master (docs/pipeline.md, section 10).

`write` or `read` is given for one cycle c. The node registers the bus once (c+1); a register
written is visible at c+2. `rdata` and `rvalid` follow at c+4, with the value visible at c+2.

Members:
    addr: word address, `page << 16 | offset` (`wire.registers`).
"""


_OFFSET_BITS: Final = 16

PageAccess = data.StructLayout({"select": 1, "write": 1, "read": 1, "offset": _OFFSET_BITS, "wdata": DATA_BITS})
"""The bus as the registers of a page see it.

`write` and `read` count only where `select`, the decoded page, is high.
"""


BUS_KINDS: Final = (Kind.BUS_READ,)
"""What slot i of the node bus's trace holds."""

NodeAccess = data.StructLayout({"write": 1, "read": 1, "offset": _OFFSET_BITS, "page": 8, "wdata": DATA_BITS})
"""An access to any page."""


def of_page(access: data.View, page: int) -> Cat:
    """An access as the registers of a page see it: a `PageAccess`."""
    return Cat(access.page == page, access.write, access.read, access.offset, access.wdata)


class NodeBus(wiring.Component):
    """Registers the bus for the whole node, and lets the node's agent use it when nobody else does.

    Members:
        bus: from the master outside.
        agent: from the node's agent; its accesses count in cycles without `hold`.
        hold: there is an access from outside in this cycle.
        given: the access, in the cycle in which it is given (c).
        access: the same, a cycle later (c+1).
        answer: the value read, two cycles after that (c+3).
        trace: reads from outside, slots in the order of `BUS_KINDS`.
    """

    bus: In(BusSignature)
    agent: In(BusSignature)
    hold: Out(1)
    given: Out(NodeAccess)
    access: Out(NodeAccess)
    answer: In(DATA_BITS)
    trace: Out(TraceSignature(len(BUS_KINDS)))

    def elaborate(self, platform: object) -> Module:
        """An access in c, and its stages after that."""
        m = Module()
        bus, agent = self.bus, self.agent
        given = Signal.like(bus.addr, name="address")
        stages = (1, 2, 3, 4)
        address = [Signal.like(bus.addr, name=f"address_{stage}") for stage in stages]
        reading = [Signal(name=f"reading_{stage}") for stage in stages]
        agent_reading = [Signal(name=f"agent_reading_{stage}") for stage in stages]
        m.d.comb += [
            self.hold.eq(bus.write | bus.read),
            given.eq(Mux(self.hold, bus.addr, agent.addr)),
            self.given.write.eq(Mux(self.hold, bus.write, agent.write)),
            self.given.read.eq(Mux(self.hold, bus.read, agent.read)),
            self.given.offset.eq(given[:_OFFSET_BITS]),
            self.given.page.eq(given[_OFFSET_BITS:]),
            self.given.wdata.eq(Mux(self.hold, bus.wdata, agent.wdata)),
        ]
        for first, delayed in (
            (given, address),
            (bus.read, reading),
            (agent.read & ~self.hold, agent_reading),
        ):
            m.d.sync += [after.eq(before) for before, after in zip([first, *delayed], delayed, strict=False)]
        answer = Signal(DATA_BITS)
        m.d.sync += [self.access.eq(self.given), answer.eq(self.answer)]
        m.d.comb += [
            bus.rdata.eq(answer),
            bus.rvalid.eq(reading[-1]),
            agent.rdata.eq(answer),
            agent.rvalid.eq(agent_reading[-1]),
        ]
        report(m, self.trace, 0, reading[-1], BusRead, address=address[-1], value=answer)
        return m
