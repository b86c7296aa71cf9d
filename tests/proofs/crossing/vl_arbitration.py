"""VL arbitration of an output (IBTA vol 1, 7.6.9; docs/pipeline.md, section 7.1)."""

from itertools import pairwise
from typing import Final

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.crossing.vl_arbiter import VlArbiter
from rtl.link.port import VlArbitrationSignature
from rtl.widths import NEED_BITS, VL_LIMIT_BITS
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from tests.proofs.rotation import one_of

__all__ = ["VL_ARBITRATION_PROOFS"]

_NEXT_CHOICE: Final = 6
"""Cycles from a choice to the next of the same output, at least, if its packet is sent."""
_LIMIT_UNIT: Final = 64
"""VL_HIGH_LIMIT is in 4096 bytes, blocks of 64."""


class WorkConserving(wiring.Component):
    """Whatever the lists say, and while they are written: one VL of those that are eligible is chosen, if there is one.

    Members:
        eligible, serve, served, port: see `VlArbiter`.
    """

    def __init__(self, vls: int) -> None:
        self._arbiter = VlArbiter(vls)
        members = self._arbiter.signature.members
        super().__init__({"eligible": members["eligible"], "serve": In(1), "served": In(vls), "port": members["port"]})

    def elaborate(self, platform: object) -> Module:
        """The claim."""
        m = Module()
        m.submodules.arbiter = arbiter = self._arbiter
        wiring.connect(m, wiring.flipped(self.port), arbiter.port)
        m.d.comb += [
            arbiter.eligible.eq(self.eligible),
            arbiter.serve.eq(self.serve),
            arbiter.served.eq(self.served),
            Assert(one_of(arbiter.chosen)),
            Assert((arbiter.chosen & ~self.eligible) == 0),
            Assert(arbiter.chosen.any() == self.eligible.any()),
            Cover(self.eligible.all() & arbiter.chosen[-1]),
        ]
        return m


class HighLimit(wiring.Component):
    """While at every choice a VL of the low list is eligible, the high list sends no more before the low one than
    VL_HIGH_LIMIT, one packet at least, of which the last may be beyond it.

    The lists are written before; packets are charged as they go.

    Members:
        eligible: VLs with a packet, in the cycle of a choice: `chooses`.
        need: blocks of the packet, if it is `charged`.
        entry: of a list, as it is written.
    """

    def __init__(self, vls: int) -> None:
        self._vls = vls
        entry = VlArbitrationSignature.members["entry"]
        super().__init__(
            {"chooses": In(1), "eligible": In(vls), "need": In(NEED_BITS), "charged": In(1), "entry": entry}
        )

    def elaborate(self, platform: object) -> Module:
        """What the high list has sent since the low one was served, or had nothing."""
        m = Module()
        arbiter = VlArbiter(self._vls)
        opened = Opened(arbiter)
        m.submodules.arbiter = opened.fragment
        limit = Signal(VL_LIMIT_BITS)
        m.d.comb += [
            limit.eq(AnyConst(VL_LIMIT_BITS)),
            Assume(limit != (1 << VL_LIMIT_BITS) - 1),
            arbiter.eligible.eq(self.eligible),
            arbiter.port.high_limit.eq(limit),
            arbiter.port.entry.eq(self.entry),
        ]
        low, high, spent = (opened.inside(name) for name in ("low.of_vl", "high.of_vl", "spent"))
        left = opened.inside("left")

        # A packet's cycles; and those for which no list has been written.
        since = Signal(range(_NEXT_CHOICE + 1), init=_NEXT_CHOICE)
        quiet = Signal(2)
        chooses = self.chooses & self.eligible.any() & (since == _NEXT_CHOICE) & quiet.all()
        m.d.sync += [
            since.eq(Mux(chooses, 1, Mux(since == _NEXT_CHOICE, since, since + 1))),
            quiet.eq(Cat(1, quiet[0]) & ~self.entry.write.replicate(2)),
        ]
        chosen = [Signal(self._vls, name=f"chosen_{ago}") for ago in (1, 2, 3)]
        m.d.sync += [after.eq(before) for before, after in pairwise([arbiter.chosen, *chosen])]
        m.d.comb += [
            Assume(~self.entry.write | ((since == _NEXT_CHOICE) & ~chooses)),
            arbiter.serve.eq(since == 2),
            arbiter.served.eq(chosen[1]),
            arbiter.port.charged.eq(self.charged & (since == 3)),
            arbiter.port.blocks.eq(self.need),
        ]

        def of(vls: Value, entries: Value) -> Value:
            """One of these VLs is in the list that has these entries of each."""
            each = len(entries) // self._vls
            return Cat(vls[vl] & entries[each * vl :][:each].any() for vl in range(self._vls)).any()

        chosen_now = Signal(self._vls)  # of the packet on its way
        m.d.comb += chosen_now.eq(Mux(since == 1, chosen[0], Mux(since == 2, chosen[1], chosen[2])))

        # The contract's account. A VL that both lists have is served by the high one unless that is spent.
        sent = Signal(16)  # blocks of the high list
        allowance = limit * _LIMIT_UNIT
        has_its_turn = (sent != 0) & (sent >= allowance)
        by_high = of(chosen[2], high) & ~(spent & of(chosen[2], low))
        with m.If(chooses & ~of(self.eligible, low)):
            m.d.sync += sent.eq(0)
        with m.Elif(arbiter.port.charged & by_high):
            m.d.sync += sent.eq(sent + self.need)
        with m.Elif(arbiter.port.charged & of(chosen[2], low)):
            m.d.sync += sent.eq(0)
        m.d.comb += [
            Assume(self.need != 0),
            Assert(~(chooses & of(self.eligible, low) & has_its_turn) | of(arbiter.chosen, low)),
            Assert(~(chooses & of(self.eligible, high) & ~has_its_turn & ~spent) | of(arbiter.chosen, high)),
            Cover(chooses & (sent > allowance) & (limit == 1) & of(self.eligible & arbiter.chosen, low)),
            *invariants(
                sent <= allowance + (1 << NEED_BITS),
                left <= allowance,
                ~spent | (left == 0),
                spent | (sent == 0) | ((left != 0) & (sent + left <= allowance)),
                ~(spent & (since >= 1) & (since <= 3) & of(chosen_now, high) & ~of(chosen_now, low)) | (sent == 0),
            ),
        ]
        return m


VL_ARBITRATION_PROOFS: Final = (
    Proof(
        "of the VLs that are eligible one is chosen, if there is one, whatever the lists say",
        WorkConserving,
        parameters={"vls": 3},
        cycles=8,
        induction=2,
        quick=True,
        mutants=(
            Change(
                "of two VLs that are alike neither is before the other",
                "crossing/vl_arbiter.py",
                "higher = Cat(self.eligible[u] & ~before[v, u]",
                "higher = Cat(self.eligible[u]",
            ),
        ),
    ),
    Proof(
        "the high list sends no more than VL_HIGH_LIMIT, and the last packet, while a VL of the low list is eligible",
        HighLimit,
        parameters={"vls": 2},
        cycles=17,
        induction=6,
        reaches=30,
        mutants=(
            Change(
                "the limit is counted anew with every packet",
                "crossing/vl_arbiter.py",
                "rest.eq((left | Mux(spent, allowance, 0)) - port.blocks)",
                "rest.eq(allowance - port.blocks)",
            ),
        ),
    ),
)
