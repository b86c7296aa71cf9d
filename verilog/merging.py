"""Modules of an RTLIL design that are the same, merged: eight identical ports are one module with eight instances.

Here is decided what is the same: it rests on the text of the modules alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

__all__ = ["merge_modules"]

_MODULE = re.compile(r"^(?P<attributes>(?:attribute [^\n]*\n)*)module \\(?P<name>\S+)\n(?P<body>.*?)^end$", re.M | re.S)
_SUBMODULE = re.compile(r"^(?P<head>\s*cell )\\(?P<type>\S+)(?P<tail> \\\S+)$", re.M)
_INDEX = re.compile(r"[_$]*\d+$")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True)
class _Module:
    """One RTLIL module: its attribute lines, its hierarchical name and the lines up to `end`."""

    attributes: str
    name: str
    body: str

    def submodules(self, known: dict[str, _Module]) -> list[str]:
        """Types of the cells in this module that are modules of the design, in order."""
        return [cell["type"] for cell in _SUBMODULE.finditer(self.body) if cell["type"] in known]

    def with_types(self, types: dict[str, str]) -> _Module:
        """This module with its submodule cells' types replaced as TYPES says."""

        def rename(cell: re.Match[str]) -> str:
            return f"{cell['head']}\\{types.get(cell['type'], cell['type'])}{cell['tail']}"

        return replace(self, body=_SUBMODULE.sub(rename, self.body))

    def __str__(self) -> str:
        return f"{self.attributes}module \\{self.name}\n{self.body}end\n"


def _readable_names(paths: list[str]) -> dict[str, str]:
    """A legal, unique Verilog name for each hierarchical name: the top's, then the last part that distinguishes it."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for path in paths:
        parts = [_ILLEGAL.sub("_", _INDEX.sub("", part) or part).strip("_") for part in path.split(".")]
        top, below = parts[0], parts[1:]
        tries = ["_".join([top, *below[start:]]) for start in range(len(below) - 1, -1, -1)] or [top]
        tries += [f"{tries[-1]}_{number}" for number in range(2, len(paths) + 2)]
        names[path] = next(name for name in tries if name not in taken)
        taken.add(names[path])
    return names


def merge_modules(rtlil_text: str) -> str:
    """Merge the modules of an RTLIL design that are the same, and give those kept readable names.

    The first module keeps its name; a module below it becomes `<top>_<instance>`, the instance's index left out
    (`top.sw.port_3` becomes `top_port`).

    Raises:
        ValueError: the text holds no module.
    """
    modules = {found["name"]: _Module(**found.groupdict()) for found in _MODULE.finditer(rtlil_text)}
    if not modules:
        raise ValueError("no module in the RTLIL text")
    kept_as: dict[str, str] = {}
    kept: dict[tuple[str, str], _Module] = {}

    def visit(name: str) -> None:
        if name in kept_as:
            return
        for submodule in modules[name].submodules(modules):
            visit(submodule)
        module = modules[name].with_types(kept_as)
        kept_as[name] = kept.setdefault((module.attributes, module.body), module).name

    for name in modules:
        visit(name)
    order = {name: position for position, name in enumerate(modules)}
    survivors = sorted(kept.values(), key=lambda module: order[module.name])
    names = _readable_names([module.name for module in survivors])
    return "\n".join(str(replace(module.with_types(names), name=names[module.name])) for module in survivors)
