"""How ports, inputs and agents are connected by a crossing, in a switch and in an adapter."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect

from rtl.crossing.arrivals import Arrivals
from rtl.crossing.causes import CAUSE_BITS
from rtl.crossing.congestion import Congestion
from rtl.crossing.crossbar import Crossbar, Scrapped
from rtl.crossing.matcher import Matcher
from rtl.crossing.others import of_others, turned
from rtl.crossing.output import Output
from rtl.link.port import LinkPort
from rtl.link.transmit import SendRow
from wire.parameters import SwitchParameters

__all__ = ["SinkSignature", "connect_congestion", "connect_crossing"]


SinkSignature = wiring.Signature({"available": Out(1), "taken": In(1), "send": In(SendRow), "scrapped": In(Scrapped)})
"""An output of the crossing that needs no credits, seen from it.

Members:
    available: it takes a packet that is granted in this cycle (g); `taken`: some reader has one for it, from g+2 on.
    send: rows of that packet, in cycle x_r + 2; `scrapped`, in cycle x_0 + 2: all of it was dropped.
"""


def connect_crossing(
    m: Module,
    inputs: Sequence[Any],
    ports: Sequence[LinkPort],
    sinks: Sequence[Any],
    taking: Sequence[ValueLike] | None = None,
    life: ValueLike | None = None,
) -> Crossbar:
    """Everything between INPUTS and the outputs: PORTS first, then SINKS.

    Args:
        m: gets an `Output` for each port, a matcher and a crossbar.
        inputs: of `InputSignature`, as many as outputs; the last is no port's.
        sinks: of `SinkSignature`.
        taking: of each slot the mask of the outputs that take its packets at all; by default all do.
        life: a switch's `LifeLimit`: what goes to its ports has time limits.

    Returns:
        The crossbar, for what it scraps.
    """
    vls, count = len(inputs[0].heads.requests) - 1, len(inputs)
    facts = Signal(inputs[-1].heads.facts.shape())
    need_bits = len(facts[0].room[0].limit)
    outputs = [Output(vls, need_bits, limited=count - 1 if life is not None else 0) for _ in ports]
    m.submodules.matcher = matcher = Matcher(count, len(ports), vls)
    # What goes to ports from ports has a life time.
    aging = len(ports) if life is not None else 0
    m.submodules.crossbar = crossbar = Crossbar([len(side.rows) for side in inputs], vls, aging)
    phase = Signal(2)
    wide = Signal(count, reset_less=True)
    causes = Signal(data.ArrayLayout(CAUSE_BITS, len(ports)))
    m.d.sync += phase.eq(phase + 1)
    m.d.comb += wide.eq(Cat(*(port.sending.wide for port in ports), *(1 for _ in sinks)))

    # From the inputs: requests to the matcher, which grants them, and rows to the crossbar.
    source = 0
    for number, side in enumerate(inputs):
        requests = side.heads.requests
        if taking is not None:
            requests = Cat(requests[slot] & of_others(number, Value.cast(mask)) for slot, mask in enumerate(taking))
        m.d.comb += [
            matcher.requests[number].eq(requests),
            crossbar.outlived[number].eq(side.outlived),
            side.phase.eq(phase),
            side.wide.eq(of_others(number, wide)),
            side.causes.eq(of_others(number, causes)),
            side.heads.facts.eq(of_others(number, facts)),
            side.heads.slots_offered.eq(of_others(number, matcher.slots_follow)),
            side.offers.eq(matcher.offers[number]),
            matcher.accepted[number].eq(side.accepted),
            matcher.some_free[number].eq(side.some_free),
            matcher.several_free[number].eq(side.several_free),
        ]
        for reader in zip(side.to_output, side.rows, strict=True):
            for place, value in zip((crossbar.to_output, crossbar.rows), reader, strict=True):
                m.d.comb += place[source].eq(value)
            source += 1
    held, busy = (_of_any([getattr(side, name) for side in inputs], count) for name in ("holds", "busy"))
    visible = [_of_any([side.heads.visible[slot] for side in inputs], count) for slot in range(vls + 1)]
    accepted = turned([side.accepted for side in inputs], count)
    m.d.comb += [
        matcher.outputs_available.eq(
            Cat(
                *(output.available for output in outputs),
                *(sink.available & ~matcher.offered[o] for o, sink in enumerate(sinks, start=len(ports))),
            )
        ),
        crossbar.granted.eq(matcher.granted),
        crossbar.slots_granted.eq(matcher.slots_granted),
        matcher.urgent.eq(Cat(port.sending.credits.urgent for port in ports)),
        matcher.changed.eq(Cat(port.sending.credits.changed for port in ports)),
    ]

    # To the outputs.
    for o, (port, output) in enumerate(zip(ports, outputs, strict=True)):
        m.submodules[f"output_{o}"] = output
        connect(m, port.sending, output.port)
        connect(m, port.vl_arbitration, matcher.vl_arbitration[o])
        m.d.comb += [
            port.phase.eq(phase),
            port.send.eq(crossbar.sends[o]),
            output.phase.eq(phase),
            output.held.eq(held[o]),
            output.busy.eq(busy[o]),
            output.heads.eq(Cat(visible[slot][o] for slot in range(vls + 1))),
            output.flow_control.eq(matcher.flow_control[o]),
            output.offered.eq(matcher.offered[o]),
            output.slot.eq(matcher.slots_offered[o]),
            facts[o].eq(output.facts),
            causes[o].eq(output.cause),
        ]
        if life is not None:
            connect(m, port.time_limits, output.time_limits)
            m.d.comb += [output.life_follows.eq(life), output.accepted.eq(accepted[o])]
    for o, sink in enumerate(sinks, start=len(ports)):
        m.d.comb += [
            sink.taken.eq(held[o]),
            sink.send.eq(crossbar.sends[o]),
            sink.scrapped.eq(crossbar.scrapped[o]),
        ]
    return crossbar


def _of_any(masks: Sequence[Value], outputs: int) -> list[Value]:
    """Of each output, whether it is in some input's mask of the others."""
    return [mask.any() for mask in turned(masks, outputs)]


def connect_congestion(
    m: Module, parameters: SwitchParameters, inputs: Sequence[Any], ports: Sequence[LinkPort], marking: data.View
) -> None:
    """What marks packets for congestion, in a switch whose crossing is connected (see `connect_crossing`).

    Args:
        m: gets a `Congestion` for each port.
        parameters: the switch's.
        inputs, ports: of its crossing.
        marking: what has been set for all ports, see `switch_marking_layout`.
    """
    parts: Any = m.submodules
    vls = parameters.vls
    m.submodules.arrivals = arrivals = Arrivals(len(inputs), len(ports), vls, parameters.mtu)
    m.d.comb += [arrivals.joining[number].eq(side.joining) for number, side in enumerate(inputs)]
    starving = [_of_any([side.heads.starving[vl] for side in inputs], len(ports)) for vl in range(vls)]
    for o, port in enumerate(ports):
        m.submodules[f"congestion_{o}"] = congestion = Congestion(parameters, len(inputs) - 1)
        m.d.comb += [
            congestion.arrived.eq(arrivals.arrived[o]),
            congestion.available.eq(parts[f"output_{o}"].available),
            congestion.starving.eq(Cat(starving[vl][o] for vl in range(vls))),
            congestion.granted.eq(parts.matcher.granted[o]),
            congestion.slot.eq(parts.matcher.slots_granted[o]),
            congestion.own.eq(port.congestion.own),
            congestion.common.eq(marking.settings),
            congestion.victim.eq(marking.victims[o]),
            congestion.send.eq(parts.crossbar.sends[o]),
            congestion.scrapped.eq(parts.crossbar.scrapped[o].valid),
            congestion.charged.eq(port.congestion.charged),
            port.congestion.marks.eq(congestion.marks),
        ]
