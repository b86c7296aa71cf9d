"""A scenario on a fabric of which some nodes are RTL, and the others the golden model.

The golden model simulates the whole fabric, a shadow of the RTL nodes included, and goes ahead. A simulator follows
with the RTL nodes and the links among them. Into each link that leads out, it plays what the model's node at the other
end sends there; what the RTL node sends, it compares with what its shadow does, row by row.

As long as these are the same, neither side notices that the other is not there: up to a cycle the model's nodes have
received what the RTL would have sent them, so in that cycle they send what they would send to RTL; and so on from cycle
to cycle. At the first row that differs the trace ends, with a ROW record that says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Iterator
from contextlib import closing
from typing import TypeVar

from cosim.engines.base import EngineError, RunOptions, Taps
from cosim.engines.model import ModelRun
from cosim.engines.part import Part
from cosim.engines.windows import windows
from cosim.harness.stream_files import WIRE_ENTRY, Outbox, write_surroundings
from cosim.simulators.installed import Simulator
from cosim.stimulus.run_spec import RunSpec, Stimulus
from model.fabric import WireLog
from verilog.design import fabric_design
from wire.codes import LINK_WIDTHS
from wire.stimulus import Control, Delivery, Post
from wire.symbols import IDLE_PERIOD
from wire.trace import Kind, Record, port_of_source

__all__ = ["ShadowMismatch", "WirePlay", "simulate"]

_Entry = TypeVar("_Entry", Control, Post)
_Timed = TypeVar("_Timed", Record, Delivery)

_PACES = {0: 0, 1: 1, 4: 2}
"""Codes of `cosim.harness.stream_files.WIRE_ENTRY`, by the cycles from row to row."""

_IDLE = (0, 0)


class ShadowMismatch(EngineError):
    """What an RTL node does to the rest of the fabric is not what its golden model does."""


def simulate(
    simulator: Simulator, rtl: Collection[str], spec: RunSpec, options: RunOptions
) -> Generator[Record, None, None]:
    """Run a specification with these nodes in a simulator; see `cosim.engines.base.Engine`.

    The records of RTL nodes are theirs, whatever the golden model's are. An actor gets what the model's adapters
    deliver, with which the RTL adapters' deliveries are compared.

    Raises:
        ShadowMismatch: after a ROW record; or an RTL adapter has delivered something else than its shadow.
        What `cosim.engines.windows.windows` raises.
    """
    part = Part(spec.parameters, rtl)
    keeps_deliveries = options.on_delivery is not None or spec.actor is not None
    leader = _Leader(spec, part, keeps_deliveries, options.taps)
    found = windows(
        simulator,
        fabric_design(part.parameters, part=True),
        leader,
        options,
        deliveries=keeps_deliveries,
        prepare=lambda run_dir: write_surroundings(run_dir, part.identities),
    )
    names = list(spec.parameters.nodes)
    with closing(found):
        for window in found:
            options.progress(window.stop)
            records, deliveries = leader.take(window.stop)
            merged = sorted([*(one for one in records if not part.has(one.source)), *map(part.record, window.records)])
            delivered = list(map(part.delivery, window.deliveries))
            shadow = [one for one in deliveries if part.has_node(one.node)]
            last = window.stop
            row = next((place for place, record in enumerate(merged) if record.kind == Kind.ROW), None)
            if row is not None:
                merged = merged[: row + 1]
                last = merged[row].cycle
            reported = sorted([*(one for one in deliveries if not part.has_node(one.node)), *delivered])
            options.deliver(delivery for delivery in reported if delivery.cycle <= last)
            yield from merged
            if row is not None:
                node, port = port_of_source(merged[row].source)
                raise ShadowMismatch(f"cycle {last}: {names[node]}[{port}] sends another row than its golden model")
            if delivered != shadow:
                first = min({*delivered} ^ {*shadow})
                raise ShadowMismatch(
                    f"cycle {first.cycle}: {names[first.node]} delivers another packet than its golden model"
                )
    leader.end()


class _Leader:
    """The golden model of the whole fabric, ahead of the part that it feeds (`cosim.engines.windows.Feed`)."""

    answers = False

    def __init__(self, spec: RunSpec, part: Part, keeps_deliveries: bool, taps: Taps) -> None:
        self._part = part
        self._stimulus = _NotedStimulus(spec)
        self._deliveries: deque[Delivery] = deque()
        on_delivery = self._deliveries.append if keeps_deliveries else None
        self._model = ModelRun(spec, self._stimulus, on_delivery, taps, posts_ahead=True)
        self._records: deque[Record] = deque()
        self._plays: list[WirePlay] = []
        for end in part.ends:
            inward, outward = self._model.fabric.keep_logs(end.link, end.inward)
            self._plays += [WirePlay(inward, end.flight - 1), WirePlay(outward)]

    def post(self, outbox: Outbox, cycle: int, wish: int) -> int:
        """Let the model go on, and post what its nodes send to the part and what acts on that."""
        self._records.extend(self._model.records(wish))
        end = self._model.finished
        for index, play in enumerate(self._plays):
            outbox.wire(index, play.entries(end))
        # The model draws a control operation when it has given the one before, so one of cycle `end` is there, too.
        for control in map(self._part.control, self._stimulus.controls):
            if control is not None:
                outbox.control(control)
        for post in map(self._part.post, self._stimulus.posts):
            if post is not None:
                outbox.packet(post)
        self._stimulus.controls.clear()
        self._stimulus.posts.clear()
        return end

    def delivered(self, delivery: Delivery) -> None:
        """The model's deliveries count."""

    def sent(self, record: Record) -> None:
        """So does what is taken there."""

    def end(self) -> None:
        """There are no more windows."""
        self._model.end()

    def take(self, stop: int) -> tuple[list[Record], list[Delivery]]:
        """Records and deliveries of cycles below STOP that were not taken before."""
        return _taken_below(stop, self._records), _taken_below(stop, self._deliveries)


class WirePlay:
    """Turns what the model logs of a wire into entries for the player of an open port, window by window."""

    def __init__(self, log: WireLog, delay: int = 0) -> None:
        """Rows are played `delay` cycles after those in which they were on the sender's wires."""
        self._log = log
        self._delay = delay
        self._pace = 0
        self._offers = LINK_WIDTHS

    def entries(self, until: int) -> bytes:
        """Entries for cycles below UNTIL, all of which are over in the model, and that were not asked for before."""
        log, delay = self._log, self._delay
        paces = {cycle + delay: pace for cycle, pace in log.paces(until - delay)}
        rows = {cycle + delay: (data, k) for cycle, data, k in log.rows(until - delay)}
        offers = dict(log.offers(until))
        entries = []
        for cycle in sorted({*paces, *rows, *offers}):
            self._pace = paces.get(cycle, self._pace)
            self._offers = offers.get(cycle, self._offers)
            sent = cycle - delay
            place = log.place(sent)
            flags = (cycle in rows) | _PACES[self._pace] << 1 | self._offers << 3 | (place & 3) << 5
            data, k = rows.get(cycle, _IDLE)
            entries.append(WIRE_ENTRY.pack(cycle, flags, k, place % IDLE_PERIOD, data))
        return b"".join(entries)


class _NotedStimulus(Stimulus):
    """The stimulus of the whole fabric; what the model draws of it is noted for the part.

    Attributes:
        controls, posts: drawn since they were last cleared.
    """

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec)
        self.controls: list[Control] = []
        self.posts: list[Post] = []

    def controls_until(self, cycle: int) -> Iterator[Control]:
        """Those not drawn yet, given in CYCLE or before."""
        return _noted(super().controls_until(cycle), self.controls)

    def posts_until(self, cycle: int) -> Iterator[Post]:
        """Those not drawn yet, posted for CYCLE or before."""
        return _noted(super().posts_until(cycle), self.posts)


def _noted(entries: Iterator[_Entry], notes: list[_Entry]) -> Iterator[_Entry]:
    for entry in entries:
        notes.append(entry)
        yield entry


def _taken_below(stop: int, queue: deque[_Timed]) -> list[_Timed]:
    """The entries of cycles below STOP, which leave the queue."""
    taken = []
    while queue and queue[0].cycle < stop:
        taken.append(queue.popleft())
    return taken
