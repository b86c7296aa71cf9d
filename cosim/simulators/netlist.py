"""What stands in Verilog that Yosys wrote: modules, their ports and instances, and what depends on what at once.

Only the forms that Yosys writes are understood. A module of another form is left out.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Instance", "Netlist", "Port", "VerilogModule", "escaped"]

_MODULE = re.compile(r"^module (?P<name>\w+)\((?P<ports>[^;]*)\);\n(?P<body>.*?)^endmodule\n", re.M | re.S)
_NAME = r"(?:\\\S+ |[A-Za-z_]\w*)"
_WORD = re.compile(r"\\(?P<escaped>\S+) |(?P<number>\d*'[sS]?[bodhBODH][0-9a-fA-FxXzZ_?]+)|(?P<plain>[A-Za-z_]\w*)")
_PORT = re.compile(rf"^  (?P<direction>input|output) (?:signed )?(?:\[(?P<high>\d+):0\] )?(?P<name>{_NAME});$", re.M)
_ASSIGN = re.compile(r"  assign (?P<target>.+?) = (?P<value>.+);")
_CLOCKED = re.compile(rf"  always (?P<edge>@\(\w+ (?P<clock>{_NAME})\)).*")
_INSTANCE = re.compile(rf"  (?P<module>\w+) (?P<name>{_NAME}) ?\(")
_CONNECTION = re.compile(rf"    \.(?P<port>{_NAME})\((?P<value>.*)\),?")
_ASSIGNS = re.compile(r"^(?! *\(\*).*(?:[^=<>!]=[^=]|<=.*;)")
_STATEMENT = re.compile(rf"\s*(?P<target>{_NAME}\s?(?:\[[^=\]]*\])?|\{{[^={{}}]*\}})\s*=(?!=)")
_KEYWORDS = frozenset(("if", "else", "begin", "end", "case", "casez", "endcase", "default", "posedge", "negedge"))


def escaped(name: str) -> str:
    """A name as it may stand in Verilog, keyword or not."""
    return f"\\{name} "


@dataclass(frozen=True)
class Port:
    """A port of a module, `width` bits wide."""

    name: str
    width: int
    is_input: bool


@dataclass(frozen=True)
class Instance:
    """A module inside a module, with the names in the expression at each of its ports."""

    module: str
    name: str
    connections: dict[str, frozenset[str]]


@dataclass
class VerilogModule:
    """A module.

    Attributes:
        text: from `module` to `endmodule`, both included.
        ports: in order of declaration.
        instances: in order.
        clocks: nets at whose edges something happens here; `edges`: as in `@(posedge clk)`.
        reads: for each net with a combinational driver the nets that this driver reads. Instances are left out.
    """

    name: str
    text: str
    ports: list[Port]
    instances: list[Instance] = field(default_factory=list)
    clocks: set[str] = field(default_factory=set)
    edges: set[str] = field(default_factory=set)
    reads: dict[str, set[str]] = field(default_factory=dict)


class Netlist:
    """A text in Verilog.

    Attributes:
        modules: its modules, by name.
        is_understood: none was left out.
    """

    def __init__(self, verilog: str) -> None:
        self.modules: dict[str, VerilogModule] = {}
        self._through: dict[tuple[str, frozenset[str]], dict[str, frozenset[str]]] = {}
        self._clocks: dict[str, frozenset[str]] = {}
        for found in _MODULE.finditer(verilog):
            module = _module(found)
            if module is not None:
                self.modules[module.name] = module
        self.is_understood = len(self.modules) == len(re.findall(r"^module ", verilog, re.M))

    def tops(self) -> list[str]:
        """Modules that no other one instantiates."""
        below = {child.name for name in self.modules for child in self.children(name)}
        return [name for name in self.modules if name not in below]

    def children(self, name: str) -> Iterator[VerilogModule]:
        """The modules instantiated in a module, once for each instance."""
        for instance in self.modules[name].instances:
            if instance.module in self.modules:
                yield self.modules[instance.module]

    def is_whole(self, name: str) -> bool:
        """Whether all that a module instantiates is here."""
        return all(
            instance.module in self.modules for below in self.tree(name) for instance in self.modules[below].instances
        )

    def tree(self, name: str, leaves: Container[str] = ()) -> list[str]:
        """A module and those below it, each once, those below first; nothing that is only below LEAVES."""
        order: dict[str, None] = {}

        def visit(visited: str) -> None:
            for child in self.children(visited) if visited not in leaves else ():
                if child.name not in order:
                    visit(child.name)
            order[visited] = None

        visit(name)
        return list(order)

    def clocks(self, name: str) -> frozenset[str]:
        """Names in a module of all clocks in it and below."""
        if name not in self._clocks:
            module = self.modules[name]
            clocks = set(module.clocks)
            for instance in module.instances:
                if instance.module in self.modules:
                    # A clock that is not connected has no name here, but is one.
                    for clock in self.clocks(instance.module):
                        clocks |= instance.connections.get(clock, frozenset((f"{instance.name}.{clock}",)))
            self._clocks[name] = frozenset(clocks)
        return self._clocks[name]

    def through(self, name: str, united: frozenset[str] = frozenset()) -> dict[str, frozenset[str]]:
        """For each output of a module the inputs that it depends on in the same cycle.

        The outputs of a module that is UNITED are given together: if they depend on inputs at all, on the same ones.
        """
        key = name, united
        if key not in self._through:
            reads = self._reads(name, united)
            ports = self.modules[name].ports
            own_inputs = {port.name for port in ports if port.is_input}
            found = {
                port.name: frozenset(_reached(port.name, reads) & own_inputs) for port in ports if not port.is_input
            }
            if name in united:
                everything = frozenset[str]().union(*found.values())
                found = {output: everything if inputs else inputs for output, inputs in found.items()}
            self._through[key] = found
        return self._through[key]

    def looping(self, top: str, united: frozenset[str]) -> set[str]:
        """Those of the UNITED modules below a top that give outputs, together, on which their own inputs depend."""
        found: set[str] = set()
        for name in self.tree(top, united):
            if name in united:
                continue
            reads = self._reads(name, united)
            for instance in self.modules[name].instances:
                if instance.module not in united:
                    continue
                through = self.through(instance.module, united)
                read = frozenset[str]().union(*through.values())
                outputs = _connected(instance, (output for output, inputs in through.items() if inputs))
                if any(_reached(net, reads) & outputs for net in _connected(instance, read)):
                    found.add(instance.module)
        return found

    def _reads(self, name: str, united: frozenset[str]) -> dict[str, set[str]]:
        """For each net of a module those that it depends on."""
        module = self.modules[name]
        reads = {net: set(read) for net, read in module.reads.items()}
        for instance in module.instances:
            if instance.module not in self.modules:
                continue
            for output, inputs in self.through(instance.module, united).items():
                read = _connected(instance, inputs)
                for net in instance.connections.get(output, frozenset()):
                    reads.setdefault(net, set()).update(read)
        return reads


def _connected(instance: Instance, ports: Iterable[str]) -> frozenset[str]:
    """The nets at these ports."""
    return frozenset[str]().union(*(instance.connections.get(port, frozenset()) for port in ports))


def _reached(start: str, reads: Mapping[str, Iterable[str]]) -> set[str]:
    found = {start}
    stack = [start]
    while stack:
        for net in reads.get(stack.pop(), ()):
            if net not in found:
                found.add(net)
                stack.append(net)
    return found


def _names(text: str) -> frozenset[str]:
    return frozenset(
        word["escaped"] or word["plain"]
        for word in _WORD.finditer(text)
        if not word["number"] and word["plain"] not in _KEYWORDS
    )


def _module(found: re.Match[str]) -> VerilogModule | None:
    """A module, or None if it has anything that Yosys does not write."""
    body = found["body"]
    ports = [
        Port(one["name"].strip().lstrip("\\"), int(one["high"] or 0) + 1, one["direction"] == "input")
        for one in _PORT.finditer(body)
    ]
    if {port.name for port in ports} != _names(found["ports"]):
        return None
    module = VerilogModule(found["name"], found[0], ports)
    lines = iter(body.splitlines())
    for line in lines:
        if not _take(line, lines, module):
            return None
    return module


def _take(line: str, lines: Iterator[str], module: VerilogModule) -> bool:
    """Take in an item of a module that begins with LINE; False if it has an unknown form."""
    if assign := _ASSIGN.fullmatch(line):
        read = _names(assign["value"])
        for target in _names(assign["target"]):
            module.reads.setdefault(target, set()).update(read)
    elif line.startswith("  always @*"):
        block = _block(line, lines)
        read = frozenset[str]().union(*map(_names, block))
        for statement in filter(_ASSIGNS.search, block):
            driven = _STATEMENT.match(statement)
            if driven is None:
                return False
            for target in _names(driven["target"]):
                module.reads.setdefault(target, set()).update(read)
    elif clocked := _CLOCKED.fullmatch(line):
        module.clocks.add(_bare(clocked["clock"]))
        module.edges.add(clocked["edge"])
        _block(line, lines)
    elif line.startswith("  initial"):
        if line.endswith("begin"):
            _block(line, lines)
    elif instance := _INSTANCE.fullmatch(line):
        connections = {}
        for part in iter(lambda: next(lines), "  );"):
            connection = _CONNECTION.fullmatch(part)
            if connection is None:
                return False
            connections[_bare(connection["port"])] = _names(connection["value"])
        module.instances.append(Instance(instance["module"], _bare(instance["name"]), connections))
    else:
        return re.match(r"  (?:wire|reg|input|output|integer) |  \(\* .* \*\)$|$", line) is not None
    return True


def _block(line: str, lines: Iterator[str]) -> list[str]:
    """The lines of the statement that an item with this first line has."""
    if not line.endswith("begin"):
        return [next(lines)]
    return list(iter(lambda: next(lines), "  end"))


def _bare(name: str) -> str:
    return name.strip().lstrip("\\")
