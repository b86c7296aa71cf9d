"""The comparison is tested: whatever is broken in the design, it notices; and where nothing is, it holds."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutations.mutant import PACKAGES, ROOT, Mutant, MutantRotten, Outcome, compared, copy_packages
from tests.mutations.mutants import MUTANTS
from toolchain.build_cache import build_root

pytestmark = pytest.mark.slow

CONTROLS = list(dict.fromkeys(mutant.arguments for mutant in MUTANTS))
Subject = Mutant | tuple[str, ...]
"""What is compared: a mutant, or the design as it is on these arguments."""


class Comparisons:
    """Comparisons that run side by side. A mutant and its build are gone when it has been compared."""

    def __init__(self, directory: Path, pool: ThreadPoolExecutor) -> None:
        self._directory = directory
        self._pool = pool
        self._running: dict[Subject, Future[Outcome]] = {}
        self._whole = directory / "whole"
        copy_packages(self._whole)

    def start(self, subject: Subject) -> Future[Outcome]:
        """Have the comparison run, if it is not running yet."""
        if subject not in self._running:
            number = len(self._running)
            self._running[subject] = self._pool.submit(self._compare, subject, self._directory / f"mutant_{number}")
        return self._running[subject]

    def _compare(self, subject: Subject, tree: Path) -> Outcome:
        if not isinstance(subject, Mutant):
            # The copy is what it was copied from, and so are its builds.
            return compared(self._whole, subject, build_root())
        shutil.copytree(self._whole, tree)
        try:
            subject.apply(tree)
            return compared(tree, subject.arguments, tree / "builds")
        finally:
            shutil.rmtree(tree)


@pytest.fixture(scope="module")
def outcome_of(request: pytest.FixtureRequest) -> Iterator[Callable[[Subject], Outcome]]:
    """What the comparison of a subject said; those of all selected tests run ahead."""
    with (
        tempfile.TemporaryDirectory(prefix="ironband-") as directory,
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
    ):
        comparisons = Comparisons(Path(directory).resolve(), pool)
        if "PYTEST_XDIST_WORKER" not in os.environ:
            for item in request.session.items:
                if item.path == request.path and hasattr(item, "callspec") and "subject" in item.callspec.params:
                    comparisons.start(item.callspec.params["subject"])
        yield lambda subject: comparisons.start(subject).result()
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("subject", CONTROLS, ids=" ".join)
def test_design_as_it_is_holds(subject: tuple[str, ...], outcome_of: Callable[[Subject], Outcome]) -> None:
    outcome = outcome_of(subject)
    assert outcome.status == 0, outcome.said
    assert outcome.cycle is None


@pytest.mark.parametrize("subject", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_noticed(subject: Mutant, outcome_of: Callable[[Subject], Outcome]) -> None:
    outcome = outcome_of(subject)
    print(f"first difference: cycle {outcome.cycle}, {outcome.place}, {outcome.sides}")
    assert outcome.status == 1, outcome.said
    # The report names the cycle, the place, what was expected and what was seen.
    assert outcome.cycle is not None, outcome.said
    assert set(outcome.sides) == {"model", "icarus"}, outcome.said
    # And the reason is the one intended.
    assert subject.kind.name in outcome.sides.values(), outcome.said
    if subject.place is not None:
        assert outcome.place == subject.place, outcome.said


def test_design_that_does_not_build_is_no_difference(outcome_of: Callable[[Subject], Outcome]) -> None:
    broken = replace(MUTANTS[0], name="nonsense", new="announce.eq(nonsense)")
    outcome = outcome_of(broken)
    assert outcome.status == 2
    assert outcome.cycle is None
    assert "name 'nonsense' is not defined" in outcome.said


def test_change_of_the_design_is_not_hidden_by_an_earlier_build(tmp_path: Path) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.file == "link/port.py")
    copy_packages(tmp_path)
    assert compared(tmp_path, mutant.arguments, tmp_path / "builds").status == 0
    mutant.apply(tmp_path)
    assert compared(tmp_path, mutant.arguments, tmp_path / "builds").status == 1


def test_packages_from_elsewhere_are_refused(tmp_path: Path) -> None:
    for package in PACKAGES[:-1]:
        shutil.copytree(ROOT / package, tmp_path / package)
    outcome = compared(tmp_path, MUTANTS[0].arguments, tmp_path / "builds")
    assert outcome.status == 2
    assert f"{PACKAGES[-1]} was imported from {ROOT}" in outcome.said


def test_mutants_are_all_different() -> None:
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(("text", "times"), [("nothing to break", 0), ("break, break", 2)])
def test_mutant_that_has_rotted_says_so(tmp_path: Path, text: str, times: int) -> None:
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "queue.py").write_text(text.replace("nothing to break", "nothing"))
    rotten = Mutant("a queue is broken", "queue.py", "break", "fix", (), MUTANTS[0].kind)
    with pytest.raises(MutantRotten, match=f"a queue is broken: rtl/queue.py has 'break' {times} times, expected once"):
        rotten.apply(tmp_path)
