"""`ironband check`: what it says, and what it refuses."""

import json

import pytest

from ironband import main
from tests.cosim.loads import HOSTS_ALIKE
from tests.ironband.command import one_line_error

A_DEEP_HOST = 324
"""A seed with which the buffer of H2 has more blocks than can be announced at once."""

A_DEEP_SWITCH = 238_928
"""A seed with which so have the buffers of the switch, too; Yosys takes its time for them."""


def test_check_tells_what_it_compared(capsys):
    assert main(["check", "--sim", "model", "--cycles", "8000", "--ports", "3"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("ironband check --ports 3 --vls 2 --mtu 256 --queueing voq --cycles 8000 --seed 1 ")
    for word in ("packets sent", "packets delivered", "errors given", "mismatches            -"):
        assert word in output


def test_check_gives_json(capsys):
    assert main(["check", "--sim", "model", "--cycles", "8000", "--no-errors", "--json", "-"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["held"]
    assert results["mtu_bytes"] == 256
    assert results["errors_given"] == {}
    assert results["delivered_packets"] > 0


def test_check_adds_up_which_decisions_it_reaches(capsys, tmp_path):
    file = tmp_path / "coverage.json"
    arguments = ["check", "--sim", "model", "--cycles", "8000", "--ports", "2", "--coverage", str(file)]
    assert main(arguments) == 0
    assert "decisions reached" in capsys.readouterr().out
    assert main([*arguments, "--json", "-"]) == 0
    results = json.loads(capsys.readouterr().out)
    for kind in ("decisions", "limits", "counters"):
        assert results[kind]["new"] == 0 < results[kind]["reached"] < results[kind]["all"]


def test_coverage_of_something_else_is_refused(capsys, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    assert "notes.txt: " in one_line_error(capsys, "check", "--coverage", str(file))
    assert file.read_text() == "mine"


def test_a_fabric_is_checked_in_place_of_one_switch(capsys):
    assert main(["check", "--fabric", "ring_4", "--sim", "model", "--cycles", "20000", "--json", "-"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["fabric"] == "ring_4"
    assert results["replay"].startswith("ironband check --fabric ring_4 --vls 2 ")
    assert results["delivered_packets"] > 100


def test_hosts_that_do_not_reach_each_other_are_refused(capsys, tmp_path):
    file = tmp_path / "islands.net"
    for name in "AB":
        ends = ((number, f"{name}{number}") for number in (1, 2))
        switch = [f'Switch 2 "S{name}"', *(f'[{number}] "{host}"' for number, host in ends)]
        hosts = (f'Hca 1 "{name}{number}"\n[1] "S{name}"[{number}]\n' for number in (1, 2))
        with file.open("a") as text:
            text.write("\n".join((*switch, "", *hosts, "")))
    assert "no way from A1 to B1" in one_line_error(capsys, "check", "--fabric", str(file))


def test_a_topology_of_adapters_alone_has_nothing_to_check(capsys, tmp_path):
    file = tmp_path / "cable.net"
    file.write_text('Hca 1 "A"\n[1] "B"\n\nHca 1 "B"\n[1] "A"\n')
    assert "no switches, expected at least one" in one_line_error(capsys, "check", "--fabric", str(file))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--fabric", "ring_5"], "topology 'ring_5': no such file"),
        (["check", "--fabric", "incast"], "incast: is a scenario"),
        (["check", "--fabric", "ring_4", "--ports", "3"], "--ports with --fabric: expected one of the two"),
        (["check", "--ports", "65"], "Invalid value for '--ports': 65 is not in the range 2<=x<=64."),
        (["check", "--vls", "3"], "Invalid value for '--vls': '3' is not one of '1', '2', '4', '8', '15'."),
        (["check", "--load", "0"], "Invalid value for '--load': 0.0 is not in the range 0<x<=1."),
        (["check", "--load", "nan"], "Invalid value for '--load': nan is not in the range 0<x<=1."),
        *(
            (["check", "--waves", "x.fst", "--waves-cycles", cycles], f"'--waves-cycles': '{cycles}': expected FROM:TO")
            for cycles in ("5", "5:", "5:4", "-1:4", "1:2:3", "a:b", f"0:{1 << 40}", "1:" + "9" * 5_000)
        ),
        (["check", "--waves-cycles", "1:2"], "--waves-cycles 1:2: expected --waves, too"),
        (
            ["check", "--waves", "x.fst", "--waves-cycles", "20000:20000"],
            "--waves-cycles 20000:20000: expected FROM below 20,000, the cycles of the run",
        ),
        (["check", "--cycles", "100"], "cycles 100: expected more than"),
        (["check", "--cycles", str(1 << 40)], "Invalid value for '--cycles': 1099511627776 is not in the range"),
        (["check", "--seed", str(1 << 64)], "Invalid value for '--seed': 18446744073709551616 is not in the range"),
    ],
)
def test_bad_use_is_one_line_and_status_2(capsys, arguments, message):
    assert message in one_line_error(capsys, *arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sim", "cycles", "more"),
    [
        ("verilator", 20_000, ["--ports", "3", "--seed", str(HOSTS_ALIKE.seed)]),
        pytest.param(
            *("icarus", 8_000, ["--ports", "2", "--queueing", "fifo", "--seed", str(A_DEEP_HOST)]),
            marks=pytest.mark.deep,
        ),
        pytest.param(
            *("verilator", 40_000, ["--ports", "3", "--vls", "4", "--mtu", "512", "--seed", str(A_DEEP_SWITCH)]),
            marks=pytest.mark.deep,
        ),
    ],
)
def test_the_check_holds_and_rtl_and_model_are_captured_alike(capsys, tmp_path, sim, cycles, more):
    check = ["check", "--cycles", str(cycles), *more, "--json", "-"]
    assert main([*check, "--sim", sim, "--capture", "rtl.pcapng"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert (results["mismatches"], results["cycles_compared"], results["faults"]) == (0, cycles, [])
    assert results["delivered_packets"] > 20
    assert results["injections_acted"] > 1
    assert main([*check, "--sim", "model", "--capture", "model.pcapng"]) == 0
    assert (tmp_path / "rtl.pcapng").read_bytes() == (tmp_path / "model.pcapng").read_bytes()
