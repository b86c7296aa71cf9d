"""The switch (docs/architecture.md)."""

from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.connect import connect_congestion, connect_crossing
from rtl.crossing.others import turned
from rtl.crossing.time_limits import LifeTime
from rtl.link.port import PORT_KINDS, LinkPort
from rtl.link.row import RowSignature
from rtl.management.agent_port import AGENT_KINDS, AgentPort, add_agent, agent_pools
from rtl.management.attribute_memory import AttributeMap
from rtl.management.identity import IdentitySignature
from rtl.management.told_events import WrongPKey
from rtl.registers.bus import BUS_KINDS, BusSignature, NodeBus, of_page
from rtl.registers.node_registers import NodeRegisters
from rtl.registers.port_access import PortDecoder
from rtl.restoration import add_lasting_reset
from rtl.rotation import any_of, how_many, lowest, select
from rtl.switch.congestion_log import CongestionLog
from rtl.switch.congestion_registers import CongestionRegisters
from rtl.switch.input import Input, input_pools
from rtl.switch.multicast import default_ports_layout, multicast_written, output_named
from rtl.switch.p_key_turns import PKeyTurns, p_key_words
from rtl.switch.route import port_facts_layout
from rtl.switch.routing_tables import routing_words
from rtl.switch.tables import (
    ForwardingTable,
    destination_layout,
    destination_of,
    forwarding_write_layout,
)
from rtl.trace import TraceSignature, gather, report
from rtl.widths import LIFE_BITS, SL_BITS, VL_BITS
from wire.codes import LID_MULTICAST_MAX
from wire.forwarding_tables import LFT_NO_ROUTE, LINEAR_FORWARDING_TABLE
from wire.parameters import SwitchParameters
from wire.registers import CONGESTION_PAGE, LFT_PAGE, SL_TO_VL_PAGE, NodeRegister
from wire.time_limits import NO_LIMIT
from wire.trace import Kind
from wire.trace_layout import Scrap

__all__ = ["Switch", "restoration_cycles"]

_SWITCH_PORT_KINDS: Final = tuple(sorted({*PORT_KINDS, Kind.SCRAP}))
_LFT_ENTRY_BITS: Final = LINEAR_FORWARDING_TABLE.entry.width
_PORT_0_KINDS: Final = tuple(sorted({*BUS_KINDS, *AGENT_KINDS, Kind.SCRAP}))


def restoration_cycles(parameters: SwitchParameters) -> int:
    """Words of the deepest memory that a reset restores."""
    stores = (input_pools(parameters), agent_pools(parameters))
    buffers = [sum(pools) + len(pools) for pools in stores]
    tables = routing_words(parameters.lft_size, parameters.mft_size), p_key_words(parameters.ports)
    return max(*buffers, *tables, len(AttributeMap(parameters).init))


class Switch(wiring.Component):
    """A switch of ports 1..P, and port 0 for its management.

    Members:
        rx, tx: rows from and to the wires of port i + 1; `up`: bit i says that its link is up, `narrow` that it came up
            as 1X, `offers_1x` and `offers_4x` with which widths it may.
        bus: the register bus.
        identity: what management calls it.
        trace: records, slots as in `trace_slots`.
        clk, rst, resetting: if it is alone, clock and reset, and what is made of the latter: when it ends, the switch
            is as at power-up.

    Args:
        alone: it has a clock and a reset of its own, not those of what it is a part of.

    Attributes:
        trace_slots: (port, kind) of each slot of the trace.
    """

    def __init__(self, parameters: SwitchParameters, *, alone: bool = False) -> None:
        self.parameters = parameters
        self._alone = alone
        ports = parameters.ports
        self.trace_slots: list[tuple[int, Kind]] = [(0, kind) for kind in _PORT_0_KINDS]
        for port in range(1, ports + 1):
            self.trace_slots += [(port, kind) for kind in _SWITCH_PORT_KINDS]
        super().__init__(
            {
                "rx": In(RowSignature).array(ports),
                "tx": Out(RowSignature).array(ports),
                "up": In(ports),
                "narrow": In(ports),
                "offers_1x": Out(ports),
                "offers_4x": Out(ports),
                "bus": In(BusSignature),
                "identity": In(IdentitySignature(is_switch=True)),
                "trace": Out(TraceSignature(len(self.trace_slots))),
                **({"clk": In(1), "rst": In(1), "resetting": Out(1)} if alone else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Rows in, inputs, crossing, rows out; agent, registers, trace."""
        m = Module()
        parameters = self.parameters
        if self._alone:
            add_lasting_reset(m, self.clk, self.rst, self.resetting, restoration_cycles(parameters))
        ports = [
            LinkPort("switch", parameters.vls, parameters.mtu, parameters.buffer_blocks, parameters.ports - 1)
            for _ in range(parameters.ports)
        ]
        inputs = [Input(parameters) for _ in ports]

        # From the wires to the inputs, and back to the wires.
        # Inputs have registers of their own for what routing must know of the outputs, which may be a switch apart.
        facts = Signal(data.ArrayLayout(port_facts_layout(parameters.vls), len(ports)))
        constraints = turned([side.xmit_constraint for side in inputs], len(ports))
        of_copies = turned([side.p_key_violations.of_copy for side in inputs], len(ports))
        for i, (port, side) in enumerate(zip(ports, inputs, strict=True)):
            m.submodules[f"port_{i}"] = port
            m.submodules[f"input_{i}"] = side
            connect(m, flipped(self.rx[i]), port.rx)
            connect(m, port.admission, side.admission)
            connect(m, port.tx, flipped(self.tx[i]))
            m.d.comb += [
                port.up.eq(self.up[i]),
                port.narrow.eq(self.narrow[i]),
                Cat(self.offers_1x[i], self.offers_4x[i]).eq(port.offers),
                side.routing.input.eq(i),
                side.routing.lookup_dlid.eq(port.lookup_dlid),
                side.routing.concerned.eq(port.concerned),
                side.routing.own_wide_follows.eq(port.sending.wide_follows),
                side.routing.inbound.eq(port.partition.inbound),
                side.routing.raw_inbound.eq(port.partition.raw_inbound),
                side.routing.outputs.eq(facts),
                facts[i].operational.eq(port.follows.operational),
                facts[i].mtu.eq(port.follows.neighbor_mtu),
                facts[i].wide.eq(port.cable_is_wide),
                facts[i].outbound.eq(port.follows.partition.outbound),
                facts[i].raw_outbound.eq(port.follows.partition.raw_outbound),
                port.xmit_constraints.eq(how_many(constraints[i])),
                port.p_key_violations.eq(
                    how_many([*(other.p_key_violations.of_verdict[i] for other in inputs), *of_copies[i]])
                ),
            ]
            m.d.comb += [port.free[vl].eq(side.free[vl]) for vl in range(parameters.vls)]

        agent_port, agent_store = add_agent(m, self, len(ports), len(ports))
        m.d.comb += [
            agent_port.node_state.state_reported.eq(Cat(port.state_reported for port in ports).any()),
            Cat(port.icrc_error for port in ports).eq(agent_port.icrc_errors),
        ]
        self._tell_of_p_keys(m, inputs, agent_port)

        # From inputs to outputs, in time.
        m.submodules.life_time = life_time = LifeTime()
        crossing = [*(side.crossing for side in inputs), agent_store.crossing]
        crossbar = connect_crossing(m, crossing, ports, [agent_port.sink], life=life_time.limit)
        m.d.comb += [side.clock_follows.eq(life_time.clock_follows) for side in inputs]
        m.submodules.congestion_registers = congestion_registers = CongestionRegisters(len(ports))
        m.submodules.congestion_log = congestion_log = CongestionLog(len(ports))
        connect_congestion(m, parameters, crossing, ports, congestion_registers.marking)
        m.d.comb += [congestion_log.marked[i].eq(port.congestion.marked) for i, port in enumerate(ports)]

        m.submodules.bus = bus = NodeBus()
        connect(m, flipped(self.bus), bus.bus)
        connect(m, agent_port.bus, bus.agent)
        m.d.comb += agent_port.hold.eq(bus.hold)
        registers = self._connect_registers(m, bus, ports, inputs, agent_port)
        m.d.comb += [
            life_time.exponent.eq(registers.life_time),
            life_time.exponent_follows.eq(registers.follows.life_time),
            life_time.changed.eq(registers.changed.life_time),
        ]

        # Trace: port by port in the order of kinds, a scrapped packet at its output.
        crossed = len(crossing)
        scraps = TraceSignature(crossed).create(path=("scraps",))
        for output, scrapped in enumerate(crossbar.scrapped):
            fields = {"slot": scrapped.slot, "input": scrapped.input, "pkt_len": scrapped.n}
            report(m, scraps, output, scrapped.valid, Scrap, **fields)
        slots = {(0, kind): (bus.trace, slot) for slot, kind in enumerate(BUS_KINDS)}
        slots |= {(0, kind): (agent_port.trace, slot) for slot, kind in enumerate(AGENT_KINDS)}
        for number, port in enumerate(ports, start=1):
            slots |= {(number, kind): (port.trace, slot) for slot, kind in enumerate(PORT_KINDS)}
        slots |= {(number, Kind.SCRAP): (scraps, (number - 1) % crossed) for number in range(crossed)}
        gather(m, self.trace, (slots[slot] for slot in self.trace_slots))
        return m

    def _tell_of_p_keys(self, m: Module, inputs: list[Input], agent_port: AgentPort) -> None:
        """That a port rejects one is known at once; what is told of it, of the first such port, in the next cycle but
        one: inputs are all over the switch, and what some of them tell waits on its way."""
        rejects, told = Cat(side.wrong_p_key.valid for side in inputs), agent_port.node_state.wrong_p_key
        first = Signal(len(inputs))
        m.d.sync += first.eq(lowest(m, rejects))
        halfway = []
        for start in range(0, len(inputs), 2):
            of_some = Signal(WrongPKey, name=f"told_from_{start}", reset_less=True)
            some = [side.wrong_p_key for side in inputs[start : start + 2]]
            m.d.sync += of_some.eq(select(first[start : start + 2], some))
            halfway.append(Value.cast(of_some))
        m.d.comb += [told.eq(any_of(halfway)), told.valid.eq(rejects.any())]

    def _tell_of_lids(self, m: Module, bus: NodeBus, registers: NodeRegisters, inputs: list[Input]) -> None:
        """What registers say of LIDs, to the inputs, which are far: a cycle ahead.

        Of multicast packets it is kept as routing takes it, which has no time to find it out.
        """
        count, given, written = len(inputs), bus.given, registers.written
        lid, port, is_0 = bus.access.wdata[:16], bus.access.wdata[:_LFT_ENTRY_BITS], Signal()
        m.d.sync += is_0.eq(given.wdata[: len(lid)] == 0)
        top, top_follows = (Signal(16, init=LID_MULTICAST_MAX, name=name) for name in ("top", "top_follows"))
        default, follows = (Signal(default_ports_layout(count), name=name) for name in ("default", "default_follows"))
        m.d.comb += [top_follows.eq(top), follows.eq(default)]
        with m.If(written.multicast_fdb_top):
            m.d.comb += top_follows.eq(Mux(is_0, LID_MULTICAST_MAX, lid))
        with m.If(written.default_multicast_primary):
            m.d.comb += follows.primary.eq(output_named(port, count))
        with m.If(written.default_multicast_not_primary):
            m.d.comb += follows.not_primary.eq(output_named(port, count))
        m.d.sync += [top.eq(top_follows), default.eq(follows)]
        for i, side in enumerate(inputs):
            missed = Mux(follows.primary[i], follows.not_primary, follows.primary)
            m.d.comb += [
                side.routing.forwarding_top.eq(registers.follows.linear_fdb_top),
                side.routing.multicast.top.eq(top_follows),
                side.routing.multicast.missed.eq(missed),
            ]

    def _connect_registers(
        self, m: Module, bus: NodeBus, ports: list[LinkPort], inputs: list[Input], agent_port: AgentPort
    ) -> NodeRegisters:
        """Registers and tables, with what they show to inputs and agent."""
        count, lft_size, given, access = len(ports), self.parameters.lft_size, bus.given, bus.access
        others = {
            NodeRegister.LINEAR_FDB_TOP: (16, lft_size - 1),
            NodeRegister.LIFE_TIME: (LIFE_BITS, NO_LIMIT),
            NodeRegister.MULTICAST_FDB_TOP: (16, 0),
            NodeRegister.DEFAULT_MULTICAST_PRIMARY: (_LFT_ENTRY_BITS, LFT_NO_ROUTE),
            NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY: (_LFT_ENTRY_BITS, LFT_NO_ROUTE),
        }
        m.submodules.registers = registers = NodeRegisters(count, others)
        m.d.comb += [
            registers.given.eq(of_page(bus.given, 0)),
            agent_port.lease_second.eq(registers.lease_second),
        ]

        self._tell_of_lids(m, bus, registers, inputs)

        # The bus has a copy of the LFT to itself, which keeps the entries as they are written.
        m.submodules.forwarding = forwarding = ForwardingTable(lft_size, _LFT_ENTRY_BITS, LFT_NO_ROUTE)
        forwarding_write = Signal(forwarding_write_layout(destination_layout(count)))
        of_forwarding = Signal()
        writing_forwarding, reading_forwarding = Signal(), Signal(3)
        m.d.comb += [
            of_forwarding.eq((given.page == LFT_PAGE) & (given.offset < lft_size)),
            forwarding.write.valid.eq(writing_forwarding),
            forwarding.write.lid.eq(access.offset),
            forwarding.write.entry.eq(access.wdata),
            forwarding_write.valid.eq(forwarding.write.valid),
            forwarding_write.lid.eq(forwarding.write.lid),
            forwarding_write.entry.eq(destination_of(forwarding.write.entry, count)),
        ]
        m.d.sync += [
            forwarding.lid.eq(access.offset),
            writing_forwarding.eq(of_forwarding & given.write & (given.wdata[_LFT_ENTRY_BITS:] == 0)),
            reading_forwarding.eq(Cat(of_forwarding & given.read, reading_forwarding[:-1])),
        ]
        m.submodules.p_key_turns = p_key_turns = PKeyTurns(count)
        m.d.comb += p_key_turns.access.eq(access)
        multicast_write = multicast_written(m, access, count, self.parameters.mft_size)

        m.submodules.port_decoder = decoder = PortDecoder(count, self.parameters.vls, self.parameters.mtu)
        m.d.comb += decoder.given.eq(given)

        # The inputs' tables are far: which one an access is for, and which output, is known with it.
        addressed = Signal(count)
        writing_vl, reading_vl = Signal(count), Signal(count)
        is_vl = given.wdata[VL_BITS:] == 0
        of_tables = Cat(given.page == SL_TO_VL_PAGE + i for i in range(count))
        m.d.sync += [
            addressed.eq(Cat(given.offset[SL_BITS:] == output + 1 for output in range(count))),
            writing_vl.eq(Mux(given.write & is_vl, of_tables, 0)),
            reading_vl.eq(Mux(given.read, of_tables, 0)),
        ]
        for i, (port, side) in enumerate(zip(ports, inputs, strict=True)):
            routing = side.routing
            m.d.comb += [
                side.p_key_change.eq(p_key_turns.change),
                port.reg.eq(decoder.reg[i]),
                routing.forwarding_write.eq(forwarding_write),
                routing.multicast_write.eq(multicast_write),
                routing.sl_to_vl.write.eq(writing_vl[i]),
                routing.sl_to_vl.read.eq(reading_vl[i]),
                routing.sl_to_vl.outputs.eq(addressed),
                routing.sl_to_vl.sl.eq(access.offset),
                routing.sl_to_vl.vl.eq(access.wdata),
            ]
        congestion = [m.submodules.congestion_registers, m.submodules.congestion_log]
        of_congestion = of_page(access, CONGESTION_PAGE)
        m.d.comb += [part.access.eq(of_congestion) for part in congestion]
        m.d.comb += agent_port.congestion.eq(of_congestion)
        m.d.comb += bus.answer.eq(
            any_of(
                [
                    registers.rdata,
                    agent_port.congestion_rdata,
                    *(part.rdata for part in congestion),
                    forwarding.entry & reading_forwarding[-1].replicate(_LFT_ENTRY_BITS),
                    *(port.reg_rdata for port in ports),
                    *(side.routing.sl_to_vl_rdata for side in inputs),
                ]
            )
        )
        return registers
