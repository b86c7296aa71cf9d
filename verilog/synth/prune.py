"""What nothing uses goes out of a netlist of the FPGA's cells, bit by bit and through all levels."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from verilog.liveness import Instance, Liveness, Part, Statement

__all__ = ["prune"]

_Modules = dict[str, dict[str, Any]]
_KEPT = "kept"
"""A net besides the numbered ones. What drives it stays: instances, and cells that drive nothing else."""


def prune(modules: _Modules, top: str) -> None:
    """Remove every cell on which no output of TOP depends; of a module, what no instance needs.

    Args:
        modules: as Yosys writes them, those of components mapped apart included; changed in place.
        top: the top module.
    """
    filled = {name: module for name, module in modules.items() if not module["attributes"].get("blackbox")}
    parts: dict[str, dict[Hashable, Part]] = {
        name: {(name, cell): _part(facts, filled) for cell, facts in module["cells"].items()}
        for name, module in filled.items()
    }
    outputs = [bit for port in modules[top]["ports"].values() for bit in port["bits"]]
    live = Liveness(parts, {name: [_KEPT, *(outputs if name == top else ())] for name in filled})
    for name, module in filled.items():
        module["cells"] = {cell: facts for cell, facts in module["cells"].items() if (name, cell) in live.parts}


def _part(cell: dict[str, Any], modules: _Modules) -> Part:
    """A cell between nets, which have numbers; other bits are constants, or at outputs that are gone."""
    inside = modules[cell["type"]]["ports"] if cell["type"] in modules else None
    ports: dict[str, list[tuple[str, int, int]]] = {"input": [], "output": [], "inout": []}
    for port, bits in cell["connections"].items():
        if inside is None or port in inside:
            places = [(port, at, bit) for at, bit in enumerate(bits) if isinstance(bit, int)]
            ports[cell["port_directions"][port]] += places
    if inside is None:
        return Statement([bit for *_, bit in ports["output"]] or [_KEPT], [bit for *_, bit in ports["input"]])
    return Instance(
        cell["type"],
        {_KEPT: ()} | {bit: [inside[port]["bits"][at]] for port, at, bit in ports["output"]},
        {inside[port]["bits"][at]: [bit] for port, at, bit in ports["input"]},
    )
