"""What is being built is told to those who wait, block by block, and its end also where it failed."""

import pytest

from toolchain.building import BuildStage, building, told_of_builds


def test_a_build_is_told_block_by_block_until_it_has_ended() -> None:
    told: list[str] = []
    with told_of_builds(lambda stage: told.append(str(stage))), building("Verilog", 2, 9.4) as built:
        built()
        built()
    assert told == [
        "building Verilog (0 of 2 blocks, about 9 s, once)",
        "building Verilog (1 of 2 blocks, about 9 s, once)",
        "building Verilog (2 of 2 blocks, about 9 s, once)",
        "None",
    ]


def test_a_build_that_fails_has_ended() -> None:
    told: list[BuildStage | None] = []
    with pytest.raises(RuntimeError), told_of_builds(told.append), building("Verilog", 2, 9):
        raise RuntimeError
    assert told == [BuildStage("Verilog", 2, 9), None]


def test_nobody_is_told_who_waits_no_more() -> None:
    told: list[BuildStage | None] = []
    with told_of_builds(told.append):
        pass
    with building("Verilog", 1, 1) as built:
        built()
    assert told == []
