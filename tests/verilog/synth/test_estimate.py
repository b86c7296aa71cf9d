"""When signals arrive, as nextpnr 0.11.1 estimates it of registers and LUTs that were given their places."""

import pytest

from verilog.synth.estimate import Estimate

from .placed_examples import Placed

HERE = 20, 30
THERE = 60, 60


def shortest_period(placed, tmp_path):
    """Of a placed design, in ns."""
    return 100 - Estimate(placed.read(tmp_path), 100, "8").worst()


@pytest.mark.parametrize(
    ("tile", "period"),
    [
        ((20, 30), 0.767),
        ((21, 30), 0.891),
        ((22, 30), 1.015),
        ((25, 30), 1.387),
        ((26, 30), 1.449),
        ((30, 30), 1.697),
        ((60, 30), 3.557),
        ((20, 31), 0.891),
        ((20, 35), 1.387),
        ((20, 50), 2.317),
        ((60, 60), 5.727),
    ],
)
def test_from_register_to_register(tile, period, tmp_path):
    placed = Placed()
    placed.register("a", HERE, "A0")
    placed.register("b", tile, "C0", "a")
    assert shortest_period(placed, tmp_path) == pytest.approx(period)


@pytest.mark.parametrize(
    ("speed", "slower", "tile", "period"),
    [
        ("6", 1.31, (20, 30), 1.005),
        ("6", 1.31, (60, 30), 4.605),
        ("7", 1.16, (20, 30), 0.886),
        ("7", 1.16, (60, 30), 4.081),
    ],
)
def test_other_grades_are_slower(speed, slower, tile, period, tmp_path):
    placed = Placed()
    placed.register("a", HERE, "A0")
    placed.register("b", tile, "C0", "a")
    slack = Estimate(placed.read(tmp_path), 100, speed).worst()
    assert 100 - slack * slower == pytest.approx(period, abs=0.01)


@pytest.mark.parametrize(
    ("first", "second", "period"),
    [("B0", "C0", 6.087), ("B1", "D0", 6.087), ("D1", "B1", 6.087), ("A1", "C0", 6.459), ("D0", "A0", 6.459)],
)
def test_luts_of_a_tile_have_short_ways_but_from_two_places(first, second, period, tmp_path):
    placed = Placed()
    placed.register("a", HERE, "A0")
    placed.lut("b", THERE, first, "a")
    placed.lut("c", THERE, second, "b")
    placed.register("d", THERE, second, "c", by="DI")
    assert shortest_period(placed, tmp_path) == pytest.approx(period)


@pytest.mark.parametrize(("place", "period"), [("A0", 0.575), ("B0", 0.947)])
def test_a_register_has_a_short_way_to_the_lut_beside_it(place, period, tmp_path):
    placed = Placed()
    placed.register("a", HERE, "A0")
    placed.lut("b", HERE, place, "a")
    placed.register("c", HERE, place, "b", by="DI")
    assert shortest_period(placed, tmp_path) == pytest.approx(period)


def test_a_block_ram_takes_a_third_of_80_mhz_to_answer(tmp_path):
    placed = Placed()
    placed.block_ram("ram", HERE, DOB0="bit")
    placed.register("a", HERE, "A0", "bit")
    assert shortest_period(placed, tmp_path) == pytest.approx(4.263 + 6 * 0.062)
