"""The agent behind port 0: SMI, SMA, the sender of traps, and PMA (docs/management.md)."""

from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.rows_to_words import HostWordSignature
from rtl.crossing.words_to_rows import HostStreamSignature
from rtl.management.answer_word import AnswerWord
from rtl.management.attribute_decode import AttributeDecode
from rtl.management.attribute_memory import BLOCK_WORDS, AttributeMap
from rtl.management.attribute_words import AttributeWords
from rtl.management.bus_steps import BusSteps
from rtl.management.departure import Departure
from rtl.management.icrc import Icrc
from rtl.management.identity import IdentitySignature
from rtl.management.leaving_slot import LeavingSlot
from rtl.management.m_key import MKey
from rtl.management.mad_head import DATA_WORD, M_KEY_WORD, TRANSACTION_WORD, MadReceive
from rtl.management.mad_packet import MAD_WORDS
from rtl.management.packet_memory import WHOLE, PacketMemory
from rtl.management.place import WORD_BITS, place
from rtl.management.settings import Settings
from rtl.management.smi import Goes, Hop, Smi, Way
from rtl.management.step import ANSWER_SLOT, NEXT_WORD, SET_SLOT, STEP_BITS, WORD_TAKEN, first_step
from rtl.management.trap_packet import VIOLATION_M_KEY_WORD, head_words, trap_numbers, violation_words
from rtl.management.traps import Traps
from rtl.management.work import Work
from rtl.registers.bus import BusSignature
from rtl.widths import PORT_BITS, SLOT_BITS
from wire.mad import MadMethod, MadStatus
from wire.parameters import NodeParameters, SwitchParameters
from wire.registers import DATA_BITS
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO

__all__ = ["Agent"]

_CHANGE = place(SWITCH_INFO["port_state_change"])
_CHANGE_CLEARED_STEP: Final = first_step(SET_SLOT + _CHANGE.word) + 2
_COMMIT_STEP: Final = first_step(ANSWER_SLOT) - 1

# Of the steps that follow nothing is seen outside.
_PATH_STEP: Final = 2
_VIOLATION_SLOT: Final = 1
_VIOLATION_M_KEY_STEP: Final = 9
_TRAP_HEAD_STEP: Final = first_step(SET_SLOT)
_AHEAD: Final = 5
"""The step of the last slot from which on the packet is read ahead; those before write its new headers."""


class Agent(wiring.Component):
    """Takes a packet or begins a trap, works on it step by step, offers what comes of it.

    Members:
        words: the packet that it is sent; word w in cycle x_(w+1) + 3. `arrival` is the port that it came in by, 0 for
            an adapter's host.
        ended: in cycle z, the packet is over; `good`: it is whole and not flagged bad.
        available: it takes a packet in this cycle; `taken`: some reader has one for it, from the cycle after the grant.
        stream, slot, to_output: the packet that it offers, its slot, and one-hot the output for it: of a switch in
            ports' order, of an adapter the link and the host. `accepted`: it is taken in this cycle, its words follow.
        bus: its accesses. `hold`: the test bus has one in this cycle, so this cycle has no step.
        identity, lease_second: the node's.
        state_reported (switch): in the first cycle of a port's state that PortStateChange tells of.
        active, host_sm (adapter): the port is Active; the host has a Subnet Manager.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._parameters = parameters
        self._is_switch = isinstance(parameters, SwitchParameters)
        outputs = parameters.ports if isinstance(parameters, SwitchParameters) else 2
        of_kind = {"state_reported": In(1)} if self._is_switch else {"active": In(1), "host_sm": In(1)}
        super().__init__(
            {
                "words": In(HostWordSignature()),
                "arrival": In(PORT_BITS),
                "ended": In(1),
                "good": In(1),
                "available": Out(1),
                "taken": In(1),
                "stream": In(HostStreamSignature()),
                "slot": Out(SLOT_BITS),
                "accepted": In(1),
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
        kept_at = AttributeMap(parameters)
        m.submodules.work = work = Work()
        m.submodules.receive = receive = MadReceive(parameters.vls, trap_numbers(is_switch))
        m.submodules.icrc = icrc = Icrc()
        m.submodules.packet = packet = PacketMemory()
        m.submodules.smi = smi = Smi(is_switch)
        m.submodules.key_check = key_check = MKey()
        m.submodules.decode = decode = AttributeDecode(parameters, kept_at)
        m.submodules.attribute = attribute = AttributeWords(parameters, kept_at)
        m.submodules.settings = settings = Settings(parameters)
        m.submodules.bus_steps = bus_steps = BusSteps(parameters)
        m.submodules.answer_word = answer_word = AnswerWord(parameters)
        m.submodules.departure = departure = Departure(parameters)
        m.submodules.leaving_slot = leaving_slot = LeavingSlot(parameters.vls)
        m.submodules.traps = traps = Traps()
        head, trap = receive.head, work.trap
        go, step, last_slot = work.go, work.step, work.last_slot
        slot, in_slot = step[3:], step[:3]
        in_answer = (slot >= ANSWER_SLOT) & (slot < ANSWER_SLOT + BLOCK_WORDS)

        # The packet comes, or a trap begins.
        connect(m, flipped(self.words), receive.words)
        arrival, came_on = Signal(PORT_BITS), Signal(SLOT_BITS)
        with m.If(self.words.valid & self.words.first):
            m.d.sync += [arrival.eq(self.arrival), came_on.eq(self.words.slot)]
        pma = Signal()
        m.d.sync += work.right.eq(icrc.good & (receive.is_smp | receive.is_pma_request))
        m.d.comb += [
            pma.eq(receive.is_pma_request & ~trap),
            receive.m_key.eq(key_check.m_key),
            work.due.eq(traps.pending & settings.traps_can_go & (1 if is_switch else self.active)),
            work.taken.eq(self.taken),
            work.ended.eq(self.ended),
            work.good.eq(self.good),
            work.hold.eq(self.hold),
            self.available.eq(work.available),
            traps.begin.eq(work.begins),
            traps.start.eq(work.first & trap),
        ]

        # Step 0: where an SMP goes, whether it is the SMA's, whether its M_Key is right. A PMA has no such questions.
        from_host, sm_at_host = Signal(), Signal()
        if not is_switch:
            other_bits = (head.dlid ^ settings.lid) >> settings.lmc
            m.d.comb += from_host.eq(arrival == 0)
            m.d.sync += [
                smi.for_own_lid.eq((other_bits == 0) & (settings.lid != 0)),
                sm_at_host.eq((settings.master_sm_lid ^ settings.lid) >> settings.lmc == 0),
            ]
        is_get, is_set, represses = Signal(), Signal(), Signal()
        m.d.sync += [
            is_get.eq(head.method == MadMethod.GET),
            is_set.eq(head.method == MadMethod.SET),
            represses.eq(head.method == MadMethod.TRAP_REPRESS),
        ]
        of_sma = 1 if is_switch else head.attribute_id != SmaAttribute.SM_INFO
        works, answers, violates = Signal(), Signal(), Signal()
        m.d.comb += [
            smi.head.eq(head),
            smi.from_host.eq(from_host),
            works.eq(~trap & ~pma & (smi.way.goes == Goes.AGENT) & (is_get | is_set | represses) & of_sma),
            key_check.lease_second.eq(self.lease_second),
            key_check.check.eq(work.first & works),
            key_check.get.eq(is_get),
            key_check.matches.eq(receive.key_matches),
            answers.eq(pma | (works & key_check.answered & ~represses)),
            violates.eq(works & key_check.violation),
        ]
        way = Signal(Way)
        answering, violated = Signal(), Signal()
        with m.If(work.first):
            m.d.sync += [
                answering.eq(answers),
                violated.eq(violates),
                work.short.eq(~trap & ~answers),
                way.eq(smi.way),
            ]
            with m.If(trap):
                m.d.sync += [way.goes.eq(Mux(sm_at_host, Goes.HOST, Goes.ROUTE)), way.hop.eq(Hop.KEEP)]
            with m.Elif(answers):
                m.d.sync += way.eq(smi.answer_way)
            with m.Elif(works):
                m.d.sync += way.goes.eq(Goes.NOWHERE)
            with m.Elif(smi.way.goes == Goes.AGENT):
                m.d.sync += way.goes.eq(Goes.NOWHERE if is_switch else Goes.HOST)

        # Traps.
        if is_switch:
            event = Value.cast(self.state_reported)
        else:
            host_sm_before = Signal()
            m.d.sync += host_sm_before.eq(self.host_sm)
            event = self.host_sm ^ host_sm_before
        repressed = key_check.check & key_check.good & represses & (head.attribute_id == SmaAttribute.NOTICE)
        m.d.comb += [
            traps.events.eq(
                Mux(settings.sm_known, Cat(event, key_check.check & key_check.violation), 0),
            ),
            traps.repress.eq(Mux(repressed, receive.names, 0)),
            traps.transaction.eq(head.transaction),
            traps.subnet_timeout.eq(settings.subnet_timeout),
        ]

        # The attribute, word by word.
        chosen = decode.chosen
        data_answered, setting, at_port_0 = Signal(), Signal(), Signal()
        m.d.sync += at_port_0.eq(decode.target.port == 0)
        took_port_info = attribute.took & chosen[SmaAttribute.PORT_INFO.name] & (at_port_0 if is_switch else 1)
        m.d.comb += [
            decode.head.eq(head),
            decode.is_set.eq(is_set),
            decode.pma.eq(pma),
            decode.trap.eq(trap),
            decode.output_port.eq(departure.port),
            data_answered.eq(answering & (decode.status == MadStatus.OK)),
            setting.eq(data_answered & is_set),
            attribute.go.eq(go),
            attribute.step.eq(step),
            attribute.first.eq(work.first),
            attribute.base.eq(decode.base),
            attribute.chosen.eq(chosen),
            attribute.at_port_0.eq(at_port_0),
            attribute.setting.eq(setting & ~pma),
            attribute.given.eq(packet.word),
            attribute.state.eq(bus_steps.read),
            key_check.take.eq(took_port_info),
            key_check.word.eq(attribute.word),
            key_check.request.eq(attribute.request),
            settings.take_port_info.eq(took_port_info),
            settings.take_switch_info.eq(attribute.took & chosen[SmaAttribute.SWITCH_INFO.name]),
            settings.word.eq(attribute.word),
            settings.kept.eq(attribute.merged),
            settings.commit.eq(go & (step == _COMMIT_STEP)),
        ]

        # A violation is noted as trap 256 tells of it.
        dr_slid = Mux(head.directed, head.dr_slid, 0)
        told = violation_words(head.slid, head.method, head.attribute_id, head.attribute_modifier, dr_slid)
        told |= {VIOLATION_M_KEY_WORD + half: packet.word for half in range(2)}
        with m.If(go & violated & (slot == _VIOLATION_SLOT)), m.Switch(in_slot):
            for number, (index, value) in enumerate(sorted(told.items())):
                with m.Case(number):
                    m.d.comb += [
                        attribute.note.valid.eq(1),
                        attribute.note.address.eq(kept_at.base[SmaAttribute.NOTICE] + index),
                        attribute.note.word.eq(value),
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
            bus_steps.answering.eq(data_answered),
            bus_steps.request.eq(attribute.request),
            bus_steps.writes.eq(attribute.writes),
            bus_steps.select.eq(Cat(head.counter_select, head.counter_select2[0])),
        ]

        # A word of the answer, or of a trap's Notice. What can change at any time is seen in a slot's first step.
        seen = answer_word.seen
        connect(m, flipped(self.identity), answer_word.identity)
        m.d.comb += [
            answer_word.chosen.eq(chosen),
            answer_word.at_port_0.eq(at_port_0),
            answer_word.trap.eq(traps.sent),
            answer_word.word.eq(attribute.word),
            answer_word.kept.eq(attribute.kept),
            seen.local_port.eq(arrival if is_switch else 1),
            seen.lid.eq(settings.lid),
            seen.client_reregister.eq(attribute.client_reregister),
            seen.m_key_hidden.eq(key_check.hidden),
            seen.m_key_violations.eq(key_check.violations),
            seen.read.eq(bus_steps.read),
        ]
        with m.If(go & (in_slot == 0)):
            m.d.sync += seen.m_key_protect_bits.eq(key_check.protect)
        if is_switch:
            change = Signal()
            clears = chosen[SmaAttribute.SWITCH_INFO.name] & _CHANGE.of(attribute.request)
            with m.If(go & (step == _CHANGE_CLEARED_STEP) & setting & clears):
                m.d.sync += change.eq(0)
            with m.If(self.state_reported):
                m.d.sync += change.eq(1)
            with m.If(go & (in_slot == 0)):
                m.d.sync += seen.port_state_change.eq(change)
        else:
            with m.If(go & (in_slot == 0) & (~trap | work.first)):
                m.d.sync += seen.is_sm.eq(self.host_sm)

        # How it leaves.
        refused = data_answered & attribute.refused
        m.d.comb += [
            departure.go.eq(go),
            departure.step.eq(step),
            departure.last_slot.eq(last_slot),
            departure.way.eq(way),
            departure.answers.eq(answering),
            departure.trap.eq(trap),
            departure.pma.eq(pma),
            departure.head.eq(head),
            departure.arrival.eq(arrival),
            departure.record.eq(smi.record),
            departure.lid.eq(settings.lid),
            departure.master_sm_lid.eq(settings.master_sm_lid),
            departure.status.eq(Mux(refused, MadStatus.INVALID_ATTRIBUTE_VALUE, decode.status)),
            departure.word.eq(packet.word),
            departure.read.eq(bus_steps.read),
            leaving_slot.first.eq(work.first),
            leaving_slot.pma.eq(pma),
            leaving_slot.to_host.eq(from_host),
            leaving_slot.came_on.eq(came_on),
            leaving_slot.sl.eq(head.sl),
            leaving_slot.look.eq(go & in_answer & (in_slot == 0)),
            leaving_slot.word.eq(attribute.word),
            leaving_slot.kept.eq(attribute.kept),
            work.leaves.eq(departure.to_output.any() & leaving_slot.there),
            work.waits.eq(~pma),
            work.accepted.eq(self.accepted),
            self.to_output.eq(departure.to_output),
            self.slot.eq(leaving_slot.slot),
        ]
        if is_switch:
            m.d.comb += departure.linear_fdb_top.eq(settings.linear_fdb_top)

        # What is written to the packet.
        write = packet.write
        trap_word = Signal(STEP_BITS)
        m.d.comb += [write.eq(departure.write), trap_word.eq(step - _TRAP_HEAD_STEP)]

        def put(index: Value, word: Value, in_word: Value | int = WHOLE) -> None:
            m.d.comb += [write.bytes.eq(in_word), write.index.eq(index), write.word.eq(word)]

        with m.If(self.words.valid & (receive.index < MAD_WORDS)):
            put(receive.index, self.words.data)
        with m.If(traps.start):
            put(Value.cast(TRANSACTION_WORD + 1), traps.count)
        with m.If(go & trap & (trap_word < MAD_WORDS) & (trap_word != TRANSACTION_WORD + 1)):
            put(trap_word, Value.cast(0))
            with m.Switch(trap_word):
                for index, value in head_words(is_switch, traps.sent, settings.master_sm_sl).items():
                    with m.Case(index):
                        m.d.comb += write.word.eq(value)
        with m.If(go & in_answer & (data_answered | trap) & (in_slot == WORD_TAKEN)):
            put(DATA_WORD + attribute.word, answer_word.answer, answer_word.bytes)

        # What is read of it. At the end one word waits in the memory's register, and one before the stream.
        taken = self.stream.ready
        ahead = go & last_slot & ((in_slot == _AHEAD) | (in_slot == _AHEAD + 1))
        m.d.comb += packet.read.eq((go & ~(last_slot & (in_slot > _AHEAD + 1))) | taken)
        with m.If(go & (step == _PATH_STEP)):
            m.d.sync += packet.index.eq(departure.path_word)
        for half in range(2):
            with m.If(go & violated & (step == _VIOLATION_M_KEY_STEP + half)):
                m.d.sync += packet.index.eq(M_KEY_WORD + half)
        with m.If(go & ~last_slot & (in_slot == NEXT_WORD)):
            m.d.sync += packet.index.eq(DATA_WORD + 1 - SET_SLOT + slot)
        with m.If(go & last_slot & (in_slot == _AHEAD - 1)):
            m.d.sync += packet.index.eq(0)
        with m.If(ahead | taken):
            m.d.sync += packet.index.eq(packet.index + 1)

        # The packet offered, with an ICRC of its own.
        offering = work.offering
        next_word, count = Signal(WORD_BITS), Signal(range(MAD_WORDS))
        beyond = pma & data_answered & (count >= DATA_WORD + BLOCK_WORDS - 1)  # behind an attribute nothing stays
        with m.If(taken | (go & last_slot & (in_slot == _AHEAD + 1))):
            m.d.sync += next_word.eq(Mux(beyond, 0, packet.word))
        with m.If(taken):
            m.d.sync += count.eq(count + 1)
        with m.Elif(~offering):
            m.d.sync += count.eq(0)
        ends = count == MAD_WORDS - 1
        m.d.comb += [
            icrc.take.eq(Mux(offering, taken, self.words.valid)),
            icrc.word.eq(Mux(offering, next_word, self.words.data)),
            icrc.index.eq(Mux(offering, count, receive.index)),
            self.stream.valid.eq(offering),
            self.stream.length.eq(MAD_WORDS),
            self.stream.data.eq(Mux(ends, icrc.ends, next_word)),
            work.sent.eq(taken & ends),
        ]
        return m
