"""`ironband curves`: what it says and draws, and what it refuses."""

import json
from pathlib import Path

import pytest

from ironband import main
from tests.ironband.command import one_line_error


def test_curves_are_measured_and_drawn(capsys):
    assert main(["curves", "--sim", "model", "--ports", "3", "--cycles", "4000", "--loads", "0.5,1", "--out", "c"]) == 0
    output = capsys.readouterr().out
    assert "VOQ, golden model" in output
    assert "wrote c/throughput.png" in output
    assert sorted(path.name for path in Path("c").iterdir()) == ["throughput.png", "throughput.svg"]


def test_a_whole_fabric_has_curves_of_its_own(capsys):
    given = ["--topology", "ring_4", "--cycles", "4000", "--loads", "0.2", "--pattern", "bit_complement"]
    assert main(["curves", *given, "--json", "-"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert (results["sim"], results["topology"], results["ports"]) == ("model", "ring_4", None)
    assert [curve["name"] for curve in results["curves"]] == ["VOQ, golden model", "FIFO, golden model"]
    assert all(curve["points"][0]["keeps_up"] for curve in results["curves"])


def test_hosts_of_a_fabric_without_a_way_between_them_are_told(capsys):
    Path("two.net").write_text(
        'Switch 2 "S"\n[1] "A"[1]\nSwitch 2 "T"\n[1] "B"[1]\nCa 1 "A"\n[1] "S"[1]\nCa 1 "B"\n[1] "T"[1]\n'
    )
    assert "two.net: flows[0]: no way from A to B" in one_line_error(capsys, "curves", "--topology", "two.net")
    assert not Path("out").exists()


def test_a_hot_host_is_told_with_the_load_that_fills_its_link(capsys):
    given = ["--sim", "model", "--ports", "5", "--cycles", "4000", "--loads", "0.2,0.3", "--burst", "3"]
    hot = ["--pattern", "hotspot", "--hot", "H2", "--hot-share", "0.5"]
    assert main(["curves", *given, *hot, "--json", "-"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["full_at"] == pytest.approx(1 / (4 * 0.5))
    assert (results["pattern"], results["hot"], results["hot_share"]) == ("hotspot", "H2", 0.5)
    assert (results["burst_packets"], results["fifo_limit"]) == (3, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curves", "--loads", "0.5,2"], "Invalid value for '--loads': 2 is not in the range 0<x<=1."),
        (
            ["curves", "--pattern", "transpose"],
            "'transpose' of 8 hosts: expected a square number of them, 4, 9, 16, ...",
        ),
        (
            ["curves", "--hot", "H2"],
            "--hot, --hot-share: expected with --pattern hotspot, not uniform",
        ),
        (["curves", "--pattern", "hotspot", "--hot", "A", "--ports", "3"], "no host 'A'; there are H1, H2, H3"),
        (["curves", "--topology", "star", "--ports", "4"], "--ports, --topology: expected one of them"),
        (["curves", "--topology", "jam"], "jam: is a scenario, which `ironband run` takes: expected a topology's file"),
        (["curves", "--topology", "star", "--pattern", "hotspot"], "'hotspot' of 2 hosts: expected three or more"),
        (["curves", "--burst", "0"], "Invalid value for '--burst': 0.0 is not in the range 1<=x<=1048576."),
        (["curves", "--loads", "a"], "Invalid value for '--loads': 'a': expected numbers with commas between them"),
    ],
)
def test_bad_use_is_one_line_and_status_2(capsys, arguments, message):
    assert message in one_line_error(capsys, *arguments)
