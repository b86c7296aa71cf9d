"""Places of block RAMs, fixed before anything else is placed.

Block RAMs lie in a few rows across an FPGA. Left alone, nextpnr spreads them among the logic, and when all is settled
moves each to a place of its kind, which makes the wires of an 8-port switch half as long again. Here each input has a
stretch of a row to itself, and the logic gathers around that.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from verilog.synth.device import BLOCK_RAMS, Device
from verilog.synth.netlist import TOP, cells, instances

__all__ = ["fix_block_rams", "stretches"]

_INPUT = re.compile(r"design\.input_\d+")
_ROOM = 3 / 4
"""The part of a row that inputs fill; the rest is for other block RAMs, and for wires."""

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
    own = dict(zip(inputs, found, strict=True))
    others = iter(_from_the_middle(device, {place for stretch in found for place in stretch}))
    _fix(modules, TOP, "", {name: iter(stretch) for name, stretch in own.items()}, others)


def stretches(inputs: int, block_rams: int, device: Device) -> list[list[str]]:
    """Of each of so many inputs, the places of its block RAMs: side by side, as many inputs in a row as it takes.

    None if there are not rows enough.
    """
    columns, rows = device.block_ram_columns, device.block_ram_rows
    in_a_row = int(len(columns) * _ROOM) // block_rams
    if not in_a_row or inputs > in_a_row * len(rows):
        return []
    needed = -(-inputs // in_a_row)
    middle = (rows[0] + rows[-1]) / 2
    begin = min(range(len(rows) - needed + 1), key=lambda at: abs(sum(rows[at:][:needed]) / needed - middle))
    places: list[list[str]] = []
    for row in rows[begin:][:needed]:
        share = min(in_a_row, inputs - len(places))
        gap = (len(columns) - share * block_rams) // (share + 1)
        for number in range(share):
            at = gap + number * (gap + block_rams)
            places.append([_place(column, row) for column in columns[at:][:block_rams]])
    return places


def _fix(modules: _Modules, module: str, path: str, own: dict[str, Iterator[str]], others: Iterator[str]) -> None:
    """Give the block RAMs of MODULE places of OTHERS, and an instance's in it those that are its OWN."""
    for name, cell in modules[module]["cells"].items():
        if cell["type"] in BLOCK_RAMS:
            cell["attributes"]["BEL"] = next(others)
        elif cell["type"] in modules and _block_rams(modules, cell["type"]):
            instance = f"{path}{name}"
            modules[instance] = copy.deepcopy(modules[cell["type"]])
            cell["type"] = instance
            _fix(modules, instance, f"{instance}.", {}, own.get(name, others))


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
