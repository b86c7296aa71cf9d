"""Checks of a received packet's header and its verdict (docs/pipeline.md, sections 3.2 to 3.4)."""

from typing import Literal

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.link.multicast_dlid import is_multicast
from rtl.link.receive import ReceivedRow
from rtl.link.row import HEAD_BITS, lrh_field
from rtl.widths import INDEX_BITS, LENGTH_BITS, NEED_BITS, SL_BITS, SLOT_BITS, VL_BITS
from wire.codes import (
    LID_PERMISSIVE,
    LID_RESERVED,
    LNH,
    LVER,
    MIN_PKT_LEN_IBA,
    MIN_PKT_LEN_RAW,
    VL15,
    PortState,
    max_pkt_len,
    mtu_code,
)
from wire.trace import Verdict

__all__ = ["AdmissionSignature", "PacketCheck", "PacketHeader", "PacketVerdict", "StoreRow"]


PacketHeader = data.StructLayout(
    {
        "valid": 1,
        "slot": SLOT_BITS,
        "vl": VL_BITS,
        "sl": SL_BITS,
        "lnh": 2,
        "dlid": 16,
        "n": LENGTH_BITS,
        "need": NEED_BITS,
    }
)
"""The header of a packet that has just been processed, in cycle h+1.

`slot` is the VL, or the number of data VLs for VL15; `need` counts blocks (right for every
packet that fits the largest MTU).
"""


StoreRow = data.StructLayout(
    {
        "valid": 1,
        "data": 32,
        "index": INDEX_BITS,
        "first": 1,
        "last": 1,
        "bad": 1,
        "accepted": 1,
        "slot": SLOT_BITS,
        "n": LENGTH_BITS,
        "need": NEED_BITS,
    }
)
"""The row received at c, presented to the buffer at c+2 (docs/pipeline.md, section 3.4).

`slot` holds from row 0 on; it is none of the port's if the VL is not. `accepted` (with `n` and
`need`) is meaningful from h+3 on, and 0 on rows 0 and 1; rows of packets not accepted are presented too.
`last` is high once for every packet, `bad` means anything with it. A packet cut without a row has
one too.
"""


PacketVerdict = data.StructLayout(
    {
        "valid": 1,
        "verdict": Verdict,
        "vl": VL_BITS,
        "delimiter": 2,
        "k": INDEX_BITS,
        "n": LENGTH_BITS,
        "dlid": 16,
        "multicast": 1,
        "sl": SL_BITS,
        "need": NEED_BITS,
    }
)
"""What became of a packet, in cycle c_e+2.

`delimiter` is 0 for a cut packet, 1 for EGP, 2 for EBP; `k` the index of the end row. If the header was not
processed `n`, `dlid`, `sl` are 0, and it is no `multicast`; `need` is 0 if the packet was not accepted.
"""


Constrained = data.StructLayout({"valid": 1, "slid": 16, "dlid": 16, "sl": SL_BITS})
"""A packet whose verdict in this cycle is of its partition: RCV_CONSTRAINT or XMIT_CONSTRAINT."""


AdmissionSignature = wiring.Signature(
    {
        "header": Out(PacketHeader),
        "acceptable": Out(1),
        "relay": In(Verdict),
        "refused": In(1),
        "accept": Out(1),
        "received": Out(ReceivedRow),
        "constraint": In(Verdict),
        "xmit_constraint": Out(1),
        "constrained": Out(Constrained),
        "write": Out(StoreRow),
    }
)
"""What port and node say of a received packet, seen from the port; h is the cycle of its row 1.

Members:
    header: the header in cycle h+1; `acceptable`, in the same cycle, says that the port has no objection to it.
    refused, relay: in cycle h+2, the node has an objection, and which one (section 3.3, rows f to j; 0 for
        none). `accept`, in the same cycle: the packet is accepted, neither objects.
    received: rows, one cycle after the wires.
    constraint: in cycle c_e+1, the node's objection to the packet's partition (section 3.6; 0 for none).
        `xmit_constraint`, in c_e+2: that it may not leave is its verdict. `constrained`, in c_e+2: that, or that it may
        not come in.
    write: rows to the receive buffer, two cycles after the wires.
"""


class PacketCheck(wiring.Component):
    """Judges packets, first by their header, then by their end.

    Args:
        kind: what the port belongs to; an adapter checks the ICRC, and the DLID against its own.
        vls: data VLs.
        mtu: the MTU that the port is built for (MTUCap), in bytes.

    Members:
        received, head: see `rtl.link.receive.Receiver`.
        vcrc_good, icrc_good: see `rtl.link.crc`, in the cycle of `received`.
        state, operational: the port's state, and the mask of its operational data VLs.
        lid, lmc: the adapter's own.
        admission: what the node is asked and what it says.
        spends: in cycle h+2, the packet's sender has spent credits for it, as ABR has to show; `admission.write` says
            on which VL, and how many.
        verdict: packets received.
    """

    def __init__(self, kind: Literal["switch", "adapter"], vls: int, mtu: int) -> None:
        self._kind = kind
        self._vls = vls
        self._max_words = max_pkt_len(mtu_code(mtu))
        super().__init__(
            {
                "received": In(ReceivedRow),
                "head": In(HEAD_BITS),
                "vcrc_good": In(1),
                "icrc_good": In(1),
                "state": In(PortState),
                "operational": In(vls),
                "lid": In(16),
                "lmc": In(3),
                "admission": Out(AdmissionSignature),
                "spends": Out(1),
                "verdict": Out(PacketVerdict),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the checks."""
        m = Module()
        received, node, header = self.received, self.admission, self.admission.header

        # Cycle h+1: the header.
        route = Cat(received.data, self.head)
        is_vl15 = Signal()
        m.d.comb += [
            header.valid.eq(received.header),
            header.vl.eq(lrh_field(route, "vl")),
            header.sl.eq(lrh_field(route, "sl")),
            header.lnh.eq(lrh_field(route, "lnh")),
            header.dlid.eq(lrh_field(route, "dlid")),
            header.n.eq(lrh_field(route, "pkt_len")),
            # ceil((4n + 2) / 64)
            header.need.eq(header.n[4:] + 1),
            is_vl15.eq(header.vl == VL15),
            header.slot.eq(self._slot(header.vl)),
        ]

        on_credit = Signal()  # the header can be read, and its VL has credits
        objection = self._objection(m, is_vl15, on_credit)
        m.d.comb += node.acceptable.eq(header.valid & (objection == Verdict.GOOD))

        # From cycle h+2 on: the packet as its header made it. The node's objection comes now.
        packet = Signal(PacketHeader)
        decides = Signal()  # this is h+2
        own = Signal(Verdict, reset_less=True)
        was_on_credit = Signal(reset_less=True)
        foreseen = Signal(Verdict)
        foreseen_kept = Signal(Verdict, reset_less=True)
        accepted = Signal()
        vl = Signal(VL_BITS, reset_less=True)
        with m.If(received.first):
            first_vl = lrh_field(self.head, "vl")
            m.d.sync += [
                packet.valid.eq(0),
                self.verdict.multicast.eq(0),
                packet.slot.eq(self._slot(first_vl)),
                accepted.eq(0),
                vl.eq(first_vl),
            ]
        m.d.sync += decides.eq(header.valid)
        with m.If(header.valid):
            m.d.sync += [
                packet.eq(header),
                self.verdict.multicast.eq(is_multicast(header.dlid)),
                own.eq(objection),
                was_on_credit.eq(on_credit),
            ]
        has_no_room = (own == Verdict.GOOD) & (node.relay == Verdict.OVERRUN)
        m.d.comb += [
            self.spends.eq(decides & was_on_credit & ~has_no_room),
            node.accept.eq(decides & (own == Verdict.GOOD) & ~node.refused),
            foreseen.eq(Mux(decides, Mux(own == Verdict.GOOD, node.relay, own), foreseen_kept)),
        ]
        m.d.sync += foreseen_kept.eq(foreseen)
        with m.If(decides):
            m.d.sync += accepted.eq(node.accept)

        # Cycle c_e + 1: the end.
        ended = Signal()
        physical = Signal()
        at_length = Signal()
        final = Signal(Verdict)
        m.d.comb += [
            ended.eq(received.end | received.cut),
            at_length.eq(received.index == packet.n),
            physical.eq(received.cut | (~received.marked_bad & ~self.vcrc_good)),
        ]
        if self._kind == "adapter":
            has_icrc = packet.valid & at_length & (packet.lnh >= LNH.IBA_LOCAL)
            with m.If(~received.marked_bad & has_icrc & ~self.icrc_good):
                m.d.comb += physical.eq(1)
        with m.If(physical):
            m.d.comb += final.eq(Verdict.PHYSICAL)
        with m.Elif(received.marked_bad):
            m.d.comb += final.eq(Verdict.REMOTE)
        with m.Elif(~packet.valid):
            m.d.comb += final.eq(Verdict.LENGTH)
        with m.Elif(foreseen != Verdict.GOOD):
            m.d.comb += final.eq(foreseen)
        with m.Elif(~at_length):
            m.d.comb += final.eq(Verdict.LENGTH)
        with m.Else():
            m.d.comb += final.eq(node.constraint)
        m.d.comb += node.received.eq(received)
        if self._kind == "switch":
            m.d.sync += node.xmit_constraint.eq(ended & (final == Verdict.XMIT_CONSTRAINT))
            self._constrain(m, packet, ended, final)

        self._present(m, packet, vl, accepted, ended, final)
        return m

    def _present(self, m: Module, packet: data.View, vl: Value, accepted: Value, ended: Value, final: Value) -> None:
        """Two cycles after the wires: the row to the buffer, the verdict."""
        received, write, verdict = self.received, self.admission.write, self.verdict
        delimiter = Mux(received.cut, 0, Mux(received.marked_bad, 2, 1))
        m.d.sync += [
            write.valid.eq(received.first | received.body | ended),
            write.data.eq(received.data),
            write.index.eq(received.index),
            write.first.eq(received.first),
            write.last.eq(ended),
            write.bad.eq(final != Verdict.GOOD),
            verdict.valid.eq(ended),
            verdict.verdict.eq(final),
            verdict.delimiter.eq(delimiter),
        ]
        with m.If(received.cut):
            m.d.sync += write.data[24:].eq(0)
        m.d.comb += [
            write.accepted.eq(accepted),
            write.slot.eq(packet.slot),
            write.n.eq(packet.n),
            write.need.eq(packet.need),
            verdict.vl.eq(vl),
            verdict.k.eq(write.index),
            verdict.n.eq(Mux(packet.valid, packet.n, 0)),
            verdict.dlid.eq(Mux(packet.valid, packet.dlid, 0)),
            verdict.sl.eq(Mux(packet.valid, packet.sl, 0)),
            verdict.need.eq(Mux(accepted, packet.need, 0)),
        ]

    def _constrain(self, m: Module, packet: data.View, ended: Value, final: Value) -> None:
        """An SLID begins with the last byte of row 1 and ends with the first of row 2."""
        received, constrained = self.received, self.admission.constrained
        high, low = constrained.slid[8:], constrained.slid[:8]
        with m.If(received.header):
            m.d.sync += high.eq(received.data)
        with m.If(received.body & (received.index == 2)):
            m.d.sync += low.eq(received.data[-8:])
        of_partition = (final == Verdict.RCV_CONSTRAINT) | (final == Verdict.XMIT_CONSTRAINT)
        m.d.sync += constrained.valid.eq(ended & of_partition)
        m.d.comb += [constrained.dlid.eq(packet.dlid), constrained.sl.eq(packet.sl)]

    def _slot(self, vl: Value) -> Value:
        return Mux(vl == VL15, self._vls, vl)

    def _objection(self, m: Module, is_vl15: Signal, on_credit: Signal) -> Signal:
        """The port's own objection to a header, in the order of sections 3.2 (4) and 3.3, else GOOD.

        On the way, whether credits were spent on it (section 3.3, ABR).
        """
        header = self.admission.header
        receives_data = (self.state == PortState.ARMED) | (self.state == PortState.ACTIVE)
        is_iba = header.lnh >= LNH.IBA_LOCAL
        too_short = below(header.n, MIN_PKT_LEN_RAW) | (is_iba & below(header.n, MIN_PKT_LEN_IBA))
        to_many = is_multicast(header.dlid)
        if self._kind == "switch":
            bad_dlid = header.dlid == LID_RESERVED
        else:
            is_own = (self.lid != LID_RESERVED) & (((header.dlid ^ self.lid) >> self.lmc) == 0)
            bad_dlid = ~(to_many | ((header.dlid == LID_PERMISSIVE) & is_vl15) | is_own)
        is_operational = self.operational.bit_select(header.vl, 1)
        other_version = lrh_field(Cat(self.received.data, self.head), "lver") != LVER
        no_length = too_short | ~below(header.n, self._max_words + 1)
        m.d.comb += on_credit.eq(~other_version & ~no_length & ~is_vl15 & is_operational)

        objection = Signal(Verdict)
        with m.If(~receives_data & ~is_vl15):
            m.d.comb += objection.eq(Verdict.NOT_ACTIVE)
        with m.Elif(other_version):
            m.d.comb += objection.eq(Verdict.LVER)
        with m.Elif(no_length):
            m.d.comb += objection.eq(Verdict.LENGTH)
        with m.Elif(bad_dlid):
            m.d.comb += objection.eq(Verdict.DLID)
        with m.Elif(Mux(is_vl15, to_many, ~is_operational)):
            m.d.comb += objection.eq(Verdict.VL)
        with m.Elif(is_vl15 & (header.lnh != LNH.IBA_LOCAL)):
            m.d.comb += objection.eq(Verdict.VL15_HEADER)
        return objection
