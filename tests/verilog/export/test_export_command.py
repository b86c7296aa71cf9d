"""`ironband export`: what it writes, and that bad use leaves nothing behind."""

import json
from pathlib import Path

import pytest

from ironband import main
from verilog.export.switch_name import TOP

SMALL = ["export", "--ports", "2", "--mtu", "256", "--buffer-blocks", "8"]
KNOWN = [*SMALL, "--vls", "2", "--queueing", "fifo", "--readers", "1", "--lft-size", "3"]
"""Other tests elaborate it, too."""
FILES = {
    "LICENSE",
    "Makefile",
    "ironband_link_partner.v",
    "ironband_switch.core",
    "ironband_switch.v",
    "ironband_switch.vlt",
    "ironband_switch_ports.md",
    "ironband_switch_tb.v",
}


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def names(directory="."):
    return {path.name for path in Path(directory).iterdir()}


def one_line_error(capsys, *arguments):
    assert main([*SMALL, *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("ironband: ")


@pytest.mark.slow
@pytest.mark.usefixtures("known_netlists")
def test_an_export_is_told_file_by_file_and_as_json(capsys):
    assert main([*KNOWN, "-o", "made/switch", "--json", "results.json"]) == 0
    assert names("made") == {"switch"}
    assert names("made/switch") == FILES
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("made/switch/ironband_switch.v ")
    assert lines[-1] == "Next: make -C made/switch sim"
    results = json.loads(Path("results.json").read_text())
    assert results["directory"] == "made/switch"
    assert results["mtu_bytes"] == 256
    assert results["ports_of_top"][0] == {"name": "clk", "direction": "input", "width_bits": 1}
    assert {file["name"]: file["size_bytes"] for file in results["files"]} == {
        path.name: path.stat().st_size for path in Path("made/switch").iterdir()
    }
    assert one_line_error(capsys, "-o", "made/switch") == (
        "directory made/switch: has ironband_switch.v; --name gives this switch another, --force replaces it"
    )
    assert main([*KNOWN, "-o", "made/switch", "--name", "east"]) == 0
    assert names("made/switch") == FILES | {file.replace("ironband_switch", "east") for file in FILES}


@pytest.mark.slow
@pytest.mark.usefixtures("known_netlists")
def test_force_replaces_the_files_of_an_export_and_no_others(capsys):
    Path("switch").mkdir()
    Path("switch/notes.txt").write_text("mine")
    Path("switch/ironband_switch_ports.md").write_text("old")
    assert one_line_error(capsys, "-o", "switch") == (
        "directory switch: is not empty; --force replaces the files of an export in it"
    )
    assert main([*KNOWN, "-o", "switch", "--force", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["directory"] == "switch"
    assert names("switch") == {*FILES, "notes.txt"}
    assert Path("switch/notes.txt").read_text() == "mine"
    assert Path("switch/ironband_switch_ports.md").read_text().startswith(f"# {TOP}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ports", "65"], "ports 65: expected 2..64"),
        (["--ports", "1"], "ports 1: expected 2..64"),
        (["--vls", "3"], "Invalid value for '--vls': '3' is not one of '1', '2', '4', '8', '15'."),
        (["--mtu", "2048"], "buffer_blocks 8: expected 34..4095"),
        (["--queueing", "fifo", "--readers", "2"], "readers 2: expected 1 with queueing 'fifo'"),
        (["--lft-size", "1"], "lft_size 1: expected 2..49152"),
        (["--vl15-blocks", "5"], "vl15_blocks 5: expected"),
        (["--name", "2nd"], "name 2nd: expected 1..64 letters, digits and underscores, a letter first"),
        (["--name", "module"], "name module: expected"),
        (["--name", "ironband_link_partner"], "name ironband_link_partner: expected"),
        (["--name", "east_tb"], "name east_tb: expected"),
    ],
)
def test_impossible_parameters_are_told_in_one_line(capsys, arguments, message):
    assert one_line_error(capsys, *arguments, "-o", "switch").startswith(message)
    assert names() == set()


def test_a_directory_must_be_named(capsys):
    assert one_line_error(capsys) == "Missing option '-o' / '--out'."


def test_a_file_is_no_directory(capsys):
    Path("switch").write_text("")
    assert one_line_error(capsys, "-o", "switch") == "switch: is a file, expected a directory"
    assert one_line_error(capsys, "-o", "switch/below").startswith("directory switch/below: cannot be written: ")


def test_a_place_that_cannot_be_written_is_told_at_once(capsys):
    assert one_line_error(capsys, "-o", "/proc/switch").startswith("directory /proc/switch: cannot be written: ")


def test_an_interrupted_export_leaves_nothing(capsys, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("verilog.export.package.switch_package", interrupted)
    assert main([*SMALL, "-o", "switch"]) == 130
    assert names() == set()
