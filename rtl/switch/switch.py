"""The switch (docs/architecture.md)."""

from typing import Final

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.connect import connect_inputs
from rtl.crossing.crossbar import Crossbar
from rtl.crossing.matcher import Matcher
from rtl.crossing.output import Output
from rtl.crossing.store import PacketStore
from rtl.link.port import PORT_KINDS, LinkPort
from rtl.link.row import RowSignature
from rtl.management.agent_port import AGENT_KINDS, AgentPort, agent_pools, connect_agent
from rtl.management.identity import IdentitySignature
from rtl.management.mad_packet import MAD_BLOCKS
from rtl.registers.bus import BusSignature
from rtl.registers.node_bus import BUS_KINDS, NodeBus
from rtl.rotation import any_of
from rtl.switch.forwarding_table import (
    ForwardingTable,
    destination_layout,
    destination_of,
    forwarding_write_layout,
)
from rtl.switch.input import Input
from rtl.switch.switch_registers import SwitchRegisters
from rtl.trace import TraceSignature
from wire.forwarding_tables import LFT_NO_ROUTE, LINEAR_FORWARDING_TABLE
from wire.parameters import SwitchParameters
from wire.registers import LFT_PAGE, SL_TO_VL_PAGE
from wire.trace import Kind

__all__ = ["Switch"]

_SWITCH_PORT_KINDS: Final = tuple(sorted({*PORT_KINDS, Kind.SCRAP}))
_LFT_ENTRY_BITS: Final = LINEAR_FORWARDING_TABLE.entry.width
_PORT_0_KINDS: Final = tuple(sorted({*BUS_KINDS, *AGENT_KINDS, Kind.SCRAP}))


class Switch(wiring.Component):
    """A switch of ports 1..P, and port 0 for its management.

    Members:
        rx, tx: rows from and to the wires of port i + 1; `up`: bit i says that its link is up, `polling` that it
            wants it to be.
        bus: the register bus.
        identity: what management calls it.
        trace: records, slots as in `trace_slots`.

    Attributes:
        trace_slots: (port, kind) of each slot of the trace.
    """

    def __init__(self, parameters: SwitchParameters) -> None:
        self.parameters = parameters
        ports = parameters.ports
        self.trace_slots: list[tuple[int, Kind]] = [(0, kind) for kind in _PORT_0_KINDS]
        for port in range(1, ports + 1):
            self.trace_slots += [(port, kind) for kind in _SWITCH_PORT_KINDS]
        super().__init__(
            {
                "rx": In(RowSignature()).array(ports),
                "tx": Out(RowSignature()).array(ports),
                "up": In(ports),
                "polling": Out(ports),
                "bus": In(BusSignature()),
                "identity": In(IdentitySignature()),
                "trace": Out(TraceSignature(len(self.trace_slots))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Ports, inputs, matcher, crossbar, outputs, agent, registers."""
        m = Module()
        parameters = self.parameters
        vls = parameters.vls
        numbers = range(parameters.ports)
        ports = [LinkPort("switch", vls, parameters.mtu) for _ in numbers]
        inputs = [Input(parameters) for _ in numbers]
        outputs = [Output(vls) for _ in numbers]
        for i in numbers:
            m.submodules[f"port_{i}"] = ports[i]
            m.submodules[f"input_{i}"] = inputs[i]
            m.submodules[f"output_{i}"] = outputs[i]

        phase = Signal(2)
        m.d.sync += phase.eq(phase + 1)

        # Wires to inputs.
        for i, (port, side) in enumerate(zip(ports, inputs, strict=True)):
            connect(m, flipped(self.rx[i]), port.rx)
            connect(m, port.tx, flipped(self.tx[i]))
            m.d.comb += [
                port.phase.eq(phase),
                port.up.eq(self.up[i]),
                self.polling[i].eq(port.polling),
                side.port.eq(i + 1),
                side.phase.eq(phase),
                side.own_wide.eq(port.wide),
                side.lookup_dlid.eq(port.lookup_dlid),
                side.header.eq(port.header),
                port.relay.eq(side.relay),
                port.refused.eq(side.refused),
                side.acceptable.eq(port.acceptable),
                side.write.eq(port.write),
            ]
            m.d.comb += [port.free[vl].eq(side.free[vl]) for vl in range(vls)]
            for o, (other, output) in enumerate(zip(ports, outputs, strict=True)):
                m.d.comb += [
                    side.route_facts[o].operational.eq(other.operational),
                    side.route_facts[o].mtu.eq(other.neighbor_mtu),
                    side.route_facts[o].wide.eq(other.wide),
                    side.send_facts[o].eq(output.facts),
                ]

        # The last input and output are the agent's.
        crossed = parameters.ports + 1
        m.submodules.agent_port = agent_port = AgentPort(parameters, crossed)
        m.submodules.agent_store = agent_store = PacketStore(
            agent_pools(parameters), crossed, parameters.ports, need=MAD_BLOCKS
        )
        connect_agent(m, agent_port, agent_store)
        connect(m, flipped(self.identity), agent_port.identity)
        m.d.comb += [
            agent_port.state_reported.eq(Cat(port.state_reported for port in ports).any()),
            agent_store.phase.eq(phase),
            agent_store.wide.eq(Cat(*(port.wide for port in ports), 1)),
        ]
        m.d.comb += [agent_store.facts[o].eq(output.facts) for o, output in enumerate(outputs)]

        # Inputs to outputs.
        sides: list[Input | PacketStore] = [*inputs, agent_store]
        m.submodules.matcher = matcher = Matcher(crossed, crossed, vls)
        m.submodules.crossbar = crossbar = Crossbar([*(parameters.readers for _ in numbers), 1], crossed, vls)
        connect_inputs(m, sides, matcher, crossbar)
        m.d.comb += [matcher.requests[i].eq(side.requests) for i, side in enumerate(sides)]
        m.d.comb += [
            matcher.outputs_available.eq(Cat(*(output.available for output in outputs), agent_port.available)),
            matcher.urgent.eq(Cat(port.fcp_urgent for port in ports)),
            matcher.changed.eq(Cat(port.fcp_changed for port in ports)),
            agent_port.send.eq(crossbar.sends[-1]),
            agent_port.scrapped.eq(crossbar.scrapped[-1].valid),
        ]
        held = Signal(crossed)
        busy = Signal(crossed)
        heads = Signal(crossed)
        m.d.comb += [
            held.eq(any_of(side.holds for side in sides)),
            busy.eq(any_of(side.busy for side in sides)),
            heads.eq(any_of(side.heads for side in sides)),
            agent_port.taken.eq(held[-1]),
        ]

        # Outputs to wires.
        for o, (port, output) in enumerate(zip(ports, outputs, strict=True)):
            m.d.comb += [
                output.phase.eq(phase),
                output.state.eq(port.state),
                output.operational.eq(port.operational),
                output.wide.eq(port.wide),
                output.wide_follows.eq(port.wide_follows),
                output.cl.eq(port.cl),
                output.tbs.eq(port.tbs),
                output.held.eq(held[o]),
                output.busy.eq(busy[o]),
                output.head.eq(heads[o]),
                output.flow_control.eq(matcher.flow_control[o]),
                port.fcp_grant.eq(matcher.flow_control[o]),
                port.send.eq(crossbar.sends[o]),
                port.waiting.eq(output.waiting),
            ]

        # Registers and tables.
        m.submodules.bus = bus = NodeBus()
        m.submodules.registers = registers = SwitchRegisters(parameters.ports, parameters.lft_size)
        connect(m, flipped(self.bus), bus.bus)
        connect(m, agent_port.bus, bus.agent)
        m.d.comb += [agent_port.hold.eq(bus.hold), agent_port.lease_second.eq(registers.lease_second)]
        access = bus.access

        # The bus has a copy of the LFT to itself, which keeps the entries as they are written.
        m.submodules.forwarding = forwarding = ForwardingTable(parameters.lft_size, _LFT_ENTRY_BITS, LFT_NO_ROUTE)
        forwarding_write = Signal(forwarding_write_layout(destination_layout(parameters.ports)))
        of_forwarding = Signal()
        reading_forwarding = Signal(2)
        m.d.comb += [
            of_forwarding.eq((access.page == LFT_PAGE) & (access.offset < parameters.lft_size)),
            forwarding.write.valid.eq(of_forwarding & access.write & (access.wdata[_LFT_ENTRY_BITS:] == 0)),
            forwarding.write.lid.eq(access.offset),
            forwarding.write.entry.eq(access.wdata),
            forwarding_write.valid.eq(forwarding.write.valid),
            forwarding_write.lid.eq(forwarding.write.lid),
            forwarding_write.entry.eq(destination_of(forwarding.write.entry, parameters.ports)),
        ]
        m.d.sync += [
            forwarding.lid.eq(access.offset),
            reading_forwarding.eq(Cat(of_forwarding & access.read, reading_forwarding[0])),
        ]

        m.d.comb += [
            registers.access.select.eq(access.page == 0),
            registers.access.write.eq(access.write),
            registers.access.read.eq(access.read),
            registers.access.offset.eq(access.offset),
            registers.access.wdata.eq(access.wdata),
        ]
        for i, (port, side) in enumerate(zip(ports, inputs, strict=True)):
            small = access.wdata[4:] == 0
            m.d.comb += [
                port.reg.eq(registers.access),
                port.reg.select.eq(access.page == i + 1),
                side.forwarding_top.eq(registers.forwarding_top),
                side.forwarding_write.eq(forwarding_write),
                side.sl_to_vl.select.eq(access.page == SL_TO_VL_PAGE + i),
                side.sl_to_vl.write.eq(access.write & small),
                side.sl_to_vl.read.eq(access.read),
                side.sl_to_vl.offset.eq(access.offset),
                side.sl_to_vl.vl.eq(access.wdata),
            ]
        m.d.comb += bus.answer.eq(
            any_of(
                [
                    registers.rdata,
                    forwarding.entry & reading_forwarding[1].replicate(_LFT_ENTRY_BITS),
                    *(port.reg_rdata for port in ports),
                    *(side.sl_to_vl_rdata for side in inputs),
                ]
            )
        )

        # Trace: port by port in the order of kinds, a scrapped packet at its output.
        slots = {(0, kind): (bus.trace, slot) for slot, kind in enumerate(BUS_KINDS)}
        slots |= {(0, kind): (agent_port.trace, slot) for slot, kind in enumerate(AGENT_KINDS)}
        for number, port in enumerate(ports, start=1):
            slots |= {(number, kind): (port.trace, slot) for slot, kind in enumerate(PORT_KINDS)}
        for slot, (number, kind) in enumerate(self.trace_slots):
            record = self.trace.payload[slot]
            if kind == Kind.SCRAP:
                scrapped = crossbar.scrapped[(number - 1) % crossed]
                m.d.comb += [
                    self.trace.valid[slot].eq(scrapped.valid),
                    record[0].eq(scrapped.slot | scrapped.input << 16),
                    record[1].eq(scrapped.n),
                ]
            else:
                trace, place = slots[number, kind]
                m.d.comb += [
                    self.trace.valid[slot].eq(trace.valid[place]),
                    record.eq(trace.payload[place]),
                ]
        return m
