"""The database of a campaign: rows and views, and files that are refused."""

import json
import sqlite3

import pytest

from cosim.experiments.check_experiment import CheckOptions
from ironband.campaign.database import Done, opened, read
from ironband.campaign.runs import CheckRun
from toolchain.errors import UserError

RUNS = [CheckRun({"seed": seed, "ports": 2}, "", CheckOptions(ports=2, seed=seed)) for seed in (1, 2)]
FIGURES = {"cycles_compared": 700, "errors_given": {"ebp": 2}}


def test_a_run_is_a_row_which_a_view_shows_in_columns(tmp_path):
    file = tmp_path / "made/c.sqlite"
    with opened(file) as database:
        database.keep(RUNS[0], "s1", Done("worker died"))
        database.keep(RUNS[0], "s1", Done("failed", 1.5, "here", FIGURES, "it differs"))
        database.keep(RUNS[1], "s1", Done("passed", 2.5, "there", FIGURES))
        assert database.outcomes("s1") == {
            RUNS[0].key("s1"): ("failed", "it differs"),
            RUNS[1].key("s1"): ("passed", ""),
        }
        assert (database.outcomes("s2"), database.others("s2")) == ({}, 2)
    notebook = sqlite3.connect(file)
    rows = notebook.execute("SELECT seed, ports, status, cycles_compared, errors_given, report, replay FROM checks")
    first, second = rows.fetchall()
    assert first == (1, 2, "failed", 700, '{"ebp":2}', "it differs", RUNS[0].options.command)
    assert second[:4] == (2, 2, "passed", 700)
    assert json.loads(*notebook.execute("SELECT figures FROM runs WHERE seconds > 2").fetchone()) == FIGURES
    notebook.close()


def test_views_count_the_checks_that_reached_each_way_of_a_decision(tmp_path):
    file = tmp_path / "c.sqlite"
    figures = [
        {
            "decisions_reached": ["a.py:1:0 true: x"],
            "decisions_not_reached": ["a.py:1:0 false: x", "a.py:2:0 true: y"],
            "limits_reached": ["a.py:3:0 less: x < y"],
            "limits_not_reached": [],
        },
        {
            "decisions_reached": ["a.py:1:0 true: x", "a.py:1:0 false: x"],
            "decisions_not_reached": ["a.py:2:0 true: y"],
            "limits_reached": [],
            "limits_not_reached": ["a.py:3:0 less: x < y"],
        },
    ]
    with opened(file) as database:
        assert database.reached("s") == {}
        database.keep(RUNS[0], "old", Done("passed", figures={"decisions_reached": ["a.py:9:0 true: old"]}))
        for run, found in zip(RUNS, figures, strict=True):
            database.keep(run, "s", Done("passed", figures=found))
        assert database.reached("s") == {"decisions": (2, 3), "limits": (1, 1)}
    notebook = sqlite3.connect(file)
    assert notebook.execute("SELECT way, runs FROM decisions ORDER BY way").fetchall() == [
        ("a.py:1:0 false: x", 1),
        ("a.py:1:0 true: x", 2),
        ("a.py:2:0 true: y", 0),
    ]
    assert notebook.execute("SELECT way, runs FROM limits").fetchall() == [("a.py:3:0 less: x < y", 1)]
    notebook.close()


def test_views_show_runs_of_the_newest_sources(tmp_path):
    file = tmp_path / "c.sqlite"
    with opened(file) as database:
        database.keep(RUNS[0], "old", Done("failed"))
        database.keep(RUNS[1], "new", Done("passed"))
    notebook = sqlite3.connect(file)
    assert notebook.execute("SELECT seed FROM checks").fetchall() == [(2,)]
    assert notebook.execute("SELECT count(*) FROM runs").fetchone() == (2,)
    notebook.close()


def test_what_is_read_meanwhile_is_whole_and_one_campaign_writes(tmp_path):
    file = tmp_path / "c.sqlite"
    with opened(file) as writing:
        writing.keep(RUNS[0], "s", Done("passed"))
        with read(file) as reading:
            assert len(reading.outcomes("s")) == 1
        with pytest.raises(UserError, match="another campaign writes it"), opened(file):
            pass
        writing.keep(RUNS[1], "s", Done("passed"))


def test_nothing_is_made_to_be_read(tmp_path):
    with read(tmp_path / "c.sqlite") as database:
        assert database is None
    assert not list(tmp_path.iterdir())


def other_database(file):
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE t (x)")
    connection.close()


@pytest.mark.parametrize("use", [opened, read])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: file.write_text("no database at all" * 100), "file is not a database"),
        (other_database, "is of something else: expected one that a campaign wrote, or no file"),
        (lambda file: file.mkdir(), "c.sqlite: "),
    ],
)
def test_what_is_no_database_of_a_campaign_is_refused_and_kept(tmp_path, use, make, message):
    file = tmp_path / "c.sqlite"
    make(file)
    before = file.is_file() and file.read_bytes()
    with pytest.raises(UserError, match=message), use(file):
        pass
    assert before == (file.is_file() and file.read_bytes())
