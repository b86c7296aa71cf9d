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
from collections.abc import Iterator
from dataclasses import dataclass

from verilog.export.expressions import NAME, Expressions

__all__ = ["tidy"]

_END = "endmodule\n"
_INTEGER_BITS = 32
_WAKE = "_wake"
_ESCAPED = re.compile(r"\\(\S+) ")
_TEMPORARY = re.compile(r"_(?:\d+_?|side_\d+)")
_WORD = re.compile(r"(?<![\w'])[A-Za-z_]\w*")
_HEAD = re.compile(r"^module (?P<name>\w+)\((?P<ports>[^)]*)\);$", re.M)
_DECLARATION = re.compile(
    rf"  (?P<kind>input|output|wire|reg) (?P<range>\[(?P<high>\d+):0\] )?(?P<name>{NAME})\s*(?P<init> ?= [^;]+)?;"
)
_MEMORY = re.compile(rf"  reg (?:\[(?P<high>\d+):0\] )?(?P<name>{NAME}) \[\d+:0\];")
_ASSIGN = re.compile(rf"  assign (?P<target>{NAME})\s*= (?P<value>[^\n]+?)\s*;")
_CLOCKED = re.compile(rf"  always @\((?P<edge>\w+ \w+)\)\n    (?P<register>{NAME}) <= (?P<next>{NAME})\s*;")
_WAKING = re.compile(rf"    if \((?P<name>{NAME})\s*\) begin end\n")
_TARGET = re.compile(
    rf"^(?P<indent> +)(?P<name>{NAME})\s*(?P<select>\[\d+(?::\d+)?\])? = (?P<value>[^\n]*?)\s*;$", re.M
)
_VALUE = re.compile(
    rf"^(?P<indent> +)(?P<name>{NAME})\s*(?:\[(?P<high>\d+)(?::(?P<low>\d+))?\])? (?P<operator><?=) "
    r"(?P<value>[^\n]*?)\s*;$",
    re.M,
)
_TEST = re.compile(r"^(?P<before> +(?:end else )?if \()(?P<value>[^\n]*?)\s*(?P<after>\)(?: begin)?)$", re.M)
_CONNECTION = re.compile(r"^(?P<before>    \.\w+\()(?P<value>[^\n]*?)\s*(?P<after>\),?)$", re.M)
_COUNTED = re.compile(r"(?P<memory>\w+)\[(?P<counter>\w+)\] = (?P=counter)(?: (?P<sign>[+-]) (?P<more>\d+))?;")
_PART = re.compile(r"(?<![\w'])(?P<name>_(?:\d+_?|side_\d+))\b(?:\s*\[(?P<high>\d+)(?::(?P<low>\d+))?\])?")
_ATTRIBUTE = re.compile(r"^ *\(\* [^\n]* \*\)\n", re.M)


@dataclass
class _Declaration:
    """A net or register: input, output or nothing, wire or reg, its range and its initial value."""

    direction: str
    kind: str
    range: str
    width: int
    init: str


def tidy(verilog: str) -> str:
    """The same design as VERILOG, which is Yosys's, without comments and attributes."""
    parts = verilog.split(_END)
    return "\n".join(_Module(text).text() for text in parts[:-1])


class _Module:
    """One module, taken apart: its declarations and its statements, a text of whole lines each."""

    def __init__(self, text: str) -> None:
        text = _plain_temporaries(_ATTRIBUTE.sub("", text))
        head = _HEAD.search(text)
        assert head is not None, text[:200]
        self._name = head["name"]
        self._ports = [port.strip() for port in head["ports"].split(",") if port.strip()]
        self._declarations: dict[str, _Declaration] = {}
        self._memories: dict[str, str] = {}
        self._word_widths: dict[str, int] = {}
        self._statements: list[str] = []
        waking = {found["name"] for found in _WAKING.finditer(text)}
        if waking:
            text = _WORD.sub(lambda word: _WAKE if word[0] in waking else word[0], text)
            text = _WAKING.sub(f"    if ({_WAKE}) begin end\n", text)
        for chunk in _chunks(text[head.end() :]):
            self._take(chunk)
        self._clock_next_values()
        self._widen()
        self._narrow()
        self._name_after_copies()
        self._put_expressions_together()

    def _take(self, chunk: str) -> None:
        if found := _DECLARATION.fullmatch(chunk):
            known = self._declarations.setdefault(
                found["name"], _Declaration("", "wire", found["range"] or "", int(found["high"] or 0) + 1, "")
            )
            if found["kind"] in ("input", "output"):
                known.direction = found["kind"]
            else:
                known.kind = found["kind"]
                known.init = (found["init"] or "").strip()
        elif found := _MEMORY.fullmatch(chunk):
            self._memories[found["name"]] = chunk
            self._word_widths[found["name"]] = int(found["high"] or 0) + 1
        elif chunk.startswith("  always"):
            self._statements.append(_with_defaults(chunk))
        elif chunk.startswith("  initial begin\n"):
            self._statements.append(_sized(chunk, self._word_widths))
        elif chunk.startswith(f"  initial {_WAKE} "):
            self._declarations[_WAKE].init = "= 0"
        else:
            self._statements.append(chunk)

    def _uses(self) -> Counter[str]:
        return Counter(word for statement in self._statements for word in _WORD.findall(statement))

    def _assigned(self, statement: str) -> tuple[str, str] | None:
        """Net and expression of an assignment to a numbered net."""
        found = _ASSIGN.fullmatch(statement)
        return (found["target"], found["value"]) if found and _is_temporary(found["target"]) else None

    def _clock_next_values(self) -> None:
        """`always @* next = ...` and `always @(posedge clk) register <= next` become one process."""
        uses = self._uses()
        processes = {}
        for at, statement in enumerate(self._statements):
            if statement.startswith("  always @* begin"):
                targets = {found["name"] for found in _TARGET.finditer(statement)}
                if len(targets) == 1:
                    processes[targets.pop()] = at
        gone: set[int] = set()
        for at, statement in enumerate(self._statements):
            found = _CLOCKED.fullmatch(statement)
            if found is None or found["next"] not in processes or not _is_temporary(found["next"]):
                continue
            process = self._statements[processes[found["next"]]]
            if uses[found["next"]] != 1 + len(_TARGET.findall(process)):
                continue
            gone.add(processes[found["next"]])
            self._statements[at] = _clocked(process, found["edge"], found["register"])
        self._statements = [statement for at, statement in enumerate(self._statements) if at not in gone]

    def _widths(self) -> dict[str, int]:
        return {name: declaration.width for name, declaration in self._declarations.items()}

    def _resize(self, name: str, width: int) -> None:
        declaration = self._declarations[name]
        declaration.width, declaration.range = width, f"[{width - 1}:0] " if width > 1 else ""

    def _widen(self) -> None:
        """A numbered net that is one bit of a shifted one, `assign bit = net >> index`, gets the other bits too."""
        expressions = Expressions(self._widths(), {}, lambda name: False)
        wide = {}
        for statement in self._statements:
            definition = self._assigned(statement)
            if definition and self._declarations[definition[0]].width == 1:
                width = expressions.shifted_width(definition[1])
                if width is not None and width > 1:
                    wide[definition[0]] = width
        for name, width in wide.items():
            self._resize(name, width)
        for at, statement in enumerate(self._statements):
            head, equals, value = statement.partition(" = ") if self._assigned(statement) else ("", "", statement)
            value = _WORD.sub(lambda word: f"{word[0]}[0]" if word[0] in wide else word[0], value)
            self._statements[at] = f"{head}{equals}{value}"

    def _narrow(self) -> None:
        """A numbered net of whose bits only the low ones are used, such as a sum without its carry, has only those."""
        widths = self._widths()
        expressions = Expressions(widths, {}, lambda name: False)
        todo = True
        while todo:
            todo = False
            used = self._bits_used(widths)
            for at, statement in enumerate(self._statements):
                definition = self._assigned(statement)
                if definition is None or not 0 < used[definition[0]] < widths[definition[0]]:
                    continue
                name, width = definition[0], used[definition[0]]
                value = expressions.low_bits(definition[1], width)
                if value is not None:
                    todo = True
                    widths[name] = width
                    self._resize(name, width)
                    self._statements[at] = f"  assign {name} = {value};"
        self._statements = [_PART.sub(lambda part: _whole(part, widths), statement) for statement in self._statements]

    def _bits_used(self, widths: dict[str, int]) -> Counter[str]:
        """For each numbered net, one more than the highest bit that is used."""
        used: Counter[str] = Counter()
        for statement in self._statements:
            definition = self._assigned(statement)
            for part in _PART.finditer(definition[1] if definition else statement):
                bits = widths.get(part["name"], 0) if part["high"] is None else int(part["high"]) + 1
                used[part["name"]] = max(used[part["name"]], bits)
        return used

    def _name_after_copies(self) -> None:
        """A numbered net or register of which a named net is a copy has that one's name."""
        numbered = {definition[0] for statement in self._statements if (definition := self._assigned(statement))}
        for statement in self._statements:
            if statement.startswith("  always"):
                numbered |= {found["name"] for found in _driven(statement) if _is_temporary(found["name"])}
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
        uses = self._uses()
        definitions = dict(filter(None, map(self._assigned, self._statements)))
        widths = self._widths()
        # One of the uses counted is the definition.
        expressions = Expressions(widths, definitions, lambda name: uses[name] == 2)
        changed = [_with_expressions(statement, expressions, widths) for statement in self._statements]
        left = dict(filter(None, map(self._assigned, changed)))
        todo = [word for statement in changed if not self._assigned(statement) for word in _WORD.findall(statement)]
        wanted: set[str] = set()
        while todo:
            name = todo.pop()
            if name in left and name not in wanted:
                wanted.add(name)
                todo += _WORD.findall(left[name])
        self._statements = [
            statement
            for statement in changed
            if (definition := self._assigned(statement)) is None or definition[0] in wanted
        ]

    def text(self) -> str:
        """The module."""
        used = {word for statement in self._statements for word in _WORD.findall(statement)}
        numbers: dict[str, str] = {}
        for name in self._declarations:
            if _is_temporary(name) and name in used:
                numbers[name] = f"_{len(numbers) + 1}"
        renamed = [_WORD.sub(lambda word: numbers.get(word[0], word[0]), statement) for statement in self._statements]
        ports = (f"  {self._declarations[port].direction} {self._declared(port)}" for port in self._ports)
        lines = [f"module {self._name} (", ",\n".join(ports), ");"]
        lines += (
            f"  {self._declared(name, numbers.get(name, name))};"
            for name in self._declarations
            if name not in self._ports and (name in used or not _is_temporary(name))
        )
        lines += self._memories.values()
        if _WAKE in used:
            lines += ["`ifndef SYNTHESIS", f"  initial {_WAKE} <= 1;", "`endif"]
        return "\n".join([*lines, "", *renamed, _END.strip()]) + "\n"

    def _declared(self, name: str, shown: str | None = None) -> str:
        declaration = self._declarations[name]
        init = f" {declaration.init}" if declaration.init else ""
        return f"{declaration.kind} {declaration.range}{shown or name}{init}"


def _is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(name) is not None


def _whole(part: re.Match[str], widths: dict[str, int]) -> str:
    """A part of a numbered net, or its name if that part is all of it."""
    if part["high"] is None:
        return part[0]
    bits = int(part["high"]) + 1, int(part["low"] or part["high"])
    return part["name"] if bits == (widths.get(part["name"]), 0) else part[0]


def _plain_temporaries(text: str) -> str:
    """Names such as `\\$12 ` as `_12`, by numbers that are not in use."""
    first = 1 + max((int(number) for number in re.findall(r"(?<![\w\\.$])_(\d+)\b", text)), default=0)
    numbers: dict[str, str] = {}

    def plain(found: re.Match[str]) -> str:
        return numbers.setdefault(found[1], f"_{first + len(numbers)}") + " "

    return _ESCAPED.sub(plain, text)


def _chunks(text: str) -> Iterator[str]:
    """Statements: from a line that is indented by two to the line before the next."""
    chunk: list[str] = []
    for line in text.splitlines():
        if line.startswith("  ") and line[2] not in " )" and line != "  end" and chunk:
            yield "\n".join(chunk)
            chunk = []
        if line.strip():
            chunk.append(line)
    if chunk:
        yield "\n".join(chunk)


def _with_defaults(process: str) -> str:
    """A process whose cases say that they do nothing where they do nothing."""
    lines: list[str] = []
    open_cases: list[bool] = []
    for line in process.split("\n"):
        words = line.split()
        if words[0].startswith("case"):
            open_cases.append(False)
        elif words[0].startswith("default"):
            open_cases[-1] = True
        elif words[0] == "endcase" and not open_cases.pop():
            lines.append(f"{line[: line.index('endcase')]}  default: ;")
        lines.append(line)
    return "\n".join(lines)


def _clocked(process: str, edge: str, register: str) -> str:
    """A combinational process of a register's next value as one that clocks the register."""
    body = _WAKING.sub("", process.partition("\n")[2] + "\n").rstrip("\n")

    def clocked(found: re.Match[str]) -> str:
        return f"{found['indent']}{register}{found['select'] or ''} <= {found['value']};"

    lines = _TARGET.sub(clocked, body).split("\n")
    if lines[0] == f"    {register} <= {register};":
        del lines[0]
    return "\n".join([f"  always @({edge}) begin", *lines])


def _driven(statement: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"^ +(?P<name>{NAME})\s*(?:\[[^\n]*\])? <?= ", statement, re.M)


def _sized(initial: str, widths: dict[str, int]) -> str:
    """A loop that fills a memory from its counter, which is an integer, with words of the memory's width."""

    def sized(found: re.Match[str]) -> str:
        width = min(widths[found["memory"]], _INTEGER_BITS)
        more = f" {found['sign']} {width}'d{found['more']}" if found["more"] else ""
        counter = found["counter"]
        return f"{found['memory']}[{counter}] = {counter}[{width - 1}:0]{more};"

    return _COUNTED.sub(sized, initial)


def _with_expressions(statement: str, expressions: Expressions, widths: dict[str, int]) -> str:
    """A statement with expressions in the place of numbered nets."""

    def alone(found: re.Match[str]) -> str:
        return f"{found['before']}{expressions.alone(found['value'])}{found['after']}"

    if found := _ASSIGN.fullmatch(statement):
        return f"  assign {found['target']} = {expressions.whole(found['value'], widths[found['target']])};"
    if statement.startswith("  always"):
        return _VALUE.sub(lambda value: _assigned(value, expressions, widths), _TEST.sub(alone, statement))
    if statement.endswith("  );"):
        return _CONNECTION.sub(alone, statement)
    return statement


def _assigned(found: re.Match[str], expressions: Expressions, widths: dict[str, int]) -> str:
    if found["high"] is not None:
        high, low = int(found["high"]), int(found["low"] if found["low"] is not None else found["high"])
        width, select = high - low + 1, f"[{high}]" if high == low else f"[{high}:{low}]"
    else:
        width, select = widths[found["name"]], ""
    value = expressions.whole(found["value"], width)
    return f"{found['indent']}{found['name']}{select} {found['operator']} {value};"
