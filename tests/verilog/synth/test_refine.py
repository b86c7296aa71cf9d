"""What is late is moved until it is in time, if it can be."""

from verilog.synth.estimate import Estimate
from verilog.synth.placed import PlacedDesign
from verilog.synth.refine import refine

from .placed_examples import Placed, bels

NEAR, MIDDLE, FAR = (10, 20), (40, 20), (70, 20)


def refined(placed, tmp_path, period):
    """How many units moved; slack before and after; where all lie."""
    before = placed.write(tmp_path / "placed.json")
    count = refine(before, tmp_path / "refined.json", period=period, speed="8")
    slack, after = (Estimate(PlacedDesign(file), period, "8").worst() for file in (before, tmp_path / "refined.json"))
    return count, slack, after, bels(tmp_path / "refined.json")


def in_a_row():
    """Three LUTs farther from a block RAM than the carry chain that they lead to."""
    placed = Placed()
    placed.block_ram("ram", NEAR, DOB0="bit")
    for number, place in enumerate(("A0", "B0", "C0")):
        placed.lut(f"f{number}", (22, 20), place, f"f{number - 1}" if number else "bit")
    placed.lut("carry", (12, 22), "A0", "f2", mode="CCU2")
    placed.register("sum", (12, 22), "A0", "carry", by="DI")
    return placed


def test_a_register_that_lies_off_its_path_comes_to_it(tmp_path):
    placed = Placed()
    placed.block_ram("ram", NEAR, DOB0="bit")
    placed.register("stray", FAR, "A0", "bit")
    placed.lut("f", (12, 21), "A0", "stray")
    placed.register("end", (12, 21), "A0", "f", by="DI")
    placed.register("there", (11, 20), "A0", "stray")
    count, before, after, where = refined(placed, tmp_path, 6.0)
    assert before < 0 < after
    assert count >= 1
    assert int(where["stray"][1:].partition("/")[0]) < 30


def test_luts_in_a_row_go_together_where_none_gains_alone(tmp_path):
    placed = in_a_row()
    placed.register("idle", (14, 20), "D1", "x")
    _, before, after, where = refined(placed, tmp_path, 7.0)
    assert before < 0 < after
    assert all(where[f"f{number}"].startswith("X14/Y20/") for number in range(3))


def test_a_block_ram_changes_places_with_one_that_has_time(tmp_path):
    placed = Placed()
    placed.block_ram("late", FAR, DOB0="bit")
    placed.lut("carry", (12, 22), "A0", "bit", mode="CCU2")
    placed.register("sum", (12, 22), "A0", "carry", by="DI")
    placed.block_ram("other", NEAR, DOB0="nothing")
    _, before, after, where = refined(placed, tmp_path, 7.0)
    assert before < 0 < after
    assert where["late"] == "X10/Y20/EBR0"
    assert where["other"] == "X70/Y20/EBR0"


def test_what_is_in_time_stays_and_what_cannot_move_is_left(tmp_path):
    placed = Placed()
    placed.register("a", NEAR, "A0", "x")
    placed.register("b", MIDDLE, "A0", "a")
    count, *_, where = refined(placed, tmp_path, 20.0)
    assert count == 0
    assert where == {"a": "X10/Y20/SLICEA.FF0", "b": "X40/Y20/SLICEA.FF0"}

    placed = Placed()
    placed.lut("carry", NEAR, "A0", "x", mode="CCU2")
    placed.register("a", NEAR, "A0", "carry", by="DI")
    placed.lut("other", FAR, "A0", "a", mode="CCU2")
    placed.register("b", FAR, "A0", "other", by="DI")
    count, before, after, _ = refined(placed, tmp_path, 2.0)
    assert count == 0
    assert before == after < 0


def test_what_gives_way_may_be_late_for_a_while_but_less_than_what_moved_was(tmp_path):
    placed = Placed()
    placed.block_ram("ram", NEAR, DOB0="bit")
    placed.register("late", FAR, "A0", "bit")
    placed.register("source", (30, 20), "A0", "x")
    for place in range(8):
        placed.register(f"user_{place}", (11, 20), f"{'ABCD'[place // 2]}{place % 2}", "source")
    _, before, after, where = refined(placed, tmp_path, 3.5)
    assert before < after < 0
    assert where["late"].startswith("X11/Y20/")


def test_the_last_of_a_row_goes_beside_the_others_where_there_is_no_room_for_it(tmp_path):
    placed = in_a_row()
    for tile, free in (((14, 20), ("A0", "B0")), ((12, 22), ("A0",))):
        for place in (f"{letter}{number}" for letter in "ABCD" for number in range(2)):
            if place not in free:
                placed.lut(f"fixed_{tile}_{place}", tile, place, "x", mode="CCU2")
                placed.register(f"user_{tile}_{place}", tile, place, f"fixed_{tile}_{place}", by="DI")
    placed.register("idle", (15, 21), "D1", "x")
    _, before, after, where = refined(placed, tmp_path, 7.5)
    assert before < 0 < after
    assert [where[f"f{number}"].partition("/S")[0] for number in range(3)] == ["X14/Y20", "X14/Y20", "X15/Y21"]
