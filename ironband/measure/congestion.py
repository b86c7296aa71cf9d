"""`ironband measure congestion`."""

from __future__ import annotations

from typing import Any

from cosim.pictures.laboratory_pictures import congestion_figure
from cosim.scenario.laboratory import congestion_scenario
from ironband.measure.laboratory import Asked, Laboratory, NothingToMeasure
from laboratory.congestion import Congestion
from laboratory.flow_intervals import FlowIntervals

__all__ = ["measure_congestion"]

_BITS = 8


def measure_congestion(packets: int, control: bool, **asked: Any) -> int:
    """Measure and report, with congestion control or without; the exit status.

    Raises:
        UserError: no capture, or one without data packets.
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    laboratory = Laboratory("congestion", Asked(**asked))
    places = ["R:in", "V:in", *(["H1:in"] if control else [])]
    with laboratory.capture(congestion_scenario(packets, control=control), places) as reading:
        marks, times = Congestion(), FlowIntervals()
        reading.read(marks, times)
        directions = reading.capture.directions
    if not marks.flows:
        raise NothingToMeasure(f"{reading.place}: no data packets")
    laboratory.print(f"{'':40} {'packets':>9} {'Gbit/s':>7} {'FECN':>9} {'BECN':>9}")
    flows = []
    for key, flow in marks.flows.items():
        name = f"{directions[key.direction]}, LID {key.slid} to {key.dlid}"
        lasted = times.flows[key].last_ns - times.flows[key].first_ns
        rate = flow.bytes * _BITS / lasted if lasted else 0.0
        laboratory.print(f"{name:40} {flow.packets:>9,} {rate:>7.2f} {flow.fecn:>9,} {flow.becn:>9,}")
        flows.append(
            {
                "direction": directions[key.direction],
                "slid": key.slid,
                "dlid": key.dlid,
                "packets": flow.packets,
                "gbps": rate,
                "fecn": flow.fecn,
                "becn": flow.becn,
            }
        )
    if not any(flow.fecn or flow.becn for flow in marks.flows.values()):
        laboratory.print("nobody marked a packet: the fabric has no congestion control, or no congestion")
    return laboratory.finish(congestion_figure(marks, directions), {"flows": flows}, held=True)
