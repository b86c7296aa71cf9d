"""The agent behind port 0: SMI, SMA, the sender of traps, PMA, and congestion control (docs/management.md)."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.below import below
from rtl.crossing.words import HostStreamSignature, HostWordSignature
from rtl.management.answer_word import AnswerWord
from rtl.management.attribute_decode import AttributeDecode
from rtl.management.attribute_memory import AttributeMap
from rtl.management.attribute_words import AttributeWords
from rtl.management.bus_steps import BusSteps
from rtl.management.cc_key import CcKey
from rtl.management.class_port_info import CcClassPortInfo, TrapDestination, at_subnet_manager
from rtl.management.decision import Decision
from rtl.management.departure import Departure
from rtl.management.identity import IdentitySignature, NodeStateSignature
from rtl.management.key_violations import KeyViolations
from rtl.management.mad_head import MadReceive
from rtl.management.packet import Offer, Packet
from rtl.management.settings import Settings
from rtl.management.task import SET_SLOT, Stage
from rtl.management.told_events import LatestEvents, told_layout
from rtl.management.trap_packet import CC_TRAP
from rtl.management.traps import Traps
from rtl.management.windows import Windows
from rtl.management.work import Taking, Work
from rtl.registers.bus import BusSignature, PageAccess
from rtl.rotation import any_of
from rtl.widths import PORT_BITS, SLOT_BITS
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import PmaAttribute
from wire.registers import DATA_BITS

__all__ = ["Agent"]


class Agent(wiring.Component):
    """Takes a packet or begins a trap, works on it step by step, offers what comes of it.

    Members:
        taking: when it takes a packet.
        words: the packet that it is sent; word w in cycle x_(w+1) + 3. `arrival` is the port that it came in by, in an
            adapter 1 for the link, 0 for the host.
        stream, slot, to_output: the packet that it offers, its slot, and one-hot the output for it: of a switch in
            ports' order, of an adapter the link and the host. `accepted`: it is taken in this cycle, its words follow.
        icrc_errors: one-hot, by which port the packet came whose ICRC alone is wrong; in the cycle before that shows.
        bus: its accesses. `hold`: the test bus has one in this cycle, so this cycle has no step.
        identity, lease_second, node_state: the node's.
        congestion, congestion_rdata (switch): an access to the page of congestion control, and what the agent has
            there: two cycles after a read what was visible in the cycle between, else 0.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._parameters = parameters
        self._is_switch = isinstance(parameters, SwitchParameters)
        ports, outputs = (parameters.ports,) * 2 if isinstance(parameters, SwitchParameters) else (1, 2)
        super().__init__(
            {
                "taking": Out(Taking),
                "words": In(HostWordSignature),
                "arrival": In(PORT_BITS),
                "stream": In(HostStreamSignature),
                "slot": Out(SLOT_BITS),
                "accepted": In(1),
                "to_output": Out(outputs),
                "icrc_errors": Out(ports),
                "bus": Out(BusSignature),
                "hold": In(1),
                "identity": In(IdentitySignature(is_switch=self._is_switch)),
                "lease_second": In(DATA_BITS),
                "node_state": In(NodeStateSignature(parameters)),
                **({"congestion": In(PageAccess), "congestion_rdata": Out(DATA_BITS)} if self._is_switch else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """As a packet goes through."""
        m = Module()
        parameters = self._parameters
        kept_at = AttributeMap(parameters)
        m.submodules.work = work = Work(parameters)
        m.submodules.receive = receive = MadReceive(parameters)
        m.submodules.decision = decision = Decision(parameters)
        m.submodules.settings = settings = Settings(parameters)
        m.submodules.decode = decode = AttributeDecode(parameters, kept_at)
        m.submodules.traps = traps = Traps(parameters)
        m.submodules.attribute = attribute = AttributeWords(parameters, kept_at)
        m.submodules.bus_steps = bus_steps = BusSteps(parameters)
        m.submodules.answer_word = answer_word = AnswerWord(parameters)
        m.submodules.packet = packet = Packet(parameters)
        m.submodules.departure = departure = Departure(parameters)
        m.submodules.offer = offer = Offer(parameters)
        stages: list[Stage] = [traps, attribute, bus_steps, answer_word, packet, departure, offer]

        if self._is_switch:
            m.submodules.windows = Windows(parameters)
            stages.append(m.submodules.windows)
        else:
            m.submodules.key_violations = key_violations = KeyViolations(parameters)
            stages.append(key_violations)
            connect(m, decode.attribute, key_violations.attribute)
            connect(m, attribute.word, key_violations.word)
            connect(m, key_violations.counts, answer_word.key_counts)
            m.d.comb += key_violations.found.eq(self.node_state.key_violation.found)
            self._send_traps_to(m, at_subnet_manager(settings.values.master_sm_lid, settings.values.master_sm_sl))

        # The packet comes, or a trap begins.
        connect(m, flipped(self.taking), work.taking)
        connect(m, flipped(self.words), receive.words)
        connect(m, flipped(self.node_state), traps.node_state, answer_word.node_state)
        known = receive.head.is_smp | receive.head.is_gmp_request
        came_by = 1 << receive.head.arrival >> 1 if self._is_switch else ~receive.head.from_host
        m.d.sync += self.icrc_errors.eq(Mux(work.not_right & known, came_by, 0))
        m.d.comb += [
            receive.arrival.eq(self.arrival if self._is_switch else self.identity.local_port_num),
            receive.from_host.eq(0 if self._is_switch else self.arrival == 0),
            receive.m_key.eq(decision.key.m_key),
            offer.came.eq(receive.write),
            work.right.eq(offer.right & known),
            work.due.eq(traps.due),
            traps.begins.eq(work.begins),
        ]

        # Steps follow, of which the first decides what is done.
        connect(m, work.steps, decision.steps, settings.steps, *(stage.steps for stage in stages))
        connect(m, decision.task, work.task, decode.task, *(stage.task for stage in stages))
        connect(m, settings.values, *(stage.settings for stage in (decision, traps, answer_word, departure)))
        m.d.comb += [
            work.hold.eq(self.hold),
            work.short.eq(bus_steps.short),
            decision.head.eq(receive.head),
            decision.trap.eq(work.trap),
            decision.lease_second.eq(self.lease_second),
            traps.violation.eq(decision.violation),
            traps.represses.eq(decision.represses),
        ]

        # The attribute, word by word.
        connect(m, decode.attribute, *(stage.attribute for stage in (attribute, bus_steps, answer_word, offer)))
        connect(m, attribute.word, *(of.word for of in (decision, settings, bus_steps, answer_word, departure)))
        m.d.comb += [
            decode.output_port.eq(departure.port),
            decode.lap.eq(work.steps.lap),
            attribute.base.eq(decode.base),
        ]

        # The bus.
        connect(m, bus_steps.bus, flipped(self.bus))
        connect(m, departure.route, bus_steps.route)
        m.d.comb += bus_steps.writes.eq(attribute.writes)
        m.d.comb += [stage.read.eq(bus_steps.read) for stage in (attribute, answer_word, departure)]
        if self._is_switch:
            m.d.comb += answer_word.p_key_violations.eq(bus_steps.p_key_violations)

        # A word of the answer, or of a trap's Notice.
        connect(m, flipped(self.identity), answer_word.identity)
        connect(m, decision.key, answer_word.key)
        m.d.comb += [answer_word.trap.eq(traps.sent), answer_word.client_reregister.eq(attribute.client_reregister)]
        self._tell_of_keys(m)

        # Some write to the packet, one at a time, and some read it.
        writes = [receive.write, traps.write, answer_word.write, departure.write]
        if self._is_switch:
            self._add_congestion(m)
            writes.append(m.submodules.windows.write)
        m.d.comb += [
            packet.write.eq(any_of(map(Value.cast, writes))),
            packet.path_word.eq(departure.path_word),
            packet.taken.eq(self.stream.ready),
        ]
        m.d.comb += [stage.packet_word.eq(packet.word) for stage in (attribute, departure, offer)]

        # How it leaves.
        connect(m, offer.stream, flipped(self.stream))
        m.d.comb += [
            departure.status.eq(attribute.status),
            offer.offering.eq(work.offering),
            work.long.eq(decode.attribute.chosen[PmaAttribute.PORT_COUNTERS_EXTENDED.name]),
            work.leaves.eq(departure.leaves),
            work.accepted.eq(self.accepted),
            work.sent.eq(offer.sent),
            self.slot.eq(departure.slot),
            self.to_output.eq(departure.to_output),
        ]
        return m

    def _send_traps_to(self, m: Module, destination: Mapping[str, Value]) -> None:
        parts: Any = m.submodules
        m.d.comb += [getattr(parts.traps.destination, name).eq(value) for name, value in destination.items()]
        m.d.comb += parts.departure.trap_lid.eq(destination["lid"])

    def _tell_of_keys(self, m: Module) -> None:
        """The latest packet with a wrong key, of those that the host finds, or that a switch's ports reject."""
        parts: Any = m.submodules
        layout, state = told_layout(self._is_switch), self.node_state
        wrong = state.wrong_p_key if self._is_switch else state.key_violation
        events = wrong.valid if self._is_switch else wrong.found
        m.submodules.latest_events = latest_events = LatestEvents(layout, len(events))
        told, happened = wrong, Signal.like(events)
        m.d.sync += happened.eq(events)
        if not self._is_switch:
            found, told = Signal.like(wrong), Signal.like(wrong)
            m.d.sync += [found.eq(wrong), told.eq(found)]
        m.d.comb += [
            parts.traps.told.eq(events),
            latest_events.happens.eq(happened),
            *(latest_events.event[name].eq(told[name]) for name, _ in layout),
            latest_events.begins.eq(parts.traps.tells),
            parts.answer_word.told.eq(latest_events.told),
        ]

    def _add_congestion(self, m: Module) -> None:
        """What only CC requests need, which only a switch's agent answers."""
        parts: Any = m.submodules
        windows, decision = parts.windows, parts.decision
        m.submodules.cc_key = cc_key = CcKey()
        m.d.comb += [
            cc_key.lease_second.eq(self.lease_second),
            cc_key.check.eq(decision.cc_check),
            cc_key.get.eq(decision.cc_get),
            cc_key.given.eq(parts.receive.head.cc_key),
            cc_key.access.eq(self.congestion),
            decision.cc_good.eq(cc_key.good),
            decision.cc_answered.eq(cc_key.answered),
            windows.hidden.eq(cc_key.hidden),
            windows.read.eq(parts.bus_steps.read),
            parts.work.more.eq(windows.more),
            parts.packet.window_word.eq(windows.packet_word),
            parts.bus_steps.window.eq(windows.access),
        ]
        m.d.comb += [stage.window.eq(windows.window) for stage in (parts.work, parts.decode, parts.offer)]
        connect(m, parts.decode.attribute, windows.attribute)
        connect(m, parts.attribute.word, windows.word)

        # Its trap.
        m.submodules.class_port_info = class_port_info = CcClassPortInfo()
        destination = class_port_info.destination
        self._send_traps_to(m, {name: getattr(destination, name) for name in TrapDestination.members})
        m.d.comb += [
            class_port_info.access.eq(self.congestion),
            class_port_info.taken.eq(parts.work.steps.first & parts.work.trap),
            class_port_info.gmp_trap.eq(decision.task.gmp_trap),
            class_port_info.sm_lid.eq(parts.settings.values.master_sm_lid),
            class_port_info.sm_sl.eq(parts.settings.values.master_sm_sl),
            parts.traps.wanted.eq(class_port_info.wanted),
            parts.traps.wanted_next.eq(class_port_info.wanted_next),
            parts.traps.cc_violation.eq(decision.cc_violation),
            decision.gmp_trap.eq(parts.traps.sent[CC_TRAP]),
            decision.trap_sl.eq(destination.sl),
            parts.decode.before_data.eq(below(parts.work.steps.slot, SET_SLOT)),
        ]
        m.d.sync += self.congestion_rdata.eq(cc_key.shown | class_port_info.shown)
