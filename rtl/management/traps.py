"""Which trap is due (docs/management.md, section 5; IBTA vol 1, 13.4.9 and 14.2.5.1)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from rtl.management.class_port_info import TrapDestination
from rtl.management.identity import NodeStateSignature
from rtl.management.mad_head import TRANSACTION_WORD
from rtl.management.mad_packet import MAD_WORDS
from rtl.management.place import WHOLE, PacketWrite
from rtl.management.settings import SettingsSignature
from rtl.management.task import SET_SLOT, SLOT_STEPS, Stage
from rtl.management.trap_packet import CC_TRAP, TRAPS, head_words, told_traps
from rtl.rotation import behind, first_from, select
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO

__all__ = ["Traps"]

_COUNT_BITS = 16
"""Of a TransactionID, whose lower half has zeros before them."""

_CODE_BITS = PORT_INFO["subnet_timeout"].width
_UNIT_BITS = 10
_HEAD_STEP = SLOT_STEPS * SET_SLOT
_TIMER_BITS = _UNIT_BITS + (1 << _CODE_BITS)
_OF_SWITCH: Final = dict.fromkeys(("cc_violation", "wanted", "wanted_next"), In(1))


class Traps(Stage):
    """Traps by their place in turn.

    Members:
        settings: see `Settings`.
        node_state: makes the first trap pending, `violation` the second, `told` the others.
        cc_violation (switch): likewise of congestion control's; `wanted`, `wanted_next`: see `CcClassPortInfo`.
        destination: where the trap goes, from step 1 on.
        represses: the packet ends the trap of its TransactionID, and is here in the next cycle too.
        due: some trap is. `begins`: it took the agent in the cycle before.
        sent: which one, one-hot, from the cycle after on. `tells`: step 0 of one of `told` is in this cycle.
        write: to the packet: all of a trap's but its data and LIDs; in the cycle after the step that it belongs to, the
            TransactionID in the second after step 0.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        is_switch = isinstance(parameters, SwitchParameters)
        self._told = told_traps(is_switch)
        told = self._told.stop - self._told.start
        super().__init__(
            parameters,
            settings=In(SettingsSignature(parameters)),
            node_state=In(NodeStateSignature(parameters)),
            violation=In(1),
            told=In(told),
            **(_OF_SWITCH if is_switch else {}),
            destination=In(TrapDestination),
            represses=In(1),
            due=Out(1),
            begins=In(1),
            sent=Out(TRAPS),
            tells=Out(told),
            write=Out(PacketWrite),
        )

    def elaborate(self, platform: object) -> Module:
        """What is pending, whose turn it is, and the timer between traps.

        Events come from all over the node. What they change shows in the second cycle after theirs, but is kept a cycle
        late. Only whether a trap is due looks at those that are not kept yet, a cycle ahead; that one is repressed is
        of no account while the agent works.
        """
        m = Module()
        settings, head = self.settings, self.task.head
        if self._is_switch:
            active, event = Const(1), self.node_state.state_reported
        else:
            host_sm_before = Signal()
            m.d.sync += host_sm_before.eq(self.node_state.host_sm)
            active = self.node_state.active
            event = self.node_state.host_sm ^ host_sm_before
        pending = Signal(TRAPS)
        counts = [Signal(_COUNT_BITS, name=f"count_{trap}") for trap in range(TRAPS)]
        happened, events = Signal(TRAPS), Signal(TRAPS)  # in the cycle before, and in that before it
        happens_now = Cat(event, self.violation, self.told)
        # Whether there is somebody to tell: now, when it is due in the next cycle, and when that was the cycle before.
        to_sm = Value.cast(settings.sm_known)
        wanted, wanted_next, wanted_before = ([to_sm] * TRAPS for _ in range(3))
        of_class = [~self.task.congestion] * TRAPS
        if self._is_switch:
            happens_now = Cat(happens_now, self.cc_violation)
            was_wanted = Signal()
            m.d.sync += was_wanted.eq(self.wanted)
            wanted[CC_TRAP], wanted_next[CC_TRAP], wanted_before[CC_TRAP] = self.wanted, self.wanted_next, was_wanted
            of_class[CC_TRAP] = self.task.congestion
        m.d.sync += [happened.eq(happens_now & Cat(wanted)), events.eq(happened)]
        sent = self.sent
        named = Signal(TRAPS)  # of which trap the work is
        count = Signal(_COUNT_BITS)
        m.d.comb += [named.eq(Mux(self.task.trap, sent, head.names)), count.eq(select(named, counts))]
        represses = Signal()
        m.d.sync += represses.eq(self.represses)
        ended = represses & (count == head.transaction)
        for trap, happens in enumerate(events):
            with m.If(happens):
                m.d.sync += [pending[trap].eq(1), counts[trap].eq(counts[trap] + 1)]
            with m.Elif(ended & named[trap] & of_class[trap]):
                m.d.sync += pending[trap].eq(0)
        self._write_head(m, count)

        with m.If(self.begins):
            m.d.sync += sent.eq(first_from(m, pending & Cat(wanted_before), behind(m, sent)))
        m.d.comb += self.tells.eq(Mux(self.steps.first & self.task.trap, self.sent[self._told], 0))

        # The timer counts up to a power of two, two cycles ahead: in a register, it is known in the next but one.
        waits, ahead, code = Signal(), Signal(_TIMER_BITS), Signal(_CODE_BITS)
        with m.If(waits):
            m.d.sync += ahead.eq(ahead + 1)
        with m.If(ahead[_UNIT_BITS:].bit_select(code, 1)):
            m.d.sync += waits.eq(0)
        with m.If(self.steps.first & self.task.trap):
            m.d.sync += [waits.eq(1), ahead.eq(3), code.eq(settings.subnet_timeout)]
        # The matcher, which is far, looks at what is due.
        due = Signal()
        known = pending | events | happened
        m.d.sync += due.eq((known & Cat(wanted_next)).any() & ~waits & settings.lid_known)
        m.d.comb += self.due.eq(due & active)
        return m

    def _write_head(self, m: Module, count: Value) -> None:
        """A word in each step; the count is that of step 0, which is known a cycle later."""
        steps, trap, write = self.steps, self.task.trap, self.write
        index, there = Signal(range(MAD_WORDS)), Signal()  # the step's word, if it has one
        with m.If(steps.go):
            m.d.sync += index.eq(index + 1)
            with m.If(index == MAD_WORDS - 1):
                m.d.sync += there.eq(0)
            with m.If(steps.number == _HEAD_STEP - 1):
                m.d.sync += [index.eq(0), there.eq(trap)]
        is_counted = Signal()
        m.d.sync += [is_counted.eq(steps.first & trap), write.eq(0)]
        with m.If(is_counted):
            m.d.sync += [write.bytes.eq(WHOLE), write.index.eq(TRANSACTION_WORD + 1), write.word.eq(count)]
        with m.If(steps.go & there & (index != TRANSACTION_WORD + 1)):
            m.d.sync += [write.bytes.eq(WHOLE), write.index.eq(index)]
            with m.Switch(index):
                for number, word in head_words(self._is_switch, self.sent, self.destination).items():
                    with m.Case(number):
                        m.d.sync += write.word.eq(word)
