"""What a netlist takes of an FPGA: component by component, memory by memory."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Literal

from verilog.synth.device import Area
from verilog.synth.names import readable
from verilog.synth.netlist import TOP, cells, instances

__all__ = ["PINS", "MappedMemory", "Part", "mapped_memories", "parts"]

PINS = "pins"
"""The part that stands for the pins and is none of the switch's."""

_PLACE_IN_MEMORY = re.compile(r"\.\d+\.\d+$")

_Modules = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """A component of the switch, or what is left of it: all instances, and the area of them together."""

    name: str
    instances: int
    area: Area


@dataclass(frozen=True)
class MappedMemory:
    """Memories of one kind, and what each of them became.

    Attributes:
        block_rams, lut_rams: cells, of all instances together.
    """

    name: str
    instances: int
    depth: int
    width: int
    block_rams: int
    lut_rams: int

    @property
    def mapped_to(self) -> Literal["block RAM", "LUT RAM", "registers"]:
        """What holds the words."""
        if self.block_rams:
            return "block RAM"
        return "LUT RAM" if self.lut_rams else "registers"


def parts(netlist: _Modules) -> list[Part]:
    """The parts of a netlist, the largest first; PINS last."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    number: Counter[str] = Counter()
    for path, module in instances(netlist):
        name = readable(path, indices=False)
        number[name] += 1
        counts[name] += Counter(kind for _, kind in cells(netlist, module))
    for name, kind in cells(netlist):
        counts[PINS if name.startswith("pins_") else "the rest"][kind] += 1
    found = [Part(name, number[name] or 1, Area.of(types)) for name, types in counts.items()]
    return sorted(found, key=lambda part: (part.name == PINS, -part.area.luts))


def mapped_memories(prepared: _Modules, netlist: _Modules) -> list[MappedMemory]:
    """What became of the memories of a design, the largest first.

    Args:
        prepared: the design with its memories.
        netlist: the same, mapped.
    """
    rams: dict[str, Counter[str]] = defaultdict(Counter)
    for path, module in [("", TOP), *instances(netlist)]:
        for name, kind in cells(netlist, module):
            memory, found = _PLACE_IN_MEMORY.subn("", name)
            if found:
                rams[f"{path}.{memory}" if path else memory][kind] += 1
    areas_by_kind: dict[tuple[str, int, int], list[Area]] = defaultdict(list)
    for path, module in instances(prepared):
        for name, memory in prepared[module].get("memories", {}).items():
            if "$auto$" in name:  # Yosys' own, of a choice among constants
                continue
            key = (readable(f"{path}.{name}", indices=False), memory["size"], memory["width"])
            areas_by_kind[key].append(Area.of(rams[f"{path}.{name}"]))
    found_memories = []
    for (name, depth, width), areas in areas_by_kind.items():
        whole = sum(areas, Area())
        found_memories.append(MappedMemory(name, len(areas), depth, width, whole.block_rams, whole.lut_rams))
    return sorted(found_memories, key=lambda memory: -memory.instances * memory.depth * memory.width)
