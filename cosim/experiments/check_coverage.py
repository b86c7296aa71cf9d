"""Which decisions and counters of the golden model a check reaches, added up over many in a file."""

from __future__ import annotations

import fcntl
import json
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from cosim.engines import counted, decisions
from cosim.engines.base import NO_TAPS
from cosim.engines.counted import COUNTERS, PortCounter
from cosim.engines.decisions import Outcome
from cosim.engines.model import ModelRun
from cosim.engines.never import never
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.run_spec import Stimulus
from toolchain.atomic_files import output_file, write_atomically, writing
from toolchain.errors import UserError
from wire.row_crc import PERIOD

__all__ = [
    "Coverage",
    "Reached",
    "Share",
    "add_to_file",
    "check_file",
    "not_reached",
    "reached_by",
    "refuted",
]


@dataclass(frozen=True)
class Share:
    """Of some outcomes: all that can be, those reached, and those that no check before reached."""

    all: int
    reached: int
    new: int

    def __str__(self) -> str:
        return f"{self.reached:,} of {self.all:,} ({self.reached / self.all:.1%}), {self.new:,} for the first time"


@dataclass(frozen=True)
class Coverage:
    """What checks have reached.

    Attributes:
        reached: outcomes.
        before: those that had been, without the last check.
        checks: the lines that run them again, in the order in which they were.
        counted, counted_before: counters that counted, likewise.
    """

    reached: frozenset[Outcome] = frozenset()
    before: frozenset[Outcome] = frozenset()
    checks: tuple[str, ...] = ()
    counted: frozenset[PortCounter] = frozenset()
    counted_before: frozenset[PortCounter] = frozenset()

    def with_check(self, options: CheckOptions, one: Reached) -> Self:
        """And of one more check."""
        return type(self)(
            self.reached | one.outcomes,
            self.reached,
            (*self.checks, options.command),
            self.counted | one.counters,
            self.counted,
        )

    @property
    def decisions(self) -> Share:
        """Ways that decisions may go, without those that none ever can."""
        return self._share(is_limit=False)

    @property
    def limits(self) -> Share:
        """Sides of limits: less, equal, greater; likewise."""
        return self._share(is_limit=True)

    @property
    def counters(self) -> Share:
        """Counters of ports."""
        return Share(len(COUNTERS), len(self.counted), len(self.counted - self.counted_before))

    @property
    def refuted(self) -> tuple[str, ...]:
        """What was said to be never and has been reached, in words."""
        return refuted(self.reached)

    def _share(self, *, is_limit: bool) -> Share:
        counts = [
            sum(one.is_limit == is_limit for one in some)
            for some in ((*self.reached, *not_reached(self.reached)), self.reached, self.reached - self.before)
        ]
        return Share(*counts)


class Reached(NamedTuple):
    """What a check reaches.

    Attributes:
        outcomes: of decisions and limits.
        counters: that have been read to have counted.
    """

    outcomes: frozenset[Outcome] = frozenset()
    counters: frozenset[PortCounter] = frozenset()

    def in_words(self) -> dict[str, list[str]]:
        """All of it, by kind."""
        return _in_words(self.outcomes, self.counters)

    def missing_in_words(self) -> dict[str, list[str]]:
        """All that it does not reach and that can be, likewise."""
        return _in_words(not_reached(self.outcomes), COUNTERS - self.counters)


def reached_by(options: CheckOptions) -> Reached:
    """What a check reaches, of its golden model alone.

    Raises:
        ValueError, TopologyError: see `check_experiment`.
    """
    spec = check_experiment(options).spec()
    decisions.watch_anew()
    counted.watch_anew()
    run = ModelRun(spec, Stimulus(spec), None, NO_TAPS, rows=PERIOD, model=decisions.fabric_class())
    deque(run.records(spec.cycles), maxlen=0)
    return Reached(decisions.reached(), counted.counted(spec.parameters))


_MODEL: Final = "model"
_CHECKS: Final = "checks"
_REACHED: Final = "reached"
_COUNTED: Final = "counters_reached"


def check_file(file: Path) -> None:
    """Know that there is no file yet, or one that can be added to, before a run whose results would be lost.

    Raises:
        UserError: it cannot.
    """
    output_file(file)
    _read(file)


def add_to_file(file: Path, options: CheckOptions) -> Coverage:
    """Add what a check reaches to a file, which other processes may be adding to; all that it has then.

    Raises:
        UserError: it cannot be read or written, is something else, or of another golden model.
        ValueError, TopologyError: see `check_experiment`.
    """
    reached = reached_by(options)
    with writing(f"{file}"), _alone_in(file.parent):
        coverage = _read(file).with_check(options, reached)
        write_atomically(file, json.dumps(_written(coverage), indent=1) + "\n")
    return coverage


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Other processes that come here wait; nothing is left behind, even by one that was killed."""
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def _in_words(outcomes: Iterable[Outcome], counters: Iterable[PortCounter]) -> dict[str, list[str]]:
    """Those of `decisions`, those of `limits`, and `counters`."""
    found: dict[str, list[str]] = {"decisions": [], "limits": [], "counters": sorted(map(str, counters))}
    for one in sorted(outcomes):
        found["limits" if one.is_limit else "decisions"].append(str(one))
    return found


def not_reached(reached: Collection[Outcome]) -> Iterator[Outcome]:
    """All others that can be."""
    return (one for one in decisions.outcomes() if one not in reached and one not in never())


def refuted(reached: Collection[Outcome]) -> tuple[str, ...]:
    """Those of which it was said that no check can reach them, in words."""
    return tuple(f"{one}, said to be never: {never()[one]}" for one in sorted(reached) if one in never())


def _written(coverage: Coverage) -> dict[str, Any]:
    missing = Reached(coverage.reached, coverage.counted).missing_in_words()
    return {
        _MODEL: decisions.digest(),
        _CHECKS: coverage.checks,
        **{f"{kind}_not_reached": some for kind, some in missing.items()},
        "never": {f"{one}": reason for one, reason in sorted(never().items())},
        _REACHED: sorted(one.place for one in coverage.reached),
        _COUNTED: sorted(map(str, coverage.counted)),
    }


def _read(file: Path) -> Coverage:
    try:
        found = json.loads(file.read_text())
        if found[_MODEL] != decisions.digest():
            raise UserError(f"{file}: is of a golden model that is no longer: expected a new file")
        by_place = {outcome.place: outcome for outcome in decisions.outcomes()}
        reached = frozenset(by_place[place] for place in found[_REACHED])
        by_name = {str(one): one for one in COUNTERS}
        counters = frozenset(by_name[name] for name in found[_COUNTED])
        return Coverage(reached, reached, tuple(map(str, found[_CHECKS])), counters, counters)
    except FileNotFoundError:
        return Coverage()
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{file}: {error}: expected a file that check --coverage wrote") from None
