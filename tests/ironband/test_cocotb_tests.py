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


def test_what_a_file_raises_only_in_the_simulator_is_named(file, tmp_path, monkeypatch):
    """Its directory is another there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here = f"from pathlib import Path\nif str(Path.cwd()) != {str(Path.cwd())!r}: raise OSError('elsewhere')\n"
    file.write_text(here + TESTS)
    with pytest.raises(ironband.UserError, match="ended without results: OSError: elsewhere; its log is /"):
        ironband.run_cocotb(file, sources=[file.with_name("beat.v")], top="beat")


@pytest.mark.parametrize(("simulator", "undriven"), [("icarus", "Z"), ("verilator", "0")])
def test_a_test_that_holds_is_given_back_with_its_time(file, simulator, undriven):
    file.write_text(TESTS.replace('"1"', f'"{undriven}"'))
    (result,) = ironband.run_cocotb(file, simulator, sources=[file.with_name("beat.v")], top="beat")
    assert (result.name, result.simulated_ns) == ("nothing_lasts", 3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"simulator": "model"}, "simulator 'model': expected one of verilator, icarus"),
        ({"file": "nowhere.py"}, "nowhere.py: expected a file of Python with cocotb tests"),
        ({"sources": ["nowhere.v"]}, "nowhere.v: No such file or directory"),
        ({"waves": "run.vcd"}, r"run.vcd"),
        ({"waves": "/proc/run.fst"}, "directory /proc: cannot be written"),
        ({"top": "beet"}, "top beet: no such module; there are beat"),
        ({"sources": [Path(__file__).parents[2] / "docs/reach.png"]}, "byte 0 is not UTF-8, expected Verilog"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(file, wrong, said):
    asked = {"file": file, "simulator": "icarus", "sources": [file.with_name("beat.v")], "top": "beat"} | wrong
    with pytest.raises(ironband.UserError) as error:
        ironband.run_cocotb(asked.pop("file"), asked.pop("simulator"), **asked)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_two_sources_of_one_name_are_not_told_apart(file):
    with pytest.raises(ironband.UserError, match=r"another name, as two sources are called beat\.v"):
        ironband.run_cocotb(file, sources=[file.with_name("beat.v")] * 2, top="beat")


FABRIC = ironband.Fabric(ironband.SwitchParameters(ports=2, mtu=256, buffer_blocks=16, lft_size=16))
"""Other tests have it built."""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"simulator": "amaranth"}, "simulator 'amaranth': expected one of verilator, icarus"),
        ({"file": "beat.py"}, "beat.py: expected a file of Python with cocotb tests"),
        ({"open_at": ["H3"]}, "open_at H3: no such node; there are SW1, H1, H2"),
        ({"open_at": ["SW1[1]"]}, "open_at SW1[1]: is a port of a switch, expected hosts"),
        ({"only": "nothing"}, "only 'nothing': expected a test of "),
        ({"waves": "/proc/run.fst"}, "directory /proc: cannot be written"),
    ],
)
def test_what_no_fabric_can_run_is_said_in_one_line(file, wrong, said):
    asked = {"file": file, "simulator": "icarus"} | wrong
    with pytest.raises(ironband.UserError) as error:
        FABRIC.run_cocotb(asked.pop("file"), asked.pop("simulator"), **asked)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_without_tests_is_said_to_have_none(file):
    file.write_text("import cocotb\n")
    with pytest.raises(ironband.UserError, match=r"has no cocotb test, expected functions marked @cocotb\.test\(\)"):
        FABRIC.run_cocotb(file)


def test_waves_are_of_one_test(file):
    file.write_text(TESTS + TESTS.replace("nothing", "all"))
    with pytest.raises(ironband.UserError, match=r"expected only, one of nothing_lasts, all_lasts, as each is"):
        FABRIC.run_cocotb(file, waves="run.fst")


OF_A_FABRIC = """\
import cocotb
import pytest

from ironband.drivers import FabricDriver


@cocotb.test()
async def comes_too_late(dut):
    fabric = await FabricDriver.start(dut)
    with pytest.raises(KeyError, match="H3: no such host; there are H1, H2"):
        fabric.lid("H3")
    await fabric.cycles(500)
    with pytest.raises(RuntimeError, match=r"bring-up in cycle 49\\d: expected before cycle \\d+"):
        await fabric.bring_up()
"""


@pytest.mark.slow
def test_a_fabric_is_brought_up_in_time_or_not_at_all(file, tmp_path):
    file.write_text(OF_A_FABRIC)
    waves = tmp_path / "run.fst"
    (result,) = FABRIC.run_cocotb(file, waves=waves)
    assert (result.name, round(result.simulated_ns)) == ("comes_too_late", 2_000)
    assert waves.stat().st_size > 1_000
