"""Plain Verilog names for the nets and instances of a netlist, so that they can be read in waves.

Amaranth numbers names that meet in one module: of the `busy` of eight submodules one stays `busy` and the others
become `busy$215` and so on. And it gives second names to what submodules see. Here a net that a submodule drives is
called after it, `output_3_busy`, and second names stay in the module that they come from.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from verilog.export.rtlil import Cell, Connection, Module

__all__ = ["KEYWORDS", "give_plain_names"]

_NUMBER = re.compile(r"\$\d+(?=[.\[]|$)")
_PART = re.compile(r"[.\[]")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]+")
_NET = re.compile(r"[\\$][^\s{}]+")
_WHOLE = re.compile(r"(?P<net>\S+)(?: \[(?P<high>\d+)(?::(?P<low>\d+))?\])?")
_ENUMERATION = re.compile(r".*\\enum_.*\n")
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin
    bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos
    config const constraint context continue cover covergroup coverpoint cross deassign default defparam design
    disable dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate
    endgroup endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify
    endtable endtask enum event eventually expect export extends extern final first_match for force foreach
    forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins
    implements implies import incdir include initial inout input inside instance int integer interconnect
    interface intersect join join_any join_none large let liblist library local localparam logic longint
    macromodule matches medium modport module nand negedge nettype new nexttime nmos nor noshowcancelled not
    notif0 notif1 null or output package packed parameter pmos posedge primitive priority program property
    protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
    randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0
    rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal
    showcancelled signed small soft solve specify specparam static string strong strong0 strong1 struct super
    supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout time timeprecision timeunit
    tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union unique unique0 unsigned until
    until_with untyped use uwire var vectored virtual void wait wait_order wand weak weak0 weak1 while wildcard
    wire with within wor xnor xor
    """,
    )
)
"""Of SystemVerilog (IEEE 1800-2017), which has those of Verilog among them: tools read the text as either."""


def give_plain_names(modules: dict[str, Module], given: Mapping[str, str]) -> None:
    """Rename ports, nets, memories and instances of all modules, and drop names that say nothing new.

    GIVEN has new names for ports of the top, which is the first module.
    """
    ports = {
        name: {port: _legal(port) for port, wire in module.wires.items() if wire.direction}
        for name, module in modules.items()
    }
    next(iter(ports.values())).update(given)
    for module in modules.values():
        for wire in module.wires.values():
            wire.attributes = _ENUMERATION.sub("", wire.attributes)
        _drop_second_names(module, modules)
        names = _net_names(module, modules, ports[module.name])
        _rename(module, names, ports)


def _stem(name: str) -> str:
    """A name as the designer gave it."""
    return _NUMBER.sub("", name)


def _legal(name: str) -> str:
    plain = _ILLEGAL.sub("_", name[1:]).rstrip("_")
    return f"\\{plain}_" if plain in KEYWORDS else f"\\{plain}"


def _whole(module: Module, spec: str) -> str:
    """The net that a sigspec is all bits of, else the sigspec."""
    found = _WHOLE.fullmatch(spec)
    if found is None or found["net"] not in module.wires or found["high"] is None:
        return spec
    bits = int(found["high"]) - int(found["low"] or found["high"]) + 1
    return found["net"] if bits == module.wires[found["net"]].width else spec


def _instances(module: Module) -> Iterator[Cell]:
    return (cell for cell in module.cells if cell.is_instance)


def _at_instances(module: Module, modules: dict[str, Module]) -> list[tuple[Cell, str, str, bool]]:
    """Of all ports of instances: the instance, the port, the net at it, and whether the port drives that."""
    return [
        (cell, port, _whole(module, spec), modules[cell.type].wires[port].direction == "output")
        for cell in _instances(module)
        for port, spec in cell.connections.items()
    ]


def _drop_second_names(module: Module, modules: dict[str, Module]) -> None:
    """Drop second names of nets that are numbered, or are what a port of a submodule is called in there."""
    read = set[str]().union(*(statement.reads() for statement in module.statements))
    read |= {name for name, wire in module.wires.items() if wire.direction == "output"}
    at_instances = _at_instances(module, modules)
    seen_below = {(port, net) for _, port, net, _ in at_instances}
    of_submodules = {net for _, _, net, drives in at_instances if drives}
    dropped: set[str] = set()

    def says_something(connection: Connection) -> bool:
        target = connection.target
        if target in read or not target.startswith("\\"):
            return True
        base = _PART.split(target)[0]
        if _stem(target) != target or base in dropped or base not in module.wires:
            return False
        if base != target:
            return base not in of_submodules or bool(module.wires[base].direction)
        return (target, _whole(module, connection.source)) not in seen_below

    # Wholes before their parts, which go with them.
    kept: set[int] = set()
    for connection in sorted(module.connections, key=lambda connection: bool(_PART.search(connection.target))):
        if says_something(connection):
            kept.add(id(connection))
        else:
            dropped.add(connection.target)
    module.connections = [connection for connection in module.connections if id(connection) in kept]
    module.wires = {name: wire for name, wire in module.wires.items() if name not in dropped}


def _net_names(module: Module, modules: dict[str, Module], ports: dict[str, str]) -> dict[str, str]:
    """New names by old ones of everything in a module, instances as `cell NAME`."""
    names = dict(ports)
    taken = set(names.values())

    def give(key: str, wanted: str) -> None:
        tries = itertools.chain([wanted], (f"{wanted}_{number}" for number in itertools.count(2)))
        names[key] = next(name for name in tries if name not in taken)
        taken.add(names[key])

    for memory in module.memories:
        give(memory, _legal(_stem(memory)))
    for cell in _instances(module):
        plain = _legal(_stem(cell.name))
        give(f"cell {cell.name}", f"\\u_{plain[1:]}" if plain in ports.values() else plain)
    at_instance = _nets_at_instances(module, modules, names)
    public = [name for name in module.wires if name.startswith("\\") and name not in names]
    for name in sorted(public, key=lambda name: (bool(_PART.search(name)), name != _stem(name))):
        base = _PART.split(name)[0]
        if base != name and base in names:
            give(name, _legal(names[base] + name[len(base) :]))
        else:
            give(name, _legal(at_instance.get(name, _stem(name))))
    return names


def _nets_at_instances(module: Module, modules: dict[str, Module], names: dict[str, str]) -> dict[str, str]:
    """Names after instance and port of the nets that have their name from that port.

    That is the port that drives the net. A numbered net may take it from one that reads it.
    """
    found: dict[str, str] = {}
    for cell, port, net, drives in sorted(_at_instances(module, modules), key=lambda place: not place[3]):
        if net not in found and _stem(net) == port and (drives or net != port):
            found[net] = f"{names[f'cell {cell.name}']}_{port[1:]}"
    return found


def _rename(module: Module, names: dict[str, str], ports: dict[str, dict[str, str]]) -> None:
    def spec(text: str) -> str:
        return _NET.sub(lambda net: names.get(net[0], net[0]), text)

    for wire in module.wires.values():
        wire.name = names.get(wire.name, wire.name)
    module.wires = {wire.name: wire for wire in module.wires.values()}
    module.memories = {names[name]: lines.replace(name, names[name]) for name, lines in module.memories.items()}
    for cell in module.cells:
        port_names = ports.get(cell.type, {}) if cell.is_instance else {}
        cell.connections = {port_names.get(port, port): spec(text) for port, text in cell.connections.items()}
        if cell.is_instance:
            cell.name = names[f"cell {cell.name}"]
        for memory in cell.memory():
            old, new = (name.replace("\\", "\\\\") for name in (memory, names[memory]))
            cell.parameters = cell.parameters.replace(f'"{old}"', f'"{new}"')
    for process in module.processes:
        process.lines = spec(process.lines)
    for connection in module.connections:
        connection.target, connection.source = spec(connection.target), spec(connection.source)
