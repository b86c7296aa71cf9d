"""What all measurements do: get a capture, read it, draw, say what was found."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import click
from click.core import ParameterSource
from matplotlib.figure import Figure

from capture.erf_record import WHOLE
from capture.reader import CaptureReader, capture_reader
from cosim.experiments.captured_run import CapturedRun, captured_run
from cosim.pictures.drawing import drawing_style, save_figure
from cosim.scenario.scenario import Scenario
from cosim.trace.compare import Names
from ironband.common import work_directory, write_json
from ironband.progress import Console, cycle_bar, text_console
from laboratory.stretch import Stretch, stretches
from toolchain.atomic_files import is_special, output_directory, output_file
from toolchain.errors import UserError

__all__ = ["Asked", "Laboratory", "NothingToMeasure"]

_OUT: Final = Path("out/measure")
_SUFFIX: Final = ".pcapng"
_TYPED: Final = ParameterSource.COMMANDLINE


class NothingToMeasure(UserError):
    """A capture without what a measurement looks for."""


class Follower(Protocol):
    """A measurement."""

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets."""


class Asked(NamedTuple):
    """What a user asks of any measurement.

    Attributes:
        sim: what simulates.
        given: a capture to measure in, in place of a simulation.
        keep: where the capture of a simulation is kept.
        out: where the picture goes.
        json_file: where the results go.
    """

    sim: str
    given: str | None
    keep: Path | None
    out: Path | None
    json_file: str | None


class Laboratory:
    """One measurement.

    Attributes:
        console: for what is found.
        name: of the measurement.
    """

    def __init__(self, name: str, asked: Asked) -> None:
        """Raises UserError where its files cannot be written."""
        self.name = name
        self.console: Console = text_console(asked.json_file)
        self._asked = asked
        self._directory = output_directory(asked.out or _OUT)
        if asked.keep is not None:
            if asked.given is not None:
                raise UserError(f"--capture {asked.keep}: nothing is captured with --from {asked.given}")
            if asked.keep.suffix != _SUFFIX:
                raise UserError(f"--capture {asked.keep}: expected {_SUFFIX}, which has room for all that is captured")
            if is_special(asked.keep):
                raise UserError(f"--capture {asked.keep}: a pipe, and what is captured is read: expected a file")
            output_file(asked.keep)
        self._differs = ""

    @contextmanager
    def capture(
        self, scenario: Scenario, places: Sequence[str], keep_as: str = "", keep_bytes: int = WHOLE
    ) -> Iterator[Reading]:
        """The capture to measure in: the given one, or one of a scenario, captured at some places.

        KEEP_AS is put before the suffix of the file that is kept, and KEEP_BYTES of each data packet are in it.

        Raises:
            UserError: it cannot be read, or not be written.
            NothingToMeasure: not all packets of the scenario were delivered.
            What the engines raise (cosim.engines.simulation.run).
        """
        asked = self._asked
        if asked.given is not None:
            with capture_reader(asked.given) as reader:
                yield Reading(asked.given, reader, None)
            return
        with work_directory() as work_dir:
            file = work_dir / f"capture{_SUFFIX}"
            if asked.keep is not None:
                file = asked.keep.with_stem(asked.keep.stem + keep_as)
            with cycle_bar(f"{scenario.name} on {asked.sim}", scenario.cycles, self.console) as progress:
                run = captured_run(scenario, asked.sim, str(file), places, work_dir, progress, keep_bytes)
            if run.missing:
                raise NothingToMeasure(f"{scenario.name}: {run.missing} packets were not delivered as they should")
            if run.comparison is not None and run.comparison.difference is not None:
                names = Names(scenario.fabric)
                self._differs = run.comparison.difference.report(names, _command(), seen_by=asked.sim)
            with capture_reader(str(file)) as reader:
                yield Reading(scenario.name if asked.keep is None else str(file), reader, run)

    def print(self, text: str = "") -> None:
        """Say something that was found."""
        self.console.print_line(text)

    def finish(self, figure: Figure, results: dict[str, Any], *, held: bool) -> int:
        """Draw, and write the results; the exit status.

        Raises:
            OutputError: a file cannot be written.
        """
        paths = [self._directory / f"{self.name}{suffix}" for suffix in (".svg", ".png")]
        with drawing_style():
            save_figure(figure, paths)
        if self._asked.json_file is not None:
            write_json(self._asked.json_file, {"measurement": self.name, **results})
        if self._differs:
            self.print(self._differs)
        for path in paths:
            self.print(f"wrote {path}")
        return 0 if held and not self._differs else 1


def _command() -> str:
    """The line that a user typed."""
    context = click.get_current_context()
    typed = [one for one in context.command.params if context.get_parameter_source(one.name or "") is _TYPED]
    options = [word for one in typed for word in (one.opts[0], str(context.params[one.name or ""]))]
    return shlex.join([*context.command_path.split(), *options])


class Reading(NamedTuple):
    """A capture to measure in.

    Attributes:
        place: its name; of a simulation of which no capture is kept, the scenario's.
        capture: its reader.
        run: what else the simulation gave, if there was one.
    """

    place: str
    capture: CaptureReader
    run: CapturedRun | None

    def read(self, *followers: Follower) -> None:
        """All of it.

        Raises:
            CaptureError: it is damaged.
        """
        for stretch in stretches(self.capture):
            for follower in followers:
                follower.follow(stretch)
