"""The comparison is tested: whatever is broken in the design, it notices; and where nothing is, it holds."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.mutations.mutant import COMPARISON, PACKAGES, ROOT, Comparer, Mutant, MutantRotten, Outcome, copy_packages
from tests.mutations.mutants import MUTANTS
from toolchain.build_cache import build_root

pytestmark = pytest.mark.slow


def controls(mutants: Sequence[Mutant]) -> list[tuple[str, ...]]:
    """What they are compared on."""
    return list(dict.fromkeys(mutant.arguments for mutant in mutants))


_FILES = 3


def one_of_some_files(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Of some files of the design one mutant each, others each time; every worker of pytest-xdist draws the same.

    `pytest -m deep -k NAME` makes any of them again.
    """
    draw = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID"))
    by_file: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_file.setdefault(mutant.file, []).append(mutant)
    return [draw.choice(by_file[file]) for file in draw.sample(list(by_file), _FILES)]


DRAWN = one_of_some_files(MUTANTS)
Subject = Mutant | tuple[str, ...]
"""What is compared: a mutant, or the design as it is on these arguments."""


class Comparisons:
    """Comparisons that run side by side. A mutant and its build are gone when it has been compared."""

    def __init__(self, directory: Path, comparers: Sequence[Comparer], pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._running: dict[Subject, Future[Outcome]] = {}
        self._idle: SimpleQueue[tuple[Comparer, Path]] = SimpleQueue()
        for number, comparer in enumerate(comparers):
            tree = directory / f"packages_{number}"
            copy_packages(tree)
            self._idle.put((comparer, tree))

    def start(self, subject: Subject) -> Future[Outcome]:
        """Have the comparison run, if it is not running yet."""
        if subject not in self._running:
            self._running[subject] = self._pool.submit(self._compare, subject)
        return self._running[subject]

    def _compare(self, subject: Subject) -> Outcome:
        with self.comparer() as (comparer, tree):
            if not isinstance(subject, Mutant):
                # The copy is what it was copied from, and so are its builds.
                return comparer.compared(tree, subject, build_root())
            with subject.applied(tree), tempfile.TemporaryDirectory(prefix="ironband-") as builds:
                # What a mutant leaves as it is, is not converted again.
                (Path(builds) / "component").symlink_to(kept_components())
                return comparer.compared(tree, subject.arguments, Path(builds))

    @contextmanager
    def comparer(self) -> Iterator[tuple[Comparer, Path]]:
        """What compares, for one at a time, and its copy of the packages."""
        found = self._idle.get()
        try:
            yield found
        finally:
            self._idle.put(found)


def kept_components() -> Path:
    """The folder of the build root in which the text of components is kept."""
    kept = build_root() / "component"
    kept.mkdir(parents=True, exist_ok=True)
    return kept


@pytest.fixture(scope="module")
def comparisons(request: pytest.FixtureRequest) -> Iterator[Comparisons]:
    """Comparisons; those of all selected tests run ahead, but in a worker of pytest-xdist one at a time."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    at_once = 1 if is_worker else len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ironband-"))).resolve()
        comparers = [stack.enter_context(Comparer()) for _ in range(at_once)]
        pool = stack.enter_context(ThreadPoolExecutor(at_once))
        found = Comparisons(directory, comparers, pool)
        if not is_worker:
            for item in request.session.items:
                if item.path == request.path and hasattr(item, "callspec") and "subject" in item.callspec.params:
                    found.start(item.callspec.params["subject"])
        yield found
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def outcome_of(comparisons: Comparisons) -> Callable[[Subject], Outcome]:
    """What the comparison of a subject said."""
    return lambda subject: comparisons.start(subject).result()


def by_hand(arguments: tuple[str, ...]) -> str:
    """How to make a comparison again, in a copy of the packages that may have a mutant."""
    return shlex.join([sys.executable, str(COMPARISON), *arguments])


@pytest.mark.parametrize("subject", controls(DRAWN), ids=" ".join)
def test_design_as_it_is_holds(subject: tuple[str, ...], outcome_of: Callable[[Subject], Outcome]) -> None:
    check_holds(outcome_of(subject))


@pytest.mark.parametrize("subject", DRAWN, ids=lambda mutant: mutant.name)
def test_a_mutant_that_was_drawn_is_noticed(subject: Mutant, outcome_of: Callable[[Subject], Outcome]) -> None:
    check_is_noticed(subject, outcome_of(subject))


@pytest.mark.deep
@pytest.mark.parametrize("subject", controls(MUTANTS), ids=" ".join)
def test_design_as_it_is_holds_on_every_stimulus(
    subject: tuple[str, ...], outcome_of: Callable[[Subject], Outcome]
) -> None:
    check_holds(outcome_of(subject))


@pytest.mark.deep
@pytest.mark.parametrize("subject", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_is_noticed(subject: Mutant, outcome_of: Callable[[Subject], Outcome]) -> None:
    check_is_noticed(subject, outcome_of(subject))


def check_holds(outcome: Outcome) -> None:
    assert outcome.status == 0, outcome.said
    assert outcome.cycle is None


def check_is_noticed(mutant: Mutant, outcome: Outcome) -> None:
    print(f"first difference: cycle {outcome.cycle}, {outcome.place}, {outcome.sides}")
    print(f"by hand, with {mutant.new!r} for {mutant.old!r} in a copy of the packages, rtl/{mutant.file}:")
    print(f"PYTHONPATH=. {by_hand(mutant.arguments)}")
    assert outcome.status == 1, outcome.said
    # The report names the cycle, the place, what was expected and what was seen.
    assert outcome.cycle is not None, outcome.said
    assert set(outcome.sides) == {"model", "icarus"}, outcome.said
    # And the reason is the one intended.
    assert mutant.kind.name in outcome.sides.values(), outcome.said
    if mutant.place is not None:
        assert outcome.place == mutant.place, outcome.said


def test_design_that_does_not_build_is_no_difference(outcome_of: Callable[[Subject], Outcome]) -> None:
    broken = replace(MUTANTS[0], name="nonsense", new="announce.eq(nonsense)")
    outcome = outcome_of(broken)
    assert outcome.status == 2
    assert outcome.cycle is None
    assert "name 'nonsense' is not defined" in outcome.said


def test_change_of_the_design_is_not_hidden_by_an_earlier_build(tmp_path: Path, comparisons: Comparisons) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.file == "link/port.py")
    (tmp_path / "component").symlink_to(kept_components())
    with comparisons.comparer() as (comparer, tree):
        assert comparer.compared(tree, mutant.arguments, tmp_path).status == 0
        with mutant.applied(tree):
            assert comparer.compared(tree, mutant.arguments, tmp_path).status == 1
        assert comparer.compared(tree, mutant.arguments, tmp_path).status == 0


def test_comparison_by_hand_says_the_same(comparisons: Comparisons) -> None:
    arguments = DRAWN[0].arguments
    with comparisons.comparer() as (comparer, tree):
        outcome = comparer.compared(tree, arguments, build_root())
        environment = os.environ | {"PYTHONPATH": str(tree), "IRONBAND_SIM_BUILD": str(build_root())}
        said = subprocess.run(
            by_hand(arguments), shell=True, cwd=tree, env=environment, capture_output=True, text=True, check=True
        ).stdout
    assert said == outcome.said


def test_packages_from_elsewhere_are_refused(tmp_path: Path, comparisons: Comparisons) -> None:
    for package in PACKAGES[:-1]:
        shutil.copytree(ROOT / package, tmp_path / package)
    with comparisons.comparer() as (comparer, _tree):
        outcome = comparer.compared(tmp_path, MUTANTS[0].arguments, tmp_path / "builds")
    assert outcome.status == 2
    assert f"{PACKAGES[-1]} was imported from {ROOT}" in outcome.said


def test_no_mutant_has_rotted(tmp_path: Path) -> None:
    """Drawn or not."""
    shutil.copytree(ROOT / "rtl", tmp_path / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
    for mutant in MUTANTS:
        with mutant.applied(tmp_path):
            pass


def test_mutants_are_all_different() -> None:
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(("text", "times"), [("nothing to break", 0), ("break, break", 2)])
def test_mutant_that_has_rotted_says_so(tmp_path: Path, text: str, times: int) -> None:
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "queue.py").write_text(text.replace("nothing to break", "nothing"))
    rotten = Mutant("a queue is broken", "queue.py", "break", "fix", (), MUTANTS[0].kind)
    message = f"a queue is broken: rtl/queue.py has 'break' {times} times, expected once"
    with pytest.raises(MutantRotten, match=message), rotten.applied(tmp_path):
        pass
