"""Taking out of a netlist what no output of its top needs."""

from __future__ import annotations

from collections import defaultdict

from verilog.export.rtlil import Cell, Connection, Module, Process, nets

__all__ = ["prune"]

_Statement = Cell | Process | Connection


def prune(modules: dict[str, Module], top: str) -> None:
    """Remove ports, nets, cells, processes and modules on which no output of TOP depends.

    Second names of nets that stay are kept, as they are what a reader of waves looks for.
    """
    live = _Liveness(modules, top)
    for name in [name for name in modules if name not in live.nets]:
        del modules[name]
    for module in modules.values():
        _keep(module, modules, live)


class _Liveness:
    """Which nets of which modules the outputs of the top depend on, across instances.

    Attributes:
        nets: the live nets and memories of each module.
        statements: ids of the statements that decide them.
    """

    def __init__(self, modules: dict[str, Module], top: str) -> None:
        self.nets: dict[str, set[str]] = defaultdict(set)
        self.statements: set[int] = set()
        self._modules = modules
        self._todo: list[tuple[str, str]] = []
        self._instances: dict[str, list[tuple[str, Cell]]] = defaultdict(list)
        self._drivers = {name: _drivers(module, modules) for name, module in modules.items()}
        self._want(top, {wire.name for wire in modules[top].wires.values() if wire.direction == "output"})
        while self._todo:
            self._follow(*self._todo.pop())

    def _want(self, module: str, wanted: set[str]) -> None:
        new = wanted - self.nets[module]
        self.nets[module] |= new
        self._todo += [(module, net) for net in new]

    def _follow(self, name: str, net: str) -> None:
        for statement in self._drivers[name][net]:
            if isinstance(statement, Cell) and statement.is_instance:
                self._follow_instance(name, statement, net)
            elif id(statement) not in self.statements:
                self.statements.add(id(statement))
                self._want(name, statement.reads())
        wire = self._modules[name].wires.get(net)
        if wire is not None and wire.direction == "input":
            for parent, cell in self._instances[name]:
                self._want(parent, nets(cell.connections.get(net, "")))

    def _follow_instance(self, parent: str, cell: Cell, net: str) -> None:
        child = self._modules[cell.type]
        outputs = {port for port in child.wires if net in nets(cell.connections.get(port, ""))}
        self._want(child.name, {port for port in outputs if child.wires[port].direction == "output"})
        if id(cell) in self.statements:
            return
        self.statements.add(id(cell))
        self._instances[child.name].append((parent, cell))
        for port in [port for port in self.nets[child.name] if port in child.wires]:
            if child.wires[port].direction == "input":
                self._want(parent, nets(cell.connections.get(port, "")))


def _drivers(module: Module, modules: dict[str, Module]) -> dict[str, list[_Statement]]:
    drivers: dict[str, list[_Statement]] = defaultdict(list)
    statements: list[_Statement] = [*module.cells, *module.processes, *module.connections]
    for statement in statements:
        if isinstance(statement, Cell) and statement.is_instance:
            wires = modules[statement.type].wires
            outputs = [spec for port, spec in statement.connections.items() if wires[port].direction == "output"]
            driven = {net for spec in outputs for net in nets(spec)}
        else:
            driven = statement.drives()
        for net in driven:
            drivers[net].append(statement)
    return drivers


def _keep(module: Module, modules: dict[str, Module], live: _Liveness) -> None:
    alive = live.nets[module.name]
    module.cells = [cell for cell in module.cells if id(cell) in live.statements]
    for cell in module.cells:
        if cell.is_instance:
            needed = live.nets[cell.type]
            cell.connections = {port: spec for port, spec in cell.connections.items() if port in needed}
    module.processes = [process for process in module.processes if id(process) in live.statements]
    ports = {wire.name for wire in module.wires.values() if wire.direction}
    module.connections = [
        connection
        for connection in module.connections
        if id(connection) in live.statements
        or (connection.reads() and connection.reads() <= alive and not connection.drives() & ports)
    ]
    kept = alive.union(
        *(connection.drives() for connection in module.connections),
        *(nets(spec) for cell in module.cells for spec in cell.connections.values()),
    )
    module.wires = {name: wire for name, wire in module.wires.items() if name in kept}
    for name in module.wires.keys() - alive:
        # Here still the net of a submodule's output, but nobody's port.
        module.wires[name].direction = ""
    module.memories = {name: lines for name, lines in module.memories.items() if name in alive}
