"""RTLIL text as Amaranth writes it, as a netlist that can be changed and written again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Cell", "Connection", "Module", "Process", "Wire", "nets", "parse"]

_NET = re.compile(r"[\\$][^\s{}]+")
_WIRE = re.compile(r"wire width (?P<width>\d+) (?:(?P<direction>input|output) \d+ +)?(?P<name>\S+)")
_MEMORY = re.compile(r'parameter \\MEMID "(?P<name>[^"]*)"')
_OUTPUTS = frozenset((r"\Y", r"\Q"))
_WRITTEN_MEMORY_CELLS = frozenset(("$memwr_v2", "$meminit_v2"))
_READ_MEMORY_CELL = "$memrd_v2"


def nets(sigspec: str) -> set[str]:
    """Names of the nets in a sigspec, such as `{ \\data [3:0] $7 [0] }`."""
    return set(_NET.findall(sigspec))


@dataclass
class Wire:
    """A net: its attribute lines, its width, and `input`, `output` or nothing."""

    attributes: list[str]
    name: str
    width: int
    direction: str


@dataclass
class Cell:
    """An operator, a register, a port of a memory, or an instance of a module."""

    attributes: list[str]
    type: str
    name: str
    parameters: list[str]
    connections: dict[str, str]

    @property
    def is_instance(self) -> bool:
        """Whether it is an instance of a module."""
        return self.type.startswith("\\")

    def memory(self) -> set[str]:
        """The name of the memory that the cell is a port of, if it is one."""
        found = (_MEMORY.search(line) for line in self.parameters)
        return {line["name"].replace("\\\\", "\\") for line in found if line}

    def drives(self) -> set[str]:
        """Nets and memories that an operator, register or memory port decides."""
        if self.type in _WRITTEN_MEMORY_CELLS:
            return self.memory()
        outputs = {r"\DATA"} if self.type == _READ_MEMORY_CELL else _OUTPUTS
        return {net for port in outputs & self.connections.keys() for net in nets(self.connections[port])}

    def reads(self) -> set[str]:
        """Nets and memories that it depends on."""
        read = self.memory() if self.type == _READ_MEMORY_CELL else set()
        outputs = {r"\DATA"} if self.type == _READ_MEMORY_CELL else _OUTPUTS
        return read.union(*(nets(spec) for port, spec in self.connections.items() if port not in outputs))


@dataclass
class Process:
    """A combinational process: lines of assignments and switches."""

    attributes: list[str]
    name: str
    lines: list[str]

    def drives(self) -> set[str]:
        """Nets that are assigned to."""
        targets = (line.split()[1] for line in self.lines if line.lstrip().startswith("assign "))
        return {target for target in targets if target != "{"}.union(
            *(nets(line.partition("}")[0]) for line in self.lines if line.lstrip().startswith("assign {"))
        )

    def reads(self) -> set[str]:
        """Nets that are tested or assigned from."""
        found: set[str] = set()
        for line in self.lines:
            kind, _, rest = line.strip().partition(" ")
            if kind == "switch":
                found |= nets(rest)
            elif kind == "assign":
                found |= nets(_sides(rest)[1])
        return found


@dataclass
class Connection:
    """A net that is another."""

    target: str
    source: str

    def drives(self) -> set[str]:
        """The net given."""
        return nets(self.target)

    def reads(self) -> set[str]:
        """The nets taken."""
        return nets(self.source)


@dataclass
class Module:
    """A module of the design."""

    attributes: list[str]
    name: str
    wires: dict[str, Wire] = field(default_factory=dict)
    memories: dict[str, list[str]] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    def order_ports(self, names: list[str]) -> None:
        """Put the ports in this order, before all other nets."""
        self.wires = {name: self.wires[name] for name in names} | self.wires

    def __str__(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from self.attributes
        yield f"module {self.name}"
        for lines in self.memories.values():
            yield from lines
        ports = 1
        for wire in self.wires.values():
            yield from wire.attributes
            direction = f"{wire.direction} {ports} " if wire.direction else ""
            ports += bool(wire.direction)
            yield f"  wire width {wire.width} {direction}{wire.name}"
        for cell in self.cells:
            yield from cell.attributes
            yield f"  cell {cell.type} {cell.name}"
            yield from cell.parameters
            for port, spec in cell.connections.items():
                yield f"    connect {port} {spec}"
            yield "  end"
        for process in self.processes:
            yield from process.attributes
            yield f"  process {process.name}"
            yield from process.lines
            yield "  end"
        for connection in self.connections:
            yield f"  connect {connection.target} {connection.source}"
        yield "end"


def parse(text: str) -> dict[str, Module]:
    """The modules of a design by name, in order.

    Raises:
        ValueError: a line that Amaranth does not write, with its text.
    """
    modules: dict[str, Module] = {}
    attributes: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("attribute "):
            attributes.append(line)
        elif line.startswith("module "):
            module = Module(attributes, line.split()[1])
            attributes = []
            _fill(module, lines)
            modules[module.name] = module
        elif line.strip():
            raise ValueError(f"RTLIL outside a module: {line}")
    return modules


def _fill(module: Module, lines: Iterator[str]) -> None:
    attributes: list[str] = []
    for line in lines:
        words = line.split(None, 2)
        kind = words[0] if words else ""
        if kind == "end":
            return
        if kind == "attribute":
            attributes.append(line)
            continue
        if kind == "wire" and (wire := _WIRE.match(line.strip())):
            name = wire["name"]
            module.wires[name] = Wire(attributes, name, int(wire["width"]), wire["direction"] or "")
        elif kind == "memory":
            module.memories[line.split()[-1]] = [*attributes, line]
        elif kind == "cell":
            module.cells.append(_cell(attributes, words[1], words[2], lines))
        elif kind == "process":
            module.processes.append(Process(attributes, words[1], _block(lines)))
        elif kind == "connect":
            module.connections.append(Connection(*_sides(line.strip().partition(" ")[2])))
        elif kind:
            raise ValueError(f"RTLIL in module {module.name}: {line}")
        attributes = attributes if not kind else []


def _cell(attributes: list[str], kind: str, name: str, lines: Iterator[str]) -> Cell:
    cell = Cell(attributes, kind, name, [], {})
    for line in lines:
        words = line.split(None, 2)
        if words[0] == "end":
            break
        if words[0] == "connect":
            cell.connections[words[1]] = words[2]
        else:
            cell.parameters.append(line)
    return cell


def _block(lines: Iterator[str]) -> list[str]:
    """The lines up to the `end` of a process, whose switches have ends of their own."""
    block: list[str] = []
    depth = 0
    for line in lines:
        words = line.split(None, 1)
        if words and words[0] == "end":
            if depth == 0:
                break
            depth -= 1
        depth += bool(words) and words[0] == "switch"
        block.append(line)
    return block


_SIDE = re.compile(r"(?:\{[^}]*\}|\S+)(?: \[\d+(?::\d+)?\])?")


def _sides(text: str) -> tuple[str, str]:
    """Two sigspecs in a row: what is assigned to, and what is assigned."""
    target = _SIDE.match(text)
    assert target is not None, text
    return target[0], text[target.end() :].strip()
