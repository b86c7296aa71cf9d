"""What may lie where in a placed design."""

import pytest

from verilog.synth.placed import Unit

from .placed_examples import Placed, bels

TILE = 10, 20
OTHER = 11, 20


def unit(design, placed, name):
    return design.unit_of[placed.names().index(name)]


def goes(tmp_path, placed, name, tile, place):
    """Whether a cell's unit may go to a place, and where all lie then."""
    design = placed.read(tmp_path)
    moved = unit(design, placed, name)
    others = design.in_the_way(moved, tile, place)
    done = others is not None and design.exchange(moved, tile, place, others)
    design.write(tmp_path / "then.json")
    before, then = (bels(tmp_path / file) for file in ("placed.json", "then.json"))
    assert done or then == before
    return done, then


@pytest.mark.parametrize(
    ("own", "other", "place", "may"),
    [
        ({}, {}, 1, True),
        ({"reset": "r"}, {}, 7, False),
        ({"reset": "r"}, {"reset": "q"}, 7, False),
        ({"reset": "r"}, {"reset": "r"}, 7, True),
        ({"enable": "e"}, {}, 1, False),
        ({"enable": "e"}, {}, 2, True),
        ({"enable": "e"}, {"enable": "e"}, 1, True),
        ({"enable": "e"}, {"enable": "f"}, 1, False),
    ],
)
def test_registers_of_a_tile_share_a_reset_and_those_of_a_slice_an_enable(own, other, place, may, tmp_path):
    placed = Placed()
    placed.register("a", OTHER, "A0", "x", **own)
    placed.register("b", TILE, "A0", "x", **other)
    done, then = goes(tmp_path, placed, "a", TILE, place)
    assert done is may
    assert then["a"] == (f"X10/Y20/SLICE{'ABCD'[place // 2]}.FF{place % 2}" if may else "X11/Y20/SLICEA.FF0")


def test_a_lut_takes_its_register_with_it_and_what_is_in_the_way_comes_back(tmp_path):
    placed = Placed()
    placed.lut("f", OTHER, "B1", "x")
    placed.register("a", OTHER, "B1", "f", by="DI")
    placed.lut("g", TILE, "C0", "x")
    placed.register("b", TILE, "C0", "x")
    placed.lut("user", TILE, "A0", "g", "b")
    placed.register("c", TILE, "A0", "user", by="DI")
    done, then = goes(tmp_path, placed, "f", TILE, 4)
    assert done
    assert (then["f"], then["a"]) == ("X10/Y20/SLICEC.K0", "X10/Y20/SLICEC.FF0")
    assert (then["g"], then["b"]) == ("X11/Y20/SLICEB.K1", "X11/Y20/SLICEB.FF1")


def test_what_gives_way_has_to_be_allowed_too(tmp_path):
    placed = Placed()
    placed.register("a", OTHER, "A0", "x", reset="r")
    placed.register("beside", OTHER, "B0", "x", reset="r")
    placed.register("b", TILE, "A0", "x")
    done, _ = goes(tmp_path, placed, "a", TILE, 0)
    assert not done


def test_carry_chains_and_lut_ram_stay(tmp_path):
    placed = Placed()
    placed.lut("carry", TILE, "A0", "x", mode="CCU2")
    placed.register("sum", TILE, "A0", "carry", by="DI")
    placed.lut("ram", OTHER, "A0", "x", mode="DPRAM")
    placed.register("read", OTHER, "A0", "ram", by="DI")
    design = placed.read(tmp_path)
    assert not any(design.unit_of)
    assert design.tiles_for(Unit((1,), single=True)) == {TILE}


@pytest.mark.parametrize(("place", "may"), [(0, False), (1, True)])
def test_what_lies_with_lut_ram_may_leave_but_nothing_comes_there_in_its_place(place, may, tmp_path):
    placed = Placed()
    placed.lut("ram", OTHER, "A0", "x", mode="DPRAM")
    placed.lut("f", OTHER, "D0", "x")
    placed.register("a", OTHER, "D0", "f", by="DI")
    placed.register("b", TILE, "A0", "x")
    done, then = goes(tmp_path, placed, "a", TILE, place)
    assert done is may
    assert then["b"] == "X10/Y20/SLICEA.FF0"
    assert then["f"] == ("X10/Y20/SLICEA.K1" if may else "X11/Y20/SLICED.K0")


@pytest.mark.parametrize(("letter", "may"), [("B", True), ("A", False)])
def test_multiplexers_change_places_with_what_fits_where_they_were(letter, may, tmp_path):
    placed = Placed()
    placed.multiplexer("f", OTHER, "B", "x", "y", "z")
    placed.register("a", OTHER, "B0", "f", by="DI")
    placed.multiplexer("g", TILE, letter, "x", "y", "z")
    placed.register("b", TILE, f"{letter}0", "g", by="DI")
    placed.lut("user", TILE, "D0", "a", "b")
    placed.register("c", TILE, "D0", "user", by="DI")
    if not may:
        placed.multiplexer("h", TILE, "B", "x", "y", "z")
        placed.multiplexer("wider", TILE, "C", "x", "y", "z", wider="h")
        placed.register("d", TILE, "C0", "wider", by="DI")
    done, then = goes(tmp_path, placed, "a", TILE, 0)
    assert done is may
    assert then["f"] == ("X10/Y20/SLICEB.K0" if may else "X11/Y20/SLICEB.K0")
    assert then["g"] == ("X11/Y20/SLICEB.K0" if may else "X10/Y20/SLICEA.K0")


def test_all_that_is_written_is_to_stay_where_it_is(tmp_path):
    placed = Placed()
    placed.block_ram("ram", (4, 22), DOB0="bit")
    placed.register("a", TILE, "D1", "bit")
    placed.read(tmp_path).write(tmp_path / "then.json")
    assert bels(tmp_path / "then.json") == {"ram": "X4/Y22/EBR0", "a": "X10/Y20/SLICED.FF1"}
    assert (tmp_path / "then.json").read_text().count(f'"BEL_STRENGTH": "{5:032b}"') == 2
