"""A design as nextpnr has placed it on an ECP5: what lies where, what is joined to what, and what may lie elsewhere.

A tile of logic has eight places, two to a slice, each for a LUT and a register. A register takes what the LUT beside it
makes (pin DI), or anything (M). What nextpnr asks of a tile is written down in `PlacedDesign.allows`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["BLOCK_RAM", "COMB", "FF", "Arc", "PlacedDesign", "Unit"]

COMB: Final = "TRELLIS_COMB"
"""A LUT, or what becomes of one: half a carry cell, four words of LUT RAM, a LUT with a multiplexer behind it."""
FF: Final = "TRELLIS_FF"
BLOCK_RAM: Final = "DP16KD"
_PLACES: Final = 8
"""Of a tile."""
_BEST: Final = (0, 2, 3, 4, 5, 7, 1, 6)
"""Those with short ways to others first."""

_BEL = "NEXTPNR_BEL"
_STRENGTH = "BEL_STRENGTH"
_LOCKED = f"{5:032b}"
"""nextpnr's STRENGTH_LOCKED: it stays where it is."""
_IN_TILE = re.compile(r"X(\d+)/Y(\d+)/SLICE([A-D])\.(K|FF)([01])")
_ELSEWHERE = re.compile(r"X(\d+)/Y(\d+)/")
_CLOCKS = frozenset(("CLK", "CLKA", "CLKB", "WCK"))
_CONSTANTS = "$PACKER_"
_RAM = frozenset(("DPRAM", "RAMW_BLOCK"))
_JOINED = frozenset(("DI", "F1", "FXA", "FXB", "FCI"))
"""Pins that only a cell at a certain place beside has a wire to."""

_Place = tuple[int, int, int]
"""Column and row of a tile, and a place in it; 0 for what is in no tile of logic."""

_Control = tuple[Any, ...]


@dataclass(frozen=True)
class Arc:
    """From an output of a cell to an input of another. Cells go by their numbers."""

    source: int
    output: str
    sink: int
    input: str


@dataclass(frozen=True)
class Unit:
    """Cells of one tile that stay together: a LUT, a register, a LUT with its register, LUTs and their multiplexers; or
    a block RAM, which is alone where it is.

    Attributes:
        single: all are at the same place of a tile, which may be any. Others may not change their places in a tile.
    """

    cells: tuple[int, ...]
    single: bool


class PlacedDesign:
    """Cells by their numbers.

    Attributes:
        types: of each cell.
        places: of each; to be changed by `exchange` alone.
        fanin, fanout: arcs that end and begin at each, clocks and constants left out.
        outputs: names of the pins that each drives.
        unit_of: what each may move with, None if it has to stay.
    """

    def __init__(self, file: Path) -> None:
        self._file: dict[str, Any] = json.loads(file.read_text())
        (top,) = self._file["modules"].values()
        names: list[str] = list(top["cells"])
        self._cells: list[dict[str, Any]] = list(top["cells"].values())
        self.types: list[str] = [cell["type"] for cell in self._cells]
        self.places: list[_Place] = [_place(cell["attributes"][_BEL]) for cell in self._cells]
        self._at: dict[str, dict[_Place, int]] = {COMB: {}, FF: {}, BLOCK_RAM: {}}
        for number, kind in enumerate(self.types):
            if kind in self._at:
                self._at[kind][self.places[number]] = number
        self._block_rams = {
            place: self._cells[number]["attributes"][_BEL] for place, number in self._at[BLOCK_RAM].items()
        }

        drivers: dict[int, tuple[int, str]] = {}
        self.outputs: list[list[str]] = [[] for _ in names]
        for number, pin, bit, is_output in self._pins():
            if is_output:
                self.outputs[number].append(pin)
                if not names[number].startswith(_CONSTANTS) and self.types[number] != "DCCA":
                    drivers[bit] = number, pin
        self.fanin: list[list[Arc]] = [[] for _ in names]
        self.fanout: list[list[Arc]] = [[] for _ in names]
        for number, pin, bit, is_output in self._pins():
            if not is_output and pin not in _CLOCKS and bit in drivers:
                arc = Arc(*drivers[bit], number, pin)
                self.fanin[number].append(arc)
                self.fanout[arc.source].append(arc)

        self._controls = {number: self._control(number) for number, kind in enumerate(self.types) if kind == FF}
        self._takes_m = [bool(cell["connections"].get("M")) for cell in self._cells]
        self._rams = {
            self.places[number][:2]
            for number, cell in enumerate(self._cells)
            if self.types[number] == "TRELLIS_RAMW" or cell["parameters"].get("MODE") in _RAM
        }
        # Tiles in which something lies are tiles of logic. Where LUT RAM is other rules apply: units leave, none comes.
        self._logic_tiles = {place[:2] for kind in (COMB, FF) for place in self._at[kind]} - self._rams
        self._block_ram_tiles = {place[:2] for place in self._block_rams}
        self.unit_of: list[Unit | None] = [None] * len(names)
        for unit in self._units():
            for number in unit.cells:
                self.unit_of[number] = unit

    def _pins(self) -> Iterable[tuple[int, str, int, bool]]:
        """Of every pin that has a net: its cell, its name, the net, whether it drives that."""
        for number, cell in enumerate(self._cells):
            for pin, bits in cell["connections"].items():
                if bits:
                    yield number, pin, bits[0], cell["port_directions"][pin] == "output"

    def _control(self, number: int) -> tuple[_Control, _Control]:
        """What all registers of a slice, and of a tile, have to have in common."""
        cell = self._cells[number]
        parameters, nets = cell["parameters"], cell["connections"]
        enable, clock, reset = ((nets.get(pin) or [None])[0] for pin in ("CE", "CLK", "LSR"))
        is_async = parameters.get("SRMODE") == "ASYNC"
        of_slice = parameters.get("CEMUX"), parameters.get("GSR"), enable
        return of_slice, (parameters.get("CLKMUX"), parameters.get("LSRMUX"), is_async, clock, reset)

    def _units(self) -> Iterable[Unit]:
        joined: list[int] = list(range(len(self._cells)))

        def first(number: int) -> int:
            while joined[number] != number:
                joined[number] = joined[joined[number]]
                number = joined[number]
            return number

        for arcs in self.fanin:
            for arc in arcs:
                if arc.input in _JOINED:
                    joined[first(arc.sink)] = first(arc.source)
        together: defaultdict[int, list[int]] = defaultdict(list)
        for number in range(len(joined)):
            together[first(number)].append(number)
        for cells in together.values():
            places = {self.places[number] for number in cells}
            tiles = {place[:2] for place in places}
            if len(tiles) == 1 and all(map(self._may_move, cells)):
                yield Unit(tuple(cells), single=len(places) == 1 and not any(map(self._is_multiplexer, cells)))

    def _may_move(self, number: int) -> bool:
        kind, mode = self.types[number], self._cells[number]["parameters"].get("MODE")
        return kind in {FF, BLOCK_RAM} or (kind == COMB and not mode and bool(self.fanout[number]))

    def _is_multiplexer(self, number: int) -> bool:
        return self.types[number] == COMB and bool(self._cells[number]["connections"].get("OFX"))

    def _places_of(self, unit: Unit) -> set[int]:
        """In its tile."""
        return {self.places[number][2] for number in unit.cells}

    def places_for(self, unit: Unit) -> tuple[int, ...]:
        """In a tile, those that a unit might go to, if it may go to this tile, the first the best."""
        return _BEST if unit.single and self.types[unit.cells[0]] != BLOCK_RAM else (0,)

    def tiles_for(self, unit: Unit) -> set[tuple[int, int]]:
        """Those that a unit may go to, if what is there may give way. Of block RAMs those that have one."""
        return self._block_ram_tiles if self.types[unit.cells[0]] == BLOCK_RAM else self._logic_tiles

    def in_the_way(self, unit: Unit, tile: tuple[int, int], place: int) -> list[Unit] | None:
        """Units that lie where a unit would go; None if something lies there that cannot give way.

        Args:
            place: in the tile, for a unit that is `single`.
        """
        others: dict[Unit, None] = {}
        freed = set() if unit.single else self._places_of(unit)
        for number in unit.cells:
            there = *tile, place if unit.single else self.places[number][2]
            at = self._at[self.types[number]].get(there)
            if at is None or at in unit.cells:
                continue
            other = self.unit_of[at]
            if other is None or not (other.single or self._places_of(other) <= freed):
                return None
            others[other] = None
        return list(others)

    def exchange(self, unit: Unit, tile: tuple[int, int], place: int, others: list[Unit]) -> bool:
        """Move a unit to a tile, and what is in the way to where it was; or nothing, and it cannot be."""
        if others and self.places[unit.cells[0]][:2] in self._rams:
            return False
        before = {number: self.places[number] for one in (unit, *others) for number in one.cells}
        after = {number: (*tile, place if unit.single else before[number][2]) for number in unit.cells}
        back = {there[2]: before[number] for number, there in after.items()}
        after |= {number: back[before[number][2]] for other in others for number in other.cells}
        self._lift(before)
        if all(there not in self._at[self.types[number]] for number, there in after.items()):
            self._put(after)
            if all(map(self.allows, {place[:2] for place in (*before.values(), *after.values())} - self._rams)):
                return True
            self._lift(after)
        self._put(before)
        return False

    def _lift(self, places: dict[int, _Place]) -> None:
        for number in places:
            del self._at[self.types[number]][self.places[number]]

    def _put(self, places: dict[int, _Place]) -> None:
        for number, place in places.items():
            self.places[number] = place
            self._at[self.types[number]][place] = number

    def allows(self, tile: tuple[int, int]) -> bool:
        """What lies in a tile may lie there.

        All registers of a tile have the same clock and reset, those of a slice the same enable; a place's pin M is its
        register's or its multiplexer's.
        """
        of_tile: _Control = ()
        of_slice: _Control = ()
        for place in range(_PLACES):
            if place % 2 == 0:
                of_slice = ()
            at = *tile, place
            register = self._at[FF].get(at)
            if register is None:
                continue
            lut = self._at[COMB].get(at)
            if lut is not None and self._takes_m[lut] and self._takes_m[register]:
                return False
            slice_control, tile_control = self._controls[register]
            if of_slice not in {(), slice_control} or of_tile not in {(), tile_control}:
                return False
            of_slice, of_tile = slice_control, tile_control
        return True

    def write(self, file: Path) -> None:
        """Write the design as it lies now, everything to stay where it is."""
        for cell, kind, (column, row, place) in zip(self._cells, self.types, self.places, strict=True):
            attributes = cell["attributes"]
            attributes[_STRENGTH] = _LOCKED
            if kind == BLOCK_RAM:
                attributes[_BEL] = self._block_rams[column, row, place]
            elif kind in self._at:
                name = "K" if kind == COMB else "FF"
                attributes[_BEL] = f"X{column}/Y{row}/SLICE{'ABCD'[place // 2]}.{name}{place % 2}"
        file.write_text(json.dumps(self._file))


def _place(bel: str) -> _Place:
    if found := _IN_TILE.fullmatch(bel):
        return int(found[1]), int(found[2]), 2 * "ABCD".index(found[3]) + int(found[5])
    elsewhere = _ELSEWHERE.match(bel)
    assert elsewhere, bel
    return int(elsewhere[1]), int(elsewhere[2]), 0
