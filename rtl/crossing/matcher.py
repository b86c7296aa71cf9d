"""Matching of inputs and outputs: who sends next (docs/pipeline.md, section 7)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.others import of_others, turned
from rtl.crossing.vl_arbiter import VlArbiter, VlTurns
from rtl.link.port import VlArbitrationSignature
from rtl.rotation import behind, first_from, select

__all__ = ["Grant", "Matcher"]


class Grant(wiring.Component):
    """One output: what it sends if it is available, and the input to which it makes an offer.

    An offer is made in cycle g and accepted, or not, in the next. An output that has made one is not available in the
    next cycle, and one whose offer was accepted not in the next three, so its pointers, and the order of its VLs, have
    these to move on.

    Args:
        inputs: that may send to it; all masks of inputs are of these.
        of_port: the output is a port's: its VLs are in the order of VL arbitration, not in turns.

    Members:
        eligible: for each slot, the mask of inputs with an eligible head.
        available: the output is.
        urgent, changed: some VL has a flow control packet, see section 6.2.
        offered: it made an offer in the cycle before (this is g+1). `flow_control`: instead of that it sends a flow
            control packet, granted in the cycle before.
        offer: to this input, one-hot; none if it made none. `spared`: the inputs that it made none, in registers of
            their own.
        slot: on this slot, one-hot; anything if it made none. `slot_follows`: what that will be in the next cycle.
        accepted: the input that accepts in this cycle (g+1), one-hot, or none.
        granted, slot_granted: in the cycle before some input accepted (this is g+2), and this slot, one-hot; else that
            is anything.
        vl_arbitration: of the port.
    """

    def __init__(self, inputs: int, vls: int, *, of_port: bool) -> None:
        self.inputs = inputs
        self.vls = vls
        self.of_port = of_port
        super().__init__(
            {
                "eligible": In(data.ArrayLayout(inputs, vls + 1)),
                "available": In(1),
                "urgent": In(1),
                "changed": In(1),
                "flow_control": Out(1),
                "offered": Out(1),
                "offer": Out(inputs),
                "spared": Out(inputs, init=(1 << inputs) - 1),
                "slot": Out(vls + 1),
                "slot_follows": Out(vls + 1),
                "accepted": In(inputs),
                "granted": Out(1),
                "slot_granted": Out(vls + 1),
                **({"vl_arbitration": In(VlArbitrationSignature)} if of_port else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What moves with a grant; then VL15, urgent flow control, data, other flow control."""
        m = Module()
        vls = self.vls
        m.submodules.vl_arbiter = vl_arbiter = VlArbiter(vls) if self.of_port and vls > 1 else VlTurns(vls)
        if isinstance(vl_arbiter, VlArbiter):
            connect(m, flipped(self.vl_arbitration), vl_arbiter.port)
        accepted = Signal(self.inputs)
        places = Signal(data.ArrayLayout(self.inputs, vls + 1))  # each slot's turn among the inputs
        m.d.sync += [accepted.eq(self.accepted), self.slot_granted.eq(self.slot)]
        m.d.comb += self.granted.eq(accepted.any())
        place_behind = behind(m, accepted)
        for slot in range(vls + 1):
            with m.If(self.granted & self.slot_granted[slot]):
                m.d.sync += places[slot].eq(place_behind)
        m.d.comb += [
            vl_arbiter.serve.eq(self.granted & ~self.slot_granted[vls]),
            vl_arbiter.served.eq(self.slot_granted[:vls]),
        ]

        # The input is chosen for VL15 and for data at the same time as between the two.
        vl15 = Signal()
        some_data = Signal()
        candidates = Signal(self.inputs)
        place = Signal(self.inputs)
        m.d.comb += [
            vl15.eq(self.eligible[vls].any()),
            vl_arbiter.eligible.eq(Cat(self.eligible[vl].any() for vl in range(vls))),
            some_data.eq(vl_arbiter.eligible.any()),
            candidates.eq(select(vl_arbiter.chosen, [self.eligible[vl] for vl in range(vls)])),
            place.eq(select(vl_arbiter.chosen, [places[vl] for vl in range(vls)])),
        ]
        to_vl15 = first_from(m, self.eligible[vls], places[vls])
        to_data = first_from(m, candidates, place)
        m.d.comb += self.slot_follows.eq(Mux(vl15, 1 << vls, vl_arbiter.chosen))
        offer = Mux(self.available, to_vl15 | Mux(vl15 | self.urgent, 0, to_data), 0)
        m.d.sync += [
            self.flow_control.eq(self.available & ~vl15 & (self.urgent | (self.changed & ~some_data))),
            self.offered.eq(self.available & (vl15 | (some_data & ~self.urgent))),
            self.offer.eq(offer),
            self.spared.eq(~offer),
            self.slot.eq(self.slot_follows),
        ]
        return m


class Matcher(wiring.Component):
    """All outputs: in every cycle they make offers to inputs, which accept those of the cycle before.

    What one input or output is told, or says, of those at the other side is of the others (see `others`).

    Args:
        count: of the inputs, and of the outputs; `ports` of the latter, the first, are ports'.

    Members:
        requests: for each input and slot, the mask of outputs for which it has an eligible head,
            availability aside.
        some_free, several_free: masks of inputs: a reader is free, and more than one.
        outputs_available: mask. An output that made an offer, or sent a flow control packet, in a cycle is not
            available in the next; if an offer was accepted, not in the next three.
        urgent, changed: masks of outputs with flow control packets to send.
        vl_arbitration: of the outputs that are ports', which are the first.
        offered: mask of outputs that made an offer in the cycle before (this is g+1); slots_offered: for each of them
            its slot, one-hot; `slots_follow`: what these will be in the next cycle. `flow_control`: mask of those that
            send a flow control packet instead, granted in the cycle before.
        offers: for each input the mask of the outputs that made it one.
        accepted: for each input the output whose offer it accepts in this cycle, one-hot, or none.
        granted: mask of outputs whose offer was accepted in the cycle before (this is g+2); slots_granted: for each of
            them its slot, one-hot.
    """

    def __init__(self, count: int, ports: int, vls: int) -> None:
        self.count = count
        self.ports = ports
        self.vls = vls
        slots = vls + 1
        super().__init__(
            {
                "requests": In(data.ArrayLayout(data.ArrayLayout(count - 1, slots), count)),
                "some_free": In(count),
                "several_free": In(count),
                "outputs_available": In(count),
                "urgent": In(count),
                "changed": In(count),
                "vl_arbitration": In(VlArbitrationSignature).array(ports),
                "flow_control": Out(count),
                "offered": Out(count),
                "slots_offered": Out(data.ArrayLayout(slots, count)),
                "slots_follow": Out(data.ArrayLayout(slots, count)),
                "offers": Out(data.ArrayLayout(count - 1, count)),
                "accepted": In(data.ArrayLayout(count - 1, count)),
                "granted": Out(count),
                "slots_granted": Out(data.ArrayLayout(slots, count)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Grant at each output."""
        m = Module()
        count, slots = self.count, range(self.vls + 1)
        grants = [Grant(count - 1, self.vls, of_port=number < self.ports) for number in range(count)]

        # An input accepts one of its offers. That is known here as soon as there, and this is the last to be known: so
        # it is by what was not offered, which, other than offers, goes nowhere else, and stays here.
        available = Signal(count)
        spared = turned([grant.spared for grant in grants], count)
        m.d.comb += available.eq(
            Cat(Mux(spared[i].all(), self.some_free[i], self.several_free[i]) for i in range(count))
        )
        requests = [turned([of_input[slot] for of_input in self.requests], count) for slot in slots]
        accepted = turned(self.accepted, count)
        for number, grant in enumerate(grants):
            m.submodules[f"grant_{number}"] = grant
            if grant.of_port:
                connect(m, flipped(self.vl_arbitration[number]), grant.vl_arbitration)
            for slot in slots:
                m.d.comb += grant.eligible[slot].eq(requests[slot][number] & of_others(number, available))
            m.d.comb += [
                grant.available.eq(self.outputs_available[number]),
                grant.urgent.eq(self.urgent[number]),
                grant.changed.eq(self.changed[number]),
                grant.accepted.eq(accepted[number]),
                self.flow_control[number].eq(grant.flow_control),
                self.offered[number].eq(grant.offered),
                self.slots_offered[number].eq(grant.slot),
                self.slots_follow[number].eq(grant.slot_follows),
                self.granted[number].eq(grant.granted),
                self.slots_granted[number].eq(grant.slot_granted),
            ]
        offers = turned([grant.offer for grant in grants], count)
        m.d.comb += [place.eq(mask) for place, mask in zip(self.offers, offers, strict=True)]
        return m
