"""A precompiled module is evaluated only in cycles that could change something."""

import subprocess
from pathlib import Path

import cosim.simulators

HERE = Path(__file__).parent
HEADER = Path(cosim.simulators.__file__).with_name("called_module.h")


def test_a_module_that_rests_is_not_evaluated_until_an_input_changes(tmp_path):
    program = tmp_path / "program"
    source = HERE / "called_module.cpp"
    subprocess.run(["g++", "-std=gnu++14", f"-I{HEADER.parent}", "-o", program, source], check=True)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    counting, first_rest, woken, second_rest, toggling, count = map(int, told.split())
    assert counting == 100
    # A change, and then as many cycles as it looks behind.
    assert first_rest == counting + 17
    assert woken == first_rest + 1
    assert second_rest == woken + 17
    # What is the same in every other cycle does not rest.
    assert toggling == second_rest + 100
    assert count == 101
