"""What nothing uses goes out of a netlist of the FPGA's cells, bit by bit and through all levels."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

__all__ = ["prune"]

_Modules = dict[str, dict[str, Any]]
_Cell = dict[str, Any]


class _Driver(NamedTuple):
    """What drives a net: bit PLACE of PORT of CELL, or, if that is None, of the module itself."""

    cell: _Cell | None
    port: str
    place: int


def prune(modules: _Modules, top: str) -> None:
    """Remove every cell on which no output of TOP depends; of a module, what no instance needs.

    Args:
        modules: as Yosys writes them, those of components mapped apart included; changed in place.
        top: the top module.
    """
    _Liveness(modules, top).remove()


class _Liveness:
    """Goes from the outputs of the top module back to all that they depend on."""

    def __init__(self, modules: _Modules, top: str) -> None:
        self._modules = {name: module for name, module in modules.items() if not module["attributes"].get("blackbox")}
        self._drivers: dict[str, dict[int, _Driver]] = defaultdict(dict)
        self._instances: dict[str, list[tuple[str, _Cell]]] = defaultdict(list)  # of each module, and where they are
        self._used: dict[str, set[int]] = defaultdict(set)
        self._to_follow: list[tuple[str, int]] = []
        for name, module in self._modules.items():
            self._find_drivers(name, module)
        for port in self._modules[top]["ports"].values():
            self._use(top, port["bits"])
        while self._to_follow:
            self._follow(*self._to_follow.pop())

    def remove(self) -> None:
        """Delete the cells that are left over."""
        for name, module in self._modules.items():
            kept = {}
            for cell_name, cell in module["cells"].items():
                outputs = [bit for port in _ports(cell, "output") for bit in cell["connections"][port]]
                if cell["type"] in self._modules or not outputs or not self._used[name].isdisjoint(outputs):
                    kept[cell_name] = cell
            module["cells"] = kept

    def _find_drivers(self, name: str, module: dict[str, Any]) -> None:
        drivers = self._drivers[name]
        for port_name, port in module["ports"].items():
            if port["direction"] == "input":
                drivers.update({bit: _Driver(None, port_name, place) for place, bit in enumerate(port["bits"])})
        for cell in module["cells"].values():
            if cell["type"] in self._modules:
                self._instances[cell["type"]].append((name, cell))
            for port_name in _ports(cell, "output"):
                bits = cell["connections"][port_name]
                drivers.update({bit: _Driver(cell, port_name, place) for place, bit in enumerate(bits)})

    def _use(self, name: str, bits: list[int | str]) -> None:
        """Nets of a module are used; constants are none."""
        for bit in bits:
            if isinstance(bit, int) and bit not in self._used[name]:
                self._used[name].add(bit)
                self._to_follow.append((name, bit))

    def _follow(self, name: str, bit: int) -> None:
        """What drives a net that is used is used."""
        driver = self._drivers[name].get(bit)
        if driver is None:
            return
        cell, port, place = driver
        if cell is None:
            for where, instance in self._instances[name]:
                self._use(where, [instance["connections"][port][place]])
        elif cell["type"] in self._modules:
            self._use(cell["type"], [self._modules[cell["type"]]["ports"][port]["bits"][place]])
        else:
            for input_port in _ports(cell, "input"):
                self._use(name, cell["connections"][input_port])


def _ports(cell: _Cell, direction: str) -> list[str]:
    return [port for port, found in cell["port_directions"].items() if found == direction]
