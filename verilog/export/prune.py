"""Taking out of an RTLIL design what no output of its top needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from verilog.export.rtlil import Cell, Connection, Module, Process, nets
from verilog.liveness import Instance, Liveness, Net, Part, Statement

__all__ = ["prune"]


def prune(modules: dict[str, Module], top: str) -> None:
    """Remove ports, nets, cells, processes and modules on which no output of TOP depends.

    Second names of nets that stay are kept, as they are what a reader of waves looks for.
    """
    outputs = [wire.name for wire in modules[top].wires.values() if wire.direction == "output"]
    live = Liveness({name: _parts(module, modules) for name, module in modules.items()}, {top: outputs})
    for name in [name for name, alive in live.nets.items() if not alive]:
        del modules[name]
    for module in modules.values():
        _keep(module, live)


def _parts(module: Module, modules: dict[str, Module]) -> dict[Hashable, Part]:
    return {id(statement): _part(statement, modules) for statement in module.statements}


def _part(statement: Cell | Process | Connection, modules: dict[str, Module]) -> Part:
    if not isinstance(statement, Cell) or not statement.is_instance:
        return Statement(statement.drives(), statement.reads())
    driven: dict[Net, list[Net]] = defaultdict(list)
    read: dict[Net, set[str]] = {}
    for port, spec in statement.connections.items():
        if modules[statement.type].wires[port].direction == "input":
            read[port] = nets(spec)
        else:
            for net in nets(spec):
                driven[net].append(port)
    return Instance(statement.type, driven, read)


def _keep(module: Module, live: Liveness) -> None:
    alive = live.nets[module.name]
    module.cells = [cell for cell in module.cells if id(cell) in live.parts]
    for cell in module.cells:
        if cell.is_instance:
            cell.connections = {port: spec for port, spec in cell.connections.items() if port in live.nets[cell.type]}
    module.processes = [process for process in module.processes if id(process) in live.parts]
    ports = {wire.name for wire in module.wires.values() if wire.direction}
    module.connections = [
        connection
        for connection in module.connections
        if id(connection) in live.parts
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
