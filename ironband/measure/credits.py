"""`ironband measure credits`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cosim.pictures.laboratory_pictures import credit_figure
from cosim.scenario.laboratory import credit_scenario
from ironband.measure.laboratory import Asked, Laboratory, NothingToMeasure
from laboratory.credit_trace import CreditTrace, Lane
from laboratory.stretch import other_way

__all__ = ["measure_credits"]

_SYMBOL_NS = 4


def measure_credits(packets: int, buffer_blocks: int, **asked: Any) -> int:
    """Measure and report; the exit status, 1 if a block was not counted.

    Raises:
        UserError: no capture, or one without flow control packets.
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    laboratory = Laboratory("credits", Asked(**asked))
    with laboratory.capture(credit_scenario(packets, buffer_blocks), ["A"]) as reading:
        trace = CreditTrace()
        reading.read(trace)
        directions = reading.capture.directions
        lanes = {key: lane for key, lane in trace.lanes.items() if lane.told}
        if not lanes:
            raise NothingToMeasure(f"{reading.place}: no flow control packets")
        for (direction, vl), lane in lanes.items():
            _print(laboratory, f"{directions[direction]}, VL {vl}", lane)
    busiest = max(lanes, key=lambda key: lanes[key].blocks)
    back = other_way(directions, busiest[0])
    answers = None if back is None else lanes.get((back, busiest[1]))
    figure = credit_figure(f"{directions[busiest[0]]}, VL {busiest[1]}", lanes[busiest], answers)
    results = {"lanes": [_json(directions[direction], vl, lane) for (direction, vl), lane in lanes.items()]}
    return laboratory.finish(figure, results, held=not any(lane.miscounted for lane in lanes.values()))


def _print(laboratory: Laboratory, place: str, lane: Lane) -> None:
    counted = "each block counted" if not lane.miscounted else f"{lane.miscounted:,} times NOT as many as were sent"
    if lane.unjudged:
        counted += f"; not judged, for damaged packets: {lane.unjudged:,}"
    if lane.restarts:
        counted += f"; the link came up again: {lane.restarts:,}"
    laboratory.print(place)
    laboratory.print(
        f"  {lane.packets:,} packets of {lane.blocks:,} blocks; FCTBS goes from {lane.fctbs[0]:,} to "
        f"{lane.fctbs[1]:,} in {lane.told:,} flow control packets: {counted}"
    )
    if lane.period_ns is not None:
        laboratory.print(
            f"  without news a flow control packet comes after {lane.period_ns:,} ns, "
            f"{lane.period_ns / _SYMBOL_NS:,.0f} symbol times at SDR"
        )
    steps = list(lane.steps())
    laboratory.print(f"  FCCL goes from {lane.fccl[0]:,} to {lane.fccl[1]:,}" + (" in steps of" if steps else ""))
    for step in steps:
        laboratory.print(
            f"  {step.blocks:>8,} blocks {step.count:>9,} times, {step.median_ns:>9,.0f} ns after the flow control "
            f"packet before (median; least {step.least_ns:,})"
        )


def _json(direction: str, vl: int, lane: Lane) -> dict[str, Any]:
    return {
        "direction": direction,
        "vl": vl,
        "packets": lane.packets,
        "blocks": lane.blocks,
        "flow_control_packets": lane.told,
        "miscounted": lane.miscounted,
        "unjudged": lane.unjudged,
        "restarts": lane.restarts,
        "fctbs": lane.fctbs,
        "fccl": lane.fccl,
        "idle_period_ns": lane.period_ns,
        "fccl_steps": [asdict(step) for step in lane.steps()],
    }
