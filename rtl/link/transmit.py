"""The transmit stage, and the idle data between packets (docs/pipeline.md, section 8.2)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.link.crc import lanes_of, vcrc_begun, vcrc_step
from rtl.link.link_packet import FlowControlFields, FlowControlSender
from rtl.link.marking import Marked, Marking
from rtl.link.multicast_dlid import MulticastDlid
from rtl.link.row import RowSignature
from rtl.widths import INDEX_BITS, LENGTH_BITS, NEED_BITS, PORT_BITS, REASON_BITS, SLOT_BITS
from wire.codes import VL15, PortState
from wire.crc import VCRC_WIDTH
from wire.symbols import IDLE_LFSR_BITS, IDLE_LFSR_SEED, IDLE_LFSR_STEPS, IDLE_LFSR_TAPS, LANES, Control
from wire.trace import Discard

__all__ = ["IdleData", "SendRow", "SentRow", "Transmitter"]


class IdleData(wiring.Component):
    """The LFSR behind idle rows.

    Members:
        byte: idle_byte(c), in cycle c.
    """

    byte: Out(8)

    def elaborate(self, platform: object) -> Module:
        """Build the LFSR: a row's shifts in every cycle."""
        m = Module()
        state = Signal(IDLE_LFSR_BITS, init=IDLE_LFSR_SEED)
        high, low = IDLE_LFSR_TAPS
        bits = list(state)
        for _ in range(IDLE_LFSR_STEPS):
            bits = [bits[high] ^ bits[low], *bits[:-1]]
        m.d.sync += state.eq(Cat(*bits))
        m.d.comb += self.byte.eq(state[-8:])
        return m


SendRow = data.StructLayout(
    {
        "valid": 1,
        "data": 32,
        "first": 1,
        "last": 1,
        "bad": 1,
        "ages": 1,
        "outlived": 1,
        "slot": SLOT_BITS,
        "n": LENGTH_BITS,
        "need": NEED_BITS,
        "input": PORT_BITS,
    }
)
"""A row of a data packet that goes to the wires, in cycle x_r + 2.

`last` is the packet's end row (also an early one), `bad` means anything with it; a row 0 that is the last is all of a
packet that is swallowed, for the reason on lane 1 (`wire.trace.Discard`). A row 0 that `ages` and is `outlived` is all
of a packet that is swallowed as it has outlived its life time, whatever lane 1 and `last` say; without `ages`,
`outlived` means anything. `slot`, `n` and `input` (number of the input) hold from row 0 to the end row. `need` (blocks)
comes with row 0, and means anything with the others. Lane 0 of row 0 means anything: it goes out as SDP.
"""


SentRow = data.StructLayout(
    {
        "valid": 1,
        "index": INDEX_BITS,
        "first": 1,
        "last": 1,
        "bad": 1,
        "refused": 1,
        "reason": REASON_BITS,
        "fecn": 1,
        "slot": SLOT_BITS,
        "n": LENGTH_BITS,
        "input": PORT_BITS,
        "link": 1,
        "fields": FlowControlFields,
    }
)
"""What passed the transmit stage, while it is on the wires (w_r).

For a data packet: `valid` for each row, sent or refused, with `index`, `first`, `last` and,
with `last`, `bad`; `refused` once one of its rows was, and then, with `last`, the `reason`; `fecn` once its FECN was
set. `link` is set at row 1 of a flow control packet of which no row was refused, with its `fields`.
"""


class Transmitter(wiring.Component):
    """Puts data packets, flow control packets and idle data on the wires.

    Args:
        vls: data VLs.
        marking: it is a switch's, and sets FECN.

    Members:
        send: rows of data packets, in cycle x_r + 2.
        granted: a flow control packet was, in the cycle before, g; `packet`: see `FlowControlSender`.
        state_follows, operational_follows: the port's state, and the mask of its operational data VLs, in the next
            cycle.
        wide, phase: the port is 4X; the cycle modulo 4.
        sent: mask of the VL on which a packet begins to be sent, in cycle x_0 + 2.
        packet_sent, packet_discarded: a packet's end row passes the stage; the packet was sent, or
            refused in part or whole, for this `reason`; cycle x_e + 2. `words`: the index of that row. `multicast`: the
            packet's DLID is one.
        marks: in the cycle after row 0: FECN is set in this packet.
        tx: the wires.
        on_wires: what `tx` carries.
        marked: the row that is on the wires, if FECN was set in it.
    """

    def __init__(self, vls: int, *, marking: bool) -> None:
        self._vls = vls
        self._marking = marking
        super().__init__(
            {
                "send": In(SendRow),
                "granted": In(1),
                "packet": In(FlowControlFields),
                "state_follows": In(PortState),
                "operational_follows": In(vls),
                "wide": In(1),
                "phase": In(2),
                "sent": Out(vls),
                "packet_sent": Out(1),
                "packet_discarded": Out(1),
                "multicast": Out(1),
                "reason": Out(REASON_BITS),
                "words": Out(INDEX_BITS),
                "tx": Out(RowSignature),
                "on_wires": Out(SentRow),
                **({"marks": In(1), "marked": Out(Marked)} if marking else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the stage."""
        m = Module()
        send = self.send

        # May the row pass? What state and VLs say to that is in a register here.
        passing = Signal(self._vls + 1)  # mask of the slots whose rows may; flow control packets as VL15's
        manages = Cat(self.state_follows == one for one in (PortState.INITIALIZE, PortState.ARMED, PortState.ACTIVE))
        sends_data = self.state_follows == PortState.ACTIVE
        m.d.sync += passing.eq(Cat(Mux(sends_data, self.operational_follows, 0), manages.any()))
        is_vl15 = Signal()
        refused_before = Signal()
        passes = Signal()  # but for its packet's life time
        refused, outlived = Signal(), Signal()
        m.d.comb += [
            is_vl15.eq(send.slot == self._vls),
            passes.eq(~Mux(send.first, send.last, refused_before) & passing.bit_select(send.slot, 1)),
            outlived.eq(send.ages & send.outlived),
            refused.eq(~passes | outlived),
        ]

        # The place in the packet, of a row behind row 0.
        index = Signal(INDEX_BITS)
        with m.If(send.valid):
            m.d.sync += [refused_before.eq(~passes), index.eq(Mux(send.first, 1, index + 1))]

        reason = Mux(outlived, Discard.LIFE_TIME, send.data[16:][:REASON_BITS])
        m.d.comb += [
            self.packet_sent.eq(send.valid & send.last & passes),
            self.packet_discarded.eq(send.valid & (outlived | (send.last & ~passes))),
            self.words.eq(index),
            self.reason.eq(Mux(send.first, reason, Discard.INACTIVE)),
        ]
        # As `refused` has it of data VLs: VL15 has no credits.
        with m.If(send.valid & send.first & ~send.last & ~outlived):
            m.d.comb += self.sent.eq((1 << send.slot) & passing)

        m.submodules.dlid = dlid = MulticastDlid()
        m.d.comb += [
            dlid.row.eq(send.data),
            dlid.first.eq(send.valid & send.first),
            dlid.second.eq(send.valid & ~send.first & (index == 1)),
            self.multicast.eq(dlid.multicast),
        ]

        # A flow control packet comes at no time when a data packet does, nor between its rows: both use one CRC.
        m.submodules.flow_control = flow_control = FlowControlSender()
        link_refused = Signal()
        m.d.comb += [
            flow_control.granted.eq(self.granted),
            flow_control.packet.eq(self.packet),
            flow_control.wide.eq(self.wide),
        ]
        with m.If(flow_control.first):
            m.d.sync += link_refused.eq(~passing[-1])
        link_passes = passing[-1] & (flow_control.first | ~link_refused)

        row = self._mark(m, index, refused) if self._marking else send.data
        sent, controls = self._renewed(m, is_vl15, row, flow_control)

        # To the wires. That the row goes is known last, so the choice between it and idle data is behind registers.
        m.submodules.idle = idle = IdleData()
        goes = Signal()
        row_before, controls_before = Signal(8 * LANES), Signal(LANES)
        m.d.sync += [
            goes.eq((send.valid & ~refused) | ((flow_control.first | flow_control.last) & link_passes)),
            row_before.eq(sent),
            controls_before.eq(controls),
        ]
        m.d.comb += [
            self.tx.data.eq(Mux(goes, row_before, idle.byte.replicate(LANES))),
            self.tx.k.eq(Mux(goes, controls_before, 0)),
            self.tx.valid.eq(self.wide | (self.phase == 0)),
        ]

        self._report(m, index, refused, flow_control, link_passes)
        return m

    def _mark(self, m: Module, index: Value, refused: Value) -> Value:
        """The row, FECN set if it is to be."""
        m.submodules.marking = marking = Marking()
        m.d.comb += [
            marking.row.eq(self.send.data),
            marking.index.eq(index),
            marking.first.eq(self.send.first),
            marking.last.eq(self.send.last),
            marking.valid.eq(self.send.valid & ~refused),
            marking.there.eq(self.send.valid),
            marking.marks.eq(self.marks),
            self.marked.eq(marking.marked),
        ]
        m.d.sync += self.on_wires.fecn.eq(marking.done)
        return marking.sent

    def _renewed(self, m: Module, is_vl15: Value, row: Value, flow_control: FlowControlSender) -> tuple[Value, Value]:
        """A row of a packet of either kind, with its new VL, or its new CRC; which of its symbols are control symbols.

        ROW is what the other rows of a data packet are.
        """
        send, word = self.send, flow_control.fields.as_value()
        is_link = flow_control.first | flow_control.last
        first, last = Mux(is_link, flow_control.first, send.first), Mux(is_link, flow_control.last, send.last)
        vl = Mux(is_vl15, VL15, send.slot)
        body = Signal(8 * LANES)
        with m.If(is_link):
            m.d.comb += body.eq(Cat(word[8:], word[:8]))
        with m.Else():
            m.d.comb += body.eq(Cat(row[:20], Mux(send.first, vl[:4], row[20:24]), row[24:]))
        bad = send.bad & ~flow_control.last
        crc = Signal(VCRC_WIDTH, reset_less=True)
        before, lanes = vcrc_begun(crc, first, lanes_of(body))
        closing = vcrc_step(m, crc, [body[24:]])
        vcrc = Mux(bad, closing, ~closing)
        delimiter = Mux(bad, Control.EBP, Control.EGP)
        with m.If(send.valid | flow_control.first):
            m.d.sync += crc.eq(vcrc_step(m, before, lanes))
        begin = Mux(is_link, Control.SLP, Control.SDP)
        inner = Mux(last, Cat(delimiter[:8], vcrc[8:16], vcrc[0:8]), body[:24])
        return Cat(inner, Mux(first, begin[:8], body[24:])), Cat(last, Const(0, LANES - 2), first)

    def _report(
        self, m: Module, index: Value, refused: Value, flow_control: FlowControlSender, link_passes: Value
    ) -> None:
        """What passes the stage, for the cycle in which it is on the wires."""
        send, on_wires = self.send, self.on_wires
        m.d.sync += [
            on_wires.valid.eq(send.valid),
            on_wires.index.eq(Mux(send.first, 0, index)),
            on_wires.first.eq(send.first),
            on_wires.last.eq(send.last | (send.ages & send.outlived)),
            on_wires.bad.eq(send.bad),
            on_wires.refused.eq(refused),
            on_wires.reason.eq(self.reason),
            on_wires.slot.eq(send.slot),
            on_wires.n.eq(send.n),
            on_wires.input.eq(send.input),
            on_wires.link.eq(flow_control.last & link_passes),
            on_wires.fields.eq(flow_control.fields),
        ]
