"""Places of block RAMs, fixed before anything else is placed.

Block RAMs lie in a few rows across an FPGA. Left alone, nextpnr spreads them among the logic, and when all is settled
moves each to a place of its kind, which makes the wires of an 8-port switch half as long again. Here each input has a
stretch of a row to itself, and the logic gathers around that.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from verilog.synth.device import BLOCK_RAMS, Device
from verilog.synth.netlist import TOP, cells, instances

__all__ = ["fix_block_rams", "stretches"]

_INPUT = re.compile(r"design\.input_\d+")
_ROOM = 3 / 4
"""The part of a row that inputs fill; the rest is for other block RAMs, and for wires."""

_TO_THE_MIDDLE = ("buffer.verdicts", "descriptions.", "buffer.rows", "buffer.next", "successors.")
"""Parts of names of an input's block RAMs, by how far from the middle of a device, where the crossbar is, they may be.

What goes there in the cycle in which it is read is next to it, what most decides about first. Others are outside.
"""

_Modules = dict[str, dict[str, Any]]


def fix_block_rams(modules: _Modules, device: Device) -> None:
    """Give each block RAM of a switch a place, by an attribute that nextpnr obeys.

    Nothing is done where there are no inputs, or where they have more block RAMs than the device's rows take.

    Args:
        modules: a netlist; changed in place. Each instance of a module that has block RAMs gets a module of its own.
        device: what it is placed on.
    """
    tops = modules[TOP]["cells"]
    inputs = sorted((name for name in tops if _INPUT.fullmatch(name)), key=lambda name: int(name.rpartition("_")[2]))
    if not inputs:
        return
    found = stretches(len(inputs), _block_rams(modules, tops[inputs[0]]["type"]), device)
    if not found:
        return
    others = iter(_from_the_middle(device, {place for stretch in found for place in stretch}))
    rams = _own_block_rams(modules, TOP)
    for name, stretch in zip(inputs, found, strict=True):
        own = [path for path in rams if path.startswith(f"{name}.")]
        for path, place in zip(sorted(own, key=_distance), stretch, strict=True):
            rams.pop(path)["attributes"]["BEL"] = place
    for cell in rams.values():
        cell["attributes"]["BEL"] = next(others)


def stretches(inputs: int, block_rams: int, device: Device) -> list[list[str]]:
    """Of each of so many inputs, the places of its block RAMs: side by side, as many inputs in a row as it takes.

    Inputs stand below each other, since logic joins neighbours first, of which few are to be on different sides. Of an
    input's places that next to the middle of the row is first. None if there are not rows enough.
    """
    columns, rows = device.block_ram_columns, device.block_ram_rows
    in_a_row = int(len(columns) * _ROOM) // block_rams
    if not in_a_row or inputs > in_a_row * len(rows):
        return []
    needed = -(-inputs // in_a_row)
    middle = (rows[0] + rows[-1]) / 2
    begin = min(range(len(rows) - needed + 1), key=lambda at: abs(sum(rows[at:][:needed]) / needed - middle))
    places: list[tuple[int, list[str]]] = []  # and where in its row it is
    for row in rows[begin:][:needed]:
        share = min(in_a_row, inputs - len(places))
        gap = (len(columns) - share * block_rams) // (share + 1)
        for number in range(share):
            at = gap + number * (gap + block_rams)
            own = columns[at:][:block_rams]
            is_left = 2 * at + block_rams < len(columns)
            places.append((number, [_place(column, row) for column in (reversed(own) if is_left else own)]))
    return [own for _, own in sorted(places, key=lambda place: place[0])]


def _own_block_rams(modules: _Modules, module: str, path: str = "") -> dict[str, dict[str, Any]]:
    """The block RAMs in MODULE and below, by their paths. Each instance that has some gets a module of its own."""
    found: dict[str, dict[str, Any]] = {}
    for name, cell in modules[module]["cells"].items():
        if cell["type"] in BLOCK_RAMS:
            found[f"{path}{name}"] = cell
        elif cell["type"] in modules and _block_rams(modules, cell["type"]):
            instance = f"{path}{name}"
            modules[instance] = copy.deepcopy(modules[cell["type"]])
            cell["type"] = instance
            found |= _own_block_rams(modules, instance, f"{instance}.")
    return found


def _distance(path: str) -> tuple[int, str]:
    """Puts an input's block RAMs in the order in which they stand from the middle outwards."""
    return next((number for number, part in enumerate(_TO_THE_MIDDLE) if part in path), len(_TO_THE_MIDDLE)), path


def _block_rams(modules: _Modules, module: str) -> int:
    """How many there are in MODULE and below."""
    below = [module, *(inside for _, inside in instances(modules, module))]
    return sum(kind in BLOCK_RAMS for inside in below for _, kind in cells(modules, inside))


def _from_the_middle(device: Device, taken: set[str]) -> list[str]:
    """All places that are not taken, those next to the middle of the device first."""
    columns, rows = device.block_ram_columns, device.block_ram_rows
    x, y = (columns[0][0] + columns[-1][0]) / 2, (rows[0] + rows[-1]) / 2
    places = [(abs(column[0] - x) + abs(row - y), _place(column, row)) for column in columns for row in rows]
    return [place for _, place in sorted(places) if place not in taken]


def _place(column: tuple[int, int], row: int) -> str:
    x, number = column
    return f"X{x}/Y{row}/EBR{number}"
