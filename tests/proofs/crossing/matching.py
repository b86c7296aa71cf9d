"""What the match promises (docs/pipeline.md, section 7), whatever heads ask for."""

from typing import Final

from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from rtl.crossing.acceptance import Acceptance
from rtl.crossing.matcher import Grant, Matcher
from rtl.crossing.others import others, place_of, turned
from rtl.rotation import behind
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from tests.proofs.rotation import claim_fair, one_of

__all__ = ["MATCHING_PROOFS"]


def _is_taken(m: Module, offered: Value, flow_control: Value, granted: Value) -> Value:
    """The output is not available (section 7): it made an offer, or sends a flow control packet, in the cycle before,
    or an offer of it was accepted in one of the three before."""
    granted_before = Signal()
    m.d.sync += granted_before.eq(granted)
    return offered | flow_control | granted | granted_before


class Match(wiring.Component):
    """Outputs and inputs that accept their offers: who is matched with whom.

    Members:
        requests, several_free, outputs_available, urgent, changed: see `Matcher`.
        some_free: of the inputs, those where at least one reader is free.
    """

    def __init__(self, count: int, vls: int) -> None:
        # Outputs that are no port's: VLs in turn. The order of VL arbitration is a claim of its own.
        self._matcher = Matcher(count, 0, vls)
        members = self._matcher.signature.members
        names = ("requests", "some_free", "several_free", "outputs_available", "urgent", "changed")
        super().__init__({name: members[name] for name in names})

    def elaborate(self, platform: object) -> Module:
        """Matcher and acceptances, and the claim."""
        m = Module()
        matcher = self._matcher
        opened = Opened(matcher)
        m.submodules.matcher = opened.fragment
        count, vls = matcher.count, matcher.vls
        offers_to, accepted_of = (turned(place, count) for place in (matcher.offers, matcher.accepted))
        m.d.comb += [
            matcher.requests.eq(self.requests),
            matcher.some_free.eq(self.some_free),
            matcher.several_free.eq(self.several_free),
            matcher.outputs_available.eq(self.outputs_available),
            matcher.urgent.eq(self.urgent),
            matcher.changed.eq(self.changed),
            Assume((self.several_free & ~self.some_free) == 0),
        ]
        for i in range(count):
            m.submodules[f"acceptance_{i}"] = acceptance = Acceptance(count - 1, block_bits=1)
            m.d.comb += [acceptance.offers.eq(matcher.offers[i]), matcher.accepted[i].eq(acceptance.accepted)]
            m.d.comb += [
                Assert(one_of(acceptance.accepted)),
                Assert((acceptance.accepted & ~matcher.offers[i]) == 0),
                Assert(acceptance.accepted.any() == matcher.offers[i].any()),
            ]

        for o in range(count):
            available = self.outputs_available[o]
            offered, flow_control = matcher.offered[o], matcher.flow_control[o]
            taken = _is_taken(m, offered, flow_control, matcher.granted[o])
            m.d.comb += Assume(~(available & taken))

            # Of the cycle before: who was eligible, by slot.
            eligible = Signal(data.ArrayLayout(count - 1, vls + 1), name=f"eligible_{o}")
            was_available = Signal(name=f"was_available_{o}")
            urgent = Signal(name=f"urgent_{o}")
            m.d.sync += [was_available.eq(available), urgent.eq(self.urgent[o])]
            for slot in range(vls + 1):
                free = (
                    self.requests[i][slot][place_of(o, i)]
                    & Mux(matcher.offers[i].any(), self.several_free[i], self.some_free[i])
                    & available
                    for i in others(o, count)
                )
                m.d.sync += eligible[slot].eq(Cat(*free))
            offers = offers_to[o]
            slot = matcher.slots_offered[o]
            some_vl15 = eligible[vls].any()
            some_data = Cat(eligible[vl].any() for vl in range(vls)).any()
            m.d.comb += [
                Assert(one_of(offers)),
                Assert(offered == offers.any()),
                Assert(one_of(accepted_of[o])),
                Assert(~offered | (one_of(slot) & slot.any())),
                *(Assert(~offered | ~slot[s] | ((offers & ~eligible[s]) == 0)) for s in range(vls + 1)),
                # VL15, urgent flow control, data, other flow control.
                Assert(~some_vl15 | (offered & slot[vls])),
                Assert(some_vl15 | ~(urgent & was_available) | flow_control),
                Assert(some_vl15 | urgent | ~some_data | offered),
                Assert(~flow_control | (was_available & ~offered & ~some_vl15 & (urgent | ~some_data))),
                Cover(offered & slot[vls] & some_data & (Cat(matcher.offers[0]) != offers)),
                *invariants(opened.inside(f"grant_{o}.spared") == ~offers),
            ]
        m.d.comb += Cover(matcher.granted.all())
        return m


class FairGrant(wiring.Component):
    """Inputs have their turns at an output's slot: none is granted it twice while another had a head for it in every
    cycle in which the output made an offer for it.

    Members:
        eligible, available, urgent, changed: see `Grant`.
        accepts: the input that was made an offer in the cycle before accepts it.
    """

    def __init__(self, inputs: int, vls: int) -> None:
        self._grant = Grant(inputs, vls, of_port=False)
        members = self._grant.signature.members
        names = ("eligible", "available", "urgent", "changed")
        super().__init__({"accepts": In(1), **{name: members[name] for name in names}})

    def elaborate(self, platform: object) -> Module:
        """The claim, of each slot."""
        m = Module()
        grant = self._grant
        opened = Opened(grant)
        m.submodules.grant = opened.fragment
        accepted = Mux(self.accepts, grant.offer, 0)
        taken = _is_taken(m, grant.offered, grant.flow_control, grant.granted)
        m.d.comb += [
            grant.eligible.eq(self.eligible),
            grant.available.eq(self.available),
            grant.urgent.eq(self.urgent),
            grant.changed.eq(self.changed),
            grant.accepted.eq(accepted),
            Assume(~(self.available & taken)),
        ]
        places = opened.inside("places")
        moving = behind(m, opened.inside("accepted"))  # where a place will be in the next cycle
        for slot in range(grant.vls + 1):
            asking = Signal(grant.inputs, name=f"asking_{slot}")  # in the cycle before
            m.d.sync += asking.eq(self.eligible[slot])
            goes = grant.offered & grant.slot[slot]
            place = Mux(grant.granted & grant.slot_granted[slot], moving, places.word_select(slot, grant.inputs))
            claim_fair(m, asking=asking, looks=goes, goes=Mux(goes, accepted, 0), place=place)
        m.d.comb += invariants(
            one_of(grant.offer),
            grant.offered == grant.offer.any(),
            ~grant.offered | (one_of(grant.slot) & grant.slot.any()),
            ~(grant.offered & grant.granted),
        )
        return m


MATCHING_PROOFS: Final = (
    Proof(
        "offers and what is accepted are one-hot both ways, of heads that are eligible; VL15, urgent, data, changed",
        Match,
        parameters={"count": 3, "vls": 2},
        cycles=5,
        reaches=8,
        quick=True,
        mutants=(
            Change(
                "an urgent flow control packet goes before VL15",
                "crossing/matcher.py",
                "self.available & ~vl15 & (self.urgent | (self.changed & ~some_data))",
                "self.available & (self.urgent | (self.changed & ~some_data & ~vl15))",
            ),
            Change(
                "an input is made an offer though it accepts one and has no other reader",
                "crossing/matcher.py",
                "spared[i].all()",
                "spared[i].any()",
            ),
        ),
    ),
    Proof(
        "an output grants a slot to no input twice while another has a head for it",
        FairGrant,
        parameters={"inputs": 4, "vls": 2},
        cycles=14,
        induction=2,
        reaches=18,
        mutants=(
            Change(
                "one turn among the inputs for all slots",
                "crossing/matcher.py",
                "with m.If(self.granted & self.slot_granted[slot]):",
                "with m.If(self.granted):",
            ),
        ),
    ),
)
