"""Expressions of the Verilog that Yosys writes: one operator each, to be put into one another.

What Verilog makes of `a + b` or `~a` depends on the width of what surrounds it. So an expression may take the place
of a net only where that gives the same value:

- a *free* expression anywhere: comparisons, reductions, concatenations; bitwise operators, choices and right shifts
  of what is free, as unsigned operands grow by zeros and so does the result;
- any other only where the context is as wide as the net, and as the expression by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["NAME", "Expressions"]

NAME = r"[A-Za-z_]\w*"
_OPERAND = rf"(?:\{{[^{{}}]*\}}|{NAME}\s?(?:\[\d+(?::\d+)?\])?|\d+'[bdho][0-9a-fA-FxzXZ?_]+)"
_REFERENCE = re.compile(rf"(?P<name>{NAME})\s?(?:\[(?P<high>\d+)(?::(?P<low>\d+))?\])?\s*")
_CONSTANT = re.compile(r"(?P<width>\d+)'(?P<base>[bdho])(?P<digits>[0-9a-fA-FxzXZ?_]+)\s*")
_UNARY = re.compile(rf"(?P<operator>~[&|^]|[~!&|^-]) (?P<a>{_OPERAND})\s*")
_BINARY = re.compile(rf"(?P<a>{_OPERAND})\s*(?P<operator>[=!<>]=|<<|>>|[-+*&|^<>]) (?P<b>{_OPERAND})\s*")
_CHOICE = re.compile(rf"(?P<test>{_OPERAND})\s*\? (?P<a>{_OPERAND})\s*: (?P<b>{_OPERAND})\s*")
_COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
_BITWISE = frozenset("&|^")
_ARITHMETIC = frozenset("+-*")
_UNKNOWN = frozenset("xXzZ?")
_LONGEST = 100
"""Characters that an expression may have to be put into another."""
_SHORT = 24
"""Characters that an expression may have to be written more than once."""

_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}


class _NotUnderstood(Exception):
    """Text that is no expression of those known here."""


class _Piece(NamedTuple):
    """Bits of a net from LOW on, or a constant, which has no name."""

    text: str
    width: int
    name: str = ""
    low: int = 0

    def part(self, high: int, low: int) -> _Piece:
        """Bits high..low of it."""
        if (high, low) == (self.width - 1, 0):
            return self
        if self.name:
            high, low = high + self.low, low + self.low
            return _Piece(_selected(self.name, high, low), high - low + 1, self.name, low)
        value = _value(self.text)
        if value is None:
            raise _NotUnderstood(self.text)
        return _Piece(_constant(value >> low, high - low + 1), high - low + 1)


_Pieces = Sequence[_Piece]
"""An operand, most significant piece first."""


@dataclass(frozen=True)
class _Text:
    """An expression as text.

    Attributes:
        text: as it stands by itself.
        width: bits by itself.
        free: it has the same value in any context.
        single: no operator, so no need of parentheses.
        parts: what stands between the commas of a concatenation.
    """

    text: str
    width: int
    free: bool = True
    single: bool = True
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text if self.single else f"({self.text})"

    def padded(self, width: int) -> _Text:
        """The same with zeros above it, WIDTH bits at least."""
        if width <= self.width:
            return self
        if (value := _value(self.text)) is not None:
            return _Text(_constant(value, width), width)
        return _concatenation((f"{width - self.width}'h0", *(self.parts or (self.text,))), width)


class Expressions:
    """Puts the definitions of nets in the place of their names.

    Args:
        widths: of each net.
        definitions: the expression of each net that may be replaced.
        used_once: whether a net is named once only, so that its expression need not be repeated.
    """

    def __init__(
        self, widths: Mapping[str, int], definitions: Mapping[str, str], used_once: Callable[[str], bool]
    ) -> None:
        self._widths = widths
        self._definitions = definitions
        self._used_once = used_once
        self._texts: dict[tuple[str, int | None], _Text] = {}

    def alone(self, text: str) -> str:
        """An operand that nothing is combined with."""
        try:
            return self._operand(self._pieces(text), None).text
        except _NotUnderstood:
            return text.strip()

    def whole(self, text: str, context: int) -> str:
        """The right-hand side of an assignment to CONTEXT bits."""
        text = self.low_bits(text, context) or text.strip()
        try:
            return self._expression(text, context).padded(context).text
        except _NotUnderstood:
            return text

    def shifted_width(self, text: str) -> int | None:
        """The width of `a` in an expression `a >> b`, else None."""
        match = _BINARY.fullmatch(text.strip())
        return _width(self._pieces(match["a"])) if match and match["operator"] == ">>" else None

    def low_bits(self, text: str, width: int) -> str | None:
        """An expression for the WIDTH low bits of an expression, None if it needs more than those of its operands."""
        text = text.strip()
        for pattern, operands, operators in ((_UNARY, "a", "~-"), (_CHOICE, "ba", ""), (_BINARY, "ba", "+-*&|^")):
            match = pattern.fullmatch(text)
            if match is None or (operators and match["operator"] not in operators):
                continue
            with suppress(_NotUnderstood):
                for operand in operands:
                    pieces = self._pieces(match[operand])
                    if width < _width(pieces):
                        low = _written(_cut(pieces, width - 1, 0))
                        text = f"{text[: match.start(operand)]}{low} {text[match.end(operand) :]}"
                return text
        return None

    def _pieces(self, text: str) -> _Pieces:
        """An operand, taken apart."""
        text = text.strip()
        return [self._piece(part.strip()) for part in (text[1:-1].split(",") if text.startswith("{") else [text])]

    def _piece(self, text: str) -> _Piece:
        if constant := _CONSTANT.fullmatch(text):
            return _Piece(text, int(constant["width"]))
        reference = _REFERENCE.fullmatch(text)
        if reference is None or reference["name"] not in self._widths:
            raise _NotUnderstood(text)
        name, high = reference["name"], reference["high"]
        if high is None:
            return _Piece(text, self._widths[name], name)
        return _Piece(text, int(high) - _low(reference) + 1, name, _low(reference))

    def _operand(self, pieces: _Pieces, context: int | None) -> _Text:
        """An operand whose context is CONTEXT bits wide, or has the operand's own width (None)."""
        if len(pieces) == 1:
            return self._part(pieces[0], context)
        parts = [self._part(piece, None) for piece in pieces]
        flat = _joined(text for part in parts for text in part.parts or (part.text,))
        width = sum(part.width for part in parts)
        if len(flat) == 1 and all(part.single for part in parts):
            return _Text(flat[0], width)
        repeated = len(flat) > 1 and len(set(flat)) == 1
        return _concatenation((f"{len(flat)}{{{flat[0]}}}",) if repeated else flat, width)

    def _part(self, piece: _Piece, context: int | None) -> _Text:
        """A net, a part of one or a constant; of a net that is a concatenation, that part of it."""
        name, width = piece.name, piece.width
        if not name:
            return _Text(piece.text, width)
        if width == self._widths[name]:
            return self._net(name, context)
        high = piece.low + width - 1
        if name in self._definitions:
            with suppress(_NotUnderstood):
                part = _cut(self._pieces(self._definitions[name]), high, piece.low)
                if self._used_once(name) or len(_written(part)) <= _LONGEST:
                    return self._operand(part, context)
        return _Text(_selected(name, high, piece.low), width)

    def _net(self, name: str, context: int | None) -> _Text:
        """The net itself, or what it is defined as where that is the same."""
        key, width = (name, context), self._widths[name]
        if key not in self._texts:
            self._texts[key] = _Text(name, width)
            with suppress(_NotUnderstood):
                found = self._expression(self._definitions.get(name, name), width)
                if (
                    found.width == width
                    and (found.free or context is None or context == width)
                    and (found.single or self._used_once(name) or len(found.text) <= _SHORT)
                    and len(found.text) <= _LONGEST
                ):
                    self._texts[key] = found
        return self._texts[key]

    def _expression(self, text: str, context: int) -> _Text:
        text = text.strip()
        if match := _UNARY.fullmatch(text):
            return self._unary(match["operator"], self._pieces(match["a"]), context)
        if match := _CHOICE.fullmatch(text):
            return self._choice(
                self._pieces(match["test"]), self._pieces(match["a"]), self._pieces(match["b"]), context
            )
        if match := _BINARY.fullmatch(text):
            return self._binary(match["operator"], self._pieces(match["a"]), self._pieces(match["b"]), context)
        return self._operand(self._pieces(text), context)

    def _unary(self, operator: str, a: _Pieces, context: int) -> _Text:
        around = max(context, _width(a))
        if operator == "-" or (operator == "~" and around > 1):
            return _Text(f"{operator}{self._operand(a, around).padded(around)}", around, free=False, single=False)
        inside = self._operand(a, None)
        if operator == "!" and inside.width > 1:
            return _Text(f"{inside} == {inside.width}'h0", 1, single=False)
        return _Text(f"{'!' if operator == '~' else operator}{inside}", 1, single=False)

    def _choice(self, test: _Pieces, a: _Pieces, b: _Pieces, context: int) -> _Text:
        both = max(_width(a), _width(b))
        first, second = (self._operand(operand, max(context, both)) for operand in (a, b))
        text = f"{self._operand(test, None)} ? {first.padded(both)} : {second.padded(both)}"
        return _Text(text, both, first.free and second.free, single=False)

    def _binary(self, operator: str, a: _Pieces, b: _Pieces, context: int) -> _Text:
        if operator in ("<<", ">>"):
            return self._shift(operator, a, b, max(context, _width(a)))
        both = max(_width(a), _width(b))
        around = both if operator in _COMPARISONS else max(context, both)
        grown = around if operator in _ARITHMETIC else both
        first, second = self._operand(a, around), self._operand(b, around)
        if operator == ">=" and _value(second.text) == 0:
            return _Text("1'h1", 1)
        text = f"{first.padded(grown)} {operator} {second.padded(grown)}"
        if operator in _COMPARISONS:
            return _Text(text, 1, single=False)
        return _Text(text, grown, operator in _BITWISE and first.free and second.free, single=False)

    def _shift(self, operator: str, a: _Pieces, b: _Pieces, around: int) -> _Text:
        first, second = self._operand(a, around), self._operand(b, None)
        if operator == ">>":
            return _Text(f"{first} >> {second}", first.width, first.free, single=False)
        return _Text(f"{first.padded(around)} << {second}", around, free=False, single=False)


def _value(text: str) -> int | None:
    """Of a constant whose bits are all known, else None."""
    constant = _CONSTANT.fullmatch(text)
    if constant is None or _UNKNOWN & set(constant["digits"]):
        return None
    return int(constant["digits"].replace("_", ""), _BASES[constant["base"]])


def _constant(value: int, width: int) -> str:
    return f"{width}'h{value & ((1 << width) - 1):x}"


def _selected(name: str, high: int, low: int) -> str:
    return f"{name}[{high}]" if high == low else f"{name}[{high}:{low}]"


def _width(pieces: _Pieces) -> int:
    return sum(piece.width for piece in pieces)


def _written(pieces: _Pieces) -> str:
    return pieces[0].text if len(pieces) == 1 else f"{{ {', '.join(piece.text for piece in pieces)} }}"


def _cut(pieces: _Pieces, high: int, low: int) -> _Pieces:
    """Bits high..low of an operand."""
    found: list[_Piece] = []
    at = _width(pieces)
    for piece in pieces:
        at -= piece.width
        first, last = max(low - at, 0), min(high - at, piece.width - 1)
        if first <= last:
            found.append(piece.part(last, first))
    return found


def _concatenation(parts: Sequence[str], width: int) -> _Text:
    return _Text(f"{{ {', '.join(parts)} }}", width, parts=tuple(parts))


def _joined(parts: Iterable[str]) -> list[str]:
    """Neighbouring parts of one net as one part."""
    joined: list[str] = []
    for part in parts:
        below = _REFERENCE.fullmatch(part)
        above = _REFERENCE.fullmatch(joined[-1]) if joined else None
        if above and below and above["name"] == below["name"] and _low(above) - 1 == int(below["high"] or -1) >= 0:
            joined[-1] = _selected(below["name"], int(above["high"]), _low(below))
        else:
            joined.append(part)
    return joined


def _low(reference: re.Match[str]) -> int:
    """The lowest bit of a part of a net, 0 of a whole one."""
    return int(reference["low"] or reference["high"] or 0)
