"""The performance table: what it measures, what it says of it, and that it can tell bad from good."""

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bench.amaranth_speed import amaranth_ready
from bench.bare_loop import BareLoop
from bench.builds import builds
from bench.figures import FIGURES, Reading, Target
from bench.growth import PORTS, Growth
from bench.latency import latency
from bench.management import management
from bench.settings import Settings
from bench.suite import NOT_QUICK, Benchmark, benchmark
from bench.throughput import throughput
from bench.wide import WIDE_FIGURES, environment
from cosim.engines import compiled_model, simulation
from cosim.experiments.experiment import scenario_experiment
from cosim.scenario.uniform_load import uniform_load
from cosim.simulators import verilation
from cosim.simulators.cocotb_results import SimulationFailed
from cosim.trace.trace_file import read_trace
from ironband import main

KEYS = {
    "latency_cycles",
    "throughput_voq_256",
    "throughput_voq_2048",
    "throughput_fifo_2048",
    "lost_packets",
    "cosim_ratio",
    "cosim_cycles_per_s",
    "model_cycles_per_s",
    "amaranth_cycles_per_s",
    "model_block_hops_per_s",
    "compare_ratio",
    "build36_s",
    "cycles36_per_s",
    "bringup_smps",
    "bringup_cycles",
    "smp_turnaround_cycles",
    "routes_648_s",
    "up_216_s",
    "build_tree_s",
    "peak_rss_mb",
    "ports",
    "seed",
}

ON_THE_MODEL = Settings(ports=3, quick=True, sim="model")


def silent(name: str, done: int, of: int) -> None:
    pass


def test_target_says_what_reaches_it() -> None:
    assert str(Target(most=8)) == "<= 8"
    assert str(Target(least=3000)) == ">= 3,000"
    assert str(Target(0.588, 0.648)) == "0.588 .. 0.648"
    assert [Target(0.588, 0.648).held(value) for value in (0.587, 0.588, 0.648, 0.649)] == [False, True, True, False]


def test_head_of_line_theory_is_a_target_for_eight_ports_only() -> None:
    readings = {"throughput_fifo_2048": Reading.once(0.9)}
    assert Benchmark(Settings(ports=8), readings).missed == ["throughput_fifo_2048"]
    assert Benchmark(Settings(ports=4), readings).missed == []


def test_quick_does_not_judge_what_it_measures_too_shortly() -> None:
    readings = {"throughput_voq_2048": Reading.once(0.94)}
    assert Benchmark(Settings(quick=True), readings).held
    assert not Benchmark(Settings(), readings).held


def test_figure_without_a_target_or_a_value_is_neither_held_nor_missed() -> None:
    result = Benchmark(Settings(), {"bare_cycles_per_s": Reading.once(1)})
    assert result.figure_held(FIGURES["bare_cycles_per_s"]) is None
    assert result.figure_held(FIGURES["cosim_ratio"]) is None
    assert result.held


def test_lone_packets_take_the_same_time_through_every_port(tmp_path: Path) -> None:
    (found,) = latency(ON_THE_MODEL, tmp_path).values()
    assert found.least == found.most == found.value
    assert 1 < found.value <= 8


def test_a_small_fabric_comes_up_by_few_smps_and_an_agent_answers_in_its_time(tmp_path: Path) -> None:
    found = management(ON_THE_MODEL, ["bringup_smps", "bringup_cycles", "smp_turnaround_cycles"], tmp_path)
    assert found.faults == []
    assert found.readings["bringup_smps"].value <= 40
    assert found.readings["bringup_cycles"].value > 0
    # docs/management.md, section 2: T = z + 4, W = 288 steps, then an offer, and SEND in the cycle after it is taken.
    assert found.readings["smp_turnaround_cycles"].value == 4 + 288 + 1


def test_saturated_switch_delivers_most_of_what_its_links_carry_and_all_arrives(tmp_path: Path) -> None:
    found = throughput(ON_THE_MODEL, "throughput_voq_256", tmp_path, progress=silent)
    assert 0.9 < found.share.value <= 1
    assert found.share.least <= found.share.value <= found.share.most
    assert (found.lost, found.faults) == (0, ())


def test_packet_that_does_not_arrive_is_counted_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulation.run

    def losing(engine, spec, work_dir, *, on_delivery):
        arrived = 0

        def lose_the_hundredth(delivery):
            nonlocal arrived
            arrived += 1
            if arrived != 100:
                on_delivery(delivery)

        return run(engine, spec, work_dir, on_delivery=lose_the_hundredth)

    monkeypatch.setattr(simulation, "run", losing)
    assert throughput(ON_THE_MODEL, "throughput_voq_256", tmp_path, progress=silent).lost == 1


@pytest.mark.parametrize(
    ("figure", "kinds"),
    [
        ("latency_cycles", {"voq"}),
        ("throughput_fifo_2048", {"fifo"}),
        ("lost_packets", {"voq", "fifo"}),
        ("model_cycles_per_s", {"model"}),
        ("compare_ratio", {"voq", "model"}),
        ("smp_turnaround_cycles", {"voq"}),
        ("bringup_smps", {"voq", "model"}),
        ("amaranth_cycles_per_s", set()),
        ("routes_648_s", set()),
        *((figure, set()) for figure in WIDE_FIGURES),
    ],
)
def test_only_what_is_needed_is_built(figure: str, kinds: set[str]) -> None:
    calls = builds(Settings(), [figure])
    fabrics = [call.args[1] for call in calls if isinstance(call, partial)]
    queueing = {node.queueing for fabric in fabrics for node in fabric.nodes.values() if hasattr(node, "queueing")}
    assert queueing | ({"model"} if compiled_model.build in calls else set()) == kinds
    assert (verilation.library in calls) == bool(fabrics)


def test_no_figure_is_measured_on_what_has_not_been_built() -> None:
    unbuilt = [figure for figure in FIGURES if not builds(Settings(), [figure])]
    assert unbuilt == ["amaranth_cycles_per_s", *WIDE_FIGURES, "routes_648_s", "build_tree_s"]


def test_only_what_is_asked_for_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.suite.builds", lambda settings, wanted: [])
    result = benchmark(replace(ON_THE_MODEL, ports=2), ["latency_cycles"], tmp_path, silent)
    assert list(result.readings) == ["latency_cycles"]


def test_quick_leaves_out_what_takes_long(tmp_path: Path) -> None:
    assert benchmark(ON_THE_MODEL, NOT_QUICK, tmp_path, silent).readings == {}


def test_environment_is_as_before_when_a_build_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEFORE", "1")
    monkeypatch.delenv("ABSENT", raising=False)
    with environment({"BEFORE": "2", "ABSENT": "3"}):
        assert (os.environ["BEFORE"], os.environ["ABSENT"]) == ("2", "3")
    assert os.environ["BEFORE"] == "1"
    assert "ABSENT" not in os.environ


def measured(**values: float):
    """A benchmark that does not measure."""

    def instead(settings, asked, work_dir, progress):
        return Benchmark(settings, {name: Reading.once(values[name]) for name in asked if name in values})

    return instead


def test_figure_short_of_its_target_is_told_and_ends_with_status_1(capsys, monkeypatch) -> None:
    monkeypatch.setattr("ironband.bench.benchmark", measured(latency_cycles=9, cosim_ratio=0.9))
    assert main(["bench"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:5] for line in lines[1:3]] == [
        ["latency_cycles", "9", "cycles", "<=", "8"],
        ["cosim_ratio", "0.90", ">=", "0.7", "held"],
    ]
    assert "short" in lines[1]
    assert "short" not in lines[2]


def test_json_has_every_key_and_null_for_what_was_not_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ironband.bench.benchmark", measured(latency_cycles=7))
    target = tmp_path / "bench.json"
    assert main(["bench", "--seed", "5", "--json", str(target)]) == 0
    told = json.loads(target.read_text())
    assert set(told) >= KEYS
    assert set(FIGURES) <= set(told)
    assert (told["latency_cycles"], told["cosim_ratio"], told["seed"], told["held"]) == (7, None, 5, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "speed"], "'speed' is not one of"),
        (["--quick", "--only", "build36_s"], "--only build36_s: --quick does not measure it"),
        (["--growth", "--quick"], "--growth: measures something else"),
        (["--ports", "65"], "65 is not in the range 2<=x<=64"),
    ],
)
def test_bad_use_is_one_line_and_status_2(arguments: list[str], said: str, capsys) -> None:
    assert main(["bench", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_growth_tells_each_width(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("ironband.bench.growth", lambda ports, work_dir, seed: Growth(ports, 10**6, 1, 2, 3, 4000))
    target = tmp_path / "growth.json"
    assert main(["bench", "--growth", "--json", str(target)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split()[0]) for line in lines[1:]] == list(PORTS)
    assert lines[1].split()[1:] == ["1.0", "1.0", "2.0", "3.0", "4,000"]
    assert [width["ports"] for width in json.loads(target.read_text())["widths"]] == list(PORTS)


def test_amaranths_simulator_is_timed_to_the_end_of_a_short_run(tmp_path: Path) -> None:
    experiment = replace(scenario_experiment(uniform_load(2, cycles=1)), cycles=5)
    with amaranth_ready(experiment, 0, tmp_path) as rate:
        assert 0 < rate(1e9) < 1e6


def test_amaranths_simulator_that_never_comes_to_the_traffic_is_told(tmp_path: Path) -> None:
    experiment = replace(scenario_experiment(uniform_load(2, cycles=1)), cycles=5)
    with pytest.raises(SimulationFailed, match="before cycle 6"), amaranth_ready(experiment, 6, tmp_path):
        pass


@pytest.mark.slow
def test_bare_loop_does_what_cocotb_does(tmp_path: Path) -> None:
    experiment = scenario_experiment(uniform_load(2, cycles=3_000))
    bare = BareLoop.prepared(experiment.spec(), tmp_path / "bare")
    assert bare.run() > 0
    with simulation.run("verilator", experiment.spec(), tmp_path / "cocotb") as run:
        assert list(read_trace(bare.trace)) == list(run)


@pytest.mark.slow
def test_speed_and_memory_are_measured_on_the_rtl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "speed_cycles", 3_000)
    monkeypatch.setattr(Settings, "memory_cycles", 2_000)
    asked = ["cosim_cycles_per_s", "bare_cycles_per_s", "cosim_ratio", "compare_ratio", "peak_rss_mb"]
    result = benchmark(Settings(ports=2, quick=True), asked, tmp_path, silent)
    assert list(result.readings) == asked
    assert result.faults == []
    assert all(reading.least > 0 for reading in result.readings.values())
