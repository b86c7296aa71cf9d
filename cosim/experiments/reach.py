"""Throughput over cable length: one flow over a long link, with several buffers behind it, measured and in theory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil
from pathlib import Path
from typing import Final, Literal

from cosim.analysis.credit_loop import CreditLoop
from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.sweep import outcomes
from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import Flow, Host, Link, Switch
from cosim.topology.topology import Port

__all__ = ["Reach", "ReachPoint", "Width", "measure_reach"]

Width = Literal["1X", "4X"]

_SENDER, _RECEIVER = "S", "T"
"""The switches at the ends of the cable."""

_WARM_UP: Final = 2
_MEASURED: Final = 8
"""Periods of credits; each begins as the one before it."""
_LEAST_PACKETS: Final = 64


@dataclass(frozen=True)
class Reach:
    """Host A sends to host B without a pause: A - S - T - B, with a cable of any length between the switches.

    Attributes:
        width: of all three links.
        size: payload bytes of each packet.
    """

    width: Width = "4X"
    size: int = 2048

    def loop(self, length_m: float) -> CreditLoop:
        """What credits allow on a cable of this length."""
        return CreditLoop(self._link(length_m).flight(self._shortest.symbol_time_ns), *self._packet)

    def scenario(self, length_m: float, buffer_blocks: int, cycles: int = 1) -> Scenario:
        """So many cycles, with a cable of this length and a buffer of so many blocks at its far end."""
        return Scenario(
            name="reach",
            cycles=cycles,
            switches={_SENDER: Switch(ports=2), _RECEIVER: Switch(ports=2, buffer_blocks=buffer_blocks)},
            hosts={"A": Host(), "B": Host()},
            links=(
                Link(ends=("A", f"{_SENDER}[1]"), width=self.width),
                self._link(length_m),
                Link(ends=(f"{_RECEIVER}[2]", "B"), width=self.width),
            ),
            flows=(Flow.model_validate({"from": "A", "to": "B", "size": self.size, "rate": 1.0}),),
        )

    def _link(self, length_m: float) -> Link:
        return Link(ends=(f"{_SENDER}[2]", f"{_RECEIVER}[1]"), width=self.width, length_m=length_m)

    @cached_property
    def _shortest(self) -> Scenario:
        return self.scenario(1, Switch().buffer_blocks)

    @cached_property
    def _packet(self) -> tuple[int, int, int]:
        """Rows, blocks, and cycles of a row."""
        experiment = scenario_experiment(self._shortest)
        packet = next(experiment.packets())
        return packet.rows, packet.blocks, experiment.topology.pace(Port(_SENDER, 2))


@dataclass(frozen=True)
class ReachPoint:
    """One measurement. Shares are of the rows that flow control packets leave.

    Attributes:
        length_m: of the cable.
        buffer_blocks: behind it.
        measured, theory: data's share.
        gbit_per_s: payload that arrived.
        faults: as of cosim.experiments.sweep.Outcome.
    """

    length_m: float
    buffer_blocks: int
    measured: float
    theory: float
    gbit_per_s: float
    faults: int


def measure_reach(
    reach: Reach,
    lengths: Sequence[float],
    buffers: Sequence[int],
    engine: str,
    work_dir: Path,
    progress: Callable[[float], None] = lambda share: None,
) -> list[ReachPoint]:
    """Run all combinations, the buffers within the lengths; `progress` gets the share of all cycles that is done.

    A run lasts a whole number of periods, so that it does not matter at what place of one the measurement begins, and
    as long as some tens of packets.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """
    places = list(product(lengths, buffers))
    loops = {length: reach.loop(length) for length in lengths}
    scenarios = []
    for length, blocks in places:
        run = loops[length].period(blocks) * (_WARM_UP + _MEASURED)
        scenarios.append(reach.scenario(length, blocks, run * ceil(_LEAST_PACKETS * loops[length].packet_cycles / run)))
    done, total = 0, sum(scenario.cycles for scenario in scenarios)

    def ran(scenario: Scenario) -> None:
        nonlocal done
        done += scenario.cycles
        progress(done / total)

    found = outcomes(scenarios, engine, work_dir, ran, warm_up=_WARM_UP / (_WARM_UP + _MEASURED))
    return [
        ReachPoint(length, blocks, one.busiest_share, loops[length].share(blocks), one.gbit_per_s, one.faults)
        for (length, blocks), one in zip(places, found, strict=True)
    ]
