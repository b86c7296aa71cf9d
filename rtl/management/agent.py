"""The agent behind port 0: SMI, SMA, the sender of traps, and PMA (docs/management.md)."""

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.rows_to_words import HostWordSignature
from rtl.crossing.words_to_rows import HostStreamSignature
from rtl.management.answer_word import AnswerWord
from rtl.management.attribute_decode import AttributeDecode
from rtl.management.attribute_memory import AttributeMap
from rtl.management.attribute_words import AttributeWords
from rtl.management.bus_steps import BusSteps
from rtl.management.decision import Decision
from rtl.management.departure import Departure
from rtl.management.identity import IdentitySignature
from rtl.management.leaving_slot import LeavingSlot
from rtl.management.mad_head import MadReceive
from rtl.management.node_state import NodeStateSignature
from rtl.management.offer import Offer
from rtl.management.packet_memory import PacketMemory
from rtl.management.packet_reads import PacketReads
from rtl.management.settings import Settings
from rtl.management.trap_head import TrapHead
from rtl.management.traps import Traps
from rtl.management.violation_note import ViolationNote
from rtl.management.work import TakingSignature, Work
from rtl.registers.bus import BusSignature
from rtl.rotation import any_of
from rtl.widths import PORT_BITS, SLOT_BITS
from wire.parameters import NodeParameters, SwitchParameters
from wire.registers import DATA_BITS

__all__ = ["Agent"]


class Agent(wiring.Component):
    """Takes a packet or begins a trap, works on it step by step, offers what comes of it.

    Members:
        taking: when it takes a packet.
        words: the packet that it is sent; word w in cycle x_(w+1) + 3. `arrival` is the port that it came in by, 0 for
            an adapter's host.
        stream, slot, to_output: the packet that it offers, its slot, and one-hot the output for it: of a switch in
            ports' order, of an adapter the link and the host. `accepted`: it is taken in this cycle, its words follow.
        bus: its accesses. `hold`: the test bus has one in this cycle, so this cycle has no step.
        identity, lease_second, node_state: the node's.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._parameters = parameters
        outputs = parameters.ports if isinstance(parameters, SwitchParameters) else 2
        super().__init__(
            {
                "taking": Out(TakingSignature()),
                "words": In(HostWordSignature()),
                "arrival": In(PORT_BITS),
                "stream": In(HostStreamSignature()),
                "slot": Out(SLOT_BITS),
                "accepted": In(1),
                "to_output": Out(outputs),
                "bus": Out(BusSignature()),
                "hold": In(1),
                "identity": In(IdentitySignature()),
                "lease_second": In(DATA_BITS),
                "node_state": In(NodeStateSignature(parameters)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """As a packet goes through."""
        m = Module()
        parameters = self._parameters
        kept_at = AttributeMap(parameters)
        m.submodules.work = work = Work()
        m.submodules.receive = receive = MadReceive(parameters)
        m.submodules.decision = decision = Decision(parameters)
        m.submodules.settings = settings = Settings(parameters)
        m.submodules.traps = traps = Traps(parameters)
        m.submodules.trap_head = trap_head = TrapHead(parameters)
        m.submodules.violation_note = violation_note = ViolationNote(kept_at)
        m.submodules.decode = decode = AttributeDecode(parameters, kept_at)
        m.submodules.attribute = attribute = AttributeWords(parameters, kept_at)
        m.submodules.bus_steps = bus_steps = BusSteps(parameters)
        m.submodules.answer_word = answer_word = AnswerWord(parameters)
        m.submodules.packet = packet = PacketMemory()
        m.submodules.packet_reads = packet_reads = PacketReads()
        m.submodules.departure = departure = Departure(parameters)
        m.submodules.leaving_slot = leaving_slot = LeavingSlot(parameters.vls)
        m.submodules.offer = offer = Offer()

        def share(name: str, source: Any, *stages: Any) -> None:
            connect(m, source, *(getattr(stage, name) for stage in stages))

        # The packet comes, or a trap begins. Then steps follow.
        connect(m, flipped(self.taking), work.taking)
        connect(m, flipped(self.words), receive.words)
        m.d.comb += [
            receive.arrival.eq(self.arrival),
            receive.m_key.eq(decision.key.m_key),
            offer.came.eq(receive.write),
            work.right.eq(offer.right & (receive.head.is_smp | receive.head.is_pma_request)),
            work.due.eq(traps.due),
            traps.begins.eq(work.begins),
            work.hold.eq(self.hold),
        ]
        word_by_word = (attribute, bus_steps, answer_word, packet_reads)
        leaving = (departure, leaving_slot)
        share("steps", work.steps, decision, settings, traps, trap_head, violation_note, *word_by_word, *leaving, offer)

        # Step 0 decides what is done with it.
        share("task", decision.task, traps, trap_head, violation_note, decode, *word_by_word, *leaving)
        share("settings", settings.values, decision, traps, trap_head, answer_word, departure)
        m.d.comb += [
            decision.head.eq(receive.head),
            decision.trap.eq(work.trap),
            decision.lease_second.eq(self.lease_second),
            work.answers.eq(decision.task.answers),
        ]

        # Traps: what makes one pending, what ends it, what it says.
        share("node_state", flipped(self.node_state), traps, answer_word)
        share("sent", traps.sent, trap_head)
        m.d.comb += [
            traps.violation.eq(decision.violation),
            traps.represses.eq(decision.represses),
            violation_note.m_key_word.eq(packet.word),
            attribute.note.eq(violation_note.note),
        ]

        # The attribute, word by word.
        share("attribute", decode.attribute, *word_by_word[:3])
        share("word", attribute.word, bus_steps, answer_word, leaving_slot)
        share("set_word", attribute.set_word, decision, settings)
        m.d.comb += [
            decode.output_port.eq(departure.port),
            attribute.base.eq(decode.base),
            attribute.given.eq(packet.word),
            attribute.state.eq(bus_steps.read),
        ]

        # The bus.
        connect(m, bus_steps.bus, flipped(self.bus))
        share("route", departure.route, bus_steps)
        m.d.comb += bus_steps.writes.eq(attribute.writes)

        # A word of the answer, or of a trap's Notice.
        share("identity", flipped(self.identity), answer_word)
        share("key", decision.key, answer_word)
        m.d.comb += [
            answer_word.trap.eq(traps.sent.trap),
            answer_word.client_reregister.eq(attribute.client_reregister),
            answer_word.read.eq(bus_steps.read),
        ]

        # These write to the packet, one at a time.
        writers: tuple[Any, ...] = (receive, trap_head, answer_word, departure)
        share("read", packet_reads.read, packet)
        m.d.comb += [
            packet.write.eq(any_of(Value.cast(stage.write) for stage in writers)),
            packet_reads.path_word.eq(departure.path_word),
            packet_reads.taken.eq(self.stream.ready),
        ]

        # How it leaves.
        connect(m, offer.stream, flipped(self.stream))
        m.d.comb += [
            departure.status.eq(attribute.status),
            departure.word.eq(packet.word),
            departure.read.eq(bus_steps.read),
            self.to_output.eq(departure.to_output),
            self.slot.eq(leaving_slot.slot),
            work.leaves.eq(departure.to_output.any() & leaving_slot.there),
            work.waits.eq(~decision.task.pma),
            work.accepted.eq(self.accepted),
            offer.offering.eq(work.offering),
            offer.one_block.eq(decision.task.pma & decode.attribute.answering),
            offer.word.eq(packet.word),
            work.sent.eq(offer.sent),
        ]
        return m
