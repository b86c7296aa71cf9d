"""Credits, when to announce them, and the watchdog (IBTA vol 1, 7.9.4; docs/pipeline.md, section 6)."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.link.link_packet import FlowControlFields
from rtl.link.timer import Timer
from rtl.registers.port_registers import DurationSignature
from rtl.rotation import RotatingChoice, number_of, select
from rtl.widths import CREDIT_BITS, FREE_BITS, NEED_BITS
from wire.codes import PortState
from wire.flow_control import CREDIT_WINDOW, FlowControlOp
from wire.registers import PortRegister

__all__ = ["CreditSignature", "FlowControl", "Watchdog"]


class CreditSignature(wiring.Signature):
    """Credits for what a port sends, and its own flow control packets, seen from the port.

    Members:
        cl, tbs: credit limit and blocks sent of each data VL, as visible.
        urgent, changed: some VL has a flow control packet to send (cycle g); `granted`: it does (g+1).
    """

    def __init__(self, vls: int) -> None:
        per_vl = data.ArrayLayout(unsigned(CREDIT_BITS), vls)
        super().__init__(
            {"cl": Out(per_vl), "tbs": Out(per_vl), "urgent": Out(1), "changed": Out(1), "granted": In(1)},
        )


class FlowControl(wiring.Component):
    """The credit registers of every data VL, and the choice of the next flow control packet.

    Args:
        vls: data VLs.
        blocks: of each VL's receive buffer.

    Members:
        state, operational: the port's state, and the mask of its operational data VLs.
        initializing, arming: Initialize or Armed is the state of the next cycle.
        enabling: ActiveEnable is set in the next cycle, and was not.
        good, fields: a good link packet, `good` being the mask of its VL.
        spent, spent_need: mask of the VL on which a packet's sender has spent credits, and how many.
        sent, sent_need: mask of the VL on which a packet passes the transmit stage, and its blocks.
        free: free blocks of each VL's receive buffer.
        threshold: FCP_THRESHOLD in blocks.
        period: FCP_PERIOD.
        period_over: this is the last cycle of a period; `due` shows in the next.
        credits: limits, blocks sent, flow control packets to be sent.
        packet: what the packet holds that is granted at g; g+1 and g+2.
    """

    def __init__(self, vls: int, blocks: int) -> None:
        self._vls = vls
        self._blocks = blocks
        super().__init__(
            {
                "state": In(PortState),
                "operational": In(vls),
                "initializing": In(1),
                "arming": In(1),
                "enabling": In(1),
                "good": In(vls),
                "fields": In(FlowControlFields),
                "spent": In(vls),
                "spent_need": In(NEED_BITS),
                "sent": In(vls),
                "sent_need": In(NEED_BITS),
                "free": In(data.ArrayLayout(unsigned(FREE_BITS), vls)),
                "threshold": In(CREDIT_BITS),
                "period": In(DurationSignature(PortRegister.FCP_PERIOD)),
                "period_over": Out(1),
                "credits": Out(CreditSignature(vls)),
                "packet": Out(FlowControlFields),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build registers, flags and choice."""
        m = Module()
        credits = self.credits

        # The period, which runs in every state but Down.
        m.submodules.timer = timer = Timer(len(self.period.length))
        m.d.comb += [
            timer.length.eq(self.period.length),
            timer.run.eq(self.state != PortState.DOWN),
            timer.restart.eq(self.initializing | self.period.written),
            self.period_over.eq(timer.last),
        ]
        set_due = self.period_over | self.initializing | self.arming | self.enabling
        announces = (self.state != PortState.DOWN) & (self.state != PortState.ACTIVE_DEFER)

        # That a packet is granted is known in the cycle after. What it would be is kept until then: of which VL it is,
        # which `goes`, which of them became due `meanwhile`, and whether counts began `anew`.
        urgent = Signal(self._vls)
        changed = Signal(self._vls)
        chosen = Signal(self._vls)
        goes = Signal(self._vls)
        meanwhile = Signal(self._vls)
        anew = Signal()
        packet = self.packet
        m.d.sync += [
            goes.eq(chosen),
            meanwhile.eq(Mux(set_due, self.operational, 0)),
            anew.eq(self.initializing),
        ]

        # Each VL's registers and flags.
        announced = []
        for vl in range(self._vls):
            cl, tbs = credits.cl[vl], credits.tbs[vl]
            abr = Signal(CREDIT_BITS, name=f"abr_{vl}")
            last = Signal(CREDIT_BITS, name=f"last_{vl}")
            last_before = Signal(CREDIT_BITS, name=f"last_before_{vl}")  # but for a packet granted in the cycle before
            due = Signal(name=f"due_{vl}")
            due_before = Signal(name=f"due_before_{vl}")
            announce = Signal(CREDIT_BITS, name=f"announce_{vl}")
            room = self.free[vl][: bits_for(self._blocks)]
            if self._blocks > CREDIT_WINDOW:
                room = Mux(room > CREDIT_WINDOW, CREDIT_WINDOW, room)
            m.d.comb += announce.eq(abr + room)
            announced.append(announce)

            with m.If(self.good[vl]):
                m.d.sync += [cl.eq(self.fields.fccl), abr.eq(self.fields.fctbs)]
            with m.If(self.spent[vl]):
                m.d.sync += abr.eq(abr + self.spent_need)
            with m.If(self.sent[vl]):
                m.d.sync += tbs.eq(tbs + self.sent_need)
            m.d.comb += [
                last.eq(Mux(credits.granted & goes[vl] & ~anew, packet.fccl, last_before)),
                due.eq(meanwhile[vl] | (due_before & ~(credits.granted & goes[vl]))),
            ]
            m.d.sync += [last_before.eq(last), due_before.eq(due)]
            with m.If(self.initializing):
                m.d.sync += [cl.eq(0), tbs.eq(0), abr.eq(0), last_before.eq(0)]

            growth = Signal(CREDIT_BITS, name=f"growth_{vl}")
            speaks = announces & self.operational[vl]
            m.d.comb += growth.eq(announce - last)
            m.d.sync += [
                urgent[vl].eq(speaks & (due | (self.threshold < growth))),
                changed[vl].eq(speaks & (announce != last)),
            ]

        # The choice, in turn: among the urgent, else among the changed.
        m.submodules.turn = turn = RotatingChoice(self._vls)
        m.d.comb += [
            credits.urgent.eq(urgent.any()),
            credits.changed.eq(changed.any()),
            turn.requests.eq(Mux(credits.urgent, urgent, changed)),
            turn.serve.eq(credits.granted),
            turn.served.eq(goes),
            chosen.eq(turn.chosen),
        ]

        with m.If(~credits.granted):
            m.d.sync += [
                packet.op.eq(Mux(self.state == PortState.INITIALIZE, FlowControlOp.INIT, FlowControlOp.NORMAL)),
                packet.vl.eq(number_of(chosen)),
                packet.fctbs.eq(select(chosen, credits.tbs)),
                packet.fccl.eq(select(chosen, announced)),
            ]
        return m


class Watchdog(wiring.Component):
    """Watches that every operational VL receives flow control packets in Armed and Active.

    Args:
        vls: data VLs.

    Members:
        state, operational: the port's state, and the mask of its operational data VLs.
        good: mask of the VL of a good link packet in this cycle.
        limit: FC_WATCHDOG; a write restarts all VLs.
        expired: mask of VLs that have been without one for too long; LinkErrorRecovery moves in the
            next cycle.
    """

    def __init__(self, vls: int) -> None:
        self._vls = vls
        super().__init__(
            {
                "state": In(PortState),
                "operational": In(vls),
                "good": In(vls),
                "limit": In(DurationSignature(PortRegister.FC_WATCHDOG)),
                "expired": Out(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build a timer for each VL."""
        m = Module()
        watching = (self.state == PortState.ARMED) | (self.state == PortState.ACTIVE)
        for vl in range(self._vls):
            m.submodules[f"vl_{vl}"] = timer = Timer(len(self.limit.length))
            m.d.comb += [
                timer.length.eq(self.limit.length),
                timer.run.eq(watching & self.operational[vl]),
                timer.restart.eq(~timer.run | self.good[vl] | self.limit.written),
                self.expired[vl].eq(timer.last & ~self.good[vl]),
            ]
        return m
