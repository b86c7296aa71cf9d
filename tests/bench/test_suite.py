"""The performance table: what it measures, and that it distinguishes bad from good."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.figures import FIGURES, Measured, Reading
from bench.settings import NOT_QUICK, Settings
from bench.suite import Benchmark, BenchmarkInterrupted, benchmark
from bench.throughput import LOST
from tests.bench.machines import ON_THE_MODEL, of_one, silent, speeds
from toolchain.build_cache import build_root


def judged(settings: Settings | None = None, compiled: float = 1.0, **values: float) -> Benchmark:
    """A benchmark that gave these values, on a machine so fast."""
    readings = {name: Reading.once(value) for name, value in values.items()}
    return Benchmark(readings, settings=settings or Settings(), speeds=speeds(compiled))


def test_head_of_line_theory_is_a_target_for_eight_ports_only() -> None:
    assert judged(Settings(ports=8), throughput_fifo_2048=0.9).missed == ["throughput_fifo_2048"]
    assert judged(Settings(ports=4), throughput_fifo_2048=0.9).missed == []


def test_quick_does_not_judge_what_it_measures_too_shortly() -> None:
    assert judged(Settings(quick=True), throughput_voq_2048=0.94).held
    assert not judged(throughput_voq_2048=0.94).held


def test_figure_without_a_target_or_a_value_is_neither_held_nor_missed() -> None:
    result = judged(bare_cycles_per_s=1)
    assert result.figure_held(FIGURES["bare_cycles_per_s"]) is None
    assert result.figure_held(FIGURES["cosim_ratio"]) is None
    assert result.held


def test_times_and_speeds_are_judged_by_the_machine_and_ratios_are_not() -> None:
    slow = {"model_block_hops_per_s": 530_000, "build36_s": 159, "cycles36_per_s": 1_828, "build_tree_s": 148}
    assert judged(compiled=1.0, **slow).missed == list(slow)
    assert judged(compiled=1 / 3.3, **slow).held
    assert judged(compiled=1 / 3.3, cosim_ratio=0.6).missed == ["cosim_ratio"]


def test_packets_that_several_steps_lost_add_up() -> None:
    result = judged()
    for lost in (1, 2):
        result.add(Measured({LOST: Reading.once(lost)}, [f"{lost} lost"]))
    assert result.readings[LOST] == Reading.once(3)
    assert result.faults == ["1 lost", "2 lost"]


def test_only_what_is_asked_for_is_measured_and_told_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.suite.builds", lambda settings, wanted: [])
    reported: list[tuple[str, int, int]] = []
    asked = ["latency_cycles", "model_cycles_per_s"]
    result = benchmark(
        replace(ON_THE_MODEL, ports=2), asked, tmp_path, lambda *progress: reported.append(progress), of_one()
    )
    assert list(result.readings) == asked
    assert reported[:3] == [
        ("builds", 0, 2),
        ("at the same time: latency", 0, 2),
        (f"latency_cycles {result.readings['latency_cycles'].value} cycles", 1, 2),
    ]
    assert [(text.split()[0], done) for text, done, _of in reported[3:]] == [("speed", 1), ("model_cycles_per_s", 2)]
    assert result.speeds["compiled"].calibration == Reading.once(1)


def test_what_was_measured_before_an_interruption_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.suite.builds", lambda settings, wanted: [])

    def interrupt(text: str, done: int, of: int) -> None:
        if text == "speed":
            raise KeyboardInterrupt

    asked = ["latency_cycles", "model_cycles_per_s"]
    with pytest.raises(BenchmarkInterrupted) as caught:
        benchmark(replace(ON_THE_MODEL, ports=2), asked, tmp_path, interrupt, of_one())
    assert list(caught.value.result.readings) == ["latency_cycles"]
    assert caught.value.result.figure_held(FIGURES["latency_cycles"]) is True


def test_quick_leaves_out_what_takes_long(tmp_path: Path) -> None:
    assert benchmark(ON_THE_MODEL, NOT_QUICK, tmp_path, silent, of_one()).readings == {}


def test_what_is_built_cold_is_built_in_a_folder_that_make_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[Path] = []
    monkeypatch.setattr("bench.suite.builds", lambda settings, wanted: [])
    monkeypatch.setattr("bench.subnets.fabric_design", lambda fabric: None)
    monkeypatch.setattr("bench.subnets.build_design", lambda simulator, design: places.append(build_root()))
    benchmark(Settings(), ["build_tree_s"], tmp_path, silent, of_one())
    (place,) = places
    assert " " not in str(place.relative_to(tmp_path))
