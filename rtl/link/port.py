"""A port's link side: everything between its wires and the node's buffers and matcher."""

from typing import Final, Literal

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.link.crc import IcrcCheck, VcrcCheck
from rtl.link.error_thresholds import BufferOverruns, LinkIntegrity
from rtl.link.flow_control import FlowControl
from rtl.link.link_packet import LinkPacketCheck
from rtl.link.lrh import route_field
from rtl.link.packet_check import PacketCheck, PacketHeader, StoreRow
from rtl.link.port_state import PortStateMachine
from rtl.link.receive import Receiver
from rtl.link.row import RowSignature
from rtl.link.transmit import SendRow, Transmitter
from rtl.link.transmit_trace import TransmitTrace
from rtl.link.watchdog import Watchdog
from rtl.link.xmit_wait import XmitWait
from rtl.registers.bus import PortAccess
from rtl.registers.counters import PortCounters
from rtl.registers.port_registers import TIMER_BITS, PortRegisters
from rtl.registers.wide_counters import WideCounters
from rtl.trace import TraceSignature
from rtl.widths import CREDIT_BITS, FREE_BITS, LENGTH_BITS
from wire.codes import VL15, PortState
from wire.flow_control import FlowControlOp
from wire.registers import Counter
from wire.trace import Kind, LinkResult, Verdict

__all__ = ["PORT_KINDS", "LinkPort"]

PORT_KINDS: Final = (Kind.RX_DATA, Kind.RX_FCP, Kind.STATE, Kind.TX_DATA, Kind.TX_FCP, Kind.TX_DISCARD)
"""What slot i of a port's trace holds."""


class LinkPort(wiring.Component):
    """The link side of a switch port or an adapter port.

    h is the cycle of a received packet's row 1, c_e that of its end, g the cycle of a grant, x_r
    that in which row r is read (docs/pipeline.md).

    Args:
        kind: what the port belongs to.
        vls: data VLs.
        mtu: the MTU that the port is built for (MTUCap), in bytes.

    Members:
        rx, tx: the wires.
        up: the physical link is up. `polling`: the port wants it to be.
        phase: the cycle modulo 4.
        lookup_dlid: DLID of the packet whose row 1 is on the wires, in cycle h.
        header: the header in cycle h+1; `acceptable`, in the same cycle, says that the port has no objection to it.
        refused, relay: in cycle h+2, the node has an objection, and which one (section 3.3, rows f to j; 0 for
            none). `accept`, in the same cycle: the packet is accepted, neither objects.
        write: rows to the receive buffer, two cycles after the wires.
        free: free blocks of each data VL's receive buffer, as visible.
        state, operational, wide, wide_follows: the port's state, the mask of its operational data VLs, and whether
            it is 4X, and will be in the next cycle.
        state_reported: the state shown is new, and one that SwitchInfo.PortStateChange tells of.
        neighbor_mtu, max_words: NeighborMTU's code, and the largest PktLen that it lets out.
        cl, tbs: credit limit and blocks sent of each data VL, as visible.
        fcp_urgent, fcp_changed: some VL has a flow control packet to send; `fcp_grant` (cycle g) sends one.
        send: rows from the transmit buffer in cycle x_r + 2.
        waiting: a head for this output is visible and no packet keeps the output busy.
        lid, lmc: the adapter's own (kind "adapter").
        reg: register access at the node's registered stage; `reg_rdata` follows two cycles after a
            read there (c+3 for one given at c) and is 0 in all other cycles.
        trace: slots in the order of `PORT_KINDS`.
    """

    def __init__(self, kind: Literal["switch", "adapter"], vls: int, mtu: int) -> None:
        self._kind = kind
        self._vls = vls
        self._mtu = mtu
        per_vl = data.ArrayLayout(unsigned(CREDIT_BITS), vls)
        super().__init__(
            {
                "rx": In(RowSignature()),
                "tx": Out(RowSignature()),
                "up": In(1),
                "polling": Out(1),
                "phase": In(2),
                "lookup_dlid": Out(16),
                "header": Out(PacketHeader),
                "relay": In(Verdict),
                "refused": In(1),
                "acceptable": Out(1),
                "accept": Out(1),
                "write": Out(StoreRow),
                "free": In(data.ArrayLayout(unsigned(FREE_BITS), vls)),
                "state": Out(PortState),
                "state_reported": Out(1),
                "operational": Out(vls),
                "wide": Out(1),
                "wide_follows": Out(1),
                "neighbor_mtu": Out(3),
                "max_words": Out(LENGTH_BITS),
                "cl": Out(per_vl),
                "tbs": Out(per_vl),
                "fcp_urgent": Out(1),
                "fcp_changed": Out(1),
                "fcp_grant": In(1),
                "send": In(SendRow),
                "waiting": In(1),
                "lid": In(16),
                "lmc": In(3),
                "reg": In(PortAccess),
                "reg_rdata": Out(32),
                "trace": Out(TraceSignature(len(PORT_KINDS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the port, as a packet passes through it."""
        m = Module()
        m.submodules.registers = registers = PortRegisters(self._vls, self._mtu)
        m.submodules.port_state = port_state = PortStateMachine(TIMER_BITS)
        m.submodules.receiver = receiver = Receiver()
        m.submodules.vcrc = vcrc = VcrcCheck()
        m.submodules.packet_check = packet_check = PacketCheck(self._kind, self._vls, self._mtu)
        m.submodules.link_packet_check = link_packet_check = LinkPacketCheck(self._vls)
        m.submodules.flow_control = flow_control = FlowControl(self._vls, TIMER_BITS)
        m.submodules.watchdog = watchdog = Watchdog(self._vls, TIMER_BITS)
        m.submodules.transmitter = transmitter = Transmitter(self._vls)
        m.submodules.xmit_wait = xmit_wait = XmitWait()

        state, operational = port_state.state, registers.operational
        m.d.comb += [
            self.state.eq(state),
            self.state_reported.eq(port_state.reported),
            self.polling.eq(registers.polling),
            self.operational.eq(operational),
            self.wide.eq(registers.wide),
            self.wide_follows.eq(registers.wide_follows),
            self.neighbor_mtu.eq(registers.neighbor_mtu),
            self.max_words.eq(registers.max_words),
            registers.reg.eq(self.reg),
            self.reg_rdata.eq(registers.reg_rdata),
            registers.state.eq(state),
            registers.up.eq(self.up),
        ]

        # Receive: framing in cycle c, checks in c+1, verdicts in c+2.
        receives = (state == PortState.INITIALIZE) | (state == PortState.ARMED) | (state == PortState.ACTIVE)
        verdict, link_result = packet_check.verdict, link_packet_check.result
        m.d.comb += [
            receiver.enabled.eq(self.up & receives),
            self.lookup_dlid.eq(route_field(receiver.route, "dlid")),
            packet_check.received.eq(receiver.received),
            packet_check.head.eq(receiver.head),
            packet_check.vcrc_good.eq(vcrc.good),
            packet_check.state.eq(state),
            packet_check.operational.eq(operational),
            packet_check.lid.eq(self.lid),
            packet_check.lmc.eq(self.lmc),
            self.header.eq(packet_check.header),
            packet_check.relay.eq(self.relay),
            packet_check.refused.eq(self.refused),
            self.acceptable.eq(packet_check.acceptable),
            self.accept.eq(packet_check.accept),
            self.write.eq(packet_check.write),
            link_packet_check.received.eq(receiver.received),
            link_packet_check.head.eq(receiver.head),
            link_packet_check.lpcrc_good.eq(vcrc.good),
            link_packet_check.state.eq(state),
            link_packet_check.operational.eq(operational),
        ]
        followers = [receiver.row, vcrc.row]
        if self._kind == "adapter":
            m.submodules.icrc = icrc = IcrcCheck()
            followers.append(icrc.row)
            m.d.comb += [icrc.index.eq(receiver.index), packet_check.icrc_good.eq(icrc.good)]
        for row in followers:
            m.d.comb += [row.data.eq(self.rx.data), row.k.eq(self.rx.k), row.valid.eq(self.rx.valid)]

        # Port state.
        op = link_packet_check.fields.op
        m.d.comb += [
            port_state.up.eq(self.up),
            port_state.write.eq(registers.state_write),
            port_state.good_init.eq(link_packet_check.good & (op == FlowControlOp.INIT)),
            port_state.good_normal.eq(link_packet_check.good & (op == FlowControlOp.NORMAL)),
            port_state.good_data.eq(verdict.valid & (verdict.verdict == Verdict.GOOD) & (verdict.vl != VL15)),
            port_state.timeout.eq(registers.link_down_timeout),
            port_state.timeout_written.eq(registers.link_down_timeout_written),
        ]

        # Flow control.
        good_vl = Mux(link_packet_check.good, 1 << link_packet_check.fields.vl, 0)
        m.d.comb += [
            flow_control.state.eq(state),
            flow_control.operational.eq(operational),
            flow_control.initializing.eq(port_state.initializing),
            flow_control.arming.eq(port_state.arming),
            flow_control.enabling.eq(port_state.enabling),
            flow_control.good.eq(good_vl),
            flow_control.fields.eq(link_packet_check.fields),
            flow_control.accept.eq(Mux(self.accept, 1 << self.write.slot, 0)),
            flow_control.accept_need.eq(self.write.need),
            flow_control.sent.eq(transmitter.sent),
            flow_control.sent_need.eq(self.send.need),
            flow_control.free.eq(self.free),
            flow_control.threshold.eq(registers.fcp_threshold),
            flow_control.period.eq(registers.fcp_period),
            flow_control.period_written.eq(registers.fcp_period_written),
            self.cl.eq(flow_control.cl),
            self.tbs.eq(flow_control.tbs),
            self.fcp_urgent.eq(flow_control.urgent),
            self.fcp_changed.eq(flow_control.changed),
            flow_control.grant.eq(self.fcp_grant),
            watchdog.state.eq(state),
            watchdog.operational.eq(operational),
            watchdog.good.eq(good_vl),
            watchdog.length.eq(registers.fc_watchdog),
            watchdog.written.eq(registers.fc_watchdog_written),
        ]

        # Transmit.
        m.d.comb += [
            transmitter.send.eq(self.send),
            transmitter.grant.eq(self.fcp_grant),
            transmitter.packet.eq(flow_control.packet),
            transmitter.state.eq(state),
            transmitter.operational.eq(operational),
            transmitter.wide.eq(registers.wide),
            transmitter.phase.eq(self.phase),
            self.tx.data.eq(transmitter.tx.data),
            self.tx.k.eq(transmitter.tx.k),
            self.tx.valid.eq(transmitter.tx.valid),
            xmit_wait.waiting.eq(self.waiting & (state == PortState.ACTIVE)),
            xmit_wait.tick.eq(registers.tick),
            xmit_wait.tick_written.eq(registers.tick_written),
        ]

        # Counters.
        m.submodules.counters = counters = PortCounters()
        m.submodules.wide_counters = wide_counters = WideCounters()
        m.submodules.link_integrity = link_integrity = LinkIntegrity()
        m.submodules.buffer_overruns = buffer_overruns = BufferOverruns()
        symbol_error = Signal()
        bad_packet = Signal()
        m.d.sync += [
            symbol_error.eq(receiver.received.symbol_error),
            bad_packet.eq(receiver.received.bad_packet),
        ]

        def judged(*verdicts: Verdict) -> Value:
            return verdict.valid & Cat(verdict.verdict == one for one in verdicts).any()

        def link_judged(*results: LinkResult) -> Value:
            return link_result.valid & Cat(link_result.result == one for one in results).any()

        relay_errors = [Verdict.NO_ROUTE, Verdict.LOOP, Verdict.VL_MAP]
        receive_errors = [
            Verdict.PHYSICAL,
            Verdict.LVER,
            Verdict.LENGTH,
            Verdict.VL,
            Verdict.VL15_HEADER,
            Verdict.OVERRUN,
        ]
        (relay_errors if self._kind == "switch" else receive_errors).append(Verdict.DLID)
        link_errors = (LinkResult.MALFORMED, LinkResult.LPCRC, LinkResult.OP, LinkResult.VL)

        m.d.comb += [
            link_integrity.error.eq(judged(Verdict.PHYSICAL) | link_judged(LinkResult.MALFORMED, LinkResult.LPCRC)),
            link_integrity.threshold.eq(registers.local_phy_errors),
            buffer_overruns.overrun.eq(judged(Verdict.OVERRUN)),
            buffer_overruns.period_over.eq(flow_control.period_over),
            buffer_overruns.restart.eq(port_state.initializing | registers.fcp_period_written),
            buffer_overruns.clear.eq(port_state.initializing),
            buffer_overruns.threshold.eq(registers.overrun_errors),
        ]
        recoveries = Cat(watchdog.expired, port_state.link_recovered)
        counts: dict[Counter, Value] = {
            Counter.SYMBOL_ERROR: symbol_error,
            Counter.LINK_ERROR_RECOVERY: recoveries.any(),
            Counter.LINK_DOWNED: port_state.link_downed,
            Counter.RCV_ERRORS: judged(*receive_errors) | link_judged(*link_errors) | bad_packet,
            Counter.RCV_REMOTE_PHYSICAL_ERRORS: judged(Verdict.REMOTE),
            Counter.RCV_SWITCH_RELAY_ERRORS: judged(*relay_errors),
            Counter.XMIT_DISCARDS: transmitter.packet_discarded,
            Counter.LOCAL_LINK_INTEGRITY_ERRORS: link_integrity.exceeded,
            Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS: buffer_overruns.exceeded,
            Counter.VL15_DROPPED: judged(Verdict.VL15_DROPPED),
            Counter.XMIT_WAIT: xmit_wait.waited,
        }
        amounts: dict[Counter, Value] = {Counter.LINK_ERROR_RECOVERY: sum(recoveries[1:], recoveries[0])}
        wide_counts: dict[Counter, Value] = {
            Counter.XMIT_DATA: transmitter.packet_sent,
            Counter.RCV_DATA: verdict.valid,
            Counter.XMIT_PKTS: transmitter.packet_sent,
            Counter.RCV_PKTS: verdict.valid,
        }
        wide_amounts: dict[Counter, Value] = {
            Counter.XMIT_DATA: transmitter.index,
            Counter.RCV_DATA: verdict.k,
        }
        m.d.comb += [counters.counts[counter.name].eq(one) for counter, one in counts.items()]
        m.d.comb += [counters.amounts[counter.name].eq(amount) for counter, amount in amounts.items()]
        m.d.comb += [wide_counters.counts[counter.name].eq(one) for counter, one in wide_counts.items()]
        m.d.comb += [wide_counters.amounts[counter.name].eq(amount) for counter, amount in wide_amounts.items()]
        m.d.comb += [
            counters.write.eq(self.reg.select & self.reg.write),
            counters.offset.eq(self.reg.offset),
            counters.wdata.eq(self.reg.wdata),
            wide_counters.reg.eq(self.reg),
            registers.counters.eq(counters.values),
            registers.wide_value.eq(wide_counters.value),
        ]

        # Trace.
        m.submodules.transmit_trace = sent = TransmitTrace()
        m.d.comb += [sent.on_wires.eq(transmitter.on_wires), sent.data.eq(transmitter.tx.data)]
        records: dict[Kind, tuple[Value, list[Value]]] = {
            Kind.RX_DATA: (verdict.valid, _received_words(verdict)),
            Kind.RX_FCP: (link_result.valid, _link_words(link_result)),
            Kind.STATE: (port_state.changed, [state]),
            Kind.TX_DATA: (sent.data_valid, list(sent.data_record)),
            Kind.TX_FCP: (sent.link_valid, list(sent.link_record)),
            Kind.TX_DISCARD: (sent.discard_valid, list(sent.discard_record)),
        }
        for slot, kind in enumerate(PORT_KINDS):
            valid, words = records[kind]
            m.d.comb += self.trace.valid[slot].eq(valid)
            for place, word in enumerate(words):
                m.d.comb += self.trace.payload[slot][place].eq(word)
        return m


def _received_words(verdict: data.View) -> list[Value]:
    return [
        Cat(verdict.verdict, Const(0, 4), verdict.vl, Const(0, 4), verdict.delimiter),
        Cat(verdict.n, Const(0, 16 - len(verdict.n)), verdict.k),
        Cat(verdict.sl, Const(0, 16 - len(verdict.sl)), verdict.dlid),
        verdict.need,
    ]


def _link_words(link: data.View) -> list[Value]:
    fields = link.fields
    return [
        Cat(link.result, Const(0, 8 - len(link.result)), fields.op, Const(0, 4), fields.vl),
        Cat(fields.fccl, Const(0, 4), fields.fctbs),
    ]
