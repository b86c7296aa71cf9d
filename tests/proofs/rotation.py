"""The rotating choice is fair (docs/pipeline.md, section 1), wherever it is made."""

from typing import Final

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.crossing.acceptance import Acceptance
from rtl.rotation import RotatingChoice
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants

__all__ = ["ROTATION_PROOFS", "claim_fair", "one_of"]


def one_of(chosen: Value) -> Value:
    """One-hot, or none."""
    return (chosen & (chosen - 1)) == 0


def claim_fair(m: Module, *, asking: Value, looks: Value, goes: Value, place: Value) -> None:
    """While one asks, whichever it is, no other is served twice, so that it waits for at most all others.

    Args:
        m: gets the claim.
        asking: mask of those that ask.
        looks: it matters in this cycle who asks.
        goes: one-hot, the one that is served in this cycle, or none.
        place: mask of all x >= p, none for 0: the first that asks of these is next.
    """
    who = Signal(len(asking))
    m.d.comb += who.eq(1 << AnyConst(range(len(asking))))
    served = Signal(len(asking))  # since it asks, or was served itself
    pauses = looks & ~(asking & who).any()
    m.d.sync += served.eq(Mux(pauses | (goes & who).any(), 0, served | goes))
    m.d.comb += [
        Assert(pauses | ((goes & served) == 0)),
        Cover(served == ~who),
    ]

    # The place is such a mask, and who was served does not come before the one that asks.
    up_to_it = who | (who - 1)
    m.d.comb += invariants(
        ((place << 1)[: len(place)] & ~place) == 0,
        (served & Mux((place & who).any(), place & up_to_it, place | up_to_it)) == 0,
    )


class FairTurns(wiring.Component):
    """`RotatingChoice` chooses one of those that ask, if there is one, and all in turn.

    Members:
        requests: those that ask.
        serve: the one that is chosen is served.
    """

    def __init__(self, width: int) -> None:
        super().__init__({"requests": In(width), "serve": In(1)})

    def elaborate(self, platform: object) -> Module:
        """The claim."""
        m = Module()
        choice = RotatingChoice(len(self.requests))
        opened = Opened(choice)
        m.submodules.choice = opened.fragment
        chosen = choice.chosen
        m.d.comb += [
            choice.requests.eq(self.requests),
            choice.serve.eq(self.serve & self.requests.any()),
            choice.served.eq(chosen),
            Assert(one_of(chosen)),
            Assert((chosen & ~self.requests) == 0),
            Assert(chosen.any() == self.requests.any()),
        ]
        goes = Mux(choice.serve, chosen, 0)
        claim_fair(m, asking=self.requests, looks=Value.cast(1), goes=goes, place=opened.inside("place"))
        return m


class FairAcceptance(wiring.Component):
    """`Acceptance` accepts one of the offers, if there are any, outputs in turn, and finds its head's first block.

    Members:
        offers, firsts: see `Acceptance`.
    """

    def __init__(self, outputs: int) -> None:
        self._acceptance = Acceptance(outputs, block_bits=3)
        members = self._acceptance.signature.members
        super().__init__({name: members[name] for name in ("offers", "firsts")})

    def elaborate(self, platform: object) -> Module:
        """The claim."""
        m = Module()
        acceptance = self._acceptance
        opened = Opened(acceptance)
        m.submodules.acceptance = opened.fragment
        accepted = acceptance.accepted
        m.d.comb += [
            acceptance.offers.eq(self.offers),
            acceptance.firsts.eq(self.firsts),
            Assert(one_of(accepted)),
            Assert((accepted & ~self.offers) == 0),
            Assert(accepted.any() == self.offers.any()),
            *(Assert(~goes | (acceptance.first == first)) for goes, first in zip(accepted, self.firsts, strict=True)),
            Assert(accepted.any() | (acceptance.first == 0)),
        ]
        claim_fair(m, asking=self.offers, looks=Value.cast(1), goes=accepted, place=opened.inside("place"))
        return m


ROTATION_PROOFS: Final = (
    Proof(
        "a rotating choice serves one of those that ask, and none twice while another asks",
        FairTurns,
        parameters={"width": 8},
        cycles=9,
        quick=True,
        mutants=(
            Change(
                "who was served is first again",
                "rotation.py",
                "m.d.comb += place.eq(_some_below(m, chosen))",
                "m.d.comb += place.eq(chosen | _some_below(m, chosen))",
            ),
        ),
    ),
    Proof(
        "an input accepts one of its offers, and none twice while another output makes one",
        FairAcceptance,
        parameters={"outputs": 5},
        cycles=6,
        quick=True,
        mutants=(
            Change(
                "of a pair of outputs the higher is first",
                "crossing/acceptance.py",
                "self.offers[low] & (place[low] | ~ahead[other])",
                "self.offers[low] & (place[low] | ~self.offers[other])",
            ),
        ),
    ),
)
