"""The command that prints the performance table."""

import json

import pytest

from bench.figures import FIGURES, Reading
from bench.growth import Growth
from bench.settings import WIDTHS
from bench.suite import Benchmark, BenchmarkInterrupted
from ironband import main
from tests.bench.machines import speeds

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


def measured(**values: float):
    """A benchmark that does not measure."""

    def instead(settings, asked, work_dir, progress, calibration):
        progress("latency", 0, 2)
        readings = {name: Reading.once(values[name]) for name in asked if name in values}
        return Benchmark(readings, settings=settings, speeds=speeds(compiled=0.5))

    return instead


@pytest.fixture(autouse=True)
def no_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironband.bench_report.loops", dict)


def test_figure_short_of_its_target_is_told_and_ends_with_status_1(capsys, monkeypatch) -> None:
    monkeypatch.setattr("ironband.bench_report.benchmark", measured(latency_cycles=9, cosim_ratio=0.9))
    assert main(["bench"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:5] for line in lines[1:3]] == [
        ["latency_cycles", "9", "cycles", "<=", "8"],
        ["cosim_ratio", "0.90", ">=", "0.7", "held"],
    ]
    assert "short" in lines[1]
    assert "short" not in lines[2]


def test_json_has_every_key_and_null_for_what_was_not_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ironband.bench_report.benchmark", measured(latency_cycles=7))
    target = tmp_path / "bench.json"
    assert main(["bench", "--seed", "5", "--json", str(target)]) == 0
    written = json.loads(target.read_text())
    assert set(written) >= KEYS
    assert set(FIGURES) <= set(written)
    assert (written["latency_cycles"], written["cosim_ratio"], written["seed"], written["held"]) == (7, None, 5, True)
    assert written["calibration"]["compiled"] == {
        "factor": 0.5,
        "factor_spread": [0.5, 0.5],
        "loop_s": 2.0,
        "reference_s": 1.0,
    }
    assert (written["targets"]["build36_s"], written["targets_here"]["build36_s"]) == ("<= 90", "<= 180")


def test_target_is_shown_as_written_and_as_it_is_here(capsys, monkeypatch) -> None:
    monkeypatch.setattr("ironband.bench_report.benchmark", measured(build36_s=159, cosim_ratio=0.9))
    assert main(["bench"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1].startswith("cosim_ratio 0.90 >= 0.7 held")
    assert lines[2].startswith("build36_s 159.0 s <= 90 <= 180 held")
    assert lines[4].startswith("calibration, compiled: 0.50")


def test_progress_goes_to_standard_error_without_a_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setattr("ironband.bench_report.benchmark", measured(latency_cycles=8))
    assert main(["bench"]) == 0
    captured = capsys.readouterr()
    assert [line.split()[1:] for line in captured.err.splitlines()] == [["s", "latency"]]
    assert " s  latency" not in captured.out


def test_an_interrupted_benchmark_tells_what_it_has_measured(tmp_path, capsys, monkeypatch) -> None:
    def interrupted(settings, asked, work_dir, progress, calibration):
        raise BenchmarkInterrupted(Benchmark({"latency_cycles": Reading.once(8)}, settings=settings))

    monkeypatch.setattr("ironband.bench_report.benchmark", interrupted)
    target = tmp_path / "bench.json"
    assert main(["bench", "--json", str(target)]) == 130
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].split()[:2] == ["latency_cycles", "8"]
    assert captured.err == "ironband: interrupted\n"
    found = json.loads(target.read_text())
    assert (found["latency_cycles"], found["cosim_ratio"]) == (8, None)


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
    growth = "ironband.bench_report.growth"
    monkeypatch.setattr(growth, lambda ports, work_dir, seed: Growth(ports, 10**6, 1, 2, 3, 4000))
    target = tmp_path / "growth.json"
    assert main(["bench", "--growth", "--json", str(target)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split()[0]) for line in lines[1:]] == list(WIDTHS)
    assert lines[1].split()[1:] == ["1.0", "1.0", "2.0", "3.0", "4,000"]
    assert [width["ports"] for width in json.loads(target.read_text())["widths"]] == list(WIDTHS)
