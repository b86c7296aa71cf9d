"""What the subcommands share: JSON into files, and the log of a simulation that failed."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from cosim.simulators.cocotb_results import SimulationFailed
from ironband import main
from tests.ironband.command import one_line_error


def test_results_that_cannot_be_written_end_a_run_before_it_begins(capsys):
    assert "nowhere/x.json: cannot be written" in one_line_error(capsys, "run", "jam", "--json", "nowhere/x.json")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "line",
    ["show x --gbps nan", "play x --gbps nan", "check --load nan", "synth --freq nan"],
)
def test_what_is_no_number_is_in_no_range(capsys, line):
    assert "nan is not in the range" in one_line_error(capsys, *line.split())


def test_a_device_or_a_link_stays_one(capsys):
    os.mkfifo("pipe")
    Path("link.json").symlink_to("file.json")
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        assert main(["check", "--sim", "model", "--cycles", "8000", "--json", "pipe"]) == 0
        read, _ = reader.communicate(timeout=60)
    assert json.loads(read)["held"]
    assert Path("pipe").is_fifo()
    assert main(["check", "--sim", "model", "--cycles", "8000", "--json", "link.json"]) == 0
    assert Path("link.json").is_symlink()
    assert json.loads(Path("file.json").read_text())["held"]


def test_a_simulation_that_fails_is_one_line_that_says_where_its_log_is(capsys, monkeypatch):
    def fail(experiment, engine, work_dir, observers, **_):
        (work_dir / engine).mkdir()
        (work_dir / engine / "sim.log").write_text("what the simulator said")
        raise SimulationFailed("the simulator ended early, status 1\nwhat the simulator said")

    monkeypatch.setattr("ironband.scenario_run.perform", fail)
    said, _, log = one_line_error(capsys, "run", "jam", "--sim", "icarus").rpartition("; its log is ")
    assert said == "the simulator ended early, status 1"
    assert Path(log).read_text() == "what the simulator said"
    Path(log).unlink()
