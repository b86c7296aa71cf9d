"""The FPGAs: Lattice ECP5, the family that Yosys and nextpnr know best."""

from dataclasses import dataclass

__all__ = ["DEVICES", "SPEED_GRADES", "Device"]


@dataclass(frozen=True)
class Device:
    """One size of the family.

    Attributes:
        option: nextpnr's name for it.
        package: the largest.
        luts: four-input LUTs; there are as many registers.
        block_rams: memories of 18 Kbit.
        lut_rams: pairs of LUTs that can be written, 16 words of 4 bits each.
    """

    option: str
    package: str
    luts: int
    block_rams: int
    lut_rams: int


DEVICES = {
    "LFE5U-25": Device("--25k", "CABGA381", luts=24_288, block_rams=56, lut_rams=3_036),
    "LFE5U-45": Device("--45k", "CABGA554", luts=43_848, block_rams=108, lut_rams=5_481),
    "LFE5U-85": Device("--85k", "CABGA756", luts=83_640, block_rams=208, lut_rams=10_455),
}
"""As nextpnr counts them."""

SPEED_GRADES = ("6", "7", "8")
"""8 is the fastest."""
