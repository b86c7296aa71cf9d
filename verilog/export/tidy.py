"""The Verilog that Yosys writes, in the form in which people write it.

Yosys gives the result of every operator a net of its own, every register a process that computes its next value, and
numbers both. Here

- a register's next value is computed where the register is clocked;
- the expression of a numbered net stands where the net is used, if it is used once and means the same there;
- numbered nets that are left begin with an underscore, which keeps them out of Verilator's waves;
- ports are declared in the head of their module.

What the design does in any cycle stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from verilog.export.expressions import NAME, Expressions
from verilog.liveness import Liveness, Part, Statement

__all__ = ["tidy"]

_END = "endmodule\n"
_INTEGER_BITS = 32
_WAKE = "_wake"
_SELECT = r"(?P<select>\[(?P<high>\d+)(?::(?P<low>\d+))?\])"
_NUMBERED = r"_(?:\d+_?|side_\d+)"
_ESCAPED = re.compile(r"\\(\S+) ")
_TEMPORARY = re.compile(_NUMBERED)
_WORD = re.compile(r"(?<![\w'])[A-Za-z_]\w*")
_HEAD = re.compile(r"^module (?P<name>\w+)\((?P<ports>[^)]*)\);\n", re.M)
_STATEMENT = re.compile(r"^(?=  (?!end$)[^ )])", re.M)
_DECLARATION = re.compile(
    rf"  (?P<kind>input|output|wire|reg) (?:\[(?P<high>\d+):0\] )?(?P<name>{NAME})\s*(?P<init> ?= [^;]+)?;"
)
_MEMORY = re.compile(rf"  reg (?:\[(?P<high>\d+):0\] )?(?P<name>{NAME}) \[\d+:0\];")
_ASSIGN = re.compile(rf"  assign (?P<target>{NAME})\s*= (?P<value>[^\n]+?)\s*;")
_CLOCKED = re.compile(rf"  always @\((?P<edge>\w+ \w+)\)\n    (?P<register>{NAME}) <= (?P<next>{NAME})\s*;")
_VALUE = re.compile(rf"^(?P<indent> +)(?P<name>{NAME})\s*{_SELECT}? (?P<operator><?=) (?P<value>[^\n]*?)\s*;$", re.M)
_TEST = re.compile(r"^(?P<before> +(?:end else )?if \()(?P<value>[^\n]*?)\s*(?P<after>\)(?: begin)?)$", re.M)
_CONNECTION = re.compile(r"^(?P<before>    \.\w+\()(?P<value>[^\n]*?)\s*(?P<after>\),?)$", re.M)
_COUNTED = re.compile(r"(?P<memory>\w+)\[(?P<counter>\w+)\] = (?P=counter)(?: (?P<sign>[+-]) (?P<more>\d+))?;")
_PART = re.compile(rf"(?<![\w'])(?P<name>{_NUMBERED})\b(?:\s*{_SELECT})?")
_ATTRIBUTE = re.compile(r"^ *\(\* [^\n]* \*\)\n", re.M)


@dataclass
class _Declaration:
    """A net or register: input, output or nothing, wire or reg, bits, and its initial value."""

    direction: str
    kind: str
    width: int
    init: str


def tidy(verilog: str) -> str:
    """The same design as VERILOG, which is that of `rtlil_to_verilog`, without comments and attributes."""
    return "\n".join(_Module(text).text() for text in verilog.split(_END)[:-1])


class _Module:
    """One module, taken apart: its declarations and its statements, a text of whole lines each."""

    def __init__(self, text: str) -> None:
        text = _plain_temporaries(_ATTRIBUTE.sub("", text))
        head = _HEAD.search(text)
        assert head is not None, text[:200]
        self._name = head["name"]
        self._ports = _WORD.findall(head["ports"])
        self._declarations: dict[str, _Declaration] = {}
        self._memories: list[str] = []
        self._word_widths: dict[str, int] = {}
        self._statements: list[str] = []
        for statement in _STATEMENT.split(text[head.end() :].replace(f"if ({_WAKE} )", f"if ({_WAKE})")):
            if statement.strip():
                self._take(statement.rstrip())
        self._clock_next_values()
        self._widen()
        self._narrow()
        self._name_after_copies()
        self._put_expressions_together()

    def _take(self, statement: str) -> None:
        if found := _DECLARATION.fullmatch(statement):
            declared = _Declaration("", "wire", int(found["high"] or 0) + 1, "")
            declared = self._declarations.setdefault(found["name"], declared)
            if found["kind"] in ("input", "output"):
                declared.direction = found["kind"]
            else:
                declared.kind, declared.init = found["kind"], (found["init"] or "").strip()
        elif found := _MEMORY.fullmatch(statement):
            self._memories.append(statement)
            self._word_widths[found["name"]] = int(found["high"] or 0) + 1
        elif statement.startswith("  always"):
            self._statements.append(_with_defaults(statement))
        elif statement.startswith("  initial begin\n"):
            self._statements.append(_COUNTED.sub(self._sized, statement))
        elif not statement.startswith(f"  initial {_WAKE} "):
            self._statements.append(statement)

    def _sized(self, found: re.Match[str]) -> str:
        """A word of a memory that is filled from its counter, an integer, with as many bits as the memory has."""
        width = min(self._word_widths[found["memory"]], _INTEGER_BITS)
        more = f" {found['sign']} {width}'d{found['more']}" if found["more"] else ""
        return f"{found['memory']}[{found['counter']}] = {found['counter']}[{width - 1}:0]{more};"

    def _uses(self) -> Counter[str]:
        return Counter(word for statement in self._statements for word in _WORD.findall(statement))

    def _widths(self) -> dict[str, int]:
        return {name: declaration.width for name, declaration in self._declarations.items()}

    def _clock_next_values(self) -> None:
        """`always @* next = ...` and `always @(posedge clk) register <= next` become one process."""
        uses = self._uses()
        processes = {}
        for at, statement in enumerate(self._statements):
            if statement.startswith("  always @* begin"):
                targets = [found["name"] for found in _VALUE.finditer(statement)]
                if len(set(targets)) == 1 and uses[targets[0]] == len(targets) + 1 and _is_temporary(targets[0]):
                    processes[targets[0]] = at
        for at, statement in enumerate(self._statements):
            found = _CLOCKED.fullmatch(statement)
            if found is not None and found["next"] in processes:
                process = processes[found["next"]]
                self._statements[at] = _clocked(self._statements[process], found["edge"], found["register"])
                self._statements[process] = ""
        self._statements = list(filter(None, self._statements))

    def _widen(self) -> None:
        """A numbered net that is one bit of a shifted one, `assign bit = net >> index`, gets the other bits too."""
        expressions = Expressions(self._widths(), {}, lambda name: False)
        wide = set()
        for statement in self._statements:
            if (definition := _assigned(statement)) and self._declarations[definition[0]].width == 1:
                width = expressions.shifted_width(definition[1])
                if width is not None and width > 1:
                    wide.add(definition[0])
                    self._declarations[definition[0]].width = width
        for at, statement in enumerate(self._statements):
            head, equals, value = statement.partition(" = ") if _assigned(statement) else ("", "", statement)
            value = _WORD.sub(lambda word: f"{word[0]}[0]" if word[0] in wide else word[0], value)
            self._statements[at] = f"{head}{equals}{value}"

    def _narrow(self) -> None:
        """A numbered net of whose bits only the low ones are used, such as a sum without its carry, has only those."""
        widths = self._widths()
        expressions = Expressions(widths, {}, lambda name: False)
        before: list[str] = []
        while before != self._statements:
            before = list(self._statements)
            used = self._bits_used(widths)
            for at, statement in enumerate(before):
                definition = _assigned(statement)
                if definition is None or not 0 < used[definition[0]] < widths[definition[0]]:
                    continue
                name, value = definition[0], expressions.low_bits(definition[1], used[definition[0]])
                if value is not None:
                    widths[name] = self._declarations[name].width = used[name]
                    self._statements[at] = f"  assign {name} = {value};"

        def whole(part: re.Match[str]) -> str:
            if part["high"] is None:
                return part[0]
            bits = int(part["high"]) + 1, int(part["low"] or part["high"])
            return part["name"] if bits == (widths.get(part["name"]), 0) else part[0]

        self._statements = [_PART.sub(whole, statement) for statement in self._statements]

    def _bits_used(self, widths: dict[str, int]) -> Counter[str]:
        """For each numbered net, one more than the highest bit that is used."""
        used: Counter[str] = Counter()
        for statement in self._statements:
            definition = _assigned(statement)
            for part in _PART.finditer(definition[1] if definition else statement):
                bits = widths.get(part["name"], 0) if part["high"] is None else int(part["high"]) + 1
                used[part["name"]] = max(used[part["name"]], bits)
        return used

    def _name_after_copies(self) -> None:
        """A numbered net or register of which a named net is a copy has that one's name."""
        numbered = {definition[0] for definition in map(_assigned, self._statements) if definition}
        for statement in self._statements:
            if statement.startswith("  always"):
                numbered |= {found["name"] for found in _VALUE.finditer(statement) if _is_temporary(found["name"])}
        names: dict[str, str] = {}
        kept = []
        for statement in self._statements:
            found = _ASSIGN.fullmatch(statement)
            if found and found["value"] in numbered - names.keys() and not _is_temporary(found["target"]):
                names[found["value"]] = found["target"]
                copied, target = self._declarations.pop(found["value"]), self._declarations[found["target"]]
                target.kind, target.init = copied.kind, copied.init
            else:
                kept.append(statement)
        self._statements = [_WORD.sub(lambda word: names.get(word[0], word[0]), statement) for statement in kept]

    def _put_expressions_together(self) -> None:
        """Numbered nets are replaced by what they are, and go if nothing is left that names them."""
        uses = self._uses()
        definitions = dict(filter(None, map(_assigned, self._statements)))
        # One of the uses counted is the definition.
        expressions = Expressions(self._widths(), definitions, lambda name: uses[name] == 2)
        changed = [self._with_expressions(statement, expressions) for statement in self._statements]
        parts: dict[Hashable, Part] = {}
        wanted: list[str] = []
        for at, statement in enumerate(changed):
            if definition := _assigned(statement):
                parts[at] = Statement([definition[0]], _WORD.findall(definition[1]))
            else:
                wanted += _WORD.findall(statement)
        gone = parts.keys() - Liveness({"": parts}, {"": wanted}).parts
        self._statements = [statement for at, statement in enumerate(changed) if at not in gone]

    def _with_expressions(self, statement: str, expressions: Expressions) -> str:
        """A statement with expressions in the place of numbered nets."""

        def alone(found: re.Match[str]) -> str:
            return f"{found['before']}{expressions.alone(found['value'])}{found['after']}"

        def assigned(found: re.Match[str]) -> str:
            width = self._declarations[found["name"]].width
            if found["high"] is not None:
                width = int(found["high"]) - int(found["low"] or found["high"]) + 1
            target = f"{found['indent']}{found['name']}{found['select'] or ''}"
            return f"{target} {found['operator']} {expressions.whole(found['value'], width)};"

        if found := _ASSIGN.fullmatch(statement):
            value = expressions.whole(found["value"], self._declarations[found["target"]].width)
            return f"  assign {found['target']} = {value};"
        if statement.startswith("  always"):
            return _VALUE.sub(assigned, _TEST.sub(alone, statement))
        return _CONNECTION.sub(alone, statement) if statement.endswith("  );") else statement

    def text(self) -> str:
        """The module."""
        used = self._uses()
        shown = [name for name in self._declarations if name in used or not _is_temporary(name)]
        lines = [
            f"module {self._name} (",
            ",\n".join(f"  {self._declared(port)}" for port in self._ports),
            ");",
            *(f"  {self._declared(name)};" for name in shown if name not in self._ports),
            *self._memories,
        ]
        if _WAKE in used:
            lines += ["`ifndef SYNTHESIS", f"  initial {_WAKE} <= 1;", "`endif"]
        text = "\n".join([*lines, "", *self._statements, _END])
        numbers = {name: f"_{number}" for number, name in enumerate(filter(_is_temporary, shown), 1)}
        return _WORD.sub(lambda word: numbers.get(word[0], word[0]), text)

    def _declared(self, name: str) -> str:
        declaration = self._declarations[name]
        bits = f"[{declaration.width - 1}:0]" if declaration.width > 1 else ""
        return " ".join(filter(None, (declaration.direction, declaration.kind, bits, name, declaration.init)))


def _is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(name) is not None


def _assigned(statement: str) -> tuple[str, str] | None:
    """Net and expression of an assignment to a numbered net."""
    found = _ASSIGN.fullmatch(statement)
    return (found["target"], found["value"]) if found and _is_temporary(found["target"]) else None


def _plain_temporaries(text: str) -> str:
    """Names such as `\\$12 ` as `_12`, by numbers that are not in use."""
    first = 1 + max((int(number) for number in re.findall(r"(?<![\w\\.$])_(\d+)\b", text)), default=0)
    numbers: dict[str, str] = {}
    return _ESCAPED.sub(lambda found: numbers.setdefault(found[1], f"_{first + len(numbers)}") + " ", text)


def _with_defaults(process: str) -> str:
    """A process whose cases say that they do nothing where they do nothing."""
    lines: list[str] = []
    open_cases: list[bool] = []
    for line in process.split("\n"):
        words = line.split()
        if words[0].startswith("case"):
            open_cases.append(False)
        elif words[0] in ("default", "default:"):
            open_cases[-1] = True
        elif words[0] == "endcase" and not open_cases.pop():
            lines.append(f"{line[: line.index('endcase')]}  default: ;")
        lines.append(line)
    return "\n".join(lines)


def _clocked(process: str, edge: str, register: str) -> str:
    """A combinational process of a register's next value as one that clocks the register."""
    body = process.partition("\n")[2].replace(f"    if ({_WAKE}) begin end\n", "")

    def clocked(found: re.Match[str]) -> str:
        return f"{found['indent']}{register}{found['select'] or ''} <= {found['value']};"

    lines = _VALUE.sub(clocked, body).split("\n")
    if lines[0] == f"    {register} <= {register};":
        del lines[0]
    return "\n".join([f"  always @({edge}) begin", *lines])
