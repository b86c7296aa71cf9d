"""The FPGAs: Lattice ECP5, the family that Yosys and nextpnr know best."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import astuple, dataclass

__all__ = ["BLOCK_RAMS", "DEVICES", "SPEED_GRADES", "Area", "Device"]

BLOCK_RAMS = ("DP16KD", "PDPW16KD")
"""Cells that are one."""

_LUT_RAM = "TRELLIS_DPR16X4"
_LUTS_OF_CARRY = 2
_LUTS_OF_LUT_RAM = 4


@dataclass(frozen=True)
class Area:
    """Cells of an FPGA.

    Attributes:
        luts: four-input LUTs, those of carry chains (two a cell) and of LUT RAM (four a cell) included.
        registers: flip-flops.
        block_rams: memories of 18 Kbit.
        lut_rams: cells of 16 words of 4 bits.
    """

    luts: int = 0
    registers: int = 0
    block_rams: int = 0
    lut_rams: int = 0

    def __add__(self, other: Area) -> Area:
        return Area(*map(operator.add, astuple(self), astuple(other)))

    @classmethod
    def of(cls, types: Counter[str]) -> Area:
        """The area of cells, counted by type."""
        lut_rams = types[_LUT_RAM]
        return cls(
            luts=types["LUT4"] + _LUTS_OF_CARRY * types["CCU2C"] + _LUTS_OF_LUT_RAM * lut_rams,
            registers=types["TRELLIS_FF"],
            block_rams=sum(types[ram] for ram in BLOCK_RAMS),
            lut_rams=lut_rams,
        )


@dataclass(frozen=True)
class Device:
    """One size of the family.

    Attributes:
        option: nextpnr's name for it.
        package: the largest.
        room: all that it has; of LUT RAMs, pairs of LUTs that can be written.
        block_ram_rows: the rows of tiles in which its block RAMs lie.
        block_ram_fours: how many times four of them lie on the left and on the right in each, beside the column in the
            middle.
    """

    option: str
    package: str
    room: Area
    block_ram_rows: tuple[int, ...]
    block_ram_fours: tuple[int, int]

    @property
    def block_ram_columns(self) -> list[tuple[int, int]]:
        """Of each block RAM in a row, the column of its tile, and its number there."""
        left, right = self.block_ram_fours
        starts = [4 + 9 * four + (2 if four >= left else 0) for four in range(left + right)]
        return [(start + 2 * number, number) for start in starts for number in range(4)]


DEVICES = {
    "LFE5U-25": Device(
        "--25k",
        "CABGA381",
        Area(luts=24_288, registers=24_288, block_rams=56, lut_rams=3_036),
        block_ram_rows=(25, 37),
        block_ram_fours=(3, 4),
    ),
    "LFE5U-45": Device(
        "--45k",
        "CABGA554",
        Area(luts=43_848, registers=43_848, block_rams=108, lut_rams=5_481),
        block_ram_rows=(10, 34, 58),
        block_ram_fours=(4, 5),
    ),
    "LFE5U-85": Device(
        "--85k",
        "CABGA756",
        Area(luts=83_640, registers=83_640, block_rams=208, lut_rams=10_455),
        block_ram_rows=(22, 46, 70, 82),
        block_ram_fours=(7, 6),
    ),
}
"""As nextpnr counts them."""

SPEED_GRADES = ("6", "7", "8")
"""8 is the fastest."""
