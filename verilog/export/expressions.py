"""Expressions of the Verilog that Yosys writes: one operator each, to be put into one another.

What Verilog makes of `a + b` or `~a` depends on the width of what surrounds it. So an expression may take the place
of a net only where that gives the same value:

- a *free* expression anywhere: comparisons, reductions, concatenations; bitwise operators, choices and right shifts
  of what is free, as unsigned operands grow by zeros and so does the result;
- any other only where the context is as wide as the net, and as the expression by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

__all__ = ["NAME", "Expressions", "elements"]

NAME = r"[A-Za-z_]\w*"
_SELECT = rf"(?P<name>{NAME})\s?(?:\[(?P<high>\d+)(?::(?P<low>\d+))?\])?"
_OPERAND = rf"(?:\{{[^{{}}]*\}}|{NAME}\s?(?:\[\d+(?::\d+)?\])?|\d+'[bdho][0-9a-fA-FxzXZ?_]+)"
_REFERENCE = re.compile(rf"{_SELECT}\s*")
_CONSTANT = re.compile(r"(?P<width>\d+)'(?P<base>[bdho])(?P<digits>[0-9a-fA-FxzXZ?_]+)\s*")
_UNARY = re.compile(rf"(?P<operator>~[&|^]|[~!&|^-]) (?P<a>{_OPERAND})\s*")
_BINARY = re.compile(
    rf"(?P<a>{_OPERAND})\s*(?P<operator>===?|!==?|<<<?|>>>?|<=|>=|&&|\|\||~\^|[-+*&|^<>]) (?P<b>{_OPERAND})\s*"
)
_CHOICE = re.compile(rf"(?P<test>{_OPERAND})\s*\? (?P<a>{_OPERAND})\s*: (?P<b>{_OPERAND})\s*")
_COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
_BITWISE = frozenset("&|^")
_UNKNOWN = frozenset("xXzZ?")
_LONGEST = 100
"""Characters that an expression may have to be put into another."""
_SHORT = 24
"""Characters that an expression may have to be written more than once."""

_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}


@dataclass(frozen=True)
class _Text:
    """An expression as text.

    Attributes:
        text: as it stands by itself.
        width: bits by itself.
        free: it has the same value in any context.
        single: no operator, so no need of parentheses.
    """

    text: str
    width: int
    free: bool
    single: bool

    def __str__(self) -> str:
        return self.text if self.single else f"({self.text})"

    def padded(self, width: int) -> _Text:
        """The same with zeros above it, WIDTH bits at least."""
        if width <= self.width:
            return self
        if (constant := _CONSTANT.fullmatch(self.text)) and not _UNKNOWN & set(constant["digits"]):
            value = int(constant["digits"].replace("_", ""), _BASES[constant["base"]])
            return _Text(f"{width}'h{value:x}", width, free=True, single=True)
        zeros = f"{width - self.width}'h0"
        inside = elements(self.text) if self.single and self.text.startswith("{ ") else [self.text]
        return _Text(f"{{ {', '.join([zeros, *inside])} }}", width, free=True, single=True)


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
        self._texts: dict[tuple[str, int | None], _Text | None] = {}

    def operand(self, text: str, context: int | None) -> str:
        """An operand whose context is CONTEXT bits wide, or has the operand's own width (None)."""
        found = self._operand(text.strip(), context)
        return text.strip() if found is None else str(found)

    def whole(self, text: str, context: int) -> str:
        """The right-hand side of an assignment to CONTEXT bits."""
        text = text.strip()
        found = self._expression(self.low_bits(text, context) or text, context)
        return text if found is None else found.padded(context).text

    def shifted_width(self, text: str) -> int | None:
        """The width of `a` in an expression `a >> b`, else None."""
        match = _BINARY.fullmatch(text.strip())
        return self.width(match["a"]) if match and match["operator"] == ">>" else None

    def low_bits(self, text: str, width: int) -> str | None:
        """An expression for the WIDTH low bits of an expression, None if it needs more than those of its operands."""
        text = text.strip()
        if (match := _UNARY.fullmatch(text)) and match["operator"] in "~-":
            operands = [match["a"]]
        elif (match := _CHOICE.fullmatch(text)) or (
            (match := _BINARY.fullmatch(text)) and match["operator"] in "+-*&|^"
        ):
            operands = [match["a"], match["b"]]
        else:
            return None
        low = [self._low_operand(operand.strip(), width) for operand in operands]
        if None in low:
            return None
        if match.re is _CHOICE:
            return f"{match['test'].strip()} ? {low[0]} : {low[1]}"
        return f"{match['operator']} {low[0]}" if match.re is _UNARY else f"{low[0]} {match['operator']} {low[1]}"

    def _low_operand(self, text: str, width: int) -> str | None:
        own = self.width(text)
        return text if own is not None and own <= width else self._part(text, width - 1, 0)

    def _operand(self, text: str, context: int | None) -> _Text | None:
        if text.startswith("{") and text.endswith("}"):
            return self._concatenation(text)
        if constant := _CONSTANT.fullmatch(text):
            return _Text(text, int(constant["width"]), free=True, single=True)
        reference = _REFERENCE.fullmatch(text)
        if reference is None or reference["name"] not in self._widths:
            return None
        name = reference["name"]
        width = self._widths[name]
        if reference["high"] is None:
            return self._net(name, context)
        high = int(reference["high"])
        low = int(reference["low"]) if reference["low"] is not None else high
        if (high, low) == (width - 1, 0):
            return self._net(name, context)
        if name in self._definitions:
            part = self._part(self._definitions[name].strip(), high, low)
            if part is not None and (self._used_once(name) or len(part) <= _LONGEST):
                return self._operand(part, context)
        select = f"[{high}]" if high == low else f"[{high}:{low}]"
        return _Text(f"{reference['name']}{select}", high - low + 1, free=True, single=True)

    def _net(self, name: str, context: int | None) -> _Text:
        """The net itself, or what it is defined as where that is the same."""
        width = self._widths[name]
        itself = _Text(name, width, free=True, single=True)
        if name not in self._definitions:
            return itself
        key = (name, context)
        if key not in self._texts:
            self._texts[key] = itself
            found = self._expression(self._definitions[name].strip(), width)
            if (
                found is not None
                and found.width == width
                and (found.free or context is None or context == width)
                and (found.single or self._used_once(name) or len(found.text) <= _SHORT)
                and len(found.text) <= _LONGEST
            ):
                self._texts[key] = found
        return self._texts[key] or itself

    def _concatenation(self, text: str) -> _Text | None:
        parts = [self._operand(element, None) for element in elements(text)]
        if not parts or any(part is None for part in parts):
            return None
        found = [part for part in parts if part is not None]
        flat: list[str] = []
        for part in found:
            flat += elements(part.text) if part.single and part.text.startswith("{") else [part.text]
        flat = list(_joined(flat))
        width = sum(part.width for part in found)
        if len(flat) == 1 and all(part.single for part in found):
            return _Text(flat[0], width, free=True, single=True)
        if len(flat) > 1 and len(set(flat)) == 1:
            return _Text(f"{{ {len(flat)}{{{flat[0]}}} }}", width, free=True, single=True)
        return _Text(f"{{ {', '.join(flat)} }}", width, free=True, single=True)

    def _part(self, text: str, high: int, low: int) -> str | None:
        """Bits high..low of an operand, if they are an operand too."""
        if constant := _CONSTANT.fullmatch(text):
            if _UNKNOWN & set(constant["digits"]):
                return None
            value = int(constant["digits"].replace("_", ""), _BASES[constant["base"]])
            return f"{high - low + 1}'h{value >> low & ((1 << high - low + 1) - 1):x}"
        if text.startswith("{") and text.endswith("}"):
            return self._part_of_concatenation(text, high, low)
        reference = _REFERENCE.fullmatch(text)
        if reference is None or reference["name"] not in self._widths:
            return None
        base = 0
        if reference["high"] is not None:
            base = int(reference["low"] if reference["low"] is not None else reference["high"])
        select = f"[{high + base}]" if high == low else f"[{high + base}:{low + base}]"
        return f"{reference['name']}{select}"

    def _part_of_concatenation(self, text: str, high: int, low: int) -> str | None:
        """Elements, or parts of them, from the least significant on."""
        parts: list[str] = []
        at = 0
        for element in reversed(elements(text)):
            width = self.width(element)
            if width is None:
                return None
            first, last = max(low - at, 0), min(high - at, width - 1)
            if first <= last:
                part = element if last - first + 1 == width else self._part(element, last, first)
                if part is None:
                    return None
                parts.insert(0, part)
            at += width
        return parts[0] if len(parts) == 1 else f"{{ {', '.join(parts)} }}"

    def width(self, text: str) -> int | None:
        """Bits of an operand, None if it is none."""
        text = text.strip()
        if constant := _CONSTANT.fullmatch(text):
            return int(constant["width"])
        if text.startswith("{") and text.endswith("}"):
            widths = [self.width(element) for element in elements(text)]
            return None if None in widths else sum(width for width in widths if width is not None)
        reference = _REFERENCE.fullmatch(text)
        if reference is None or reference["name"] not in self._widths:
            return None
        if reference["high"] is None:
            return self._widths[reference["name"]]
        return int(reference["high"]) - int(reference["low"] or reference["high"]) + 1

    def _expression(self, text: str, context: int) -> _Text | None:
        if (found := self._operand(text, context)) is not None:
            return found
        if match := _UNARY.fullmatch(text):
            return self._unary(match["operator"], match["a"], context)
        if match := _CHOICE.fullmatch(text):
            return self._choice(match["test"], match["a"], match["b"], context)
        if match := _BINARY.fullmatch(text):
            return self._binary(match["operator"], match["a"], match["b"], context)
        return None

    def _unary(self, operator: str, a: str, context: int) -> _Text | None:
        width = self.width(a)
        if width is None:
            return None
        if operator == "~" and width == context == 1:
            operator = "!"
        if operator in "~-":
            around = max(context, width)
            inside = self._operand(a, around)
            return inside and _Text(f"{operator}{inside.padded(around)}", around, free=False, single=False)
        inside = self._operand(a, None)
        if inside is not None and operator == "!" and inside.width > 1:
            return _Text(f"{inside} == {inside.width}'h0", 1, free=True, single=False)
        return inside and _Text(f"{operator}{inside}", 1, free=True, single=False)

    def _choice(self, test: str, a: str, b: str, context: int) -> _Text | None:
        widths = self.width(a), self.width(b)
        tested = self._operand(test, None)
        if tested is None or widths[0] is None or widths[1] is None:
            return None
        both = max(widths[0], widths[1])
        first, second = self._operand(a, max(context, both)), self._operand(b, max(context, both))
        if first is None or second is None:
            return None
        text = f"{tested} ? {first.padded(both)} : {second.padded(both)}"
        return _Text(text, both, first.free and second.free, single=False)

    def _binary(self, operator: str, a: str, b: str, context: int) -> _Text | None:
        widths = self.width(a), self.width(b)
        if widths[0] is None or widths[1] is None:
            return None
        both = max(widths[0], widths[1])
        if operator in ("<<", ">>"):
            around = max(context, widths[0])
            first, second = self._operand(a, around), self._operand(b, None)
            if first is None or second is None:
                return None
            if operator == ">>":
                return _Text(f"{first} >> {second}", first.width, first.free, single=False)
            return _Text(f"{first.padded(around)} << {second}", around, free=False, single=False)
        if operator in _COMPARISONS:
            around = grown = both
        elif operator in _BITWISE:
            around, grown = max(context, both), both
        elif operator in "+-*":
            around = grown = max(context, both)
        else:
            return None
        first, second = self._operand(a, around), self._operand(b, around)
        if first is None or second is None:
            return None
        if operator == ">=" and _is_zero(second.text):
            return _Text("1'h1", 1, free=True, single=True)
        text = f"{first.padded(grown)} {operator} {second.padded(grown)}"
        if operator in _COMPARISONS:
            return _Text(text, 1, free=True, single=False)
        return _Text(text, grown, operator in _BITWISE and first.free and second.free, single=False)


def elements(concatenation: str) -> list[str]:
    """What stands between the commas of `{ a, b }`, nested ones and parentheses left whole."""
    found: list[str] = []
    depth = 0
    start = 1
    for at, character in enumerate(concatenation):
        if character in "{(":
            depth += 1
        elif character in "})":
            depth -= 1
        if depth == (1 if character == "," else 0) and character in ",}":
            found.append(concatenation[start:at].strip())
            start = at + 1
    return [element for element in found if element]


def _is_zero(text: str) -> bool:
    constant = _CONSTANT.fullmatch(text)
    return constant is not None and not constant["digits"].strip("0_")


def _joined(parts: list[str]) -> Iterator[str]:
    """Neighbouring parts of one net as one part."""
    before: re.Match[str] | None = None
    for part in parts:
        now = _REFERENCE.fullmatch(part)
        if now is None or now["high"] is None:
            if before is not None:
                yield before[0]
            before = None
            yield part
            continue
        if before is not None:
            low = int(before["low"] if before["low"] is not None else before["high"])
            if before["name"] == now["name"] and int(now["high"]) == low - 1:
                select = f"[{before['high']}:{now['low'] if now['low'] is not None else now['high']}]"
                before = _REFERENCE.fullmatch(f"{before['name']}{select}")
                continue
            yield before[0]
        before = now
    if before is not None:
        yield before[0]
