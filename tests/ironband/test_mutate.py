"""`ironband mutate`: the table, and the file that it goes on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cosim.experiments.mutation import Outcome
from cosim.experiments.mutation_task import MutationTask
from ironband import main
from ironband.mutate_report import describe, keep, kept
from tests.ironband.command import one_line_error
from toolchain.errors import UserError
from verilog.mutants import Mutant

TASK = MutationTask(count=3, seed=5)
OUTCOMES = [
    Outcome(
        Mutant(1, "inv", "port_0.counters", "mux", "S[0]", "_1[0]", "mutate 1"), "killed", 2, 700, "RX_FCP at S[1]"
    ),
    Outcome(Mutant(2, "const0", "port_2", "and", "Y[3]", "", "mutate 2"), "survived"),
    Outcome(Mutant(3, "const1", "", "eq", "A[1]", "is_own[1]", "mutate 3"), "killed", 1, 12, "STATE at S[2]"),
    Outcome(Mutant(4, "cnot0", "port_1.fcs", "or", "B[2]", "", "mutate 4"), "equivalent"),
]


def test_ports_are_counted_together_and_survivors_are_named():
    lines = list(describe(OUTCOMES))
    assert [line.split() for line in lines[:4]] == [
        ["component", "killed", "survived", "equivalent", "score"],
        ["port", "1", "1", "1", "50.0%"],
        ["the", "node", "itself", "1", "0", "0", "100.0%"],
        ["all", "2", "1", "1", "66.7%"],
    ]
    assert lines[-1].strip() == "2  const0 port_2.and Y[3]"


def test_a_run_goes_on_with_what_its_file_has(tmp_path: Path):
    file = tmp_path / "mutants.json"
    assert kept(file, TASK) == (None, {})
    keep(file, TASK, "7ac1", OUTCOMES[::-1])
    assert kept(file, TASK) == ("7ac1", {outcome.mutant.number: outcome for outcome in OUTCOMES})
    results = json.loads(file.read_text())
    assert (results["killed"], results["survived"], results["equivalent"]) == (2, 1, 1)


def test_a_file_of_something_else_is_refused_and_kept(tmp_path: Path, capsys):
    file = tmp_path / "mutants.json"
    keep(file, TASK, "7ac1", OUTCOMES)
    with pytest.raises(UserError, match="is of another task"):
        kept(file, MutationTask(count=4, seed=5))
    file.write_text("{}")
    error = one_line_error(capsys, "mutate", "--count", "3", "--json", str(file))
    assert "expected a file that mutate wrote" in error
    assert file.read_text() == "{}"


def test_a_check_has_cycles_enough(capsys):
    assert "cycles 100: expected more than" in one_line_error(capsys, "mutate", "--count", "3", "--cycles", "100")


@pytest.mark.deep
def test_mutants_of_a_switch_go_through_a_check(tmp_path: Path, capsys):
    """Most are found; the run is made anew from its file in no time."""
    file = tmp_path / "mutants.json"
    arguments = ["mutate", "--count", "8", "--seed", "2", "--checks", "1", "--cycles", "12000", "--json", str(file)]
    status = main(arguments)
    first = capsys.readouterr().out
    results = json.loads(file.read_text())
    assert results["killed"] + results["survived"] == 8
    assert results["killed"] >= 3
    assert status == (1 if results["survived"] else 0)
    assert main(arguments) == status
    assert capsys.readouterr().out == first
    file.write_text(file.read_text().replace(results["netlist"], "7ac1"))
    assert "is of a netlist that is no longer" in one_line_error(capsys, *arguments)
