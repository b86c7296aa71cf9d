"""What a campaign is made of: checks, mutants, points of sweeps and of curves, each run by itself, wherever it is."""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from cosim.experiments.check_experiment import CheckOptions
from cosim.experiments.curves import CurveError, Load, Queueing, measure_point
from cosim.experiments.mutation_task import MutationTask
from cosim.experiments.sweep import outcome
from cosim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from verilog.design import Design
    from verilog.mutants import DrawnMutants, Mutant

__all__ = [
    "REACHED",
    "BuiltMutants",
    "CheckRun",
    "CurveRun",
    "MutantBuild",
    "MutantRun",
    "Result",
    "Run",
    "SweepRun",
    "digest",
]

REACHED: Final = ("decisions", "limits", "counters")
"""What a check may tell of the golden model: which ways they went, which of them counted; and which not."""

_TOLD_ELSEWHERE: Final = ("command", "replay", "held", "mtu_bytes", "difference", *REACHED)
"""Of a check's JSON, what a run has in other places than its figures, or otherwise."""


@dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes:
        passed: nothing was wrong; of a mutant, that it was killed, or proven to change nothing.
        figures: JSON, by name, units in the names.
        report: what was wrong, in words.
    """

    passed: bool
    figures: dict[str, Any]
    report: str = ""


@dataclass(frozen=True)
class Run(ABC):
    """One run of a campaign.

    Attributes:
        kind: which table of the campaign it is of.
        parameters: JSON, by name: what was asked for.
        inputs: a digest of the files that it reads, which are no sources.
    """

    kind: ClassVar[str]
    parameters: Mapping[str, Any]
    inputs: str

    def key(self, sources: str) -> str:
        """The same for the same run with the same sources, and for no other."""
        return digest(self.kind, dict(self.parameters), self.inputs, sources)

    @property
    def build(self) -> MutantBuild | None:
        """What is made before, once for all runs that need it."""
        return None

    @property
    @abstractmethod
    def replay(self) -> str:
        """The line that runs it again."""

    @abstractmethod
    def perform(self, work_dir: Path, made: Any) -> Result:
        """Run it; `made` is what its build has made.

        Raises:
            What the experiment raises.
        """


@dataclass(frozen=True)
class CheckRun(Run):
    """A check.

    Attributes:
        coverage: also tell which outcomes of the golden model's decisions it reaches, if nothing is wrong.
    """

    kind = "check"
    options: CheckOptions
    coverage: bool = False

    @property
    def replay(self) -> str:
        """The line that runs it again."""
        return self.options.command

    def perform(self, work_dir: Path, made: Any) -> Result:
        """Run it."""
        from cosim.experiments.check import check
        from ironband.check_report import check_json

        found = check(self.options, work_dir)
        given = asdict(self.options).items()
        told = (one for one in check_json(self.options, found).items() if one not in given)
        figures = {name: value for name, value in told if name not in _TOLD_ELSEWHERE}
        wrong: tuple[str, ...] = ()
        if self.coverage and found.held:
            reached, wrong = _reached_by(self.options)
            figures |= reached
        report = "\n".join([*found.faults, *wrong, *filter(None, [found.report])])
        return Result(found.held and not wrong, figures, report)


def _reached_by(options: CheckOptions) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """All outcomes and counters: those that a check reaches, and the others; what was wrongly said to be never."""
    from cosim.experiments.check_coverage import reached_by, refuted

    reached = reached_by(options)
    return {f"{kind}_reached": some for kind, some in reached.in_words().items()} | {
        f"{kind}_not_reached": some for kind, some in reached.missing_in_words().items()
    }, refuted(reached.outcomes)


@dataclass(frozen=True)
class BuiltMutants:
    """A compiled design with mutants, by number, and which of them are proven to change nothing."""

    design: Design
    equivalent: frozenset[int]
    mutants: dict[int, Mutant]


@dataclass(frozen=True)
class MutantBuild:
    """Mutants of one simulation, by their numbers."""

    task: MutationTask
    numbers: range

    def perform(self) -> BuiltMutants:
        """Compile them.

        Raises:
            As `cosim.experiments.mutation.draw` and `built` there.
        """
        from cosim.experiments.mutation import built, mutants_of_build

        drawn = _drawn(self.task)
        group = mutants_of_build(drawn, self.numbers)
        return BuiltMutants(*built(self.task, drawn, group), {mutant.number: mutant for mutant in group})


@lru_cache(maxsize=1)
def _drawn(task: MutationTask) -> DrawnMutants:
    """Elaborating the design takes longer than all else where a build is found."""
    from cosim.experiments.mutation import draw

    return draw(task)


@dataclass(frozen=True)
class MutantRun(Run):
    """A mutant, put through its checks."""

    kind = "mutate"
    task: MutationTask
    numbers: range
    number: int

    @property
    def build(self) -> MutantBuild:
        """The simulation that it is in."""
        return MutantBuild(self.task, self.numbers)

    @property
    def replay(self) -> str:
        """The line that runs it again, with the others that are drawn with it."""
        return _line("mutate", asdict(self.task))

    def perform(self, work_dir: Path, made: BuiltMutants) -> Result:
        """Run it; a number whose place is none passes without a verdict."""
        from cosim.experiments import mutation

        if self.number not in made.mutants:
            return Result(True, {"number": self.number, "verdict": None}, "")
        mutant = made.mutants[self.number]
        if self.number in made.equivalent:
            found = asdict(mutation.Outcome(mutant, "equivalent"))
        else:
            found = asdict(mutation.outcome(self.task, made.design, mutant))
        figures = found.pop("mutant") | found
        passed = found["verdict"] != "survived"
        return Result(passed, figures, "" if passed else f"mutant {self.number}: {mutant} survives")


@dataclass(frozen=True)
class SweepRun(Run):
    """A scenario with some other values."""

    kind = "sweep"
    file: str
    scenario: Scenario

    @property
    def replay(self) -> str:
        """The line that runs it again."""
        settings = [f"{key}={json.dumps(value)}" for key, value in self.parameters["set"].items()]
        words = [word for setting in settings for word in ("--set", setting)]
        return shlex.join(["ironband", "sweep", self.file, *words, "--sim", self.parameters["sim"]])

    def perform(self, work_dir: Path, made: Any) -> Result:
        """Run it."""
        found = outcome(self.scenario, self.parameters["sim"], work_dir)
        report = f"{found.faults} faults: `ironband run` tells what they are" if found.faults else ""
        return Result(not found.faults, asdict(found), report)


@dataclass(frozen=True)
class CurveRun(Run):
    """A point of a throughput curve."""

    kind = "curves"
    load: Load
    queueing: Queueing
    offered: float

    @property
    def replay(self) -> str:
        """The line that runs it again, with both kinds of switches."""
        return _line("curves", {name: value for name, value in self.parameters.items() if name != "queueing"})

    def perform(self, work_dir: Path, made: Any) -> Result:
        """Run it."""
        try:
            point = measure_point(self.parameters["sim"], self.queueing, self.load, self.offered, work_dir)
        except CurveError as error:
            return Result(False, {}, str(error))
        return Result(True, asdict(point))


def _line(command: str, options: Mapping[str, Any]) -> str:
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return shlex.join(["ironband", command, *words])


def digest(*parts: Any) -> str:
    """Of JSON, in its canonical form."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
