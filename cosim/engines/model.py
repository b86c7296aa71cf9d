"""A scenario on the golden model: no RTL at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator

from cosim.engines import compiled_model
from cosim.engines.base import RunOptions, Taps
from cosim.engines.taps import ModelTaps
from cosim.stimulus.run_spec import RunSpec, Stimulus
from model.fabric import Fabric
from wire.stimulus import Delivery
from wire.trace import AGENT_PORT, Kind, Record, port_of_source

__all__ = ["ModelRun", "simulate"]

_DELIVER, _SEND = Kind.DELIVER, Kind.SEND
_STEP_CYCLES = 4096
"""So far at a time: then it is told how far the run is, and the packets that passed meanwhile are taken."""


class ModelRun:
    """A run of the golden model.

    Attributes:
        fabric: the model.
        finished: all cycles below are over.
    """

    def __init__(
        self,
        spec: RunSpec,
        stimulus: Stimulus,
        on_delivery: Callable[[Delivery], None] | None,
        taps: Taps,
        *,
        posts_ahead: bool = False,
        rows: int = 0,
        kinds: Collection[int] | None = None,
        progress: Callable[[int], None] = lambda cycles: None,
        model: type[Fabric] | None = None,
    ) -> None:
        """POSTS_AHEAD: draw packets before the cycles in which they may act, as is done where there is an actor.

        ROWS: see `RunOptions`. KINDS: of records that somebody reads, all without it. PROGRESS: called now and then
        with the cycles so far. MODEL: the fabric's class, the compiled one without it.
        """
        self.finished = 0
        self._stimulus = stimulus
        self._on_delivery = on_delivery
        self._posts_ahead = posts_ahead or stimulus.answers
        self._answers = stimulus.answers
        self._progress = progress
        self._kinds = None if kinds is None else frozenset(kinds)
        self._wanted = stimulus.answers or on_delivery is not None
        self._delivered: dict[tuple[int, int], Delivery] = {}
        self.fabric = (model or compiled_model.fabric_class())(
            spec.parameters,
            stimulus.controls_until(spec.cycles),
            () if self._posts_ahead else stimulus.posts_until(spec.cycles),
            self._deliver if self._wanted else None,
            None if kinds is None else {*kinds, _DELIVER, _SEND},
        )
        if spec.played:
            self.fabric.play(spec.played, spec.plays)
        if rows:
            self.fabric.sum_rows(rows)
        self._taps = ModelTaps(self.fabric, taps)

    def _deliver(self, delivery: Delivery) -> None:
        self._delivered[delivery.cycle, delivery.node] = delivery

    def records(self, wish: int) -> Iterator[Record]:
        """Simulate the cycles below WISH, or up to the run's end if that comes before; their records in order."""
        while (end := min(wish, self._stimulus.until(self.finished))) > self.finished:
            stop = min(end, self.finished + _STEP_CYCLES)
            if self._posts_ahead:
                for post in self._stimulus.posts_until(stop):
                    self.fabric.post(post)
            records = self.fabric.run(stop)
            yield from self._heard(records) if self._wanted or self._kinds is not None else records
            self.finished = stop
            self._taps.look(stop)
            self._progress(stop)

    def _heard(self, records: Iterable[Record]) -> Iterator[Record]:
        """Tell who wants to know of deliveries and packets taken; those of the KINDS that somebody reads."""
        for record in records:
            kind = record.kind
            if kind == _DELIVER and self._wanted:
                self._report(record)
            elif kind == _SEND and self._answers:
                self._stimulus.sent(record)
            if self._kinds is None or kind in self._kinds:
                yield record

    def end(self) -> None:
        """There are no more records."""
        self._taps.end()

    def _report(self, record: Record) -> None:
        """Report the delivery of this record."""
        node, port = port_of_source(record.source)
        if port != AGENT_PORT:
            delivery = self._delivered.pop((record.cycle, node))
            self._stimulus.delivered(delivery)
            if self._on_delivery is not None:
                self._on_delivery(delivery)


def simulate(spec: RunSpec, options: RunOptions) -> Generator[Record, None, None]:
    """Run a specification on the model; see `cosim.engines.base.Engine`."""
    run = ModelRun(
        spec,
        Stimulus(spec),
        options.on_delivery,
        options.taps,
        rows=options.rows,
        kinds=options.kinds,
        progress=options.progress,
    )
    yield from run.records(spec.cycles)
    run.end()
