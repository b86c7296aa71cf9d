"""`ironband sweep`: tables, files, and what it refuses."""

import csv
import json
from pathlib import Path

import pytest

from ironband import main
from tests.ironband.command import one_line_error


def test_a_wider_cable_delivers_more_and_the_table_the_file_and_the_json_say_the_same(capsys):
    assert main(["sweep", "jam", "--set", "links[*].width=1X,4X", "--set", "flows[0].size=64,256", "--json", "j"]) == 0
    output = capsys.readouterr().out
    assert "links[*].width  flows[0].size  offered  delivered  Gbit/s  busiest link" in output
    assert "wrote out/jam-sweep/sweep.png" in output
    assert sorted(path.name for path in Path("out/jam-sweep").iterdir()) == ["sweep.csv", "sweep.png", "sweep.svg"]
    runs = json.loads(Path("j").read_text())["runs"]
    rows = list(csv.DictReader(Path("out/jam-sweep/sweep.csv").read_text().splitlines()))
    assert [run["values"] for run in runs] == [
        {"links[*].width": width, "flows[0].size": size} for width in ("1X", "4X") for size in (64, 256)
    ]
    for run, row in zip(runs, rows, strict=True):
        assert (run["offered"], run["delivered"], run["faults"]) == (5, 5, 0)
        assert float(row["mean_cycles"]) == run["mean_cycles"]
        assert (row["links[*].width"], int(row["flows[0].size"])) == tuple(run["values"].values())
    assert runs[1]["mean_cycles"] > 1.5 * runs[3]["mean_cycles"]


def test_messages_are_counted_as_packets_are(capsys):
    assert main(["sweep", "retry", "--set", "seed=1", "--json", "-"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["offered"] == run["delivered"] > 0
    assert run["gbit_per_s"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jam"], "Missing option '--set'"),
        (["jam", "--set", "flows[0].load=1"], "flows[0].load: no such key; there are name, from, to,"),
        (["jam", "--set", "flows[0].rate=0,1"], "jam: flows[0].rate: 0: expected greater than 0"),
        (["star", "--set", "seed=1"], "star: is a topology"),
    ],
)
def test_bad_use_is_one_line_status_2_and_leaves_nothing_behind(capsys, arguments, message):
    assert message in one_line_error(capsys, "sweep", *arguments)
    assert not list(Path().iterdir())
