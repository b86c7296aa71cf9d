"""Where a received packet goes, or why it does not (docs/pipeline.md, section 3.3, rows f to j)."""

from amaranth.hdl import Array, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.link.flow_control import FREE_BITS
from rtl.link.packet_check import PacketHeader
from rtl.switch.forwarding_table import ForwardingTable, ForwardingWrite
from rtl.switch.sl_to_vl import SlToVl, SlToVlAccess
from wire.codes import VL15
from wire.trace import Verdict

__all__ = ["PortFacts", "Route"]

PortFacts = data.StructLayout(
    {
        "operational": 8,
        "max_words": 11,
        "wide": 1,
    }
)
"""What routing must know of an output, as visible.

`operational` is the mask of its operational data VLs, `max_words` the largest PktLen that its
NeighborMTU lets out, `wide` says 4X.
"""


class Route(wiring.Component):
    """Looks up one input port's packets, one header at a time.

    h is the cycle of the packet's row 1.

    Members:
        port: this port's number.
        lookup_dlid: the DLID, in cycle h.
        header: the header, in cycle h+1. All that follows belongs to that cycle.
        relay: the node's objection to the packet, 0 for none.
        output: number (port - 1) of the output it goes to.
        slot: its slot there.
        oversize: it exceeds the output's NeighborMTU.
        slower: it comes from a 1X port and goes to a 4X one.
        forwarding_top: LinearFDBTop.
        own_wide: this port is 4X; `outputs`: facts of all ports.
        free: free blocks of this input's slots.
        forwarding_write, sl_to_vl, sl_to_vl_rdata: the tables' side of the register bus.
    """

    def __init__(self, ports: int, vls: int, lft_size: int) -> None:
        self.ports = ports
        self.vls = vls
        self.lft_size = lft_size
        super().__init__(
            {
                "port": In(7),
                "lookup_dlid": In(16),
                "header": In(PacketHeader),
                "relay": Out(Verdict),
                "output": Out(range(ports)),
                "slot": Out(range(vls + 1)),
                "oversize": Out(1),
                "slower": Out(1),
                "forwarding_top": In(16),
                "own_wide": In(1),
                "outputs": In(data.ArrayLayout(PortFacts, ports)),
                "free": In(data.ArrayLayout(unsigned(FREE_BITS), vls + 1)),
                "forwarding_write": In(ForwardingWrite),
                "sl_to_vl": In(SlToVlAccess),
                "sl_to_vl_rdata": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two table look-ups and the verdict."""
        m = Module()
        header = self.header

        # Output port, looked up while row 1 is being registered.
        m.submodules.forwarding = forwarding = ForwardingTable(self.lft_size)
        out_port = forwarding.port
        m.d.comb += [
            forwarding.write.eq(self.forwarding_write),
            forwarding.lid.eq(self.lookup_dlid),
            self.output.eq(out_port - 1),
        ]
        facts = Signal(PortFacts)
        m.d.comb += facts.eq(Array(self.outputs[port] for port in range(self.ports))[self.output])

        # Output VL.
        m.submodules.sl_to_vl = sl_to_vl = SlToVl(self.ports, self.vls)
        is_vl15 = Signal()
        m.d.comb += [
            sl_to_vl.access.eq(self.sl_to_vl),
            self.sl_to_vl_rdata.eq(sl_to_vl.rdata),
            sl_to_vl.out_port.eq(out_port),
            sl_to_vl.sl.eq(header.sl),
            is_vl15.eq(header.vl == VL15),
            self.slot.eq(Mux(is_vl15, self.vls, sl_to_vl.vl)),
        ]

        # Verdict.
        no_route = Signal()
        loop = Signal()
        vl_map = Signal()
        no_room = Signal()
        free = Array(self.free[slot] for slot in range(self.vls + 1))[header.slot]
        m.d.comb += [
            no_route.eq(
                (header.dlid > self.forwarding_top)
                | (header.dlid >= self.lft_size)
                | (out_port == 0)
                | (out_port > self.ports)
            ),
            loop.eq(out_port == self.port),
            vl_map.eq((sl_to_vl.vl >= self.vls) | ~facts.operational.bit_select(sl_to_vl.vl[:3], 1)),
            no_room.eq(header.need > free),
        ]
        with m.If(is_vl15):
            m.d.comb += self.relay.eq(Mux(no_route | loop | no_room, Verdict.VL15_DROPPED, 0))
        with m.Elif(no_route):
            m.d.comb += self.relay.eq(Verdict.NO_ROUTE)
        with m.Elif(loop):
            m.d.comb += self.relay.eq(Verdict.LOOP)
        with m.Elif(vl_map):
            m.d.comb += self.relay.eq(Verdict.VL_MAP)
        with m.Elif(no_room):
            m.d.comb += self.relay.eq(Verdict.OVERRUN)

        # What the queue must know.
        m.d.comb += [
            self.oversize.eq(header.n > facts.max_words),
            self.slower.eq(~self.own_wide & facts.wide),
        ]
        return m
