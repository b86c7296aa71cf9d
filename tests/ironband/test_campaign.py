"""`ironband campaign`: what it says, what its database has, how it goes on, and what it refuses."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cosim.experiments import check
from ironband import main
from tests.ironband.command import COMMAND, one_line_error
from tests.ironband.dask_threads import dask_threads

ALL_KINDS = """
database = "made/c.sqlite"
[[check]]
seeds = "3..4"
ports = 2
cycles = 4000
sim = "model"
[[sweep]]
scenario = "jam"
set = {"links[*].width" = ["1X", "4X"]}
[[curves]]
ports = 3
cycles = 4000
loads = 0.5
sim = "model"
"""


@pytest.fixture(scope="module")
def scheduler():
    """The address of a scheduler with a worker, in this process."""
    with dask_threads(1) as address:
        yield address


def told(capsys, *arguments):
    """Exit status, the table as it is told by kind, and the lines below it."""
    status = main(["campaign", "c.toml", *arguments])
    output = capsys.readouterr()
    assert output.err == ""
    head, *lines = output.out.splitlines()
    assert head.split() == ["runs", "passed", "failed", "error", "worker", "died", "left"]
    table = {line.split()[0]: [int(number) for number in line.split()[1:]] for line in lines if " " * 8 in line}
    return status, table, lines[len(table) :]


def rows(query):
    with sqlite3.connect("made/c.sqlite") as notebook:
        found = notebook.execute(query).fetchall()
    notebook.close()
    return found


def test_a_campaign_is_run_on_a_scheduler_and_goes_on_with_what_is_missing(capsys, scheduler):
    Path("c.toml").write_text(ALL_KINDS)
    assert told(capsys, "--status") == (
        0,
        {"check": [2, 0, 0, 0, 0, 2], "sweep": [2, 0, 0, 0, 0, 2], "curves": [2, 0, 0, 0, 0, 2]},
        [],
    )
    assert not Path("made").exists()
    done = {"check": [2, 2, 0, 0, 0, 0], "sweep": [2, 2, 0, 0, 0, 0], "curves": [2, 2, 0, 0, 0, 0]}
    assert told(capsys, "--scheduler", scheduler) == (0, done, [])
    assert all(sent > delivered > 0 for sent, delivered in rows("SELECT sent_packets, delivered_packets FROM checks"))
    assert rows("SELECT delivered, faults FROM sweeps") == [(5, 0)] * 2
    assert [round(*one, 1) for one in rows("SELECT delivered FROM points")] == [0.5, 0.5]
    assert rows("SELECT DISTINCT length(sources), report, status FROM runs") == [(16, "", "passed")]
    kept = rows("SELECT * FROM runs WHERE kind = 'check'")
    assert rows("DELETE FROM runs WHERE kind != 'check'") == []
    assert told(capsys, "--status")[1]["sweep"] == [2, 0, 0, 0, 0, 2]
    assert told(capsys, "--scheduler", scheduler) == (0, done, [])
    assert rows("SELECT * FROM runs WHERE kind = 'check'") == kept
    # Nobody is asked where nothing is left.
    assert told(capsys, "--scheduler", "127.0.0.1:1") == (0, done, [])


def test_checks_tell_which_decisions_of_the_golden_model_they_reach(capsys, scheduler):
    Path("c.toml").write_text(ALL_KINDS.partition("[[sweep]]")[0] + "coverage = true\n")
    status, table, lines = told(capsys, "--scheduler", scheduler)
    assert (status, table) == (0, {"check": [2, 2, 0, 0, 0, 0]})
    for name, line in zip(("decisions", "limits", "counters"), lines, strict=True):
        ((reached, ways),) = rows(f"SELECT count(*) FILTER (WHERE runs > 0), count(*) FROM {name}")
        assert 0 < reached < ways
        assert line.replace(" ways", "") == (
            f"{name} of the golden model: {reached:,} of {ways:,} reached ({reached / ways:.1%})"
        )
        assert {(0,), (2,)} <= set(rows(f"SELECT DISTINCT runs FROM {name}")) <= {(0,), (1,), (2,)}
    assert told(capsys, "--status")[2] == lines


def test_what_does_not_pass_is_told_with_its_line_and_what_could_not_be_run_is_run_again(
    capsys, scheduler, monkeypatch
):
    held = check.check

    def differs(options, work_dir):
        return replace(held(options, work_dir), faults=("H2 got a packet that was sent to H1",))

    monkeypatch.setattr(check, "check", differs)
    Path("c.toml").write_text(ALL_KINDS.partition("[[sweep]]")[0].replace("4000", "[4000, 100]"))
    status, table, lines = told(capsys, "--scheduler", scheduler)
    assert (status, table) == (1, {"check": [4, 0, 2, 2, 0, 0]})
    line = "ironband check --ports 2 --vls 2 --mtu 256 --queueing voq --cycles 4000 --seed 3 --widths mixed --load 0.7"
    at = lines.index(f"failed: {line} --sim model --errors")
    assert lines[at + 1] == "  H2 got a packet that was sent to H1"
    assert sum(one.startswith("  ValueError: cycles 100: expected more than") for one in lines) == 2
    assert rows("SELECT DISTINCT report FROM checks WHERE status = 'failed'") == [
        ("H2 got a packet that was sent to H1",)
    ]
    monkeypatch.setattr(check, "check", held)
    assert told(capsys, "--scheduler", scheduler)[:2] == (1, {"check": [4, 0, 2, 2, 0, 0]})
    assert told(capsys, "--status")[0] == 0


def test_runs_of_other_sources_are_kept_and_not_taken_for_these(capsys, scheduler):
    Path("c.toml").write_text(ALL_KINDS.partition("[[sweep]]")[0])
    assert told(capsys, "--scheduler", scheduler)[0] == 0
    rows("UPDATE runs SET sources = 'older', key = key || '-'")
    assert told(capsys, "--status")[1:] == (
        {"check": [2, 0, 0, 0, 0, 2]},
        ["of other sources the database has 2 more"],
    )


@pytest.mark.slow
def test_an_interrupted_campaign_keeps_what_is_done_and_leaves_nothing_behind(tmp_path):
    text = ALL_KINDS.partition("[[sweep]]")[0].replace('"3..4"', "3").replace("4000", "[4000, 50000000]")
    Path("c.toml").write_text(text)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen(
        [*COMMAND, "campaign", "c.toml", "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    ) as process:
        deadline = time.monotonic() + 100
        while not (
            Path("made/c.sqlite").exists() and rows("SELECT 1 FROM sqlite_master") and rows("SELECT 1 FROM runs")
        ):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (130, "", "ironband: interrupted\n")
    assert rows("SELECT status, cycles FROM checks") == [("passed", 4000)]
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'FILE'."),
        (["none.toml"], "Invalid value for 'FILE': File 'none.toml' does not exist."),
        (["broken.toml"], "broken.toml: Invalid value (at line 1, column 5)"),
        (["c.toml"], "c.toml: check[0].port: unknown key"),
        (["c.toml", "--workers", "0"], "Invalid value for '--workers': 0 is not in the range 1<=x<=1024."),
        (["c.toml", "--workers", "1", "--status"], "--workers, --scheduler, --status: expected one of them"),
        (["c.toml", "--scheduler", "foo"], "Invalid value for '--scheduler': 'foo': expected an address such as"),
        (
            ["c.toml", "--scheduler", "localhost:65536"],
            "'localhost:65536': expected an address such as tcp://host:8786",
        ),
        (
            ["d.toml", "--scheduler", "127.0.0.1:1"],
            "scheduler 127.0.0.1:1: Connection refused: expected a Dask scheduler",
        ),
        (
            ["e.toml", "--status"],
            "database broken.toml: file is not a database: expected one that a campaign can write",
        ),
        (["e.toml"], "database broken.toml: file is not a database: expected one that a campaign can write"),
    ],
)
def test_bad_use_is_one_line_and_status_2(capsys, arguments, message):
    Path("broken.toml").write_text("a = = b\n" * 99)
    Path("c.toml").write_text('database = "c.sqlite"\n[[check]]\nport = 3\n')
    Path("d.toml").write_text('database = "c.sqlite"\n[[check]]\n')
    Path("e.toml").write_text('database = "broken.toml"\n[[check]]\n')
    assert message in one_line_error(capsys, "campaign", *arguments)


@pytest.mark.deep
def test_mutants_are_built_once_and_found_as_mutate_finds_them(capsys):
    Path("c.toml").write_text(
        'database = "made/c.sqlite"\n[[mutate]]\ncount = 8\nseeds = 2\nchecks = 1\ncycles = 12000\n'
    )
    status = main(["mutate", "--count", "8", "--seed", "2", "--checks", "1", "--cycles", "12000", "--json", "m.json"])
    found = json.loads(Path("m.json").read_text())
    capsys.readouterr()
    assert told(capsys)[:2] == (status, {"mutate": [8, found["killed"], found["survived"], 0, 0, 0]})
    assert rows("SELECT number, verdict, found_by, cycle, difference FROM mutants ORDER BY number") == [
        (one["mutant"]["number"], one["verdict"], one["check"], one["cycle"], one["by"]) for one in found["mutants"]
    ]
