"""The build layer: builds are made once, runs pass only with results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import pywellen
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from cosim.simulators import installed
from cosim.simulators.build import BuildFailed, build
from cosim.simulators.cocotb_results import SimulationFailed
from cosim.simulators.regression import run
from toolchain import build_cache
from toolchain.process import ProcessTimeout
from verilog.emit import to_verilog

SIMULATORS = ["verilator", "icarus"]
TESTS = "tests.cosim.simulators.cocotb_counter"
PUBLIC = ["posted", "enable", "count", "cycles", "clk"]

pytestmark = pytest.mark.slow


class Counter(wiring.Component):
    enable: In(1)
    count: Out(32)

    def elaborate(self, platform):
        m = Module()
        steps = Signal(32)
        with m.If(self.enable):
            m.d.sync += steps.eq(steps + 1)
        m.d.comb += self.count.eq(steps)
        return m


def built(simulator, **options):
    sources = {
        "counter.v": to_verilog(Counter(), "counter"),
        "counter_top.v": Path(__file__).with_name("counter_top.v").read_text(),
    }
    return build(simulator, sources, "counter_top", public=PUBLIC, **options)


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_clock_runs_inside_the_simulator(simulator, tmp_path):
    (passed,) = run(built(simulator), TESTS, tmp_path)
    assert passed.name == "counts"
    assert passed.simulated_ns == 402


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_waves_show_the_nets_that_somebody_named(simulator, tmp_path):
    waves = tmp_path / "waves.fst"
    run(built(simulator, waves=True), TESTS, tmp_path, waves=waves)
    names = {variable.full_name.rpartition(".")[2] for variable in pywellen.Waveform(str(waves)).all_vars()}
    assert names >= {"steps", "enable", "count"}
    assert [name for name in names if name.startswith("_")] == []


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_failing_test_is_reported(simulator, tmp_path):
    with pytest.raises(SimulationFailed, match=r"1 of \d tests failed: fails_on_purpose.*broken on purpose"):
        run(built(simulator), TESTS, tmp_path, extra_env={"BREAK": "1"})


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_no_tests_is_a_failure(simulator, tmp_path):
    with pytest.raises(SimulationFailed, match="no test was found"):
        run(built(simulator), TESTS, tmp_path, testcase="nothing_of_this_name")


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_packets_go_in_and_records_come_out_by_file(simulator, tmp_path):
    (tmp_path / "packets.bin").touch()
    plusargs = ["+packets=packets.bin", "+trace=trace.bin"]
    run(built(simulator), TESTS, tmp_path, testcase="mail", plusargs=plusargs, extra_env={"MAIL": "1"})


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_second_build_is_found_and_runs_no_tool(simulator, monkeypatch):
    first = built(simulator)
    for module in ("build", "verilation"):
        monkeypatch.setattr(f"cosim.simulators.{module}.run_tool", lambda *call: pytest.fail(f"runs {call}"))
    assert built(simulator) == first


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_waves_have_the_names_of_the_source(simulator, tmp_path):
    waves = tmp_path / "counter.fst"
    run(built(simulator, waves=True), TESTS, tmp_path, waves=waves)
    variables = {variable.full_name: variable for variable in pywellen.Waveform(str(waves)).all_vars()}
    assert variables["counter_top.counter.steps"].signal.value_at(401_000) == 100


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_bad_verilog_is_refused_and_leaves_nothing(simulator, tmp_path, monkeypatch):
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path))  # builds of other workers come and go in the shared one
    with pytest.raises(BuildFailed, match=r"broken\.v"):
        build(simulator, {"broken.v": "module broken; nonsense endmodule"}, "broken")
    assert [entry.name for entry in (tmp_path / simulator).iterdir() if not entry.name.endswith(".lock")] == []


@pytest.mark.parametrize(("simulator", "tool"), [("icarus", "iverilog"), ("verilator", "g++")])
def test_missing_simulator_is_named_with_its_package(simulator, tool, monkeypatch):
    monkeypatch.setattr(installed.shutil, "which", lambda name, path=None: None if name == tool else name)
    with pytest.raises(installed.SimulatorMissing, match=rf"{tool.replace('+', '.')} is missing, .* package `"):
        installed.require(simulator)


def test_run_that_takes_too_long_is_ended(tmp_path):
    with pytest.raises(ProcessTimeout, match="longer than"):
        run(
            built("icarus"),
            TESTS,
            tmp_path,
            testcase="sleeps_long",
            extra_env={"CYCLES": str(10**9)},
            timeout_seconds=1.5,
        )


def test_waves_need_a_build_for_waves(tmp_path):
    with pytest.raises(ValueError, match="cannot record waves"):
        run(built("verilator"), TESTS, tmp_path, waves=tmp_path / "w.fst")


def test_processes_that_want_the_same_build_share_it(tmp_path):
    """Eight at once: one builds, all get the same directory, nothing is left over."""
    script = (
        "import sys, time, pathlib\n"
        "from toolchain.build_cache import cached\n"
        "def fill(directory):\n"
        "    time.sleep(0.3)\n"
        "    (directory / 'made').write_text('x')\n"
        "    with open(sys.argv[1], 'a') as file: file.write('built\\n')\n"
        "print(cached('kind', {'key': 1}, fill))\n"
    )
    environment = os.environ | {"IRONBAND_SIM_BUILD": str(tmp_path / "build")}
    command = [sys.executable, "-c", script, str(tmp_path / "count")]
    workers = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    answers = {worker.communicate()[0] for worker in workers}
    assert len(answers) == 1
    assert (tmp_path / "count").read_text() == "built\n"
    assert [path.name for path in (tmp_path / "build" / "kind").iterdir() if path.is_dir()] == [
        Path(answers.pop().strip()).name
    ]


def test_interrupted_build_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path))

    def fill(directory):
        (directory / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_cache.cached("kind", {"key": 1}, fill)
    assert not [path for path in (tmp_path / "kind").iterdir() if path.is_dir()]


def test_builds_that_nobody_asks_for_go_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path))
    forgotten, asked_for = (build_cache.cached("kind", {"key": key}, lambda directory: None) for key in (1, 2))
    for made_long_ago in (tmp_path / "kind").iterdir():
        os.utime(made_long_ago, (0, 0))
    assert build_cache.cached("kind", {"key": 2}, lambda directory: None) == asked_for
    made = build_cache.cached("kind", {"key": 3}, lambda directory: None)
    assert asked_for.is_dir()
    assert made.is_dir()
    assert not forgotten.exists()


def test_unwritable_build_folder_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path / "file"))
    with pytest.raises(build_cache.BuildDirectoryError, match="cannot write build output in"):
        build_cache.cached("kind", {"key": 1}, lambda directory: None)
