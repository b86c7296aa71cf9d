"""Where a received packet goes, or why it does not (docs/pipeline.md, section 3.3, rows f to j)."""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.below import below
from rtl.crossing.queueing import copies_layout
from rtl.link.multicast_dlid import is_multicast
from rtl.link.packet_check import PacketHeader
from rtl.switch.multicast import MulticastRoute, multicast_settings_layout, multicast_write_layout
from rtl.switch.routing_tables import RoutingTables
from rtl.switch.tables import SlToVl, destination_layout, forwarding_write_layout, sl_to_vl_access_layout
from rtl.widths import FREE_BITS, VL_BITS, need_bits
from wire.codes import LID_PERMISSIVE, LNH, VL15, max_pkt_len, mtu_code
from wire.trace import Verdict

__all__ = ["Route", "RoutingSignature", "port_facts_layout"]


def port_facts_layout(vls: int) -> data.StructLayout:
    """What routing must know of an output.

    `operational` is the mask of its operational data VLs, `mtu` the code of its NeighborMTU, `wide` says that its
    cable is 4X. `outbound`, `raw_outbound`: P_Keys and raw packets are checked on departure.
    """
    return data.StructLayout({"operational": vls, "mtu": 3, "wide": 1, "outbound": 1, "raw_outbound": 1})


_Candidate = data.StructLayout({"vl": VL_BITS, "vl_map": 1, "oversize": 1, "slower": 1, "departure": 1})
"""What a packet would be at an output: its VL, that VL not one of the output's though it needs one, and see `Route`."""


class RoutingSignature(wiring.Signature):
    """What an input port's routing is told by the port and the switch, seen from them.

    Members:
        input: the number of its input, and of its output.
        lookup_dlid: the DLID of a packet whose row 1 is on the wires, in this cycle (h). `concerned`: there may be one.
        own_wide_follows: the port will be 4X in the next cycle.
        inbound, raw_inbound: P_Keys and raw packets are checked on arrival.
        outputs: facts of all ports from 1 on, as they will be in the next cycle; of cables as they are.
        forwarding_top: LinearFDBTop, as it will be in the next cycle.
        forwarding_write: to the input's copy of the forwarding table.
        multicast, multicast_write: the same of multicast packets.
        sl_to_vl, sl_to_vl_rdata: access to its SL-to-VL table, and the answer.
    """

    def __init__(self, ports: int, vls: int) -> None:
        super().__init__(
            {
                "input": Out(range(ports)),
                "lookup_dlid": Out(16),
                "concerned": Out(1),
                "own_wide_follows": Out(1),
                "inbound": Out(1),
                "raw_inbound": Out(1),
                "outputs": Out(data.ArrayLayout(port_facts_layout(vls), ports)),
                "forwarding_top": Out(16),
                "forwarding_write": Out(forwarding_write_layout(destination_layout(ports))),
                "multicast": Out(multicast_settings_layout(ports)),
                "multicast_write": Out(multicast_write_layout(ports)),
                "sl_to_vl": Out(sl_to_vl_access_layout(ports)),
                "sl_to_vl_rdata": In(VL_BITS),
            }
        )


class Route(wiring.Component):
    """Looks up one input port's packets, one header at a time.

    h is the cycle of the packet's row 1.

    Args:
        ports, vls: of the switch.
        lft_size, mft_size: entries of its tables.
        mtu: its MTU in bytes.
        pools: blocks of each slot of the input's buffer.

    Members:
        routing: the port, its facts and its tables.
        header: the header, in cycle h+1. All that follows belongs to that cycle.
        relay, refused: the node's objection to the packet, 0 for none; whether there is one.
        output: number of the output it goes to: port - 1, or P for port 0, the agent.
        slot: its slot there.
        oversize: it exceeds the output's NeighborMTU.
        has_copies, copies: it is a multicast packet, which has these instead.
        slower: it comes from a 1X port and goes to a 4X one.
        arrival, departure: its partition is checked, by the port that it comes by, by the one that it goes to.
        outbound, raw_outbound: masks of the outputs that check P_Keys and raw packets on departure, as visible.
        free: free blocks of this input's slots.
    """

    def __init__(self, ports: int, vls: int, lft_size: int, mft_size: int, mtu: int, pools: Sequence[int]) -> None:
        self.ports = ports
        self.mtu = mtu
        self.pools = pools
        self.vls = vls
        self.lft_size = lft_size
        self.mft_size = mft_size
        super().__init__(
            {
                "routing": In(RoutingSignature(ports, vls)),
                "header": In(PacketHeader),
                "relay": Out(Verdict),
                "refused": Out(1),
                "output": Out(range(ports + 1)),
                "slot": Out(range(vls + 1)),
                "oversize": Out(1),
                "has_copies": Out(1),
                "copies": Out(copies_layout(ports + 1, ports, vls)),
                "slower": Out(1),
                "arrival": Out(1),
                "departure": Out(1),
                "outbound": Out(ports),
                "raw_outbound": Out(ports),
                "free": In(data.ArrayLayout(unsigned(FREE_BITS), vls + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The table look-ups and the verdict."""
        m = Module()
        header, routing = self.header, self.routing

        # Output port, looked up while row 1 is being registered: it is the last to be known.
        m.submodules.tables = tables = RoutingTables(self.ports, self.lft_size, self.mft_size)
        destination = tables.destination
        m.d.comb += [
            tables.forwarding_write.eq(routing.forwarding_write),
            tables.multicast_write.eq(routing.multicast_write),
            tables.lid.eq(routing.lookup_dlid),
        ]

        # Meanwhile, what the packet would be at each output. The permissive LID is in no table: it means the agent,
        # and all outputs say what the agent's does. A VL does not matter to it, nor to others on VL15.
        m.submodules.sl_to_vl = sl_to_vl = SlToVl(self.ports, self.vls)
        m.d.comb += [
            sl_to_vl.access.eq(routing.sl_to_vl),
            routing.sl_to_vl_rdata.eq(sl_to_vl.rdata),
            sl_to_vl.sl.eq(header.sl),
        ]
        # Bit m: it does not fit MTU code m. There is no code 0; what does not fit the switch's own is not accepted.
        too_long = Signal(mtu_code(self.mtu))
        m.d.comb += too_long.eq(Cat(0, *(~below(header.n, max_pkt_len(code) + 1) for code in range(1, len(too_long)))))
        # What registers far from here say is made ready with the look-up.
        own_narrow, narrower = Signal(), Signal(self.ports)  # than the output
        beyond_top = Signal()
        lid, wide_outputs = routing.lookup_dlid, Cat(facts.wide for facts in routing.outputs)
        at_reset = {"operational": (1 << self.vls) - 1, "mtu": mtu_code(self.mtu)}
        outputs = Signal(data.ArrayLayout(port_facts_layout(self.vls), self.ports), init=[at_reset] * self.ports)
        m.d.sync += [
            outputs.eq(routing.outputs),
            own_narrow.eq(~routing.own_wide_follows),
            narrower.eq(Mux(routing.own_wide_follows, 0, wide_outputs)),
        ]
        with m.If(routing.concerned):
            m.d.sync += beyond_top.eq((lid > routing.forwarding_top) | (lid >= self.lft_size))
        no_room = Signal()
        no_dlid = Signal()
        is_vl15 = Signal()
        permissive = Signal()
        is_raw = Signal()
        to_many = self.has_copies
        free = Array(self.free[slot][: bits_for(blocks)] for slot, blocks in enumerate(self.pools))[header.slot]
        m.d.comb += [
            no_room.eq(header.need[: need_bits(self.mtu)] > free),
            is_vl15.eq(header.vl == VL15),
            is_raw.eq(header.lnh < LNH.IBA_LOCAL),
            to_many.eq(~is_vl15 & is_multicast(header.dlid)),
            permissive.eq(is_vl15 & (header.dlid == LID_PERMISSIVE)),
            no_dlid.eq(~permissive & beyond_top),
        ]
        at_agent = Signal(_Candidate)
        m.d.comb += [at_agent.vl.eq(header.vl), at_agent.slower.eq(own_narrow)]
        candidates = []
        for output in range(self.ports):
            candidate = Signal(_Candidate, name=f"candidate_{output}")
            facts, vl = outputs[output], sl_to_vl.vls[output]
            m.d.comb += [
                candidate.vl.eq(vl),
                candidate.vl_map.eq(~is_vl15 & ((vl >= self.vls) | ~facts.operational.bit_select(vl, 1))),
                candidate.oversize.eq(~permissive & too_long.bit_select(facts.mtu, 1)),
                candidate.slower.eq(narrower[output] | (own_narrow & (permissive | to_many))),
                candidate.departure.eq(~is_vl15 & Mux(is_raw, facts.raw_outbound, facts.outbound)),
            ]
            candidates.append(candidate)

        # A multicast packet may be several of these. It is none of what the table of the others says.
        multicast = self._copies(m, candidates, tables.outputs)

        # What any other is at its own. The table's output means nothing if its entry is no port, and may be none.
        found = Signal(_Candidate)
        beyond = (1 << len(destination.output)) - len(candidates)
        no_route = Signal()
        loop = Signal()
        m.d.comb += [
            found.eq(Array([*candidates, *[at_agent] * beyond])[destination.output]),
            no_route.eq(no_dlid | ~(destination.known | permissive)),
            loop.eq(~permissive & (destination.output == routing.input)),
            self.output.eq(Mux(permissive | to_many, self.ports, destination.output)),
            self.slot.eq(Mux(is_vl15, self.vls, found.vl)),
            self.oversize.eq(found.oversize & ~to_many),
            self.slower.eq(found.slower),
            self.arrival.eq(~is_vl15 & Mux(is_raw, routing.raw_inbound, routing.inbound)),
            self.departure.eq(found.departure & ~to_many),
            self.outbound.eq(Cat(facts.outbound for facts in outputs)),
            self.raw_outbound.eq(Cat(facts.raw_outbound for facts in outputs)),
            self.refused.eq(no_room | Mux(to_many, ~multicast.copies.any(), no_route | loop | found.vl_map)),
        ]
        with m.If(to_many & ~multicast.copies.any()):
            m.d.comb += self.relay.eq(multicast.verdict)
        with m.Elif(to_many):
            m.d.comb += self.relay.eq(Mux(no_room, Verdict.OVERRUN, Verdict.GOOD))
        with m.Elif(no_route):
            m.d.comb += self.relay.eq(Verdict.NO_ROUTE)
        with m.Elif(loop):
            m.d.comb += self.relay.eq(Verdict.LOOP)
        with m.Elif(found.vl_map):
            m.d.comb += self.relay.eq(Verdict.VL_MAP)
        with m.Elif(no_room):
            m.d.comb += self.relay.eq(Mux(is_vl15, Verdict.VL15_DROPPED, Verdict.OVERRUN))
        return m

    def _copies(self, m: Module, candidates: list[data.View], entry: Value) -> MulticastRoute:
        """To the outputs at which it would be no loop, and has a VL. What the permissive LID's are does not matter."""
        routing, copies = self.routing, self.copies
        m.submodules.multicast = multicast = MulticastRoute(self.ports, self.mft_size)
        m.d.comb += [
            multicast.settings.eq(routing.multicast),
            multicast.lid.eq(routing.lookup_dlid),
            multicast.entry.eq(entry),
            multicast.own.eq(Cat(routing.input == output for output in range(self.ports))),
            multicast.no_vl.eq(Cat(candidate.vl_map for candidate in candidates)),
            copies.to.eq(multicast.copies),
            copies.oversize.eq(Cat(candidate.oversize for candidate in candidates)),
            copies.guarded.eq((multicast.copies & Cat(candidate.departure for candidate in candidates)).any()),
        ]
        if self.vls > 1:
            m.d.comb += [copies.slots[output].eq(candidate.vl) for output, candidate in enumerate(candidates)]
        return multicast
