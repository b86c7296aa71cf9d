"""The agent behind port 0: SMI, SMA and the sender of traps (docs/management.md)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.adapter.host_receive import HostWordSignature
from rtl.adapter.host_send import HostStreamSignature
from rtl.management.answer_word import AnswerWord
from rtl.management.attribute_memory import BLOCK_WORDS, AttributeMap, AttributeMemory
from rtl.management.bus import BusSignature
from rtl.management.bus_steps import BusSteps
from rtl.management.departure import Departure
from rtl.management.icrc import Icrc
from rtl.management.identity import IdentitySignature
from rtl.management.m_key import MKey
from rtl.management.packet_memory import WHOLE, PacketMemory
from rtl.management.place import WORD_BITS, place
from rtl.management.set_rules import SetRules
from rtl.management.settings import Settings
from rtl.management.sma import AttributeDecode
from rtl.management.smi import Goes, Hop, Smi, Way
from rtl.management.smp_head import DATA_WORD, M_KEY_WORD, TRANSACTION_WORD, SmpReceive
from rtl.management.smp_packet import SMP_WORDS
from rtl.management.step import (
    ANSWER_SLOT,
    ANSWER_STEPS,
    PASS_STEPS,
    SET_SLOT,
    SLOT_STEPS,
    STEP_BITS,
    first_step,
)
from rtl.management.trap_packet import VIOLATION_M_KEY_WORD, head_words, trap_numbers, violation_words
from rtl.management.traps import Traps
from rtl.widths import PORT_BITS
from wire.mad import MadMethod, MadStatus
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.registers import DATA_BITS
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO

__all__ = ["Agent"]

# Steps inside the agent; outside nothing is seen of them.
_PATH_STEP = 2
_TRAP_STEP = first_step(SET_SLOT)
_VIOLATION_SLOT = 1
_VIOLATION_M_KEY_STEP = 9
_COMMIT_STEP = first_step(ANSWER_SLOT) - 1
_CHANGE_CLEARED_STEP = first_step(SET_SLOT + place(SWITCH_INFO["port_state_change"]).word) + 2

# Steps in a slot: a word and its place in the attribute memory are taken in the last of the slot before, judged in the
# first, written in the third; an answer's word is put together in the last but one and written in the last.
_MERGED, _NEXT_WORD, _TAKEN = 1, 3, 7
_AHEAD_STEP = 5  # of the last slot, when the new header is written


class Agent(wiring.Component):
    """Takes a packet or begins a trap, works on it step by step, offers what comes of it.

    Members:
        words: the packet that it is sent; word w in cycle x_(w+1) + 3. `arrival` is the port that it came in by, 0 for
            an adapter's host.
        ended: in cycle z, the packet is over; `good`: it is whole and not flagged bad.
        available: it takes a packet in this cycle; `granted`: it is given one.
        stream, to_output: the packet that it offers, and one-hot the output for it: of a switch in ports' order, of an
            adapter the link and the host.
        bus: its accesses. `hold`: the test bus has one in this cycle, so this cycle has no step.
        identity, lease_second: the node's.
        state_changed (switch): in the first cycle of a port's state that PortStateChange tells of.
        active, host_sm (adapter): the port is Active; the host has a Subnet Manager.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._parameters = parameters
        self._is_switch = isinstance(parameters, SwitchParameters)
        outputs = parameters.ports if isinstance(parameters, SwitchParameters) else 2
        of_kind = {"state_changed": In(1)} if self._is_switch else {"active": In(1), "host_sm": In(1)}
        super().__init__(
            {
                "words": In(HostWordSignature()),
                "arrival": In(PORT_BITS),
                "ended": In(1),
                "good": In(1),
                "available": Out(1),
                "granted": In(1),
                "stream": In(HostStreamSignature()),
                "to_output": Out(outputs),
                "bus": Out(BusSignature()),
                "hold": In(1),
                "identity": In(IdentitySignature()),
                "lease_second": In(DATA_BITS),
                **of_kind,
            }
        )

    def elaborate(self, platform: object) -> Module:
        """As a packet goes through."""
        m = Module()
        parameters, is_switch = self._parameters, self._is_switch
        attributes = AttributeMap(parameters)
        m.submodules.receive = receive = SmpReceive(parameters.vls, trap_numbers(is_switch))
        m.submodules.icrc = icrc = Icrc()
        m.submodules.packet = packet = PacketMemory()
        m.submodules.smi = smi = Smi(is_switch)
        m.submodules.m_key = m_key = MKey()
        m.submodules.decode = decode = AttributeDecode(parameters, attributes)
        m.submodules.memory = memory = AttributeMemory(attributes)
        m.submodules.rules = rules = SetRules(parameters)
        m.submodules.settings = settings = Settings(parameters)
        m.submodules.bus_steps = bus_steps = BusSteps(parameters)
        m.submodules.answer_word = answer_word = AnswerWord(parameters)
        m.submodules.departure = departure = Departure(parameters)
        m.submodules.traps = traps = Traps()
        head = receive.head

        # Free, or a trap begins, or a packet is taken; then the steps; then the packet is offered.
        free = Signal(init=1)
        due = Signal()
        trap_follows = Signal()
        working, trap, offering = Signal(), Signal(), Signal()
        step = Signal(STEP_BITS)
        slot, in_slot = step[3:], step[:3]
        go, at_0 = Signal(), Signal()
        short = Signal()
        last_slot = Signal()
        sent = Signal()
        over = [Signal(name=f"over_{cycles}") for cycles in (1, 2, 3)]
        good, right = Signal(), Signal()
        m.d.comb += [
            due.eq(traps.pending & settings.traps_can_go & (1 if is_switch else self.active)),
            self.available.eq(free & ~due),
            traps.begin.eq(free & due),
            go.eq(working & ~self.hold),
            at_0.eq(go & (step == 0)),
            last_slot.eq(slot == Mux(short, PASS_STEPS, ANSWER_STEPS) // SLOT_STEPS - 1),
        ]
        m.d.sync += [
            over[0].eq(self.ended),
            over[1].eq(over[0]),
            over[2].eq(over[1]),
            right.eq(icrc.good & receive.is_smp),
            trap_follows.eq(traps.begin),
        ]
        with m.If(self.granted | traps.begin):
            m.d.sync += free.eq(0)
        with m.If(self.ended):
            m.d.sync += good.eq(self.good)
        with m.If(over[2] | trap_follows):
            m.d.sync += [step.eq(0), trap.eq(trap_follows), working.eq((good & right) | trap_follows)]
        with m.If(over[2] & ~(good & right)):
            m.d.sync += free.eq(1)
        with m.If(go):
            m.d.sync += step.eq(step + 1)
            with m.If(last_slot & (in_slot == SLOT_STEPS - 1)):
                m.d.sync += working.eq(0)
                with m.If(departure.to_output.any()):
                    m.d.sync += offering.eq(1)
                with m.Else():
                    m.d.sync += free.eq(1)
        with m.If(sent):
            m.d.sync += [offering.eq(0), free.eq(1)]

        # The packet's words, and the way of an SMP.
        connect(m, flipped(self.words), receive.words)
        arrival = Signal(PORT_BITS)
        from_host = Signal()
        with m.If(self.words.valid & self.words.first):
            m.d.sync += arrival.eq(self.arrival)
        if not is_switch:
            other_bits = (head.dlid ^ settings.lid) >> settings.lmc
            m.d.comb += from_host.eq(arrival == 0)
            m.d.sync += smi.for_own_lid.eq((other_bits == 0) & (settings.lid != 0))
        m.d.comb += [
            receive.m_key.eq(m_key.m_key),
            smi.head.eq(head),
            smi.from_host.eq(from_host),
        ]

        # Step 0: is it the SMA's, may it?
        works, answers, violated = Signal(), Signal(), Signal()
        is_set, is_get, represses = Signal(), Signal(), Signal()
        way = Signal(Way)
        m.d.sync += [
            is_get.eq(head.method == MadMethod.GET),
            is_set.eq(head.method == MadMethod.SET),
            represses.eq(head.method == MadMethod.TRAP_REPRESS),
        ]
        of_sma = 1 if is_switch else head.attribute_id != SmaAttribute.SM_INFO
        m.d.comb += [
            works.eq(~trap & (smi.way.goes == Goes.AGENT) & (is_get | is_set | represses) & of_sma),
            m_key.lease_second.eq(self.lease_second),
            m_key.check.eq(at_0 & works),
            m_key.get.eq(is_get),
            m_key.matches.eq(receive.key_matches),
        ]
        answered = works & m_key.answered & ~represses
        with m.If(at_0):
            m.d.sync += [
                answers.eq(answered),
                violated.eq(works & m_key.violation),
                short.eq(~trap & ~answered),
                way.eq(smi.way),
            ]
            with m.If(trap):
                m.d.sync += [way.goes.eq(Goes.ROUTE), way.hop.eq(Hop.KEEP)]
            with m.Elif(answered):
                m.d.sync += way.eq(smi.answer_way)
            with m.Elif(works):
                m.d.sync += way.goes.eq(Goes.NOWHERE)
            with m.Elif(smi.way.goes == Goes.AGENT):
                m.d.sync += way.goes.eq(Goes.NOWHERE if is_switch else Goes.HOST)

        # Traps.
        if is_switch:
            changed = self.state_changed
        else:
            host_sm_before = Signal()
            m.d.sync += host_sm_before.eq(self.host_sm)
            changed = self.host_sm ^ host_sm_before
        sm_known = settings.sm_known
        named = head.attribute_id == SmaAttribute.NOTICE
        may_repress = m_key.check & m_key.good & represses & named
        m.d.comb += [
            traps.events.eq(Cat(changed & sm_known, m_key.check & m_key.violation & sm_known)),
            traps.repress.eq(Mux(may_repress, receive.names, 0)),
            traps.transaction.eq(head.transaction),
            traps.subnet_timeout.eq(settings.subnet_timeout),
            traps.start.eq(at_0 & trap),
        ]

        # The attribute, and the words of a Set: what is kept of each is merged with what is taken of the request.
        answering, setting, at_port_0 = Signal(), Signal(), Signal()
        of_node = at_port_0 if is_switch else 1
        chosen = decode.chosen
        m.d.comb += [
            decode.attribute.eq(head.attribute_id),
            decode.modifier.eq(head.attribute_modifier),
            decode.is_set.eq(is_set),
            decode.version_known.eq(head.version_known),
            decode.trap.eq(trap),
            answering.eq(answers & (decode.status == MadStatus.OK)),
            setting.eq(answering & is_set),
        ]
        m.d.sync += at_port_0.eq(decode.target.port == 0)

        word = Signal(range(BLOCK_WORDS))
        in_set, in_answer = Signal(), Signal()
        request, kept = Signal(WORD_BITS), Signal(WORD_BITS)
        m.d.comb += [
            word.eq(slot - SET_SLOT),
            in_set.eq((slot >= SET_SLOT) & (slot < SET_SLOT + BLOCK_WORDS)),
            in_answer.eq((slot >= ANSWER_SLOT) & (slot < ANSWER_SLOT + BLOCK_WORDS)),
            rules.chosen.eq(chosen),
            rules.at_port_0.eq(at_port_0),
            rules.word.eq(word),
            rules.request.eq(request),
            rules.state.eq(bus_steps.read),
        ]
        with m.If(go & (in_slot == _NEXT_WORD)):
            begins = (slot == SET_SLOT - 1) | (slot == ANSWER_SLOT - 1)
            m.d.sync += memory.address.eq(Mux(begins, decode.base, memory.address + 1))
        with m.If(go & (in_slot == _TAKEN)):
            m.d.sync += [request.eq(packet.word), kept.eq(memory.word)]

        refused, reregister, took = Signal(), Signal(), Signal()
        of_port_info, of_switch_info = chosen[SmaAttribute.PORT_INFO.name], chosen[SmaAttribute.SWITCH_INFO.name]
        client_reregister = place(PORT_INFO["client_reregister"])
        m.d.sync += [took.eq(0), memory.write.valid.eq(0)]
        with m.If(at_0):
            m.d.sync += [refused.eq(0), reregister.eq(0)]
        with m.If(go & in_set & setting & (in_slot == _MERGED)):
            m.d.sync += [
                took.eq(1),
                refused.eq(refused | rules.refused),
                memory.write.valid.eq(1),
                memory.write.address.eq(memory.address),
                memory.write.word.eq((kept & ~rules.mask) | (request & rules.mask)),
            ]
            with m.If(of_port_info & (word == client_reregister.word)):
                m.d.sync += reregister.eq(client_reregister.of(request))
        m.d.comb += [
            m_key.take.eq(took & of_port_info & of_node),
            m_key.word.eq(word),
            m_key.request.eq(request),
            settings.take_port_info.eq(took & of_port_info & of_node),
            settings.take_switch_info.eq(took & of_switch_info),
            settings.word.eq(word),
            settings.kept.eq(memory.write.word),
            settings.commit.eq(go & (step == _COMMIT_STEP)),
        ]

        # The bus.
        connect(m, bus_steps.bus, flipped(self.bus))
        m.d.comb += [
            bus_steps.go.eq(go),
            bus_steps.step.eq(step),
            bus_steps.route.eq(departure.route),
            bus_steps.lid.eq(departure.dlid),
            bus_steps.chosen.eq(chosen),
            bus_steps.target.eq(decode.target),
            bus_steps.at_port_0.eq(at_port_0),
            bus_steps.setting.eq(setting),
            bus_steps.answering.eq(answering),
            bus_steps.request.eq(request),
            bus_steps.writes.eq(rules.writes),
        ]

        # A violation is kept as trap 256 tells of it.
        told = violation_words(
            head.slid,
            head.method,
            head.attribute_id,
            head.attribute_modifier,
            Mux(head.directed, head.dr_slid, 0),
        )
        told |= {VIOLATION_M_KEY_WORD + half: packet.word for half in range(2)}
        notice = attributes.base[SmaAttribute.NOTICE]
        with m.If(go & violated & (slot == _VIOLATION_SLOT)), m.Switch(in_slot):
            for number, (index, value) in enumerate(sorted(told.items())):
                with m.Case(number):
                    m.d.sync += [
                        memory.write.valid.eq(1),
                        memory.write.address.eq(notice + index),
                        memory.write.word.eq(value),
                    ]

        # The answer's or the trap's words.
        seen = answer_word.seen
        m.d.comb += [
            answer_word.chosen.eq(chosen),
            answer_word.at_port_0.eq(at_port_0),
            answer_word.trap.eq(traps.sent),
            answer_word.word.eq(word),
            answer_word.kept.eq(kept),
            seen.local_port.eq(arrival if is_switch else 1),
            seen.lid.eq(settings.lid),
            seen.client_reregister.eq(reregister),
            seen.m_key_hidden.eq(m_key.hidden),
            seen.m_key_violations.eq(m_key.violations),
            seen.link_width_active.eq(bus_steps.read),
            seen.port_state.eq(bus_steps.read_before),
            seen.port_physical_state.eq(bus_steps.read),
        ]
        connect(m, flipped(self.identity), answer_word.identity)
        with m.If(go & (in_slot == 0)):
            m.d.sync += seen.m_key_protect_bits.eq(m_key.protect)
        if is_switch:
            changes = Signal()
            clear = place(SWITCH_INFO["port_state_change"])
            with m.If(go & (step == _CHANGE_CLEARED_STEP) & setting & of_switch_info & clear.of(request)):
                m.d.sync += changes.eq(0)
            with m.If(self.state_changed):
                m.d.sync += changes.eq(1)
            with m.If(go & (in_slot == 0)):
                m.d.sync += seen.port_state_change.eq(changes)
        else:
            with m.If(go & (in_slot == 0) & (~trap | at_0)):
                m.d.sync += seen.is_sm.eq(self.host_sm)

        # How it leaves.
        m.d.comb += [
            departure.go.eq(go),
            departure.step.eq(step),
            departure.last_slot.eq(last_slot),
            departure.way.eq(way),
            departure.answers.eq(answers),
            departure.trap.eq(trap),
            departure.head.eq(head),
            departure.arrival.eq(arrival),
            departure.record.eq(smi.record),
            departure.lid.eq(settings.lid),
            departure.master_sm_lid.eq(settings.master_sm_lid),
            departure.status.eq(Mux(answering & refused, MadStatus.INVALID_ATTRIBUTE_VALUE, decode.status)),
            departure.word.eq(packet.word),
            departure.read.eq(bus_steps.read),
            self.to_output.eq(departure.to_output),
        ]
        if is_switch:
            m.d.comb += departure.linear_fdb_top.eq(settings.linear_fdb_top)

        # Writes to the packet.
        write = packet.write
        trap_word = Signal(STEP_BITS)
        m.d.comb += [write.eq(departure.write), trap_word.eq(step - _TRAP_STEP)]
        with m.If(self.words.valid & (receive.index < SMP_WORDS)):
            m.d.comb += [write.bytes.eq(WHOLE), write.index.eq(receive.index), write.word.eq(self.words.data)]
        count_word = TRANSACTION_WORD + 1
        with m.If(at_0 & trap):
            m.d.comb += [write.bytes.eq(WHOLE), write.index.eq(count_word), write.word.eq(traps.count)]
        with m.If(go & trap & (trap_word < SMP_WORDS) & (trap_word != count_word)):
            m.d.comb += [write.bytes.eq(WHOLE), write.index.eq(trap_word)]
            with m.Switch(trap_word):
                for index, value in head_words(is_switch, traps.sent, settings.master_sm_sl).items():
                    with m.Case(index):
                        m.d.comb += write.word.eq(value)
                with m.Default():
                    m.d.comb += write.word.eq(0)
        with m.If(go & in_answer & (answering | trap) & (in_slot == _TAKEN)):
            m.d.comb += [write.bytes.eq(WHOLE), write.index.eq(DATA_WORD + word), write.word.eq(answer_word.answer)]

        # Reads of the packet. From the last slot on it is read ahead: one word in the memory's register, one before
        # the output.
        taken = self.stream.ready
        reads_ahead = go & last_slot & ((in_slot == _AHEAD_STEP) | (in_slot == _AHEAD_STEP + 1))
        m.d.comb += packet.read.eq((go & ~(last_slot & (in_slot > _AHEAD_STEP + 1))) | taken)
        with m.If(go & (step == _PATH_STEP)):
            m.d.sync += packet.index.eq(departure.path_word)
        with m.If(go & violated & (step == _VIOLATION_M_KEY_STEP)):
            m.d.sync += packet.index.eq(M_KEY_WORD)
        with m.If(go & violated & (step == _VIOLATION_M_KEY_STEP + 1)):
            m.d.sync += packet.index.eq(M_KEY_WORD + 1)
        with m.If(go & ~last_slot & (in_slot == _NEXT_WORD)):
            m.d.sync += packet.index.eq(DATA_WORD + 1 - SET_SLOT + slot)
        with m.If(go & last_slot & (in_slot == _AHEAD_STEP - 1)):
            m.d.sync += packet.index.eq(0)
        with m.If(reads_ahead | taken):
            m.d.sync += packet.index.eq(packet.index + 1)

        # The packet offered, with a new ICRC.
        word_out = Signal(WORD_BITS)
        taken_words = Signal(range(SMP_WORDS))
        with m.If((go & last_slot & (in_slot == _AHEAD_STEP + 1)) | taken):
            m.d.sync += word_out.eq(packet.word)
        with m.If(taken):
            m.d.sync += taken_words.eq(taken_words + 1)
        with m.If(~offering):
            m.d.sync += taken_words.eq(0)
        is_last = taken_words == SMP_WORDS - 1
        m.d.comb += [
            icrc.take.eq(Mux(offering, taken, self.words.valid)),
            icrc.word.eq(Mux(offering, word_out, self.words.data)),
            icrc.index.eq(Mux(offering, taken_words, receive.index)),
            sent.eq(taken & is_last),
            self.stream.valid.eq(offering),
            self.stream.length.eq(SMP_WORDS),
            self.stream.data.eq(Mux(is_last, icrc.icrc, word_out)),
        ]
        return m
