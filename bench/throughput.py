"""What a saturated switch delivers, and whether all of it arrives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from bench.departures import Departures
from bench.figures import Measured, Reading
from bench.settings import Settings
from cosim.analysis.link_use import LinkUse
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.perform import observed
from cosim.scenario.uniform_load import uniform_load

__all__ = ["LOST", "THROUGHPUT_FIGURES", "throughput"]


class _Load(NamedTuple):
    queueing: Literal["voq", "fifo"]
    size: int
    """Payload bytes."""
    cycles: int
    """Measured, in a full and in a quick benchmark."""
    quick_cycles: int


_LOADS = {
    "throughput_voq_256": _Load("voq", 256, 300_000, 40_000),
    # Random destinations are uneven for long times: 300,000 cycles give 0.94 to 0.98 where the mean is 0.96.
    "throughput_voq_2048": _Load("voq", 2048, 1_200_000, 60_000),
    "throughput_fifo_2048": _Load("fifo", 2048, 300_000, 90_000),
}
THROUGHPUT_FIGURES = tuple(_LOADS)
LOST = "lost_packets"
"""The figure to which all loads add."""

_BUFFER_BLOCKS = 512
_PARTS = 3


def throughput(figure: str, settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """One of THROUGHPUT_FIGURES, and in `lost_packets` what was lost meanwhile.

    Uniform traffic at the full rate of every link, from empty buffers: warm-up, measured time, draining. The figure is
    the share of the rows that flow control packets leave free on the links out of the switch, those of data packets:
    over all the measured time, and the least and the most over a third of it.

    The run goes on until all that hosts have sent up to the end of the measured time has arrived, or as long again.
    Lost are those that did not arrive, arrived twice, too early or changed.
    """
    load = _LOADS[figure]
    cycles = settings.warm_up_cycles + (load.quick_cycles if settings.quick else load.cycles)
    experiment = scenario_experiment(
        uniform_load(
            settings.ports,
            cycles=cycles,
            size=load.size,
            queueing=load.queueing,
            buffer_blocks=_BUFFER_BLOCKS,
            seed=settings.seed,
        )
    )
    experiment = replace(experiment, cycles=experiment.end + cycles)
    uses = _parts(experiment, settings)
    departures = Departures(experiment.topology, experiment.end)
    deliveries = DeliveryCheck(experiment.topology, [departures])
    with observed(experiment, settings.sim, work_dir, [*uses, deliveries, departures]) as run:
        for record in run:
            if record.cycle >= experiment.end and not departures.under_way:
                break
    whole, *parts = [use.of_capacity for use in uses]
    lost = deliveries.lost + deliveries.fault_count + departures.under_way
    return Measured(
        {figure: Reading(whole, min(parts), max(parts)), LOST: Reading.once(lost)},
        [f"{figure}: {fault}" for fault in deliveries.faults],
    )


def _parts(experiment: Experiment, settings: Settings) -> list[LinkUse]:
    """Use of the links out of the switch: in all the measured time, then in its thirds."""
    topology = experiment.topology
    outputs = [port for port in topology.linked_ports() if port.node not in topology.lids]
    begin, end = experiment.start + settings.warm_up_cycles, experiment.end
    bounds = [begin + (end - begin) * part // _PARTS for part in range(_PARTS + 1)]
    spans = [(begin, end), *pairwise(bounds)]
    return [LinkUse(topology, outputs, *span) for span in spans]
