"""Names of nets and cells as the design has them."""

import re

__all__ = ["readable"]

_DESIGN = re.compile(r"^design\.")
_MAPPED = re.compile(r"_(?:LUT4|CCU2C|TRELLIS_FF|TRELLIS_DPR16X4|DP16KD|PDPW16KD|PFUMX|L6MUX21)(?=[_$]|$)")
_BITS = re.compile(r"\[\d+\]$")
_PLACE_IN_MEMORY = re.compile(r"\.\d+\.\d+(?:_.*)?$")
_NUMBER = re.compile(r"(?<=[a-z0-9_])\$\d+(?=[.\[]|$)")
_INDEX = re.compile(r"_\d+(?=\.|$)")


def readable(name: str, *, indices: bool = True) -> str:
    """The signal of the design nearest to a net or cell, without what mapping appended to its name.

    Yosys names what it makes after a net nearby: `port_0.due_LUT4_A_Z_LUT4_D[2]` is logic at `port_0.due`. A bit of
    such a net means nothing in the design and goes too. A cell of a memory has the memory's name.

    Args:
        name: as Yosys or nextpnr say it.
        indices: keep the numbers of identical components.
    """
    name = _DESIGN.sub("", name)
    if mapped := _MAPPED.search(name):
        name = name[: mapped.start()]
    name = _PLACE_IN_MEMORY.sub("", name)
    name = _NUMBER.sub("", name)
    if not indices:
        name = _INDEX.sub("", _BITS.sub("", name))
    return name
