"""The command: its help, its version, and how it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from ironband import main
from ironband.group import SUBCOMMANDS, ironband
from tests.ironband.command import COMMAND, LOOPED, one_line_error

ELABORATING = """
import pathlib, sys
from ironband import main
from rtl.fabric.fabric import Fabric

elaborate = Fabric.elaborate

def announced(fabric, platform):
    pathlib.Path("elaborating").touch()
    return elaborate(fabric, platform)

Fabric.elaborate = announced
sys.exit(main())
"""
"""The command, which leaves a file where elaboration begins: its objects complain when nobody uses them."""

FINALIZING = """
import signal, sys, time
from ironband import group, main

class Finalized:
    def __del__(self):
        signal.raise_signal(int(sys.argv[1]))

def run(arguments):
    Finalized()
    time.sleep(10)
    return 0

group.run_command = run
sys.exit(main())
"""
"""The command, interrupted in a finalizer, of which Python drops all exceptions."""


def test_an_unknown_command_is_one_line_and_status_2(capsys):
    assert "No such command 'fly'." in one_line_error(capsys, "fly")


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_subcommand_is_listed_with_the_first_sentence_of_its_help(name):
    command = ironband.get_command(click.Context(ironband), name)
    assert command.name == name
    assert " ".join(command.help.split()).startswith(SUBCOMMANDS[name])


@pytest.mark.parametrize("arguments", [["--help"], ["measure", "--help"]])
def test_each_subcommand_is_told_in_a_line_of_80_columns(capsys, monkeypatch, arguments):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) == 0
    listed = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    assert listed
    for line in listed:
        assert line[2] != " ", "a summary takes one line"
        assert line.endswith(".")
        assert not line.endswith("...")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["check", "--help"], []])
def test_help_is_help(capsys, arguments):
    assert main(arguments) == 0
    assert "Usage: ironband" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ironband, version ")


def test_a_full_disk_is_one_line_and_status_2():
    for arguments in (["run", "jam", "--sim", "model"], ["--help"]):
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (2, "ironband: No space left on device\n")


@pytest.mark.parametrize("sim", ["model", pytest.param("amaranth", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing_behind(number, status, sim, tmp_path):
    Path("long.toml").write_text(LOOPED + "[record]\ntrace = true\n")
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", ELABORATING, "run", "long.toml", "--sim", sim],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        deadline = time.monotonic() + 60
        reached = "out/long/.trace-*" if sim == "model" else "elaborating"
        while process.poll() is None and not list(Path().glob(reached)) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert errors == ("ironband: interrupted\n" if number == signal.SIGINT else "")
    assert list(Path("out/long").iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupt_in_a_finalizer_is_not_lost(number, status):
    # What we ignore ourselves, as under nohup, it would ignore too.
    command = ["env", "--default-signal", sys.executable, "-c", FINALIZING, str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == status
    assert ended.stderr == ("ironband: interrupted\n" if number == signal.SIGINT else "")


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_a_closed_output_is_one_line_and_status_2(closed):
    command = f"{' '.join(map(repr, COMMAND))} run jam --sim model {closed}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr == ("ironband: standard output is closed\n" if "2>" not in closed else "")


def test_a_reader_that_goes_away_is_no_traceback():
    command = f"{' '.join(map(repr, COMMAND))} run jam --sim model | head -n 1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "The traffic jam\n"
    assert ended.stderr == ""


@pytest.mark.parametrize("arguments", [["run", "jam", "--sim", "model"], ["up", "star"], ["check", "--sim", "model"]])
def test_a_reader_that_goes_away_is_status_2_for_nothing_has_failed(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (2, "")
