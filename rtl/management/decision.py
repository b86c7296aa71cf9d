"""What is decided of a packet at step 0 (docs/management.md, sections 3 and 4)."""

from typing import Final

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.management.attribute import Word
from rtl.management.m_key import Key, MKey
from rtl.management.mad_head import MadHead
from rtl.management.settings import SettingsSignature
from rtl.management.smi import Goes, Hop, Smi
from rtl.management.task import StepsSignature, Task
from rtl.widths import SL_BITS
from wire.mad import MadMethod
from wire.parameters import NodeParameters, SwitchParameters
from wire.registers import DATA_BITS
from wire.sma import SmaAttribute

__all__ = ["Decision"]

_OF_SWITCH: Final = {
    "gmp_trap": In(1),
    "trap_sl": In(SL_BITS),
    **dict.fromkeys(("cc_check", "cc_get", "cc_violation"), Out(1)),
    **dict.fromkeys(("cc_good", "cc_answered"), In(1)),
}


class Decision(wiring.Component):
    """Decides where an SMP goes, whether it is the SMA's, whether its M_Key is right.

    None of this applies to a PMA. Of a CC request the CC_Key is judged elsewhere.

    Members:
        head, trap: the packet, which is here two cycles before step 0; it is a trap instead.
        steps: see `Work`.
        settings, lease_second: the node's. `word`: of a Set, for the M_Key.
        key: the M_Key.
        gmp_trap, trap_sl (switch): of a trap: it is congestion control's, and its SL.
        cc_check, cc_get (switch): a CC request is judged, it is a Get; cc_good, cc_answered: see `CcKey`.
        task: what comes of it.
        represses: at step 0: the packet ends a trap of its class; `violation`: it violates the M_Key; `cc_violation`
            (switch): the CC_Key.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        super().__init__(
            {
                "head": In(MadHead),
                "trap": In(1),
                "steps": In(StepsSignature()),
                "settings": In(SettingsSignature(parameters)),
                "lease_second": In(DATA_BITS),
                "word": In(Word),
                "key": Out(Key),
                "task": Out(Task),
                "represses": Out(1),
                "violation": Out(1),
                **(_OF_SWITCH if self._is_switch else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The SMI, who works on it, the M_Key, and where it goes then."""
        m = Module()
        m.submodules.smi = smi = Smi(self._is_switch)
        m.submodules.key_check = key_check = MKey()
        head, task, settings = self.head, self.task, self.settings
        sm_at_host = Signal()
        if not self._is_switch:

            def own(lid: Value) -> Value:
                return (lid ^ settings.lid) >> settings.lmc == 0

            m.d.comb += task.from_host.eq(head.from_host)
            m.d.sync += [
                smi.for_own_lid.eq(own(head.dlid) & (settings.lid != 0)),
                sm_at_host.eq(own(settings.master_sm_lid)),
            ]
        m.d.comb += [
            task.head.eq(head),
            task.trap.eq(self.trap),
            task.gmp.eq(head.is_gmp_request & ~self.trap),
            task.sl.eq(head.sl),
            task.record.eq(smi.record & ~self.trap),
            smi.head.eq(head),
            smi.from_host.eq(task.from_host),
        ]

        # Whether the SMA works on it.
        is_get, represses = Signal(), Signal()
        m.d.sync += [
            is_get.eq(head.method == MadMethod.GET),
            task.is_set.eq(head.method == MadMethod.SET),
            represses.eq(head.method == MadMethod.TRAP_REPRESS),
        ]
        of_sma = 1 if self._is_switch else head.attribute_id != SmaAttribute.SM_INFO
        of_notice = head.attribute_id == SmaAttribute.NOTICE
        to_agent = smi.way.goes == Goes.AGENT
        works = Signal()
        m.d.comb += works.eq(~self.trap & ~task.gmp & to_agent & (is_get | task.is_set | represses) & of_sma)

        # The M_Key.
        connect(m, key_check.key, flipped(self.key))
        connect(m, flipped(self.word), key_check.word)
        m.d.comb += [
            key_check.lease_second.eq(self.lease_second),
            key_check.check.eq(self.steps.first & works),
            key_check.get.eq(is_get),
            key_check.matches.eq(head.key_matches),
            self.violation.eq(key_check.check & key_check.violation),
        ]
        good: Value = key_check.check & key_check.good

        # Where it goes, or its answer, or the trap.
        answers_gmp: Value = task.gmp
        violated: Value = self.violation
        if self._is_switch:
            m.d.comb += [
                task.congestion.eq(task.gmp & head.congestion),
                task.gmp_trap.eq(self.trap & self.gmp_trap),
                self.cc_check.eq(self.steps.first & task.congestion),
                self.cc_get.eq(is_get),
                self.cc_violation.eq(self.cc_check & ~self.cc_answered),
            ]
            with m.If(task.gmp_trap):
                m.d.comb += task.sl.eq(self.trap_sl)
            answers_gmp = task.gmp & (~task.congestion | (self.cc_answered & ~represses))
            good |= self.cc_check & self.cc_good
            violated = self.violation | self.cc_violation
        m.d.comb += self.represses.eq(good & represses & of_notice)
        answers = answers_gmp | (works & key_check.answered & ~represses)
        way = task.way
        with m.If(self.steps.first):
            m.d.sync += [task.answers.eq(answers), task.violated.eq(violated), way.eq(smi.way)]
            with m.If(self.trap):
                m.d.sync += [way.goes.eq(Mux(sm_at_host, Goes.HOST, Goes.ROUTE)), way.hop.eq(Hop.KEEP)]
            with m.Elif(answers):
                m.d.sync += way.eq(smi.answer_way)
            with m.Elif(works):
                m.d.sync += way.goes.eq(Goes.NOWHERE)
            with m.Elif(to_agent):
                m.d.sync += way.goes.eq(Goes.NOWHERE if self._is_switch else Goes.HOST)
        return m
