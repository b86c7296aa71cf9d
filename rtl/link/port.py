"""A port's link side: everything between its wires and the node's buffers and matcher."""

from typing import Any, Final, Literal

from amaranth.hdl import Cat, Module, Mux, ResetSignal, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.link.counted_over_time import BufferOverruns, LinkIntegrity, XmitWait
from rtl.link.crc import IcrcCheck, VcrcCheck
from rtl.link.flow_control import CreditSignature, FlowControl, Watchdog
from rtl.link.link_packet import LinkPacketCheck
from rtl.link.marking import Marked
from rtl.link.packet_check import AdmissionSignature, PacketCheck
from rtl.link.port_state import PortStateMachine
from rtl.link.receive import Receiver
from rtl.link.row import RowSignature, lrh_field
from rtl.link.transmit import SendRow, Transmitter
from rtl.link.transmit_trace import SENT_KINDS, TransmitTrace
from rtl.registers.counter_places import VL_XMIT_WAITS, most_constraints, most_violations, vls_of_slots
from rtl.registers.counters import PortCounters
from rtl.registers.marking import PortMarking
from rtl.registers.port_access import ListEntry, port_access_layout
from rtl.registers.port_registers import (
    PartitionChecks,
    PortRegisters,
    TimeLimitsSignature,
    port_following_layout,
)
from rtl.rotation import how_many
from rtl.trace import TraceSignature, gather, report
from rtl.widths import (
    FREE_BITS,
    LENGTH_BITS,
    NEED_BITS,
    OFFERED_BITS,
    VL_LIMIT_BITS,
    need_bits,
)
from wire.codes import VL15, PortState
from wire.flow_control import FlowControlOp
from wire.registers import Counter, Detail, PacketCounter
from wire.trace import Discard, Kind, LinkResult, Verdict
from wire.trace_layout import RxData, RxFcp, State

__all__ = ["PORT_KINDS", "CongestionSignature", "LinkPort", "SendingSignature", "VlArbitrationSignature"]

PORT_KINDS: Final = (Kind.RX_DATA, Kind.RX_FCP, Kind.STATE, *SENT_KINDS)
"""What slot i of a port's trace holds."""


_Moves = dict[Counter | PacketCounter | Detail, Value]
"""Of counters, whether or how far they move."""


class SendingSignature(wiring.Signature):
    """What a port lets its node send, and whether it has to wait, seen from the port.

    Members:
        state: the port's. `operational_follows`: the mask of its operational data VLs in the next cycle.
        wide, wide_follows: it is 4X, and will be in the next cycle.
        credits: of the other end, and the flow control packets to be sent to it.
        waiting: a head for this output is visible and no packet keeps the output busy; `slots_waiting`: mask of the
            slots for which one is, and none of theirs does.
    """

    def __init__(self, vls: int) -> None:
        super().__init__(
            {
                "state": Out(PortState),
                "operational_follows": Out(vls),
                "wide": Out(1),
                "wide_follows": Out(1),
                "credits": Out(CreditSignature(vls)),
                "waiting": In(1),
                "slots_waiting": In(vls + 1),
            }
        )


VlArbitrationSignature = wiring.Signature(
    {"entry": Out(ListEntry), "high_limit": Out(VL_LIMIT_BITS), "charged": Out(1), "blocks": Out(NEED_BITS)}
)
"""What a port tells the arbiter of its data VLs, seen from the port.

Members:
    entry: one of its lists' is written; `high_limit`: VL_HIGH_LIMIT.
    charged: the data packet that was granted three cycles ago has passed the transmit stage; `blocks`: its blocks.
"""


CongestionSignature = wiring.Signature(
    {"own": Out(PortMarking), "charged": Out(1), "marks": In(1), "marked": Out(Marked)}
)
"""What a switch's port and its output have to do with each other for congestion control, seen from the port.

Members:
    own: the port's settings.
    charged: the packet whose row 0 was in the transmit stage in the cycle before (x_0 + 2) begins to be sent, on a data
        VL. `marks`: in the same cycle, it is to be marked.
    marked: it was; with the row, on the wires.
"""


class LinkPort(wiring.Component):
    """The link side of a switch port or an adapter port.

    h is the cycle of a received packet's row 1, c_e that of its end, g the cycle of a grant, x_r
    that in which row r is read (docs/pipeline.md).

    Args:
        kind: what the port belongs to.
        vls: data VLs.
        mtu: the MTU that the port is built for (MTUCap), in bytes.
        blocks: of each data VL's receive buffer.
        others: ports whose packets leave by this one.

    Members:
        rx, tx: the wires.
        up, narrow: the physical link is up, and came up as 1X. `offers`: widths with which it may, of 1X and 4X; none
            while the port is reset.
        phase: the cycle modulo 4.
        lookup_dlid: DLID of the packet whose row 1 is on the wires, in cycle h. `concerned`: this may be that cycle.
        admission: what the node is asked about a received packet and what it says; the packet's rows.
        free: free blocks of each data VL's receive buffer, as visible.
        sending: what the port lets its node send.
        vl_arbitration: what its output's VL arbitration must know, if it has several data VLs.
        time_limits: what its output's time limits are (kind "switch").
        congestion: how its output marks packets (kind "switch").
        send: rows from the transmit buffer in cycle x_r + 2.
        state_reported: the state shown is new, and one that SwitchInfo.PortStateChange reports.
        follows: what some registers will be in the next cycle. `cable_is_wide`: WIDTH was written so. `max_words`: the
            largest PktLen that it lets out.
        lid, lmc: the adapter's own (kind "adapter").
        partition: what the switch checks of its packets. `xmit_constraints`: how many packets' verdict is in this cycle
            that they may not leave by it. `p_key_violations`: how many were rejected at it for their P_Keys in the
            cycle before.
        icrc_error: a packet that came by this port ended in the switch's agent, and its ICRC is wrong.
        reg: register access, in the cycle c in which it is given; `reg_rdata` follows a read in c+3 and is 0 in all
            other cycles.
        trace: slots in the order of `PORT_KINDS`.
    """

    def __init__(self, kind: Literal["switch", "adapter"], vls: int, mtu: int, blocks: int, others: int = 0) -> None:
        self._kind = kind
        self._others = others
        self._vls = vls
        self._mtu = mtu
        self._blocks = blocks
        super().__init__(
            {
                "rx": In(RowSignature),
                "tx": Out(RowSignature),
                "up": In(1),
                "narrow": In(1),
                "offers": Out(OFFERED_BITS),
                "phase": In(2),
                "lookup_dlid": Out(16),
                "concerned": Out(1),
                "admission": Out(AdmissionSignature),
                "free": In(data.ArrayLayout(unsigned(FREE_BITS), vls)),
                "sending": Out(SendingSignature(vls)),
                "vl_arbitration": Out(VlArbitrationSignature),
                **(
                    {"time_limits": Out(TimeLimitsSignature), "congestion": Out(CongestionSignature)}
                    if kind == "switch"
                    else {}
                ),
                "send": In(SendRow),
                "state_reported": Out(1),
                "follows": Out(port_following_layout(vls)),
                "cable_is_wide": Out(1),
                "max_words": Out(LENGTH_BITS),
                "lid": In(16),
                "lmc": In(3),
                "partition": Out(PartitionChecks),
                "xmit_constraints": In(range(max(2, most_constraints(others)))),
                "p_key_violations": In(range(most_violations(others) + 1)),
                "icrc_error": In(1),
                "reg": In(port_access_layout(vls)),
                "reg_rdata": Out(32),
                "trace": Out(TraceSignature(len(PORT_KINDS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the port, as a packet passes through it."""
        m = Module()
        m.submodules.registers = registers = PortRegisters(self._kind, self._vls, self._mtu)
        m.submodules.port_state = port_state = PortStateMachine()
        m.submodules.receiver = receiver = Receiver()
        m.submodules.vcrc = vcrc = VcrcCheck()
        m.submodules.packet_check = packet_check = PacketCheck(self._kind, self._vls, self._mtu)
        m.submodules.link_packet_check = link_packet_check = LinkPacketCheck(self._vls)
        m.submodules.flow_control = flow_control = FlowControl(self._vls, self._blocks)
        m.submodules.watchdog = watchdog = Watchdog(self._vls)
        m.submodules.transmitter = transmitter = Transmitter(self._vls, marking=self._kind == "switch")

        # What all stages look at.
        state, sending = port_state.state, self.sending
        for part in (packet_check, link_packet_check, flow_control, watchdog):
            m.d.comb += [part.state.eq(state), part.operational.eq(registers.operational)]

        # Rows in; framing in cycle c.
        receives = (state == PortState.INITIALIZE) | (state == PortState.ARMED) | (state == PortState.ACTIVE)
        crcs: list[VcrcCheck | IcrcCheck] = [vcrc]
        if self._kind == "adapter":
            m.submodules.icrc = icrc = IcrcCheck()
            crcs.append(icrc)
            m.d.comb += [icrc.index.eq(receiver.index), packet_check.icrc_good.eq(icrc.good)]
        connect(m, flipped(self.rx), receiver.row)
        for crc in crcs:
            m.d.comb += [
                crc.row.data.eq(self.rx.data),
                crc.row.k.eq(self.rx.k),
                crc.row.valid.eq(self.rx.valid & receiver.concerned),
            ]
        m.d.comb += [
            receiver.enabled.eq(self.up & receives),
            self.lookup_dlid.eq(lrh_field(receiver.route, "dlid")),
            self.concerned.eq(receiver.concerned),
        ]

        # Checks in c+1, the node's word and the verdicts in c+2.
        for check, crc_good in (
            (packet_check, packet_check.vcrc_good),
            (link_packet_check, link_packet_check.lpcrc_good),
        ):
            m.d.comb += [check.received.eq(receiver.received), check.head.eq(receiver.head), crc_good.eq(vcrc.good)]
        connect(m, packet_check.admission, flipped(self.admission))
        m.d.comb += [packet_check.lid.eq(self.lid), packet_check.lmc.eq(self.lmc)]

        # Credits.
        stored, link_packet = self.admission.write, link_packet_check.fields
        sent_need = self.send.need[: need_bits(self._mtu)]
        good_vl = Mux(link_packet_check.good, 1 << link_packet.vl, 0)
        connect(m, registers.fcp_period, flow_control.period)
        connect(m, registers.fc_watchdog, watchdog.limit)
        connect(m, flow_control.credits, flipped(sending.credits))
        m.d.comb += [
            flow_control.initializing.eq(port_state.initializing),
            flow_control.arming.eq(port_state.arming),
            flow_control.enabling.eq(port_state.enabling),
            flow_control.good.eq(good_vl),
            flow_control.fields.eq(link_packet),
            flow_control.spent.eq(Mux(packet_check.spends, 1 << stored.slot, 0)),
            flow_control.spent_need.eq(stored.need),
            flow_control.sent.eq(transmitter.sent),
            flow_control.sent_need.eq(sent_need),
            flow_control.free.eq(self.free),
            flow_control.threshold.eq(registers.fcp_threshold),
            watchdog.good.eq(good_vl),
        ]

        # Rows out.
        connect(m, transmitter.tx, flipped(self.tx))
        m.d.comb += [
            transmitter.state_follows.eq(port_state.follows),
            transmitter.operational_follows.eq(registers.follows.operational),
            transmitter.send.eq(self.send),
            transmitter.granted.eq(sending.credits.granted),
            transmitter.packet.eq(flow_control.packet),
            transmitter.wide.eq(registers.wide),
            transmitter.phase.eq(self.phase),
        ]
        if self._vls > 1:
            m.d.comb += [
                self.vl_arbitration.entry.eq(registers.list_entry),
                self.vl_arbitration.high_limit.eq(registers.vl_high_limit),
                self.vl_arbitration.charged.eq(transmitter.sent.any()),
                self.vl_arbitration.blocks.eq(sent_need),
            ]
        if self._kind == "switch":
            connect(m, registers.time_limits, flipped(self.time_limits))
            m.d.sync += self.congestion.charged.eq(transmitter.sent.any())
            m.d.comb += [
                self.congestion.own.eq(registers.marking),
                transmitter.marks.eq(self.congestion.marks),
                self.congestion.marked.eq(transmitter.marked),
            ]

        self._keep_state(m)
        self._count(m)
        self._trace(m)
        return m

    def _keep_state(self, m: Module) -> None:
        """The port's state, its registers, and what the node sees of both."""
        parts: Any = m.submodules
        registers, port_state, link_packet = parts.registers, parts.port_state, parts.link_packet_check
        verdict, state, sending = parts.packet_check.verdict, port_state.state, self.sending
        connect(m, registers.link_down_timeout, port_state.timeout)
        m.d.comb += [
            port_state.up.eq(self.up),
            port_state.write.eq(registers.state_write),
            port_state.good_init.eq(link_packet.good & (link_packet.fields.op == FlowControlOp.INIT)),
            port_state.good_normal.eq(link_packet.good & (link_packet.fields.op == FlowControlOp.NORMAL)),
            port_state.good_data.eq(verdict.valid & (verdict.verdict == Verdict.GOOD) & (verdict.vl != VL15)),
            sending.state.eq(state),
            self.state_reported.eq(port_state.reported),
        ]

        # An access comes from far, and what it changes goes far: it is registered here, not where it is decoded.
        m.d.sync += registers.reg.eq(self.reg)
        m.d.comb += [
            registers.state.eq(state),
            registers.up.eq(self.up),
            registers.lost.eq(port_state.link_downed),
            registers.narrow.eq(self.narrow),
            self.offers.eq(Mux(ResetSignal(allow_reset_less=True), 0, registers.offers)),
            sending.operational_follows.eq(registers.follows.operational),
            sending.wide.eq(registers.wide),
            sending.wide_follows.eq(registers.wide_follows),
            self.follows.eq(registers.follows),
            self.cable_is_wide.eq(registers.cable_is_wide),
            self.max_words.eq(registers.max_words),
            self.partition.eq(registers.partition),
        ]

    def _count(self, m: Module) -> None:
        """What the counters count, and their registers."""
        parts: Any = m.submodules
        registers, transmitter, verdict = parts.registers, parts.transmitter, parts.packet_check.verdict
        m.submodules.counters = counters = PortCounters(self._vls, self._others)
        counts, amounts = self._errors(m)
        counts |= {
            Counter.XMIT_DATA: transmitter.packet_sent,
            Counter.RCV_DATA: verdict.valid,
            Counter.XMIT_PKTS: transmitter.packet_sent,
            Counter.RCV_PKTS: verdict.valid,
            PacketCounter.UNICAST_XMIT_PKTS: transmitter.packet_sent & ~transmitter.multicast,
            PacketCounter.MULTICAST_XMIT_PKTS: transmitter.packet_sent & transmitter.multicast,
            PacketCounter.UNICAST_RCV_PKTS: verdict.valid & ~verdict.multicast,
            PacketCounter.MULTICAST_RCV_PKTS: verdict.valid & verdict.multicast,
        }
        amounts |= {Counter.XMIT_DATA: transmitter.words, Counter.RCV_DATA: verdict.k}
        m.d.comb += [counters.counts[counter.name].eq(value) for counter, value in counts.items()]
        m.d.comb += [counters.amounts[counter.name].eq(value) for counter, value in amounts.items()]
        waited = parts.xmit_wait.waited[1:]
        m.d.comb += [Cat(counters.counts[VL_XMIT_WAITS[vl]] for vl in vls_of_slots(self._vls)).eq(waited)]
        m.d.comb += [counters.expired.eq(parts.watchdog.expired)]
        m.d.sync += counters.reg.eq(self.reg)
        m.d.comb += self.reg_rdata.eq(registers.reg_rdata | counters.value)

    def _errors(self, m: Module) -> tuple[_Moves, _Moves]:
        """Which counters of errors and of waiting move in this cycle (those that are counted late: in the one before),
        and by how much those that do not move by 1."""
        parts: Any = m.submodules
        registers, transmitter, verdict = parts.registers, parts.transmitter, parts.packet_check.verdict
        m.submodules.xmit_wait = xmit_wait = XmitWait(self._vls + 2)
        m.submodules.link_integrity = link_integrity = LinkIntegrity()
        m.submodules.buffer_overruns = buffer_overruns = BufferOverruns()

        def discarded(reason: Discard) -> Value:
            return transmitter.packet_discarded & (transmitter.reason == reason)

        symbol_error = Signal()
        bad_packet = Signal()
        xmit_constraints = Signal.like(self.xmit_constraints)  # in the cycle before, as they come from all other ports
        copy_rejected = Signal()  # likewise
        p_key_violations = Signal.like(self.p_key_violations)
        m.d.sync += [
            xmit_constraints.eq(self.xmit_constraints),
            p_key_violations.eq(self.p_key_violations),
            copy_rejected.eq(discarded(Discard.CONSTRAINT)),
            symbol_error.eq(parts.receiver.received.symbol_error),
            bad_packet.eq(parts.receiver.received.bad_packet),
        ]

        def judged(*verdicts: Verdict) -> Value:
            return verdict.valid & Cat(verdict.verdict == one for one in verdicts).any()

        def link_judged(*results: LinkResult) -> Value:
            result = parts.link_packet_check.result
            return result.valid & Cat(result.result == one for one in results).any()

        # PortRcvErrors and PortRcvSwitchRelayErrors are the sums of their details.
        physical = judged(Verdict.PHYSICAL) | link_judged(LinkResult.MALFORMED, LinkResult.LPCRC)
        malformed = judged(Verdict.LVER, Verdict.LENGTH, Verdict.VL, Verdict.VL15_HEADER)
        malformed = malformed | link_judged(LinkResult.OP, LinkResult.VL)
        overrun = judged(Verdict.OVERRUN)
        no_way = (Verdict.NO_ROUTE, Verdict.DLID) if self._kind == "switch" else (Verdict.NO_ROUTE,)
        relay_errors = [judged(*no_way), judged(Verdict.VL_MAP), judged(Verdict.LOOP)]

        initializing = parts.port_state.initializing
        connect(m, registers.tick, xmit_wait.tick)
        active = parts.port_state.state == PortState.ACTIVE
        m.d.comb += [
            xmit_wait.waiting.eq(Mux(active, Cat(self.sending.waiting, self.sending.slots_waiting), 0)),
            link_integrity.error.eq(physical),
            link_integrity.threshold.eq(registers.local_phy_errors),
            buffer_overruns.overrun.eq(overrun),
            buffer_overruns.period_over.eq(parts.flow_control.period_over),
            buffer_overruns.restart.eq(initializing | registers.fcp_period.written),
            buffer_overruns.clear.eq(initializing),
            buffer_overruns.threshold.eq(registers.overrun_errors),
        ]
        recoveries = Cat(parts.watchdog.expired, parts.port_state.link_recovered)
        # The agent checks the ICRC of a packet that this port has long done with: two errors may meet. It is far away.
        physical_errors, rcv_errors = Signal(2), Signal(2)  # in the cycle before
        m.d.sync += [
            physical_errors.eq(Cat(physical | bad_packet, self.icrc_error)),
            rcv_errors.eq(Cat(physical | bad_packet | malformed | overrun, self.icrc_error)),
        ]
        counts: _Moves = {
            Counter.SYMBOL_ERROR: symbol_error,
            Counter.LINK_ERROR_RECOVERY: recoveries.any(),
            Counter.LINK_DOWNED: parts.port_state.link_downed,
            Counter.RCV_ERRORS: rcv_errors.any(),
            Counter.RCV_REMOTE_PHYSICAL_ERRORS: judged(Verdict.REMOTE),
            Counter.RCV_SWITCH_RELAY_ERRORS: Cat(relay_errors).any(),
            Counter.XMIT_DISCARDS: transmitter.packet_discarded & (transmitter.reason != Discard.CONSTRAINT),
            Counter.XMIT_CONSTRAINT_ERRORS: copy_rejected | xmit_constraints.any(),
            Counter.RCV_CONSTRAINT_ERRORS: judged(Verdict.RCV_CONSTRAINT),
            Counter.LOCAL_LINK_INTEGRITY_ERRORS: link_integrity.exceeded,
            Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS: buffer_overruns.exceeded,
            Counter.VL15_DROPPED: judged(Verdict.VL15_DROPPED),
            Counter.XMIT_WAIT: xmit_wait.waited[0],
            Detail.LOCAL_PHYSICAL_ERRORS: physical_errors.any(),
            Detail.MALFORMED_PACKET_ERRORS: malformed,
            Detail.BUFFER_OVERRUN_ERRORS: overrun,
            Detail.DLID_MAPPING_ERRORS: relay_errors[0],
            Detail.VL_MAPPING_ERRORS: relay_errors[1],
            Detail.LOOPING_ERRORS: relay_errors[2],
            Detail.INACTIVE_DISCARDS: discarded(Discard.INACTIVE),
            Detail.NEIGHBOR_MTU_DISCARDS: discarded(Discard.NEIGHBOR_MTU),
            Detail.LIFE_TIME_DISCARDS: discarded(Discard.LIFE_TIME),
            Detail.HOQ_LIFE_DISCARDS: discarded(Discard.HOQ_LIFE),
            Detail.P_KEY_VIOLATIONS: p_key_violations.any(),
        }
        amounts: _Moves = {
            Counter.RCV_ERRORS: rcv_errors[0] + rcv_errors[1],
            Counter.XMIT_CONSTRAINT_ERRORS: xmit_constraints + copy_rejected,
            Detail.P_KEY_VIOLATIONS: p_key_violations,
            Detail.LOCAL_PHYSICAL_ERRORS: physical_errors[0] + physical_errors[1],
        }
        if self._vls > 1:
            amounts[Counter.LINK_ERROR_RECOVERY] = how_many(recoveries)
        return counts, amounts

    def _trace(self, m: Module) -> None:
        """The records, in the order of `PORT_KINDS`."""
        parts: Any = m.submodules
        m.submodules.transmit_trace = sent = TransmitTrace()
        m.d.comb += [sent.on_wires.eq(parts.transmitter.on_wires), sent.data.eq(parts.transmitter.tx.data)]
        of_packet, of_link = parts.packet_check.verdict, parts.link_packet_check.result
        verdict = {name: of_packet[name] for name in ("verdict", "vl", "delimiter", "dlid", "sl")}
        verdict |= {"pkt_len": of_packet.n, "end_row": of_packet.k, "blocks": of_packet.need}
        fields = {name: of_link.fields[name] for name in ("op", "vl", "fctbs", "fccl")}
        report(m, self.trace, 0, of_packet.valid, RxData, **verdict)
        report(m, self.trace, 1, of_link.valid, RxFcp, result=of_link.result, **fields)
        report(m, self.trace, 2, parts.port_state.changed, State, state=parts.port_state.state)
        gather(m, self.trace, ((sent.trace, slot) for slot in range(len(SENT_KINDS))), first=3)
