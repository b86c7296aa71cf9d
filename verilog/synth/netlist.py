"""From RTLIL to a netlist of the FPGA's cells, each kind of component once.

Yosys, given a switch of 36 ports as one flat design, would map 36 identical ports one by one. Here a component of which
there are many is mapped by itself, and nextpnr puts the instances together. What that loses is optimisation across
the boundary, but what nothing uses is removed: outputs before they are mapped, and afterwards every cell.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from verilog import tools
from verilog.liveness import Instance, Liveness, Part, Statement
from verilog.synth import delays, multiplexers
from verilog.synth.comparisons import COMPARISONS

__all__ = ["NETLIST", "PREPARED", "TOP", "cells", "instances", "make_netlist", "prune"]

TOP = "top"
"""The top module."""

NETLIST = "netlist.json"
"""The whole design in cells of the FPGA."""

PREPARED = "prepared.json"
"""The whole design before mapping: the components that are mapped apart, and a top module."""

_RTLIL = "design.il"
_HIERARCHY = "hierarchy.json"
_PREPARED_RTLIL = "prepared.il"
_BOXES = "boxes.v"
_COMPARISONS = "comparisons.v"
_MUX_GATES = "mux_gates.v"
_MUX_CELLS = "mux_cells.v"
_UNNAMED = "rename -hide w:*[*; "
"""Elements of arrays have no public names of their own: ABC9 takes that of element 1 for bit 1 of the array."""


_APART = re.compile(
    r"design\.(port_\d+|input_\d+(\.partition|\.store\.acceptance)?|output_\d+|matcher|crossbar\.output_\d+|arrivals"
    r"|congestion_\d+|agent_port|agent_store(\.acceptance)?)"
)
"""Instances that are mapped apart, so that each is in the list by itself. An input's acceptance goes on to all its
memories, which Yosys' ABC9 cannot know: beside longer paths it would be made small, not fast.
"""

# ABC's longer script takes as much time as its default, and an input becomes smaller by a twelfth.
_ABC9 = f"scratchpad -copy abc9.script.flow3 abc9.script; abc9 -maxlut 4 -W {delays.WIRE_PS} -D {delays.PATH_PS}; "

# A register's reset is that of all registers of its tile, its enable that of its slice. Of few together, LUTs do the
# same, or they would lie where there happens to be such a tile.
_REGISTERS = (
    "dfflegalize -mince 8 -minsrst 6 "
    "-cell $_DFF_?_ 01 -cell $_SDFF_?P?_ r -cell $_DFFE_??_ 01 -cell $_SDFFE_?P??_ r; opt_merge; "
)

_KEPT = "kept"
"""A net besides the numbered ones. What drives it stays: instances, and cells that drive nothing else."""

_Modules = dict[str, dict[str, Any]]


def make_netlist(rtlil: str, directory: Path, watch: tools.Watch) -> None:
    """Write PREPARED and NETLIST of a design, whose top module is TOP, to DIRECTORY.

    Args:
        rtlil: the design.
        directory: an existing one.
        watch: gets every line of Yosys' log.

    Raises:
        ToolMissing: Yosys is not installed.
        ToolFailed: it ended with an error.
    """
    (directory / _RTLIL).write_text(rtlil)
    (directory / _COMPARISONS).write_text(COMPARISONS)
    (directory / _MUX_GATES).write_text(multiplexers.GATES)
    (directory / _MUX_CELLS).write_text(multiplexers.CELLS)

    def yosys(script: str) -> None:
        tools.run(tools.YOSYS, ["-q", "-p", script], directory, watch)

    yosys(
        f"read_rtlil {_RTLIL}; hierarchy -check -top {TOP}; proc; techmap -map {_COMPARISONS}; "
        f"write_rtlil {_PREPARED_RTLIL}; write_json {_HIERARCHY}"
    )
    hierarchy = _modules(directory / _HIERARCHY)
    apart = sorted({module for path, module in instances(hierarchy) if _APART.fullmatch(path)})
    kept = "".join(f"setattr -mod -set keep_hierarchy 1 {module}; " for module in apart)
    yosys(
        f"read_rtlil {_PREPARED_RTLIL}; {_unchecked_reads(hierarchy)}{kept}flatten; opt_clean; {_UNNAMED}"
        f"write_rtlil {_PREPARED_RTLIL}; write_json {PREPARED}"
    )
    open_outputs = _open_outputs(_modules(directory / PREPARED))

    _map((TOP, *apart), open_outputs, directory)

    whole = json.loads((directory / f"{TOP}.json").read_text())
    for module in apart:
        mapped = _modules(directory / f"{module}.json")[module]
        del mapped["attributes"]["top"]
        whole["modules"][module] = mapped
    prune(whole["modules"], TOP)
    (directory / NETLIST).write_text(json.dumps(whole))


def _map(modules: Sequence[str], open_outputs: dict[str, list[str]], directory: Path) -> None:
    """Write <module>.json, in cells of the FPGA, for each of MODULES, all at the same time."""
    first = {}
    # Without multiplexers for wide LUTs a switch becomes smaller and, placed, no slower.
    steps = {module: f"synth_ecp5 -nowidelut -top {module} -run" for module in modules}
    for module in modules:
        others = "".join(f"blackbox {other}; " for other in modules if other not in (TOP, module))
        unused = "".join(f"delete -output {module}/{port}; " for port in open_outputs.get(module, ()))
        mapping = (
            f"{steps[module]} begin:map_ffs; {_REGISTERS}{steps[module]} map_ffs:map_luts; write_rtlil {module}.il"
        )
        first[module] = f"read_rtlil {_PREPARED_RTLIL}; {others}{unused}{mapping}"
    tools.run_all(tools.YOSYS, {module: ["-q", "-p", script] for module, script in first.items()}, directory)

    boxes: set[delays.Box] = set()
    for module in modules:
        file = directory / f"{module}.il"
        text, found = delays.with_boxes(file.read_text(), TOP)
        file.write_text(text)
        boxes |= found
    (directory / _BOXES).write_text("".join((multiplexers.BOXES, *(box.verilog for box in sorted(boxes)))))
    removal = "".join(box.removal for box in sorted(boxes))
    covered = f"{multiplexers.COVER}techmap -map {_MUX_GATES}; {_ABC9}{removal}techmap -map {_MUX_CELLS}; clean; "
    second = {
        module: f"read_rtlil {module}.il; read_verilog -lib -specify {_BOXES}; {steps[module]} begin:coarse; "
        f"{covered}{steps[module]} map_cells: -json {module}.json"
        for module in modules
    }
    tools.run_all(tools.YOSYS, {module: ["-q", "-p", script] for module, script in second.items()}, directory)


def prune(modules: _Modules, top: str) -> None:
    """Remove every cell on which no output of TOP depends; of a module, what no instance needs.

    Args:
        modules: as Yosys writes them, those of components mapped apart included; changed in place.
        top: the top module.
    """
    filled = {name: module for name, module in modules.items() if _has_contents(modules, name)}
    parts: dict[str, dict[Hashable, Part]] = {
        name: {(name, cell): _part(facts, filled) for cell, facts in module["cells"].items()}
        for name, module in filled.items()
    }
    outputs = [bit for port in modules[top]["ports"].values() for bit in port["bits"]]
    live = Liveness(parts, {name: [_KEPT, *(outputs if name == top else ())] for name in filled})
    for name, module in filled.items():
        module["cells"] = {cell: facts for cell, facts in module["cells"].items() if (name, cell) in live.parts}


def _part(cell: dict[str, Any], modules: _Modules) -> Part:
    """A cell between nets, which have numbers; other bits are constants, or at outputs that are gone."""
    inside = modules[cell["type"]]["ports"] if cell["type"] in modules else None
    ports: dict[str, list[tuple[str, int, int]]] = {"input": [], "output": [], "inout": []}
    for port, bits in cell["connections"].items():
        if inside is None or port in inside:
            places = [(port, at, bit) for at, bit in enumerate(bits) if isinstance(bit, int)]
            ports[cell["port_directions"][port]] += places
    if inside is None:
        return Statement([bit for *_, bit in ports["output"]] or [_KEPT], [bit for *_, bit in ports["input"]])
    return Instance(
        cell["type"],
        {_KEPT: ()} | {bit: [inside[port]["bits"][at]] for port, at, bit in ports["output"]},
        {inside[port]["bits"][at]: [bit] for port, at, bit in ports["input"]},
    )


def instances(modules: _Modules, module: str = TOP, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, module) of every instance below MODULE of a module that has contents."""
    for name, cell in modules[module]["cells"].items():
        if _has_contents(modules, cell["type"]):
            below = f"{path}.{name}" if path else name
            yield below, cell["type"]
            yield from instances(modules, cell["type"], below)


def cells(modules: _Modules, module: str = TOP) -> Iterator[tuple[str, str]]:
    """(name, type) of every cell of MODULE itself that is no instance of a module that has contents."""
    for name, cell in modules[module]["cells"].items():
        if not _has_contents(modules, cell["type"]):
            yield name, cell["type"]


def _unchecked_reads(modules: _Modules) -> str:
    """Yosys commands: reads of memories marked `no_rw_check` may give anything for a word written in the same cycle.

    Yosys obeys that mark only where it finds a read port's register by itself; Amaranth says which they are.
    """
    commands = []
    for name, module in modules.items():
        memories = module.get("memories", {})
        marked = {memory for memory, facts in memories.items() if "no_rw_check" in facts["attributes"]}
        for cell, facts in module["cells"].items():
            parameters = facts["parameters"]
            if facts["type"] == "$memrd_v2" and parameters["MEMID"].removeprefix("\\") in marked:
                mask = parameters["COLLISION_X_MASK"]
                if "1" in parameters["CLK_ENABLE"]:
                    commands.append(f"setparam -set COLLISION_X_MASK {len(mask)}'{'1' * len(mask)} {name}/{cell}; ")
    return "".join(commands)


def _open_outputs(modules: _Modules) -> dict[str, list[str]]:
    """By module mapped apart, its outputs that are used nowhere."""
    users: Counter[int] = Counter()
    drives: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    top = modules[TOP]
    for port in top["ports"].values():
        users.update(port["bits"])
    for cell in top["cells"].values():
        for port, bits in cell["connections"].items():
            users.update(bits)
            if _has_contents(modules, cell["type"]) and cell["port_directions"][port] == "output":
                drives[cell["type"]][port] += bits
    return {
        module: [port for port, bits in ports.items() if all(users[bit] == 1 for bit in bits)]
        for module, ports in drives.items()
    }


def _has_contents(modules: _Modules, module: str) -> bool:
    return module in modules and not modules[module]["attributes"].get("blackbox")


def _modules(file: Path) -> _Modules:
    modules: _Modules = json.loads(file.read_text())["modules"]
    return modules
