"""RTLIL text as Amaranth writes it, as a netlist that can be changed and written again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Cell", "Connection", "Module", "Process", "Wire", "nets", "parse"]

_MODULE = re.compile(r"(?P<attributes>(?:attribute .*\n)*)module (?P<name>\S+)\n(?P<body>(?:(?:  |connect).*\n)*)end\n")
_ITEM = re.compile(
    r"(?P<attributes>(?:  attribute .*\n)*)"
    r"(?:  )?(?P<kind>cell|process|memory|wire|connect) (?P<head>.*)\n(?P<body>(?:    .*\n)*)(?:  end\n)?"
)
_BLANK = re.compile(r"^\n", re.M)
_NET = re.compile(r"[\\$][^\s{}]+")
_WIRE = re.compile(r"width (?P<width>\d+) (?:(?P<direction>input|output) \d+ +)?(?P<name>\S+)")
_SIDES = r"(?P<target>(?:\{[^}]*\}|\S+)(?: \[\d+(?::\d+)?\])?) (?P<source>.+)"
_CONNECTION = re.compile(_SIDES)
_ASSIGN = re.compile(rf"^ +assign {_SIDES}$", re.M)
_SWITCH = re.compile(r"^ +switch (.+)$", re.M)
_PORT = re.compile(r"^    connect (\S+) (.+)\n", re.M)
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

    attributes: str
    name: str
    width: int
    direction: str


@dataclass
class Cell:
    """An operator, a register, a port of a memory, or an instance of a module; PARAMETERS are lines."""

    attributes: str
    type: str
    name: str
    parameters: str
    connections: dict[str, str]

    @property
    def is_instance(self) -> bool:
        """Whether it is an instance of a module."""
        return self.type.startswith("\\")

    def memory(self) -> set[str]:
        """The name of the memory that the cell is a port of, if it is one."""
        return {name.replace("\\\\", "\\") for name in _MEMORY.findall(self.parameters)}

    def _outputs(self) -> frozenset[str]:
        return frozenset((r"\DATA",)) if self.type == _READ_MEMORY_CELL else _OUTPUTS

    def drives(self) -> set[str]:
        """Nets and memories that an operator, register or memory port decides."""
        if self.type in _WRITTEN_MEMORY_CELLS:
            return self.memory()
        return nets(" ".join(spec for port, spec in self.connections.items() if port in self._outputs()))

    def reads(self) -> set[str]:
        """Nets and memories that it depends on."""
        read = nets(" ".join(spec for port, spec in self.connections.items() if port not in self._outputs()))
        return read | self.memory() if self.type == _READ_MEMORY_CELL else read

    def __str__(self) -> str:
        ports = "".join(f"    connect {port} {spec}\n" for port, spec in self.connections.items())
        return f"{self.attributes}  cell {self.type} {self.name}\n{self.parameters}{ports}  end\n"


@dataclass
class Process:
    """A combinational process: lines of assignments and switches."""

    attributes: str
    name: str
    lines: str

    def drives(self) -> set[str]:
        """Nets that are assigned to."""
        return nets(" ".join(found["target"] for found in _ASSIGN.finditer(self.lines)))

    def reads(self) -> set[str]:
        """Nets that are tested or assigned from."""
        sources = (found["source"] for found in _ASSIGN.finditer(self.lines))
        return nets(" ".join((*sources, *_SWITCH.findall(self.lines))))

    def __str__(self) -> str:
        return f"{self.attributes}  process {self.name}\n{self.lines}  end\n"


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

    def __str__(self) -> str:
        return f"  connect {self.target} {self.source}\n"


@dataclass
class Module:
    """A module of the design; of each memory there are the lines."""

    attributes: str
    name: str
    wires: dict[str, Wire] = field(default_factory=dict)
    memories: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    @property
    def statements(self) -> list[Cell | Process | Connection]:
        """All that drives a net."""
        return [*self.cells, *self.processes, *self.connections]

    def order_ports(self, names: list[str]) -> None:
        """Put the ports in this order, before all other nets."""
        self.wires = {name: self.wires[name] for name in names} | self.wires

    def __str__(self) -> str:
        lines = [f"{self.attributes}module {self.name}\n", *self.memories.values()]
        ports = 0
        for wire in self.wires.values():
            ports += bool(wire.direction)
            direction = f"{wire.direction} {ports} " if wire.direction else ""
            lines.append(f"{wire.attributes}  wire width {wire.width} {direction}{wire.name}\n")
        return "".join([*lines, *map(str, self.statements), "end\n"])


def parse(text: str) -> dict[str, Module]:
    """The modules of a design by name, in order.

    Raises:
        ValueError: a line that Amaranth does not write, with its text.
    """
    modules: dict[str, Module] = {}
    for found in _each(_MODULE, _BLANK.sub("", text), "outside a module"):
        module = modules[found["name"]] = Module(found["attributes"], found["name"])
        for item in _each(_ITEM, found["body"], f"in module {module.name}"):
            _take(module, *item.group("attributes", "kind", "head", "body"))
    return modules


def _each(pattern: re.Pattern[str], text: str, where: str) -> Iterator[re.Match[str]]:
    """Matches that follow one another up to the end of the text."""
    at = 0
    while at < len(text):
        found = pattern.match(text, at)
        if found is None:
            raise ValueError(f"RTLIL {where}: {text[at:].splitlines()[0]}")
        yield found
        at = found.end()


def _take(module: Module, attributes: str, kind: str, head: str, body: str) -> None:
    if kind == "cell":
        type_, name = head.split()
        module.cells.append(Cell(attributes, type_, name, _PORT.sub("", body), dict(_PORT.findall(body))))
    elif kind == "process":
        module.processes.append(Process(attributes, head, body))
    elif kind == "memory":
        module.memories[head.split()[-1]] = f"{attributes}  memory {head}\n"
    elif kind == "wire" and (wire := _WIRE.fullmatch(head)):
        module.wires[wire["name"]] = Wire(attributes, wire["name"], int(wire["width"]), wire["direction"] or "")
    elif kind == "connect" and (sides := _CONNECTION.fullmatch(head)):
        module.connections.append(Connection(sides["target"], sides["source"]))
    else:
        raise ValueError(f"RTLIL in module {module.name}: {kind} {head}")
