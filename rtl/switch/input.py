"""The input side of a switch port: route, then store until sent."""

from typing import Literal

from amaranth.hdl import Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.others import others_for, place_for
from rtl.crossing.queueing import copies_layout, routed, routed_layout
from rtl.crossing.store import InputSignature, PacketStore
from rtl.crossing.time_limits import CLOCK_AT_RESET, LifeClock
from rtl.link.packet_check import AdmissionSignature
from rtl.management.told_events import WrongPKey
from rtl.switch.inspection import Inspection
from rtl.switch.p_key_tables import p_key_change_layout
from rtl.switch.partition import Partition
from rtl.switch.route import Route, RoutingSignature
from rtl.widths import FREE_BITS, LENGTH_BITS, length_bits, need_bits
from wire.codes import LNH
from wire.parameters import SwitchParameters

__all__ = ["Input", "input_pools"]


def input_pools(parameters: SwitchParameters) -> list[int]:
    """Blocks of each slot for what comes in by a port."""
    return [parameters.buffer_blocks] * parameters.vls + [parameters.vl15_blocks]


class Input(wiring.Component):
    """What becomes of one port's received packets until they reach an output. The last output is the agent's.

    A loop is refused, and no copy is one, so from where it joins its queue on a packet's outputs are the others (see
    `rtl.crossing.others`).

    Members:
        routing: see `Route`.
        admission: the packets; one that neither port nor route refuses is accepted.
        free: free blocks of each slot.
        p_key_change: see `PKeyTables`.
        xmit_constraint: mask of the port, of the others, by which the packet may not leave whose verdict that is in
            this cycle.
        p_key_violations: masks of the ports at which packets were rejected for their P_Keys in the cycle before:
            `of_verdict`, of the packet whose verdict that was; `of_copy`, of one that is inspected, of the others.
        wrong_p_key: a packet is rejected for its P_Key, whose verdict is in this cycle; the rest is here in the next.
        crossing: how the packets leave.
        clock_follows: what the clock of their life time will show in the next cycle.
    """

    def __init__(self, parameters: SwitchParameters) -> None:
        self.parameters = parameters
        ports, vls = parameters.ports, parameters.vls
        super().__init__(
            {
                "routing": In(RoutingSignature(ports, vls)),
                "admission": In(AdmissionSignature),
                "p_key_change": In(p_key_change_layout(ports)),
                "xmit_constraint": Out(ports - 1),
                "p_key_violations": Out(data.StructLayout({"of_verdict": ports, "of_copy": ports - 1})),
                "wrong_p_key": Out(WrongPKey),
                "free": Out(data.ArrayLayout(unsigned(FREE_BITS), vls + 1)),
                "crossing": Out(InputSignature(ports, ports - 1, vls, parameters.readers, need_bits(parameters.mtu))),
                "clock_follows": In(LifeClock, init=CLOCK_AT_RESET),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Header, partition, joining, store, inspection."""
        m = Module()
        parameters = self.parameters
        ports, vls = parameters.ports, parameters.vls
        admission, header, write = self.admission, self.admission.header, self.admission.write
        queueing: Literal["voq", "fifo"] = parameters.queueing
        m.submodules.route = route = Route(
            ports, vls, parameters.lft_size, parameters.mft_size, parameters.mtu, input_pools(parameters)
        )
        size = (input_pools(parameters), ports, ports - 1, parameters.mtu)
        store = PacketStore(*size, queueing, parameters.readers, aging=True, multicast=True)
        m.submodules.store = store

        # Header (cycle h+1).
        connect(m, flipped(self.routing), route.routing)
        m.d.comb += [route.header.eq(header), route.free.eq(store.fill.free)]

        # Its partition.
        packet, output = Signal(routed_layout(ports), reset_less=True), Signal.like(route.output, reset_less=True)
        has_copies, copies = Signal(), Signal(copies_layout(ports, ports - 1, vls))
        own = self.routing.input
        m.submodules.partition = partition = Partition(ports)
        accept = Signal()
        guarded = route.has_copies & route.copies.guarded
        m.d.comb += [
            accept.eq(admission.acceptable & ~route.refused),
            partition.input.eq(own),
            partition.change.eq(self.p_key_change),
            partition.header.eq(header),
            partition.arrival.eq(route.arrival),
            partition.departure.eq(route.departure),
            partition.guarded.eq(guarded),
            partition.accept.eq(accept),
            partition.output.eq(output),
            partition.received.eq(admission.received),
            admission.constraint.eq(partition.verdict),
            self.xmit_constraint.eq(Mux(admission.xmit_constraint, 1 << packet.output, 0)),
        ]

        # Joining the queue: at h+2, or, from a 1X port to a 4X one, as soon as the rest arrives in time
        # (section 3.5), and not before its partition is known to be right, or its P_Key is known that is looked for
        # later. A packet that ends before that is cancelled. Store-and-forward waits for the end of each.
        checked = route.arrival | route.departure | (guarded & partition.keyed)
        at_once = Signal()
        waiting = Signal()
        # Which of two rows is enough the route says late, so both are kept.
        enough_ahead, enough_standing, by_partition = Signal(LENGTH_BITS), Signal(LENGTH_BITS), Signal()
        in_time = Signal()
        accepted = Signal()  # in the cycle before
        waits = Const(1) if parameters.forwarding == "store-and-forward" else route.slower | checked
        # No larger packet is stored than the MTU allows.
        words, need = header.n[: length_bits(parameters.mtu)], header.need[: need_bits(parameters.mtu)]
        ahead = Signal(LENGTH_BITS)
        m.d.comb += ahead.eq(words - (words >> 2))
        m.d.sync += [
            admission.relay.eq(route.relay),
            admission.refused.eq(route.refused),
            accepted.eq(accept),
            at_once.eq(accept & ~waits),
        ]
        of_copies = [name for name, _ in copies.shape() if name != "guarded"]
        with m.If(header.valid):
            m.d.sync += [
                *routed(packet, header, place_for(own, route.output), route.slot, (words, need)),
                packet.oversize.eq(route.oversize),
                output.eq(route.output),
                has_copies.eq(route.has_copies),
                copies.guarded.eq(route.copies.guarded),
                *(copies[name].eq(others_for(own, route.copies[name])) for name in of_copies),
                enough_ahead.eq(ahead),
                enough_standing.eq(partition.standing),
                by_partition.eq(checked & ~(route.slower & (ahead > partition.standing))),
            ]
        with m.If(accept):
            m.d.sync += waiting.eq(waits)
        with m.Elif(in_time | (write.valid & write.last)):
            m.d.sync += waiting.eq(0)
        if parameters.forwarding == "store-and-forward":
            m.d.comb += in_time.eq(write.valid & write.last & ~write.bad)
        else:
            # Which row it is is known a cycle before that row is stored.
            received, is_enough = admission.received, Signal()
            index = received.index
            is_there = Mux(by_partition, index == enough_standing, index == enough_ahead)
            follows = (received.body & ~header.valid) | received.end
            m.d.sync += is_enough.eq(follows & is_there)
            m.d.comb += in_time.eq(is_enough & ~(write.last & write.bad) & partition.right)

        # Store, queues, readers.
        clock = Signal(LifeClock, init=CLOCK_AT_RESET)
        m.d.sync += clock.eq(self.clock_follows)
        connect(m, store.crossing, flipped(self.crossing))
        m.d.comb += [
            store.fill.write.eq(write),
            store.fill.write.need.eq(write.need[: len(need)]),
            store.fill.accept.eq(accepted),
            store.fill.accept_slot.eq(packet.pool),
            store.fill.accept_need.eq(packet.need),
            store.fill.cancel.eq(waiting & write.valid & write.last & ~in_time),
            store.join.eq(at_once | (waiting & in_time)),
            store.packet.eq(packet),
            store.has_copies.eq(has_copies),
            store.copies.eq(copies),
            store.clock.eq(clock),
            self.free.eq(store.fill.free),
        ]
        self._inspect(m, has_copies & copies.guarded, output)
        return m

    def _inspect(self, m: Module, guarded: Value, output: Value) -> None:
        """Where ports check what leaves: multicast packets first in their queues, `guarded` saying that this one joins.

        What is told of wrong P_Keys, and counted, is of these, or of a packet whose verdict it is, which would have
        gone to `output`.
        """
        store: PacketStore = m.submodules.store
        partition: Partition = m.submodules.partition
        route: Route = m.submodules.route
        constrained, wrong, of_header = self.admission.constrained, self.wrong_p_key, ("slid", "dlid", "sl")
        blocks = sum(store.pools) + len(store.pools)
        m.submodules.inspection = inspection = Inspection(len(route.outbound), store.vls, store.block_bits, blocks)
        connect(m, inspection.queues, store.inspection)
        raw = Signal()
        with m.If(self.admission.header.valid):
            m.d.sync += raw.eq(self.admission.header.lnh < LNH.IBA_LOCAL)
        m.d.comb += [
            inspection.join.eq(store.join & guarded),
            inspection.first.eq(store.first),
            inspection.packet.raw.eq(raw),
            inspection.packet.has_p_key.eq(partition.has_p_key),
            inspection.packet.p_key.eq(partition.p_key),
            *(inspection.packet[name].eq(constrained[name]) for name in of_header),
            inspection.own.eq(self.routing.input),
            inspection.outbound.eq(route.outbound),
            inspection.raw_outbound.eq(route.raw_outbound),
            inspection.free.eq(partition.free),
            partition.other_table.eq(inspection.table_number),
            partition.other_key.eq(inspection.p_key),
            inspection.has.eq(partition.has),
        ]

        of_verdict, was_of_verdict, port = Signal(), Signal(), Signal.like(wrong.port, reset_less=True)
        m.d.comb += [
            of_verdict.eq(constrained.valid & partition.has_p_key),
            wrong.valid.eq(of_verdict | inspection.wrong.valid),
            *(wrong[name].eq(Mux(was_of_verdict, constrained[name], inspection.wrong[name])) for name in of_header),
            wrong.p_key.eq(Mux(was_of_verdict, partition.p_key, inspection.wrong.p_key)),
            wrong.port.eq(Mux(was_of_verdict, port, inspection.wrong.port)),
            self.p_key_violations.of_copy.eq(inspection.rejected_at),
        ]
        at = Mux(self.admission.xmit_constraint, output, self.routing.input)
        m.d.sync += [
            was_of_verdict.eq(of_verdict),
            port.eq(at + 1),
            self.p_key_violations.of_verdict.eq(Mux(of_verdict, 1 << at, 0)),
        ]
