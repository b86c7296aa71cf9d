"""Nets that continuous assignments drive in parts, turned into nets driven whole.

Amaranth writes an assignment for each part of a signal. Icarus resolves such a net in eight strengths, bit by bit,
which costs a design six sevenths of its speed; Verilator makes two and a half times as much C++ of it. Here such a
net gets one assignment of all its bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["with_whole_assignments"]

_NAME = r"(?:\\\S+ |[A-Za-z_]\w*)"
_SELECT = r"\[(?P<high>\d+)(?::(?P<low>\d+))?\]"
_PART = re.compile(rf"\s*(?P<name>{_NAME})\s?(?:{_SELECT})?\s*(?:,|$)")
_PARTIAL = re.compile(rf"^  assign (?P<target>\{{[^={{}}]*\}}|{_NAME}\[\d+(?::\d+)?\]) = (?P<value>[^\n]+);\n", re.M)
_DECLARATION = re.compile(
    rf"^  (?P<kind>wire|reg|input|output) (?:signed )?(?:\[(?P<high>\d+):0\] )?(?P<name>{_NAME})", re.M
)
_REFERENCE = re.compile(rf"(?P<name>{_NAME})\s?(?:{_SELECT})?")
_CONSTANT = re.compile(r"(?P<width>\d+)'[bodh][0-9a-fxz]+")


class _Piece(NamedTuple):
    """Bits high..low of a net, and what drives them: an expression that stands by itself in a concatenation."""

    high: int
    low: int
    source: str

    @property
    def width(self) -> int:
        return self.high - self.low + 1


def with_whole_assignments(module: str) -> str:
    """The same module, as Yosys wrote it, without nets that continuous assignments drive in parts.

    Nets that also have other drivers, such as outputs of instances, are left as they are.
    """
    widths: dict[str, int] = {}
    driven: set[str] = set()
    for net in _DECLARATION.finditer(module):
        name = net["name"].strip()
        widths[name] = int(net["high"] or 0) + 1
        if net["kind"] == "reg":
            driven.add(name)
    pieces: dict[str, list[_Piece]] = {}
    sides: list[str] = []

    def right_hand_side(assignment: re.Match[str]) -> str:
        parts = list(_parts(assignment["target"], widths))
        if any(name not in widths or name in driven for name, _high, _low in parts):
            return assignment[0]
        left = width = sum(high - low + 1 for _name, high, low in parts)
        alone = len(parts) == 1 and _width(assignment["value"], widths) == width
        side = f"_side_{len(sides)}"
        for name, high, low in parts:
            left -= high - low + 1
            source = assignment["value"] if alone else f"{side}[{left + high - low}:{left}]"
            pieces.setdefault(name, []).append(_Piece(high, low, source))
        if not alone:
            sides.append(f"  wire [{width - 1}:0] {side};\n  assign {side} = {assignment['value']};\n")
        return ""

    rest = _PARTIAL.sub(right_hand_side, module)
    return "".join([rest, *sides, *(_assignments(name, widths[name], found) for name, found in pieces.items())])


def _width(value: str, widths: dict[str, int]) -> int | None:
    """Bits of a constant, a net or a part of one; None for what an assignment may extend or cut."""
    if constant := _CONSTANT.fullmatch(value.strip()):
        return int(constant["width"])
    reference = _REFERENCE.fullmatch(value if value.startswith("\\") else value.strip())
    if reference is None:
        return None
    if reference["high"] is None:
        return widths.get(reference["name"].strip())
    return int(reference["high"]) - int(reference["low"] or reference["high"]) + 1


def _parts(target: str, widths: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """(name, high, low) of each part of a target, most significant first."""
    for part in _PART.finditer(target.strip("{}")):
        name = part["name"].strip()
        if part["high"] is None:
            yield name, widths.get(name, 1) - 1, 0
        else:
            yield name, int(part["high"]), int(part["low"] or part["high"])


def _assignments(name: str, width: int, pieces: list[_Piece]) -> str:
    """One assignment of all bits, or one for each piece if there are bits that something else drives."""
    target = f"{name} " if name.startswith("\\") else name
    if sum(piece.width for piece in pieces) < width:
        return "".join(f"  assign {target}[{piece.high}:{piece.low}] = {piece.source};\n" for piece in pieces)
    return f"  assign {target} = {{ {', '.join(piece.source for piece in sorted(pieces, reverse=True))} }};\n"
