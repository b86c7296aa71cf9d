"""The channel adapter: a port with a packet interface (docs/pipeline.md, section 9)."""

from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.adapter.adapter_registers import AdapterRegisters
from rtl.adapter.mad_check import MadCheck
from rtl.adapter.own_lid import OwnLid
from rtl.crossing.connect import connect_inputs
from rtl.crossing.crossbar import Crossbar
from rtl.crossing.matcher import Matcher
from rtl.crossing.output import Output
from rtl.crossing.rows_to_words import RECEIVE_KINDS, HostReceive, HostWordSignature
from rtl.crossing.store import PacketStore
from rtl.crossing.words_to_rows import SEND_KINDS, HostSend, HostStreamSignature
from rtl.link.port import PORT_KINDS, LinkPort
from rtl.link.row import RowSignature
from rtl.management.agent_port import AGENT_KINDS, AgentPort, agent_pools, connect_agent
from rtl.management.identity import IdentitySignature
from rtl.registers.bus import BusSignature
from rtl.registers.node_bus import BUS_KINDS, NodeBus
from rtl.rotation import any_of
from rtl.trace import TraceSignature
from wire.codes import VL15, PortState
from wire.parameters import AdapterParameters
from wire.trace import Kind, Verdict

__all__ = ["Adapter"]

# Inputs and outputs of the crossing.
_LINK: Final = 0
_HOST: Final = 1
_AGENT: Final = 2
_CROSSED: Final = 3
_CREDITED: Final = 1


class Adapter(wiring.Component):
    """An adapter: what the host offers goes to the link, what the link brings to the host, management to the agent.

    Members:
        rx, tx: rows from and to the wires; `up` says that the link is up, `polling` that the port wants it to be.
        bus: the register bus.
        identity: what management calls it.
        send: the host's streams, of each slot.
        recv: words to the host; `recv_stall` is the mask of slots from which it takes none.
        host_sm: the host has a Subnet Manager.
        trace: records, slots as in `trace_slots`.

    Attributes:
        trace_slots: (port, kind) of each slot of the trace.
    """

    def __init__(self, parameters: AdapterParameters) -> None:
        self.parameters = parameters
        slots = parameters.vls + 1
        self.trace_slots: list[tuple[int, Kind]] = [(0, kind) for kind in (*AGENT_KINDS, *BUS_KINDS)]
        self.trace_slots += [(1, kind) for kind in (*PORT_KINDS, *SEND_KINDS, *RECEIVE_KINDS)]
        super().__init__(
            {
                "rx": In(RowSignature()),
                "tx": Out(RowSignature()),
                "up": In(1),
                "polling": Out(1),
                "bus": In(BusSignature()),
                "identity": In(IdentitySignature()),
                "send": Out(HostStreamSignature()).array(slots),
                "recv": Out(HostWordSignature()),
                "recv_stall": In(slots),
                "host_sm": In(1),
                "trace": Out(TraceSignature(len(self.trace_slots))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Port, link, host, agent, what crosses between them, registers."""
        m = Module()
        parameters = self.parameters
        vls = parameters.vls
        phase = Signal(2)
        m.d.sync += phase.eq(phase + 1)

        m.submodules.port = port = LinkPort("adapter", vls, parameters.mtu)
        connect(m, flipped(self.rx), port.rx)
        connect(m, port.tx, flipped(self.tx))
        m.d.comb += [port.phase.eq(phase), port.up.eq(self.up), self.polling.eq(port.polling)]

        # From the link. Only whole and good packets join a queue.
        pools = [parameters.receive_blocks] * vls + [parameters.vl15_blocks]
        m.submodules.received = received = PacketStore(pools, _CROSSED, _CREDITED)
        m.submodules.received_mad = received_mad = MadCheck(vls)
        header, arrived = port.header, port.write
        ended = arrived.valid & arrived.last & arrived.accepted
        no_room = Signal()
        m.d.comb += [
            no_room.eq(
                Cat((header.slot == slot) & (header.need > received.free[slot]) for slot in range(vls + 1)).any()
            ),
            received_mad.row.eq(arrived),
            received.write.eq(arrived),
            received.accept.eq(port.accept),
            received.accept_slot.eq(arrived.slot),
            received.accept_need.eq(arrived.need),
            received.cancel.eq(ended & arrived.bad),
            received.join.eq(ended & ~arrived.bad),
            received.packet.pool.eq(arrived.slot),
            received.packet.words.eq(arrived.n),
            received.packet.need.eq(arrived.need),
            received.packet.output.eq(Mux(received_mad.is_smp | received_mad.is_pma_request, _AGENT, _HOST)),
            received.packet.slot.eq(arrived.slot),
        ]
        m.d.sync += [
            port.refused.eq(no_room),
            port.relay.eq(Mux(no_room, Mux(header.vl == VL15, Verdict.VL15_DROPPED, Verdict.OVERRUN), Verdict.GOOD)),
        ]
        m.d.comb += [port.free[vl].eq(received.free[vl]) for vl in range(vls)]

        # From the host. A packet joins its queue when its last word has been taken.
        pools = [parameters.send_blocks] * vls + [parameters.vl15_blocks]
        m.submodules.host_send = host_send = HostSend(vls)
        m.submodules.posted = posted = PacketStore(pools, _CROSSED, _CREDITED)
        m.submodules.posted_mad = posted_mad = MadCheck(vls)
        m.submodules.own_lid = own_lid = OwnLid()
        for slot in range(vls + 1):
            connect(m, host_send.streams[slot], flipped(self.send[slot]))
        taken = host_send.write
        oversize, to_agent = Signal(), Signal()
        with m.If(taken.valid & taken.first):
            m.d.sync += oversize.eq(taken.n > port.max_words)
        m.d.comb += [
            host_send.free.eq(posted.free),
            posted_mad.row.eq(taken),
            own_lid.row.eq(taken),
            to_agent.eq(posted_mad.is_smp | (posted_mad.is_pma_request & own_lid.own)),
            posted.write.eq(taken),
            posted.accept.eq(host_send.accept),
            posted.accept_slot.eq(host_send.accept_slot),
            posted.accept_need.eq(host_send.accept_need),
            posted.join.eq(taken.valid & taken.last),
            posted.packet.pool.eq(taken.slot),
            posted.packet.words.eq(taken.n),
            posted.packet.need.eq(taken.need),
            posted.packet.oversize.eq(oversize),
            posted.packet.output.eq(Mux(to_agent, _AGENT, _LINK)),
            posted.packet.slot.eq(taken.slot),
        ]

        # From the agent.
        m.submodules.agent_port = agent_port = AgentPort(parameters, _CROSSED)
        m.submodules.agent_store = agent_store = PacketStore(agent_pools(parameters), _CROSSED, _CREDITED)
        connect_agent(m, agent_port, agent_store)
        connect(m, flipped(self.identity), agent_port.identity)
        m.d.comb += [agent_port.active.eq(port.state == PortState.ACTIVE), agent_port.host_sm.eq(self.host_sm)]

        # To link, host and agent. Host and agent take packets without credits, the host not those of slots it stalls.
        m.submodules.output = output = Output(vls)
        m.submodules.matcher = matcher = Matcher(_CROSSED, _CROSSED, vls)
        m.submodules.crossbar = crossbar = Crossbar([1] * _CROSSED, _CROSSED, vls)
        sides = [received, posted, agent_store]
        connect_inputs(m, sides, matcher, crossbar)
        held = Signal(_CROSSED)
        available = {_LINK: output.available, _HOST: ~held[_HOST], _AGENT: agent_port.available}
        for number, side in enumerate(sides):
            m.d.comb += [
                side.phase.eq(phase),
                side.facts[_LINK].eq(output.facts),
                side.wide.eq(Cat(port.wide, 1, 1)),
            ]
            for slot in range(vls + 1):
                taking = Cat(1, ~self.recv_stall[slot] if slot < vls else 1, 1)
                m.d.comb += matcher.requests[number][slot].eq(side.requests[slot] & taking)
        m.d.comb += [
            held.eq(any_of(side.holds for side in sides)),
            matcher.outputs_available.eq(Cat(available[number] for number in range(_CROSSED))),
            matcher.urgent[_LINK].eq(port.fcp_urgent),
            matcher.changed[_LINK].eq(port.fcp_changed),
        ]

        m.d.comb += [
            output.phase.eq(phase),
            output.state.eq(port.state),
            output.operational.eq(port.operational),
            output.wide.eq(port.wide),
            output.wide_follows.eq(port.wide_follows),
            output.cl.eq(port.cl),
            output.tbs.eq(port.tbs),
            output.held.eq(held[_LINK]),
            output.busy.eq(any_of(side.busy for side in sides)[_LINK]),
            output.head.eq(any_of(side.heads for side in sides)[_LINK]),
            output.flow_control.eq(matcher.flow_control[_LINK]),
            port.fcp_grant.eq(matcher.flow_control[_LINK]),
            port.waiting.eq(output.waiting),
            port.send.eq(crossbar.sends[_LINK]),
        ]

        m.submodules.host_receive = host_receive = HostReceive()
        m.d.comb += host_receive.row.eq(crossbar.sends[_HOST])
        connect(m, host_receive.words, flipped(self.recv))

        m.d.comb += [
            agent_port.taken.eq(held[_AGENT]),
            agent_port.send.eq(crossbar.sends[_AGENT]),
        ]

        # Registers.
        m.submodules.bus = bus = NodeBus()
        m.submodules.registers = registers = AdapterRegisters()
        connect(m, flipped(self.bus), bus.bus)
        connect(m, agent_port.bus, bus.agent)
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
            own_lid.lid.eq(registers.lid),
            own_lid.lmc.eq(registers.lmc),
            agent_port.hold.eq(bus.hold),
            agent_port.lease_second.eq(registers.lease_second),
            bus.answer.eq(registers.rdata | port.reg_rdata),
        ]

        # Trace: each part's slots one after the other.
        place = 0
        for part in (agent_port.trace, bus.trace, port.trace, host_send.trace, host_receive.trace):
            for slot in range(len(part.valid)):
                m.d.comb += [
                    self.trace.valid[place].eq(part.valid[slot]),
                    self.trace.payload[place].eq(part.payload[slot]),
                ]
                place += 1
        return m
