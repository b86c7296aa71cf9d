"""The input side of a switch port: route, then store until sent."""

from typing import Literal

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.eligibility import send_facts_layout
from rtl.crossing.queueing import routed_layout
from rtl.crossing.reader import PassingRow
from rtl.crossing.store import PacketStore
from rtl.link.packet_check import PacketHeader, StoreRow
from rtl.switch.forwarding_table import destination_layout, forwarding_write_layout
from rtl.switch.route import PortFacts, Route
from rtl.switch.sl_to_vl import SlToVlAccess
from rtl.widths import FREE_BITS, LENGTH_BITS, PORT_BITS, VL_BITS
from wire.parameters import SwitchParameters
from wire.trace import Verdict

__all__ = ["Input"]


class Input(wiring.Component):
    """What becomes of one port's received packets until they reach an output. The last output is the agent's.

    Members:
        port, lookup_dlid, header, forwarding_top, forwarding_write, sl_to_vl, sl_to_vl_rdata, own_wide,
            route_facts (`Route.outputs`): see `Route`; relay, refused likewise, but a cycle later.
        acceptable: the port has no objection, in the cycle of `header`; what is not refused either is accepted.
        write, free: see `Buffer`.
        send_facts (`PacketStore.facts`), heads, requests, available, grant_output, grant_slots, granted,
            busy, holds, to_output, slots, rows: see `PacketStore`.
    """

    def __init__(self, parameters: SwitchParameters) -> None:
        self.parameters = parameters
        ports, vls = parameters.ports, parameters.vls
        outputs = ports + 1
        super().__init__(
            {
                "port": In(PORT_BITS),
                "phase": In(2),
                "lookup_dlid": In(16),
                "header": In(PacketHeader),
                "relay": Out(Verdict),
                "refused": Out(1),
                "acceptable": In(1),
                "write": In(StoreRow),
                "free": Out(data.ArrayLayout(unsigned(FREE_BITS), vls + 1)),
                "forwarding_top": In(16),
                "forwarding_write": In(forwarding_write_layout(destination_layout(ports))),
                "sl_to_vl": In(SlToVlAccess),
                "sl_to_vl_rdata": Out(VL_BITS),
                "own_wide": In(1),
                "route_facts": In(data.ArrayLayout(PortFacts, ports)),
                "send_facts": In(data.ArrayLayout(send_facts_layout(vls), ports)),
                "heads": Out(outputs),
                "requests": Out(data.ArrayLayout(outputs, vls + 1)),
                "available": Out(1),
                "grant_output": In(outputs),
                "grant_slots": In(data.ArrayLayout(vls + 1, outputs)),
                "granted": In(1),
                "busy": Out(outputs),
                "holds": Out(outputs),
                "to_output": Out(outputs).array(parameters.readers),
                "slots": Out(range(vls + 1)).array(parameters.readers),
                "rows": Out(PassingRow).array(parameters.readers),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Header, joining, store."""
        m = Module()
        parameters = self.parameters
        ports, vls = parameters.ports, parameters.vls
        header = self.header
        write = self.write
        queueing: Literal["voq", "fifo"] = parameters.queueing
        pools = [parameters.buffer_blocks] * vls + [parameters.vl15_blocks]
        m.submodules.route = route = Route(ports, vls, parameters.lft_size)
        m.submodules.store = store = PacketStore(pools, ports + 1, ports, queueing, parameters.readers)

        # Header (cycle h+1).
        m.d.comb += [
            route.port.eq(self.port),
            route.lookup_dlid.eq(self.lookup_dlid),
            route.header.eq(header),
            route.forwarding_top.eq(self.forwarding_top),
            route.forwarding_write.eq(self.forwarding_write),
            route.sl_to_vl.eq(self.sl_to_vl),
            route.own_wide.eq(self.own_wide),
            route.outputs.eq(self.route_facts),
            route.free.eq(store.free),
            self.sl_to_vl_rdata.eq(route.sl_to_vl_rdata),
        ]

        # Joining the queue: at h+2, or, from a 1X port to a 4X one, as soon as the rest arrives in time
        # (section 3.5). A packet that ends before that is cancelled.
        accept = Signal()
        packet = Signal(routed_layout(ports + 1))
        at_once = Signal()
        waiting = Signal()
        enough = Signal(LENGTH_BITS)
        in_time = Signal()
        accepted = Signal()  # in the cycle before
        m.d.comb += accept.eq(self.acceptable & ~route.refused)
        m.d.sync += [
            self.relay.eq(route.relay),
            self.refused.eq(route.refused),
            accepted.eq(accept),
            at_once.eq(accept & ~route.slower),
        ]
        with m.If(header.valid):
            m.d.sync += [
                packet.pool.eq(header.slot),
                packet.words.eq(header.n),
                packet.need.eq(header.need),
                packet.oversize.eq(route.oversize),
                packet.output.eq(route.output),
                packet.slot.eq(route.slot),
                enough.eq(header.n - (header.n >> 2)),
            ]
        with m.If(accept):
            m.d.sync += waiting.eq(route.slower)
        with m.Elif(write.valid & ((write.index == enough) | write.last)):
            m.d.sync += waiting.eq(0)
        m.d.comb += in_time.eq(write.valid & (write.index == enough) & ~write.last)

        # Store, queues, readers.
        m.d.comb += [
            store.phase.eq(self.phase),
            store.write.eq(write),
            store.accept.eq(accepted),
            store.accept_slot.eq(packet.pool),
            store.accept_need.eq(packet.need),
            store.cancel.eq(waiting & write.valid & write.last),
            store.join.eq(at_once | (waiting & in_time)),
            store.packet.eq(packet),
            store.wide.eq(Cat(*(self.route_facts[output].wide for output in range(ports)), 1)),
            store.facts.eq(self.send_facts),
            store.grant_output.eq(self.grant_output),
            store.grant_slots.eq(self.grant_slots),
            store.granted.eq(self.granted),
            self.free.eq(store.free),
            self.heads.eq(store.heads),
            self.requests.eq(store.requests),
            self.available.eq(store.available),
            self.busy.eq(store.busy),
            self.holds.eq(store.holds),
        ]
        for reader in range(parameters.readers):
            m.d.comb += [
                self.to_output[reader].eq(store.to_output[reader]),
                self.slots[reader].eq(store.slots[reader]),
                self.rows[reader].eq(store.rows[reader]),
            ]
        return m
