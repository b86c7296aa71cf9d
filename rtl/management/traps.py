"""Which trap is due (docs/management.md, section 5; IBTA vol 1, 13.4.9 and 14.2.5.1)."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.node_state import NodeStateSignature
from rtl.management.settings import SettingsSignature
from rtl.management.step import StepsSignature
from rtl.management.task import TaskSignature
from rtl.management.trap_packet import TRAPS
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO

__all__ = ["SentSignature", "Traps"]

_COUNT_BITS = 32
"""The lower half of a TransactionID."""

_CODE_BITS = PORT_INFO["subnet_timeout"].width
_UNIT_BITS = 10
_TIMER_BITS = _UNIT_BITS + (1 << _CODE_BITS) - 1


class SentSignature(wiring.Signature):
    """The trap that is sent, seen from where they are counted.

    Members:
        trap: its place in turn. `count`: its events so far.
    """

    def __init__(self) -> None:
        super().__init__({"trap": Out(1), "count": Out(_COUNT_BITS)})


class Traps(wiring.Component):
    """Traps by their place in turn.

    Members:
        steps, task, settings: see `Work`, `Decision`, `Settings`.
        node_state: makes the first trap pending, `violation` the second.
        represses: the packet ends the trap of its TransactionID.
        due: some trap is. `begins`: it is taken up in this cycle.
        sent: which one, from the cycle after on.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        super().__init__(
            {
                "steps": In(StepsSignature()),
                "task": In(TaskSignature()),
                "settings": In(SettingsSignature(parameters)),
                "node_state": In(NodeStateSignature(parameters)),
                "violation": In(1),
                "represses": In(1),
                "due": Out(1),
                "begins": In(1),
                "sent": Out(SentSignature()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What is pending, whose turn it is, and the timer between traps."""
        m = Module()
        settings, head, sent = self.settings, self.task.head, self.sent
        if self._is_switch:
            can_go, event = settings.traps_can_go, self.node_state.state_reported
        else:
            host_sm_before = Signal()
            m.d.sync += host_sm_before.eq(self.node_state.host_sm)
            can_go = settings.traps_can_go & self.node_state.active
            event = self.node_state.host_sm ^ host_sm_before
        pending = Signal(TRAPS)
        counts = [Signal(_COUNT_BITS, name=f"count_{trap}") for trap in range(TRAPS)]
        for trap, (happens, count) in enumerate(zip((event, self.violation), counts, strict=True)):
            with m.If(happens & settings.sm_known):
                m.d.sync += [pending[trap].eq(1), count.eq(count + 1)]
            with m.Elif(self.represses & head.names[trap] & (count == head.transaction)):
                m.d.sync += pending[trap].eq(0)
        m.d.comb += sent.count.eq(Array(counts)[sent.trap])

        first = Signal()  # the first in turn
        with m.If(self.begins):
            chosen = Mux(first, pending[1], ~pending[0])
            m.d.sync += [sent.trap.eq(chosen), first.eq(~chosen)]

        waits = Signal()
        left = Signal(_TIMER_BITS)
        m.d.sync += left.eq(left - 1)
        with m.If(left == 1):
            m.d.sync += waits.eq(0)
        with m.If(self.steps.first & self.task.trap):
            length = Signal(_TIMER_BITS)
            m.d.comb += length.eq((1 << _UNIT_BITS) << settings.subnet_timeout)
            m.d.sync += [waits.eq(1), left.eq(length - 1)]
        m.d.comb += self.due.eq(pending.any() & ~waits & can_go)
        return m
