"""Performing an experiment: a run of an engine before observers, and the golden model beside it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import tee
from pathlib import Path
from typing import Final

from cosim.analysis.observer import Audience, Observer
from cosim.engines import simulation
from cosim.engines.base import MODEL, NO_TAPS, Taps, Waves
from cosim.experiments.experiment import Experiment
from cosim.stimulus.actors import ActorGroup, Leader, Replay
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.trace.compare import Comparison, compare
from wire.trace import Record

_AFTER: Final = 4
"""Records of each side that are shown behind a difference."""

__all__ = ["observed", "perform", "run_beside_model"]


def perform(
    experiment: Experiment,
    engine: str,
    work_dir: Path,
    observers: Sequence[Observer] = (),
    *,
    rtl: Collection[str] | None = None,
    waves: Waves | None = None,
    taps: Taps = NO_TAPS,
    rows: int = 0,
) -> Comparison | None:
    """Run an experiment on an engine and compare it with the golden model, record by record.

    The stimulus is drawn once, as far as the engine, the model and the observers are apart. `rtl` names the nodes that
    the engine simulates, all without it; `taps` look at its links. With `rows` all rows on the links of a whole
    fabric are compared, by CRCs of so many cycles. What Subnet Managers and transports do in its run is
    posted in the golden model, too. On the engine `model` there is nothing to compare, and the result is None.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """
    runs = 1 if engine == MODEL else 2
    packets = experiment.packets() if experiment.sources is None else iter(())
    offered, *posted = tee(packets, 1 + runs)
    stimuli = zip(posted, tee(experiment.controls(), runs), strict=True)
    audience = Audience(observers, offered)
    del offered, posted
    carriers: list[Leader] = [manager.carrier for manager in experiment.managers(audience.manage)]
    sources = None if experiment.sources is None else experiment.sources(audience.follow_message)
    if sources is not None:
        carriers.append(sources)
        audience.follow_answers(sources.offered_until)
    messages = experiment.messages(audience.follow_message)
    if messages is not None:
        if sources is not None:
            messages.beside(sources)
        carriers.append(messages)
        audience.follow_answers(messages.offered_until)

    def spec(actor: Actor | None) -> RunSpec:
        return experiment.spec(*next(stimuli), actor)

    comparison, _cycles = run_beside_model(
        engine, spec, work_dir, audience, carriers, rtl=rtl, waves=waves, taps=taps, rows=rows
    )
    return comparison


def run_beside_model(
    engine: str,
    spec: Callable[[Actor | None], RunSpec],
    work_dir: Path,
    audience: Audience,
    carriers: Sequence[Leader],
    *,
    rtl: Collection[str] | None = None,
    waves: Waves | None = None,
    taps: Taps = NO_TAPS,
    rows: int = 0,
    compared: bool = True,
) -> tuple[Comparison | None, int]:
    """Run an engine before an audience, compare it with the golden model, and say how many cycles it ran.

    `spec` is called for each run, with what `carriers` do in it: act in the engine's, and in the model's the same.
    Unless it is to be `compared`, the engine's is all there is.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """
    is_compared = compared and engine != MODEL
    first = spec(ActorGroup(carriers) if carriers else None)
    run = simulation.run(
        engine,
        first,
        work_dir / engine,
        rtl=rtl,
        waves=waves,
        on_delivery=audience.on_delivery,
        taps=taps,
        rows=rows if is_compared else 0,
        kinds=None if is_compared else audience.kinds,
    )
    comparison = None
    with run as records:
        seen = audience.follow(records)
        if is_compared:
            second = spec(ActorGroup([Replay(carrier) for carrier in carriers]) if carriers else None)
            with simulation.run(MODEL, second, work_dir / MODEL, rows=rows) as expected:
                comparison = compare(expected, seen, _AFTER)
        else:
            deque(seen, maxlen=0)
    audience.finish()
    return comparison, run.cycles_done


@contextmanager
def observed(
    experiment: Experiment, engine: str, work_dir: Path, observers: Sequence[Observer]
) -> Iterator[Iterator[Record]]:
    """The records of a run of an engine, alone, each when the observers have seen it.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """
    offered, posted = tee(experiment.packets())
    audience = Audience(observers, offered)
    spec = experiment.spec(posted)
    del offered, posted
    with simulation.run(engine, spec, work_dir, on_delivery=audience.on_delivery) as records:
        yield audience.follow(records)
    audience.finish()
