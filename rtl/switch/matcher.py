"""Matching of inputs and outputs: who sends next (docs/pipeline.md, section 7)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.switch.rotation import behind, first_from, select
from rtl.switch.vl_arbiter import VlArbiter

__all__ = ["Accept", "Grant", "Matcher"]


class Grant(wiring.Component):
    """One output: what it sends if it is available, and the input to which it offers a grant.

    Members:
        eligible: for each slot, the mask of inputs with an eligible head.
        available: the output is.
        urgent, changed: some VL has a flow control packet, see section 6.2.
        offer: the input, one-hot; none if there is nothing to send.
        slot: its slot, one-hot, whenever there is an offer.
        flow_control: a flow control packet is sent instead.
        accepted: the input accepts.
    """

    def __init__(self, inputs: int, vls: int) -> None:
        self.inputs = inputs
        self.vls = vls
        super().__init__(
            {
                "eligible": In(data.ArrayLayout(inputs, vls + 1)),
                "available": In(1),
                "urgent": In(1),
                "changed": In(1),
                "offer": Out(inputs),
                "slot": Out(vls + 1),
                "flow_control": Out(1),
                "accepted": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """VL15, urgent flow control, data, other flow control."""
        m = Module()
        vls = self.vls
        m.submodules.vl_arbiter = vl_arbiter = VlArbiter(vls)
        place = Signal(self.inputs)
        vl15 = Signal()
        some_data = Signal()
        candidates = Signal(self.inputs)
        m.d.comb += [
            vl15.eq(self.eligible[vls].any()),
            vl_arbiter.eligible.eq(Cat(self.eligible[vl].any() for vl in range(vls))),
            vl_arbiter.taken.eq(self.accepted & ~vl15),
            some_data.eq(vl_arbiter.eligible.any()),
            self.slot.eq(Mux(vl15, 1 << vls, vl_arbiter.chosen)),
            self.flow_control.eq(self.available & ~vl15 & (self.urgent | (self.changed & ~some_data))),
            candidates.eq(select(self.slot, [self.eligible[slot] for slot in range(vls + 1)])),
            self.offer.eq(Mux(self.available & ~self.flow_control, first_from(candidates, place), 0)),
        ]
        with m.If(self.accepted):
            m.d.sync += place.eq(behind(self.offer))
        return m


class Accept(wiring.Component):
    """One input: which offer it accepts.

    Members:
        offers: mask of the outputs that offer a grant.
        accepted: one of them, one-hot.
    """

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs
        super().__init__({"offers": In(outputs), "accepted": Out(outputs)})

    def elaborate(self, platform: object) -> Module:
        """A rotating choice."""
        m = Module()
        place = Signal(self.outputs)
        m.d.comb += self.accepted.eq(first_from(self.offers, place))
        with m.If(self.accepted.any()):
            m.d.sync += place.eq(behind(self.accepted))
        return m


class Matcher(wiring.Component):
    """All inputs and outputs, one pass a cycle.

    Members:
        requests: for each input and slot, the mask of outputs for which it has an eligible head,
            but for what is available.
        inputs_available, outputs_available: masks.
        urgent, changed: masks of outputs with flow control packets to send.
        output_of, slot_of: for each input the output and the slot it sends to, one-hot, or none.
        flow_control: mask of outputs that send a flow control packet.
    """

    def __init__(self, inputs: int, outputs: int, vls: int) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.vls = vls
        slots = vls + 1
        super().__init__(
            {
                "requests": In(data.ArrayLayout(data.ArrayLayout(outputs, slots), inputs)),
                "inputs_available": In(inputs),
                "outputs_available": In(outputs),
                "urgent": In(outputs),
                "changed": In(outputs),
                "output_of": Out(data.ArrayLayout(outputs, inputs)),
                "slot_of": Out(data.ArrayLayout(slots, inputs)),
                "flow_control": Out(outputs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Grant at each output, accept at each input."""
        m = Module()
        inputs, outputs, slots = range(self.inputs), range(self.outputs), range(self.vls + 1)
        grants = [Grant(self.inputs, self.vls) for _ in outputs]
        accepts = [Accept(self.outputs) for _ in inputs]
        m.submodules += [*grants, *accepts]

        for number, grant in enumerate(grants):
            for slot in slots:
                column = Cat(self.requests[i][slot][number] for i in inputs)
                m.d.comb += grant.eligible[slot].eq(column & self.inputs_available)
            m.d.comb += [
                grant.available.eq(self.outputs_available[number]),
                grant.urgent.eq(self.urgent[number]),
                grant.changed.eq(self.changed[number]),
                grant.accepted.eq(Cat(accept.accepted[number] for accept in accepts).any()),
                self.flow_control[number].eq(grant.flow_control),
            ]
        for number, accept in enumerate(accepts):
            m.d.comb += [
                accept.offers.eq(Cat(grant.offer[number] for grant in grants)),
                self.output_of[number].eq(accept.accepted),
                self.slot_of[number].eq(select(accept.accepted, [grant.slot for grant in grants])),
            ]
        return m
