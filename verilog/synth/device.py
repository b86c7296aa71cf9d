"""The FPGAs: Lattice ECP5, the family that Yosys and nextpnr know best."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import astuple, dataclass

__all__ = ["DEVICES", "SPEED_GRADES", "Area", "Device"]

_BLOCK_RAMS = ("DP16KD", "PDPW16KD")
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
            block_rams=sum(types[ram] for ram in _BLOCK_RAMS),
            lut_rams=lut_rams,
        )


@dataclass(frozen=True)
class Device:
    """One size of the family.

    Attributes:
        option: nextpnr's name for it.
        package: the largest.
        room: all that it has; of LUT RAMs, pairs of LUTs that can be written.
    """

    option: str
    package: str
    room: Area


DEVICES = {
    "LFE5U-25": Device("--25k", "CABGA381", Area(luts=24_288, registers=24_288, block_rams=56, lut_rams=3_036)),
    "LFE5U-45": Device("--45k", "CABGA554", Area(luts=43_848, registers=43_848, block_rams=108, lut_rams=5_481)),
    "LFE5U-85": Device("--85k", "CABGA756", Area(luts=83_640, registers=83_640, block_rams=208, lut_rams=10_455)),
}
"""As nextpnr counts them."""

SPEED_GRADES = ("6", "7", "8")
"""8 is the fastest."""
