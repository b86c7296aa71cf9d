"""Exported switches, made once, and runs of their test benches."""

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from cosim.simulators.installed import environment
from tests.verilog.netlists import Once
from tests.verilog.switches import SMALL, SMALLEST
from verilog.emit import merged_rtlil, rtlil_to_verilog
from verilog.export.names import give_plain_names
from verilog.export.package import switch_package
from verilog.export.rtlil import parse
from verilog.export.switch_name import PARTNER, TEST_BENCH, TOP
from verilog.export.tidy import tidy
from wire.parameters import SwitchParameters

from .counters import Pair


@dataclass(frozen=True)
class BenchRun:
    """How a run of the test bench ended, and all that it and its compiler printed."""

    status: int
    compiler: str
    text: str

    @property
    def verdict(self) -> str:
        return self.text.splitlines()[-1]


def run_bench(files: Mapping[str, str], directory: Path, *plusargs: str) -> BenchRun:
    for name, text in files.items():
        (directory / name).write_text(text)
    sources = [f"{TEST_BENCH}.v", f"{PARTNER}.v", f"{TOP}.v"]
    compiler = ["iverilog", "-g2005", "-Wall", "-s", TEST_BENCH, "-o", "bench.vvp", *sources]
    said = subprocess.run(compiler, cwd=directory, capture_output=True, text=True, check=True)
    return run_again(directory, *plusargs, compiler=said.stdout + said.stderr)


def run_again(directory: Path, *plusargs: str, compiler: str = "") -> BenchRun:
    """A run of the test bench that was compiled there."""
    ran = subprocess.run(["vvp", "-n", "bench.vvp", *plusargs], cwd=directory, capture_output=True, text=True)
    return BenchRun(ran.returncode, compiler, ran.stdout)


@pytest.fixture(scope="session")
def exported(once: Once) -> Callable[[SwitchParameters], Mapping[str, str]]:
    """Exports a switch: it takes longer than a run of its test bench."""
    return lambda parameters: json.loads(
        once("exported", parameters, lambda: json.dumps(dict(switch_package(parameters).files)))
    )


@pytest.fixture(scope="session")
def small(exported) -> Mapping[str, str]:
    """The files of a switch of three ports."""
    return exported(SMALL)


@pytest.fixture(scope="session")
def smallest(exported) -> Mapping[str, str]:
    """The files of a switch of two ports, where the test bench ends sooner."""
    return exported(SMALLEST)


@pytest.fixture(scope="session")
def benched(
    exported: Callable[[SwitchParameters], Mapping[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[SwitchParameters], BenchRun]:
    """Runs the test bench of an exported switch, as they are, once for all that look at it."""
    return cache(lambda parameters: run_bench(exported(parameters), tmp_path_factory.mktemp("benched")))


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., BenchRun]:
    """Runs the test bench of an export's files."""
    return lambda files, *plusargs: run_bench(files, tmp_path, *plusargs)


@pytest.fixture
def lint(tmp_path: Path) -> Callable[..., str]:
    """What Verilator's lint says of an export's files."""

    def run(files: Mapping[str, str], *arguments: str) -> str:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        command = ["verilator_bin", "--lint-only", "-Wall", "-Wno-fatal", "--top-module", TOP, *arguments, f"{TOP}.v"]
        variables = environment("verilator")
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True).stderr

    return run


@pytest.fixture(scope="session")
def pair() -> str:
    """The exported Verilog of two counters."""
    modules = parse(merged_rtlil(Pair(), "pair"))
    give_plain_names(modules, {"\\total": "\\sum"})
    return tidy(rtlil_to_verilog("\n".join(map(str, modules.values()))))
