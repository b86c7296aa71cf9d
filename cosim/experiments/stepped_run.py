"""A run that stands still whenever its caller wants: simulated time goes on only inside `step`.

An engine calls its actors for as long as it runs, and returns in the end. Here it runs as a coroutine, on a stack of
its own: an actor that is asked how far the fabric may run goes back to the caller of `step`, and when that steps on,
the engine goes on where it was. So the caller's code between two steps is as a consumer at the hosts, in plain order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import greenlet

from cosim.analysis.observer import Audience, Observer
from cosim.engines.base import MODEL, NO_TAPS, Taps, Waves
from cosim.experiments.perform import run_beside_model
from cosim.scenario.limits import MAX_CYCLES
from cosim.stimulus.actors import Leader, Shared
from cosim.stimulus.late_controls import LateControls
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.trace.compare import Comparison, Names
from toolchain.errors import UserError
from wire.parameters import AdapterParameters, FabricParameters
from wire.stimulus import Control, Delivery, Operation, Post, Taking

__all__ = ["RunOver", "SteppedRun", "SteppedTask"]

_CONTROL_CYCLES: Final = 1_000
"""Control operations are given so often at the least."""


class RunOver(UserError):
    """There is no more run to be stepped."""


@dataclass(frozen=True)
class SteppedTask:
    """What is to be run, and how.

    Attributes:
        fabric: the fabric.
        work_dir: where engines may work.
        controls: given from reset on, ascending by cycle.
        engine: what simulates.
        rtl: the nodes that it simulates, by name, all without it; the others are the golden model.
        compared: whether the golden model runs beside RTL and is compared.
        observers: follow the run; what happens in a step they may see some steps later.
        taps: look at its links.
        waves: record these.
    """

    fabric: FabricParameters
    work_dir: Path
    controls: Sequence[Control] = ()
    engine: str = MODEL
    rtl: Collection[str] | None = None
    compared: bool = False
    observers: Sequence[Observer] = ()
    taps: Taps = field(default_factory=lambda: NO_TAPS)
    waves: Waves | None = None


class SteppedRun:
    """A run. It is a leader (`cosim.stimulus.actors.Leader`), too, which posts nothing.

    Attributes:
        now: the cycle below which all is over.
        reach: the cycle up to which control operations are known.
        posted: nothing.
        comparison: with the golden model, once the run is over.
    """

    def __init__(self, task: SteppedTask) -> None:
        self.now = 0
        self.reach = 0
        self.posted: Shared[Post] = Shared()
        self.comparison: Comparison | None = None
        self._task = task
        self._goal = 0
        self._end: int | None = None
        known = max((control.cycle for control in task.controls), default=0) + 1
        nodes = enumerate(task.fabric.nodes.values())
        first_host = next(index for index, node in nodes if isinstance(node, AdapterParameters))
        self._controls = LateControls(task.controls, host=first_host, known=known)
        self._run: greenlet.greenlet | None = None

    # What the caller does.

    def begin(self, leaders: Sequence[Leader]) -> None:
        """Makes the run ready, at cycle 0. One of the leaders has to call `stand_still` before each step."""
        self._run = greenlet.greenlet(lambda: self._simulate(leaders))

    def step(self, most: int) -> None:
        """Lets time pass, as far as leaders let it, but not more than so many cycles.

        Raises:
            RunOver: it is over, since RTL and golden model differ, or nothing is as long.
            What the engines raise (cosim.engines.simulation.run).
        """
        self._goal = self.now + most
        self._go_on()
        if self._run is None or self._run.dead:
            raise RunOver(self.difference or f"cycle {self.now:,}: the run is over")

    def control(self, operation: Operation, target: int, args: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
        """Gives a control operation as soon as possible, within some thousand cycles."""
        self._controls.want(operation, target, args)

    @property
    def has_wanted(self) -> bool:
        """Whether control operations wait to be given."""
        return self._controls.has_wanted

    def end(self) -> None:
        """Ends the run; nothing if it is over.

        Raises:
            What the engines raise.
        """
        if self._run is not None and not self._run.dead:
            self._end = self.now
            if self._run:
                self._go_on()
        self._run = None

    @property
    def difference(self) -> str:
        """Where RTL and golden model differed, in lines; nothing if they did not."""
        found = self.comparison.difference if self.comparison is not None else None
        if found is None:
            return ""
        return found.report(Names(self._task.fabric), "the same program once more", seen_by=self._task.engine)

    def _go_on(self) -> None:
        if self._run is None:
            return
        caller = greenlet.getcurrent()
        try:
            self._run.parent = caller
        except ValueError:
            raise RunOver("the run: expected the thread that began it, which alone can step it") from None
        self._run.switch()

    # What the engine does.

    def _simulate(self, leaders: Sequence[Leader]) -> None:
        task = self._task

        def spec(actor: Actor | None) -> RunSpec:
            ends = None if actor is None else _Ends(actor, self)
            return RunSpec(task.fabric, self._controls.draw(), (), MAX_CYCLES, ends)

        self.comparison, _cycles = run_beside_model(
            task.engine,
            spec,
            task.work_dir,
            Audience(task.observers, iter(())),
            [*leaders, self],
            rtl=task.rtl,
            waves=task.waves,
            taps=task.taps,
            compared=task.compared,
        )

    def stand_still(self, finished: int) -> bool:
        """All below cycle FINISHED is over: goes back to the caller until that steps on; whether the run goes on."""
        self.now = finished
        if self._run is not None and self._run.parent is not None:
            self._run.parent.switch()
        return self._end is None

    @property
    def last(self) -> int:
        """The cycle in which the run ends, if that is known."""
        return MAX_CYCLES if self._end is None else self._end

    def until(self, finished: int) -> int:
        """How far the fabric may run, see `cosim.stimulus.run_spec.Actor`; gives what control operations wait."""
        if finished >= self._controls.known:
            self._controls.give(finished, finished + _CONTROL_CYCLES)
        known = self._controls.known
        self.reach = min(known, self._goal) if self._goal > finished else known
        return self.reach

    def posts_until(self, cycle: int) -> Iterator[Post]:
        """None."""
        return iter(())

    def delivered(self, delivery: Delivery) -> None:
        """Others take it."""

    def taken(self, taking: Taking) -> None:
        """Others hear it."""


class _Ends:
    """An actor that ends when the run does."""

    def __init__(self, actor: Actor, run: SteppedRun) -> None:
        self.posts_until = actor.posts_until
        self.delivered = actor.delivered
        self.taken = actor.taken
        self._actor = actor
        self._run = run

    def until(self, finished: int) -> int:
        """How far the fabric may run, see `cosim.stimulus.run_spec.Actor`."""
        return max(finished, min(self._actor.until(finished), self._run.last))
