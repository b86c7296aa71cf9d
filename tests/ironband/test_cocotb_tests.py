"""cocotb tests that users run from Python."""

from pathlib import Path

import pytest

import ironband

VERILOG = "module beat (input clk);\nendmodule\n"
TESTS = """\
import cocotb
from cocotb.triggers import Timer


@cocotb.test()
async def nothing_lasts(dut):
    await Timer(3, "ns")
    assert dut.clk.value == "1", "the clock stands"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "beat.v").write_text(VERILOG)
    (tmp_path / "cocotb_beat.py").write_text(TESTS)
    return tmp_path / "cocotb_beat.py"


def test_a_test_that_fails_is_named_with_its_assertion_and_its_log(file, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(
        ironband.UserError, match=r"1 of 1 tests failed: nothing_lasts: the clock stands.*; its log is /"
    ):
        ironband.run_cocotb(file, sources=[file.with_name("beat.v")], top="beat")


def test_a_test_that_holds_is_given_back_with_its_time(file):
    file.write_text(TESTS.replace('"1"', '"Z"'))
    (result,) = ironband.run_cocotb(file, sources=[file.with_name("beat.v")], top="beat")
    assert (result.name, result.simulated_ns) == ("nothing_lasts", 3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"simulator": "model"}, "simulator 'model': expected one of verilator, icarus"),
        ({"file": "nowhere.py"}, "nowhere.py: expected a file of Python with cocotb tests"),
        ({"sources": ["nowhere.v"]}, "nowhere.v: No such file or directory"),
        ({"waves": "run.vcd"}, r"run.vcd"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(file, wrong, said):
    asked = {"file": file, "simulator": "icarus", "sources": [file.with_name("beat.v")], "top": "beat"} | wrong
    with pytest.raises(ironband.UserError) as error:
        ironband.run_cocotb(asked.pop("file"), asked.pop("simulator"), **asked)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_design_that_is_none_is_told_by_the_simulator(file):
    with pytest.raises(ironband.UserError, match="beet"):
        ironband.run_cocotb(file, sources=[file.with_name("beat.v")], top="beet")


def test_two_sources_of_one_name_are_not_told_apart(file):
    with pytest.raises(ironband.UserError, match=r"another name, as two sources are called beat\.v"):
        ironband.run_cocotb(file, sources=[file.with_name("beat.v")] * 2, top="beat")
