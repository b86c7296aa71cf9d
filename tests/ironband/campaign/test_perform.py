"""Runs on workers: what becomes of each, also where one dies, and nothing outlives them."""

import os
import signal
from dataclasses import dataclass
from itertools import count

import pytest

from cosim.experiments.mutation_task import MutationTask
from ironband.campaign.runs import BuiltMutants, MutantBuild, MutantRun, Result, Run
from ironband.campaign.sources import sources_digest
from rtl.fabric.ports import FabricPorts
from tests.ironband.dask_threads import dask_threads
from toolchain.errors import UserError
from verilog.design import Design


@dataclass(frozen=True)
class Fake(Run):
    """Does what its name says."""

    kind = "check"

    @property
    def replay(self):
        return self.inputs

    def perform(self, work_dir, made):
        match self.inputs:
            case "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            case "raises":
                raise ZeroDivisionError
            case "refuses":
                raise UserError("not like this")
        return Result(self.inputs == "passes", {"in": str(work_dir), "by": os.getpid()}, self.inputs)


MADE = count()


@dataclass(frozen=True)
class FakeBuild(MutantBuild):
    """Made in this process; the others of a failing one have nothing to run."""

    def perform(self):
        if self.task.seed == 0:
            raise UserError("nothing is made of this")
        return next(MADE)


@dataclass(frozen=True)
class OfBuild(Run):
    """Tells which build it is given."""

    kind = "check"
    seed: int

    @property
    def build(self):
        return FakeBuild(MutationTask(seed=self.seed), range(1))

    @property
    def replay(self):
        return self.inputs

    def perform(self, work_dir, made):
        return Result(True, {"made": made})


@pytest.fixture
def cluster():
    """The module. Dask takes a second to import, and each of pytest-xdist's workers collects all tests."""
    from ironband.campaign import cluster

    return cluster


def perform_all(*arguments):
    from ironband.campaign import perform

    return perform.perform_all(*arguments)


def outcomes(client, revive, *names, sources=None):
    runs = [Fake({"number": number}, name) for number, name in enumerate(names)]
    found = {run.inputs: done for run, done in perform_all(client, revive, runs, sources or sources_digest())}
    return [found[name] for name in names]


@pytest.mark.slow
def test_a_worker_that_dies_loses_its_own_run_and_errors_are_told(cluster, tmp_path):
    with cluster.local_cluster(1, tmp_path) as (client, revive):
        passed, died, failed, raised, refused = outcomes(client, revive, "passes", "dies", "fails", "raises", "refuses")
        other = outcomes(client, revive, "passes", sources="other")[0]
    assert (passed.status, failed.status, failed.report) == ("passed", "failed", "fails")
    assert (died.status, died.report) == ("worker died", "its worker died, twice")
    assert passed.figures["in"].startswith(str(tmp_path))
    assert passed.figures["by"] != failed.figures["by"]
    assert raised.status == refused.status == other.status == "error"
    assert raised.report.startswith("Traceback")
    assert raised.report.endswith("ZeroDivisionError\n")
    assert refused.report == "not like this"
    assert "has other sources of Ironband" in other.report
    for process in (passed.figures["by"], failed.figures["by"]):
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_what_several_runs_need_is_built_once_before_them_and_if_it_fails_so_do_they(cluster):
    runs = [OfBuild({}, str(number), number % 3) for number in range(9)]
    with dask_threads(2) as address, cluster.scheduler_at(address) as client:
        found = [(run.seed, done) for run, done in perform_all(client, lambda: None, runs, sources_digest())]
    assert len(found) == 9
    for seed, done in found:
        assert done.report == ("" if seed else "nothing is made of this")
    made = {seed: {done.figures["made"] for number, done in found if number == seed} for seed in (1, 2)}
    assert sorted(made.values(), key=min) == [{0}, {1}]


def test_a_mutant_at_a_place_that_is_none_passes_without_a_verdict(tmp_path):
    run = MutantRun({}, "", MutationTask(), range(1, 3), 2)
    result = run.perform(tmp_path, BuiltMutants(Design(FabricPorts((), (), ()), ""), frozenset(), {}))
    assert result == Result(True, {"number": 2, "verdict": None}, "")


def test_workers_that_cannot_run_are_told_with_what_they_said(cluster, tmp_path, monkeypatch):
    (tmp_path / "distributed").mkdir()
    (tmp_path / "distributed/__init__.py").write_text("raise ImportError('broken')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with (
        pytest.raises(UserError, match="a Dask cluster cannot run here: ImportError: broken"),
        cluster.local_cluster(1, tmp_path),
    ):
        pass
