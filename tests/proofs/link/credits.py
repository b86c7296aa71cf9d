"""Credits (IBTA vol 1, 7.9.4; docs/pipeline.md, sections 6 and 7): two ends of a link that loses and delays packets."""

from itertools import pairwise
from typing import Final

from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from rtl.crossing.eligibility import data_eligible, room_layout, room_of
from rtl.link.flow_control import FlowControl
from rtl.widths import CREDIT_BITS, FREE_BITS, NEED_BITS
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from wire.codes import PortState
from wire.flow_control import CREDIT_WINDOW

__all__ = ["CREDIT_PROOFS"]

_PACKET = data.StructLayout({"is_data": 1, "count": CREDIT_BITS})
"""On a link: a data packet of so many blocks, or a flow control packet with this FCTBS, or FCCL."""

_BUSY: Final = 5
"""Cycles in which an output is not available behind the grant of a data packet, at least."""
_SENT: Final = 3
"""What is left of them when its blocks are added to TBS, visible in the next (x_0 + 2)."""


class SendRule(wiring.Component):
    """A head goes exactly if (CL - (TBS + need)) mod 4096 <= 2048, or if its output swallows it.

    Members:
        credit: (CL - TBS) mod 4096.
        need: of the head, in blocks; oversize: it is larger than the neighbour's MTU, and swallowed.
        swallow: the output swallows what is on this VL.
    """

    def __init__(self) -> None:
        super().__init__(
            {"credit": In(CREDIT_BITS), "need": In(NEED_BITS), "oversize": In(1), "swallow": In(1)},
        )

    def elaborate(self, platform: object) -> Module:
        """The claim, which needs no clock."""
        m = Module()
        room = data.View(room_layout(NEED_BITS), room_of(self.credit, NEED_BITS))
        goes = data_eligible(room, self.need, self.swallow | self.oversize)
        left = (self.credit - self.need)[:CREDIT_BITS]
        m.d.comb += [
            Assume(self.need != 0),
            Assert(goes == (self.swallow | self.oversize | (left <= CREDIT_WINDOW))),
            Cover(goes & (self.credit > CREDIT_WINDOW) & ~self.oversize & ~self.swallow),
            Cover(~goes & (self.credit > CREDIT_WINDOW)),
        ]
        return m


class _Wire:
    """Packets on their way, the oldest first; any time may pass until one is there, or lost.

    Attributes:
        places: what is on its way; `used`: how many of them, as a mask.
        leaves: the oldest is there, or lost, in this cycle. `first`: it.
    """

    def __init__(self, m: Module, name: str, places: int, *, enters: Value, packet: Value, leaves: Value) -> None:
        self.places = [Signal(_PACKET, name=f"{name}_{place}") for place in range(places)]
        self.used = Signal(places, name=f"{name}_used")
        self.leaves, self.first = leaves & self.used[0], self.places[0]
        left = Mux(self.leaves, self.used >> 1, self.used)
        following = [*self.places[1:], packet]
        for place, behind in zip(self.places, following, strict=True):
            with m.If(self.leaves):
                m.d.sync += place.eq(behind)
        for number, place in enumerate(self.places):
            with m.If(enters & ~left[number] & (left[number - 1] if number else Value.cast(1))):
                m.d.sync += place.eq(packet)
        m.d.sync += self.used.eq(Mux(enters, (left << 1) | 1, left))
        m.d.comb += [Assume(~(enters & left.all())), *invariants(((self.used + 1) & self.used) == 0)]


class CreditsOverLink(wiring.Component):
    """Data goes from one end to the other, flow control packets both ways, and in order; any of them may be lost. Never
    is more sent than the receiver has room for, nor does the sender believe that it may.

    Both ends are past Initialize, where all counts were 0; what arrives has the length that it was sent with.

    Args:
        blocks: of the receiver's buffer.
        places: packets on their way at once.

    Members:
        sender_state, receiver_state: of the two ends.
        grants_data: the sender has a packet of `need` blocks for the output. It `begins` to be sent, or is scrapped.
        grants_here, grants_there: an end may send a flow control packet.
        there, here: what is oldest on its way to the receiver, to the sender, gets there, unless it is `lost`.
        relayed: a data packet that got there takes no blocks. `returns`: so many blocks are free again.
        threshold, due: the receiver's FCP_THRESHOLD; it becomes due.
    """

    def __init__(self, blocks: int, places: int) -> None:
        self._blocks, self._places = blocks, places
        bits = ("grants_data", "begins", "grants_here", "grants_there", "there", "here", "lost", "relayed", "due")
        super().__init__(
            {
                "sender_state": In(PortState),
                "receiver_state": In(PortState),
                "need": In(NEED_BITS),
                "returns": In(FREE_BITS),
                "threshold": In(CREDIT_BITS),
                **{bit: In(1) for bit in bits},
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two flow controls, two wires, a buffer that is only counted, and the claim."""
        m = Module()
        ends = [FlowControl(1, self._blocks) for _ in range(2)]
        opened = [Opened(end) for end in ends]
        m.submodules.sender, m.submodules.receiver = (end.fragment for end in opened)
        sender, receiver = ends
        tbs, cl = sender.credits.tbs[0], sender.credits.cl[0]
        abr = opened[1].inside("abr_0")
        free = Signal(FREE_BITS, init=self._blocks)

        # The sender's output: the rule looks at what was visible two cycles before.
        busy = Signal(range(_BUSY + 1))
        credit, credit_1, credit_2 = (Signal(CREDIT_BITS, name=f"credit_{ago}") for ago in range(3))
        need = Signal(NEED_BITS)
        begins = Signal()
        grants = Signal()
        granted = [
            Signal(name=f"{name}_granted") for name in ("sender", "receiver")
        ]  # of flow control, the cycle before
        room = data.View(room_layout(NEED_BITS), room_of(credit_2, NEED_BITS))
        m.d.comb += [
            credit.eq(cl - tbs),
            grants.eq(self.grants_data & ~busy.any() & ~granted[0] & data_eligible(room, self.need, Value.cast(0))),
            sender.sent.eq((busy == _SENT) & begins),
            sender.sent_need.eq(need),
            Assume(self.need != 0),
        ]
        m.d.sync += [credit_1.eq(credit), credit_2.eq(credit_1)]
        with m.If(grants):
            m.d.sync += [busy.eq(_BUSY), need.eq(self.need), begins.eq(self.begins)]
        with m.Elif(busy.any()):
            m.d.sync += busy.eq(busy - 1)
        may = (self.grants_here & ~busy.any() & ~grants, self.grants_there)
        for end, is_granted, grant, state in zip(
            ends, granted, may, (self.sender_state, self.receiver_state), strict=True
        ):
            flow_control = grant & ~is_granted & (end.credits.urgent | end.credits.changed)
            m.d.sync += is_granted.eq(flow_control)
            m.d.comb += [
                end.credits.granted.eq(is_granted),
                end.state.eq(state),
                end.operational.eq(1),
                end.threshold.eq(self.threshold),
                end.enabling.eq(self.due),
                end.period.length.eq(~0),
                end.free[0].eq(free),
                Assume(state != PortState.DOWN),
            ]

        # The wires.
        packet = Signal(_PACKET)
        m.d.comb += [
            packet.is_data.eq(sender.sent[0]),
            packet.count.eq(Mux(sender.sent[0], need, sender.packet.fctbs)),
        ]
        there = _Wire(m, "there", self._places, enters=sender.sent[0] | granted[0], packet=packet, leaves=self.there)
        answer = Signal(_PACKET)
        m.d.comb += answer.count.eq(receiver.packet.fccl)
        here = _Wire(m, "here", self._places, enters=granted[1], packet=answer, leaves=self.here)
        arrives = there.leaves & there.first.is_data
        takes = arrives & ~self.lost & ~self.relayed
        got = Signal(CREDIT_BITS)  # of what the sender has sent, to where the receiver has heard or lost it
        returned = Signal(FREE_BITS)
        m.d.comb += [
            receiver.good.eq(there.leaves & ~there.first.is_data & ~self.lost),
            receiver.fields.fctbs.eq(there.first.count),
            receiver.spent.eq(arrives & ~self.lost),
            receiver.spent_need.eq(there.first.count),
            sender.good.eq(here.leaves & ~self.lost),
            sender.fields.fccl.eq(here.first.count),
            returned.eq(Mux(self.returns <= self._blocks - free, self.returns, 0)),
        ]
        m.d.sync += [
            got.eq(got + Mux(arrives, there.first.count, 0)),
            free.eq(free - Mux(takes, there.first.count, 0) + returned),
        ]

        room_there = Mux(free < CREDIT_WINDOW, free, CREDIT_WINDOW)
        m.d.comb += [
            Assert(~takes | (there.first.count <= free)),
            Assert(credit <= free),
            Assert(~granted[0] | (sender.packet.fctbs == tbs)),
            Assert(~receiver.good | (receiver.fields.fctbs == got)),  # what was lost is credit again
            Cover(takes & (free == there.first.count)),
            Cover(arrives & self.lost & (abr != 0)),
            Cover(receiver.good & (receiver.fields.fctbs != abr)),
        ]

        # From ABR on, modulo 4096, come: where the receiver is in what was sent, TBS, CL, and what it has room for.
        def beyond(count: Value) -> Value:
            return (count - abr)[:CREDIT_BITS]

        def in_order(*counts: Value) -> list[Value]:
            return [beyond(first) <= beyond(second) for first, second in pairwise(counts)]

        passed: list[Value] = [got]
        for place, used in zip(there.places, there.used, strict=True):
            passed.append((passed[-1] + Mux(used & place.is_data, place.count, 0))[:CREDIT_BITS])
            m.d.comb += invariants(
                ~(used & ~place.is_data) | (place.count == passed[-1]),
                ~(used & place.is_data) | (place.count[NEED_BITS:] == 0),
            )
        limits: list[Value] = [cl]
        for place, used in zip(here.places, here.used, strict=True):
            limits.append(Mux(used, place.count, limits[-1]))
        announced = (abr + room_there)[:CREDIT_BITS]
        pending = Mux((busy >= _SENT) & begins, need, 0)
        announces = opened[1].inside("goes")[0]
        m.d.comb += invariants(
            free <= self._blocks,
            passed[-1] == tbs,
            *in_order(*passed),
            *in_order(tbs, (tbs + pending)[:CREDIT_BITS], cl),
            *in_order(*limits, announced),
            ~announces | granted[1] | (beyond(receiver.packet.fccl) <= room_there),
            ~granted[1] | announces,
            ~granted[1] | (beyond(receiver.packet.fccl) <= room_there),
            ~announces | (beyond(limits[-1]) <= beyond(receiver.packet.fccl)),
            busy <= _BUSY,
            (busy > 1) | (credit_1 <= credit),
            (busy > 0) | (credit_2 <= credit),
            ~(busy.any() & granted[0]),
        )
        return m


_A_BLOCK_TOO_FEW: Final = Change(
    "a packet is sent with one block of credit too few",
    "crossing/eligibility.py",
    "need <= room.limit",
    "need <= room.limit + 1",
)

CREDIT_PROOFS: Final = (
    Proof(
        "the send rule is (CL - (TBS + need)) mod 4096 <= 2048",
        SendRule,
        cycles=1,
        quick=True,
        mutants=(_A_BLOCK_TOO_FEW,),
    ),
    Proof(
        "credits over a link that loses and delays packets: never is more sent than the receiver has room for",
        CreditsOverLink,
        parameters={"blocks": 8, "places": 2},
        cycles=18,
        apart=True,
        reaches=20,
        mutants=(
            _A_BLOCK_TOO_FEW,
            Change(
                "a port announces a block more than it has",
                "link/flow_control.py",
                "announce.eq(abr + room)",
                "announce.eq(abr + room + 1)",
            ),
            Change(
                "a packet counts a block more in ABR than it has",
                "link/flow_control.py",
                "m.d.sync += abr.eq(abr + self.spent_need)",
                "m.d.sync += abr.eq(abr + self.spent_need + 1)",
            ),
        ),
    ),
)
