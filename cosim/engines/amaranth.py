"""A scenario on Amaranth's own simulator: no Verilog, no compiler, Python plays the stimulus cycle by cycle."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from amaranth.sim import Simulator

from cosim.engines.base import RunOptions
from cosim.engines.taps import RowTaps
from cosim.engines.vcd_window import VcdWindow
from cosim.harness.top import CYCLE_NS
from cosim.stimulus.run_spec import RunSpec, Stimulus
from toolchain.atomic_files import atomic_file
from toolchain.garbage import no_garbage_collection
from verilog.plain_names import PlainNames
from wire.packet import WORD_BYTES
from wire.row_crc import NO_ROW, ROW, VALID, rows_words
from wire.stimulus import Delivery, Post
from wire.trace import Kind, Record, link_source, words_of_payload

__all__ = ["simulate"]

_FS_OF_NS: Final = 1_000_000


def simulate(make: Callable[[], Any], spec: RunSpec, options: RunOptions) -> Generator[Record, None, None]:
    """Run a specification on the component with `FabricSignature` that MAKE makes; see `cosim.engines.base.Engine`."""
    stimulus = Stimulus(spec)
    with no_garbage_collection():
        component = make()
        bench = _Bench(component, stimulus, options.rows)
        taps = RowTaps(options.taps)
        simulator = Simulator(component)
    simulator.add_clock(CYCLE_NS * 1e-9)
    simulator.add_testbench(bench.play)
    with ExitStack() as stack:
        if options.waves is not None:
            _name_plainly(simulator)
            temporary = stack.enter_context(atomic_file(options.waves.file))
            written: str | VcdWindow = str(temporary)
            if options.waves.cycles is not None:
                written = stack.enter_context(_window(temporary, options.waves.cycles))
            stack.enter_context(simulator.write_vcd(written))
        try:
            while not bench.ended:
                simulator.advance()
                if not bench.records and not bench.deliveries:
                    continue
                options.progress(bench.cycle)
                options.deliver(bench.deliveries)
                bench.deliveries.clear()
                taps.rows(bench.tapped, bench.cycle)
                bench.tapped.clear()
                yield from bench.records
                bench.records.clear()
            options.progress(bench.cycle)
        except GeneratorExit:
            return  # so that the waves up to here are kept
    taps.rows(bench.tapped, bench.cycle)
    taps.end()


def _window(file: Path, cycles: range) -> VcdWindow:
    """What waves of some cycles are written to. Each begins with a rising edge of the clock, the first at time 0."""
    begin, end = (max(0, CYCLE_NS * cycle - CYCLE_NS // 2) * _FS_OF_NS for cycle in (cycles.start, cycles.stop))
    return VcdWindow(file, begin, end)


def _name_plainly(simulator: Any) -> None:
    """Nets get the names that they have in waves of Verilog; those without one are left out."""
    for module in simulator._design.fragments.values():
        names = PlainNames(set(module.assigned_names))
        for signal, name in list(module.signal_names.items()):
            if name.startswith("$"):
                del module.signal_names[signal]
            elif "$" in name:
                module.signal_names[signal] = names[name]


class _Bench:
    """Plays the stimulus and collects what comes of it, as cosim/harness/players.v does.

    Attributes:
        cycle: the first cycle not finished.
        ended: whether the run is over.
        records, deliveries, tapped: of the cycles since the caller last cleared them; rows as `RowTaps` takes them.
    """

    def __init__(self, component: Any, stimulus: Stimulus, period: int) -> None:
        """PERIOD: of ROWS records, if there are any."""
        self.cycle = 0
        self.ended = False
        self.records: list[Record] = []
        self.deliveries: list[Delivery] = []
        self.tapped: list[tuple[int, int, int, int]] = []
        self._component = component
        self._stimulus = stimulus
        self._streams = [_Stream(source) for source in component.send]
        self._stream_of = dict(zip(component.ports.streams, self._streams, strict=True))
        self._arriving = [bytearray() for _host in component.ports.hosts]
        self._period = period
        self._entered = [bytearray() for _direction in component.ports.entered]

    async def play(self, context: Any) -> None:
        """The testbench: one round a cycle."""
        while (stop := self._stimulus.until(self.cycle)) > self.cycle:
            while self.cycle < stop:
                await self._play_cycle(context)
        self.ended = True

    async def _play_cycle(self, context: Any) -> None:
        self._give_control(context)
        for post in self._stimulus.posts_until(self.cycle):
            self._stream_of[post.node, post.slot].posts.append(post)
        for stream in self._streams:
            stream.offer(context)
        self._collect(context)
        for stream in self._streams:
            stream.advance(context)
        await context.tick()
        self.cycle += 1

    def _give_control(self, context: Any) -> None:
        control = self._component.control
        given = next(self._stimulus.controls_until(self.cycle), None)
        context.set(control.valid, given is not None)
        if given is not None:
            context.set(control.operation, given.operation)
            context.set(control.target, given.target)
            context.set(control.args, sum(arg << 32 * place for place, arg in enumerate(given.args)))

    def _collect(self, context: Any) -> None:
        ports = self._component.ports
        for index, sink in enumerate(self._component.recv):
            if not context.get(sink.valid):
                continue
            data = self._arriving[index]
            data += context.get(sink.data).to_bytes(WORD_BYTES, "big")
            if context.get(sink.last):
                delivery = Delivery(self.cycle, ports.hosts[index], context.get(sink.slot), bytes(data))
                self._stimulus.delivered(delivery)
                self.deliveries.append(delivery)
                data.clear()
        for tap, row in enumerate(self._component.tap):
            if context.get(row.valid):
                self.tapped.append((self.cycle, context.get(row.data), tap, context.get(row.k)))
        valid = context.get(self._component.trace_valid)
        while valid:
            slot = (valid & -valid).bit_length() - 1
            valid &= valid - 1
            payload = context.get(self._component.trace[slot])
            record = Record(self.cycle, *ports.trace[slot], *words_of_payload(payload))
            self.records.append(record)
            if record.kind == Kind.SEND:
                self._stimulus.sent(record)
        if self._entered:
            self._sum_rows(context)

    def _sum_rows(self, context: Any) -> None:
        """Take the rows that enter links; at the end of a period there are records, among those of INJECT."""
        for rows, entered in zip(self._entered, self._component.entered, strict=True):
            valid = context.get(entered.valid)
            rows += ROW.pack(VALID | context.get(entered.k), context.get(entered.data)) if valid else NO_ROW
        if (self.cycle + 1) % self._period:
            return
        for direction, rows in zip(self._component.ports.entered, self._entered, strict=True):
            insort(self.records, Record(self.cycle, link_source(*direction), Kind.ROWS, *rows_words(rows)))
            rows.clear()


class _Stream:
    """One packet stream into the fabric.

    Attributes:
        posts: those whose cycle has come, the current one first.
    """

    def __init__(self, source: Any) -> None:
        self.posts: deque[Post] = deque()
        self._source = source
        self._words: tuple[int, ...] = ()
        self._taken = 0
        self._offered = False

    def offer(self, context: Any) -> None:
        """Put the current packet and its next word on the wires."""
        if not self.posts:
            if self._offered:
                context.set(self._source.valid, 0)
                self._offered = False
            return
        if not self._offered or self._taken == 0:
            self._words = self.posts[0].words
            context.set(self._source.valid, 1)
            context.set(self._source.length, len(self._words))
            self._offered = True
        context.set(self._source.data, self._words[self._taken])

    def advance(self, context: Any) -> None:
        """Go on to the next word if this one was taken."""
        if self._offered and context.get(self._source.ready):
            self._taken += 1
            if self._taken == len(self._words):
                self.posts.popleft()
                self._taken = 0
