"""The channel adapter: a port with a packet interface (docs/pipeline.md, section 9)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.adapter.adapter_registers import AdapterRegisters
from rtl.adapter.host_receive import RECEIVE_KINDS, HostReceive, HostWordSignature
from rtl.adapter.host_send import SEND_KINDS, HostSend, HostStreamSignature
from rtl.debug.trace import TraceSignature
from rtl.link.port import PORT_KINDS, LinkPort
from rtl.link.row import RowSignature
from rtl.management.bus import BusSignature
from rtl.switch.crossbar import CrossbarOutput
from rtl.switch.matcher import Matcher
from rtl.switch.node_bus import BUS_KINDS, NodeBus
from rtl.switch.output import Output
from rtl.switch.store import PacketStore
from wire.codes import VL15
from wire.parameters import AdapterParameters
from wire.trace import Kind, Verdict

__all__ = ["Adapter"]


class Adapter(wiring.Component):
    """An adapter: what the host offers goes to the link, what the link brings goes to the host.

    Members:
        rx, tx: rows from and to the wires; `up` says that the link is up.
        bus: the register bus.
        send: the host's streams, of each slot.
        recv: words to the host; `recv_stall` is the mask of slots from which it takes none.
        trace: records, slots as in `trace_slots`.

    Attributes:
        trace_slots: (port, kind) of each slot of the trace.
    """

    def __init__(self, parameters: AdapterParameters) -> None:
        self.parameters = parameters
        slots = parameters.vls + 1
        self.trace_slots: list[tuple[int, Kind]] = [(0, kind) for kind in BUS_KINDS]
        self.trace_slots += [(1, kind) for kind in (*PORT_KINDS, *SEND_KINDS, *RECEIVE_KINDS)]
        super().__init__(
            {
                "rx": In(RowSignature()),
                "tx": Out(RowSignature()),
                "up": In(1),
                "bus": In(BusSignature()),
                "send": Out(HostStreamSignature()).array(slots),
                "recv": Out(HostWordSignature()),
                "recv_stall": In(slots),
                "trace": Out(TraceSignature(len(self.trace_slots))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Port, link to host, host to link, registers."""
        m = Module()
        parameters = self.parameters
        vls = parameters.vls
        phase = Signal(2)
        m.d.sync += phase.eq(phase + 1)

        m.submodules.port = port = LinkPort("adapter", vls, parameters.mtu)
        connect(m, flipped(self.rx), port.rx)
        connect(m, port.tx, flipped(self.tx))
        m.d.comb += [port.phase.eq(phase), port.up.eq(self.up)]

        # Link to host. Only whole and good packets join a queue.
        m.submodules.received = received = PacketStore([parameters.receive_blocks] * vls + [parameters.vl15_blocks], 1)
        header, arrived = port.header, port.write
        ended = arrived.valid & arrived.last & arrived.accepted
        no_room = Signal()
        m.d.comb += [
            no_room.eq(
                Cat((header.slot == slot) & (header.need > received.free[slot]) for slot in range(vls + 1)).any()
            ),
            received.phase.eq(phase),
            received.write.eq(arrived),
            received.accept.eq(port.accept),
            received.accept_slot.eq(arrived.slot),
            received.accept_need.eq(arrived.need),
            received.cancel.eq(ended & arrived.bad),
            received.join.eq(ended & ~arrived.bad),
            received.packet.pool.eq(arrived.slot),
            received.packet.words.eq(arrived.n),
            received.packet.need.eq(arrived.need),
            received.packet.slot.eq(arrived.slot),
            received.wide.eq(1),
        ]
        m.d.sync += [
            port.refused.eq(no_room),
            port.relay.eq(Mux(no_room, Mux(header.vl == VL15, Verdict.VL15_DROPPED, Verdict.OVERRUN), Verdict.GOOD)),
        ]
        m.d.comb += [port.free[vl].eq(received.free[vl]) for vl in range(vls)]

        # The host takes packets without credits, but for the slots that it stalls.
        m.submodules.to_host = to_host = Matcher(1, 1, vls)
        m.submodules.to_host_rows = to_host_rows = CrossbarOutput(1, 1)
        m.submodules.host_receive = host_receive = HostReceive()
        m.d.comb += [
            received.facts[0].swallow.eq(~0),
            to_host.inputs_available.eq(received.available),
            to_host.outputs_available.eq(~received.holds),
            received.grant_output.eq(to_host.output_of[0]),
            received.grant_slots.eq(to_host.slot_of),
            received.granted.eq(to_host.matched),
            to_host_rows.packets[0].eq(received.packets[0]),
            to_host_rows.to_here.eq(received.to_output[0]),
            to_host_rows.rows[0].eq(received.rows[0]),
            host_receive.row.eq(to_host_rows.send),
        ]
        for slot in range(vls + 1):
            m.d.comb += to_host.requests[0][slot].eq(received.requests[slot] & ~self.recv_stall[slot])
        connect(m, host_receive.words, flipped(self.recv))

        # Host to link. A packet joins its queue when its last word has been taken.
        m.submodules.host_send = host_send = HostSend(vls)
        m.submodules.posted = posted = PacketStore([parameters.send_blocks] * vls + [parameters.vl15_blocks], 1)
        for slot in range(vls + 1):
            connect(m, host_send.streams[slot], flipped(self.send[slot]))
        taken = host_send.write
        oversize = Signal()
        with m.If(taken.valid & taken.first):
            m.d.sync += oversize.eq(taken.n > port.max_words)
        m.d.comb += [
            host_send.free.eq(posted.free),
            posted.phase.eq(phase),
            posted.write.eq(taken),
            posted.accept.eq(host_send.accept),
            posted.accept_slot.eq(host_send.accept_slot),
            posted.accept_need.eq(host_send.accept_need),
            posted.join.eq(taken.valid & taken.last),
            posted.packet.pool.eq(taken.slot),
            posted.packet.words.eq(taken.n),
            posted.packet.need.eq(taken.need),
            posted.packet.oversize.eq(oversize),
            posted.packet.slot.eq(taken.slot),
            posted.wide.eq(port.wide),
        ]

        m.submodules.output = output = Output(vls)
        m.submodules.to_link = to_link = Matcher(1, 1, vls)
        m.submodules.to_link_rows = to_link_rows = CrossbarOutput(1, 1)
        m.d.comb += [
            output.phase.eq(phase),
            output.state.eq(port.state),
            output.operational.eq(port.operational),
            output.wide.eq(port.wide),
            output.cl.eq(port.cl),
            output.tbs.eq(port.tbs),
            output.held.eq(posted.holds),
            output.busy.eq(posted.busy),
            output.head.eq(posted.heads),
            output.flow_control.eq(to_link.flow_control),
            posted.facts[0].eq(output.facts),
            to_link.requests[0].eq(posted.requests),
            to_link.inputs_available.eq(posted.available),
            to_link.outputs_available.eq(output.available),
            to_link.urgent.eq(port.fcp_urgent),
            to_link.changed.eq(port.fcp_changed),
            posted.grant_output.eq(to_link.output_of[0]),
            posted.grant_slots.eq(to_link.slot_of),
            posted.granted.eq(to_link.matched),
            port.fcp_grant.eq(to_link.flow_control),
            port.waiting.eq(output.waiting),
            to_link_rows.packets[0].eq(posted.packets[0]),
            to_link_rows.to_here.eq(posted.to_output[0]),
            to_link_rows.rows[0].eq(posted.rows[0]),
            port.send.eq(to_link_rows.send),
        ]

        # Registers.
        m.submodules.bus = bus = NodeBus()
        m.submodules.registers = registers = AdapterRegisters()
        connect(m, flipped(self.bus), bus.bus)
        access = bus.access
        m.d.comb += [
            registers.access.select.eq(access.page == 0),
            registers.access.write.eq(access.write),
            registers.access.read.eq(access.read),
            registers.access.offset.eq(access.offset),
            registers.access.wdata.eq(access.wdata),
            port.reg.eq(registers.access),
            port.reg.select.eq(access.page == 1),
            port.lid.eq(registers.lid),
            port.lmc.eq(registers.lmc),
            bus.answer.eq(registers.rdata | port.reg_rdata),
        ]

        # Trace: each part's slots one after the other.
        place = 0
        for part in (bus.trace, port.trace, host_send.trace, host_receive.trace):
            for slot in range(len(part.valid)):
                m.d.comb += [
                    self.trace.valid[place].eq(part.valid[slot]),
                    self.trace.payload[place].eq(part.payload[slot]),
                ]
                place += 1
        return m
