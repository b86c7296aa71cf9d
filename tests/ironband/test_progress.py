"""Builds are told without a terminal, too: a line at once, and one whenever it has been silent for long."""

import time

from cosim.engines import model, simulation
from ironband import main, progress
from ironband.progress import Console, cycle_bar
from toolchain.building import building


def test_without_a_terminal_a_short_build_is_one_line(capsys) -> None:
    with cycle_bar("jam on verilator", 100, Console()), building("the simulation", 2, 29) as built:
        built()
    output = capsys.readouterr()
    assert output.err == "jam on verilator: building the simulation (0 of 2 blocks, about 29 s, once)\n"
    assert output.out == ""


def test_without_a_terminal_a_long_build_says_now_and_then_how_far_it_is(capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.01)
    said = ""
    with cycle_bar("jam on verilator", 100, Console()), building("the simulation", 2, 29) as built:
        built()
        while "so far" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "building the simulation (1 of 2 blocks, about 29 s, once), 0 s so far\n" in said
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_a_build_is_told_in_place_of_the_bars_title(capsys) -> None:
    console = Console(force_terminal=True, width=100)
    with cycle_bar("jam on verilator", 100, console), building("the simulation", 2, 29):
        time.sleep(0.3)
    output = capsys.readouterr()
    assert "jam on verilator: building the simulation (0 of 2 blocks, about 29 s, once)" in output.out
    assert output.err == ""


def test_traffic_may_start_once_all_is_built(capsys, monkeypatch, tmp_path) -> None:
    def builds_first(spec, options):
        with building("the simulation", 1, 29):
            print("built")
        yield from model.simulate(spec, options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(simulation._ENGINES, "icarus", builds_first)
    assert main(["run", "jam", "--sim", "icarus", "--bring-up", "bus", "--no-picture"]) == 0
    output = capsys.readouterr()
    title, built, ready, *_ = output.out.splitlines()
    assert (title, built) == ("The traffic jam", "built")
    assert ready.startswith("2 links Active, traffic may start at cycle ")
    assert output.err == "jam on icarus: building the simulation (0 of 1 blocks, about 29 s, once)\n"
