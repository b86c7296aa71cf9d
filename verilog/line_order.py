"""The lines of a module in an order of their own, so that identical modules of different designs are the same text.

Yosys writes assignments, and numbers nets of its own, in an order that depends on the design around the module. A
compiler does not mind, but a module that was compiled before is found by its text.
"""

from __future__ import annotations

import re

__all__ = ["in_order"]

_ASSIGNMENT = re.compile(r"^  assign [^\n]+;$", re.M)
_AUTOMATIC = re.compile(r"\\\$auto\$\S+ ")
_AUTOMATIC_WIRE = re.compile(r"^  wire (?:\[\S+\] )?\\\$auto\$\S+ ;$", re.M)
_AUTOMATIC_ASSIGNMENT = re.compile(r"^  assign (?P<name>\\\$auto\$\S+ ) = (?P<value>[^\n]+);$", re.M)
_NUMBER = re.compile(r"\$\d+ $")


def in_order(module: str) -> str:
    """A module, as Yosys wrote it, with its assignments sorted and its nets numbered by what is assigned to them."""
    values = {found["name"]: found["value"] for found in _AUTOMATIC_ASSIGNMENT.finditer(module)}
    numbered = sorted(values, key=lambda name: (_kind(name), len(name), name))
    by_value = sorted(values, key=lambda name: (_kind(name), _AUTOMATIC.sub("", values[name])))
    renamed = dict(zip(by_value, numbered, strict=True))
    module = _AUTOMATIC.sub(lambda found: renamed.get(found[0], found[0]), module)
    return _sorted(_AUTOMATIC_WIRE, _sorted(_ASSIGNMENT, module))


def _kind(name: str) -> str:
    return _NUMBER.sub("", name)


def _sorted(line: re.Pattern[str], module: str) -> str:
    lines = iter(sorted(line.findall(module)))
    return line.sub(lambda _found: next(lines), module)
