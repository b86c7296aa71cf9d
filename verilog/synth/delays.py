"""What Yosys' ABC9 is told of times that it does not know by itself: of memories, of wires, and of the clock.

To ABC9 a block RAM's answer is there when the cycle begins; in truth a third of the cycle is over then. Its times of
black boxes from a clock on do not come to ABC, those through boxes do. So while ABC9 runs there is a box behind each
answer, which delays it; afterwards the box is a wire. It is a black one: ABC would see that a white one does nothing.
Likewise it is told that what comes to a component from others has come a long way, and what is left to do of what
leaves one late.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["PATH_PS", "WIRE_PS", "Box", "with_boxes"]

PATH_PS = 10_000
"""How long a path in a component may be, as many go on in another one. What needs less becomes small, not fast."""

WIRE_PS = 700
"""A wire from a cell to the next, as they are placed; Yosys' own estimate is less than half of it."""

_BLOCK_RAM_PS = 4_260
"""From the clock to a block RAM's answer, at the fastest speed grade."""

_LUT_RAM_PS = 379 + WIRE_PS
"""From an address, or rather the cell that gives it, to the answer of memory in LUTs."""

_ACCEPTANCE_PS = 4_500
"""From the clock to what an input accepts, which is decided behind registers of other components."""

_ANSWERS = (
    (r"DP16KD", r"DO[AB]\d+", _BLOCK_RAM_PS),
    (r"TRELLIS_DPR16X4", r"DO", _LUT_RAM_PS),
    (r"\w+_acceptance", r"accepted|first", _ACCEPTANCE_PS),
)
"""Patterns of cells and of the ports where they answer late, and how late."""

_LATE = (
    # Behind them are the way to the crossbar and its choice.
    (r"crossing__rows__\d+", 5_000),
    (r"crossing__outlived", 4_400),
)
"""Patterns of outputs of components, and what their ways take behind them."""

_ARRIVAL_PS = 3_000
"""From the clock to what comes to a component: out of a register of another one, across much of the FPGA."""

_PROMPT = r"clk|rst"
"""Pattern of inputs that do not come late."""

_TIMED = r"\w+_acceptance"
"""Pattern of components that are in the times of others, from the clock on."""

_MODULE = re.compile(r"^module \\(\w+)\n(?:  .*\n)*end\n", re.M)

_DECLARED = re.compile(
    r"^(?:  attribute .*\n)*"
    r"  wire (?:width (?P<width>\d+) )?(?P<direction>input|output) \d+ (?:signed )?\\(?P<name>[^ \n]+)\n",
    re.M,
)
_NET = re.compile(r"(?<!\n    connect )\\([^ \n]+)(?=[ \n])")
"""A net's name, where it is no cell's port."""

_CELL = re.compile(r"(?:  attribute .*\n)*  cell \\(\w+) .*\n(?:    .*\n)*  end\n")
_WIDTHS = {"DO": 4}
"""Of ports of the FPGA's cells, where they are not 1."""


class Box(NamedTuple):
    """Delays so many bits by so many picoseconds."""

    bits: int
    delay_ps: int

    @property
    def name(self) -> str:
        """The module's."""
        return f"DELAY_{self.delay_ps}_OF_{self.bits}"

    @property
    def verilog(self) -> str:
        """The module."""
        ports = f"input [{self.bits - 1}:0] A, output [{self.bits - 1}:0] Y"
        delay = f"specify (A => Y) = {self.delay_ps}; endspecify"
        return f"(* abc9_box, blackbox *) module {self.name}({ports});\n{delay}\nendmodule\n"

    @property
    def removal(self) -> str:
        """Yosys commands that make wires of all such boxes, once the design is cleaned."""
        cells = f"t:{self.name}"
        return f"setparam -set WIDTH {self.bits} {cells}; chtype -set $buf {cells}; delete ={self.name}; "


def with_boxes(rtlil: str, top: str) -> tuple[str, set[Box]]:
    """A design whose memories are mapped, with a box behind each late answer; and the boxes it has. TOP is its top
    module, and what its components' names begin with."""
    boxes: set[Box] = set()
    widths: dict[tuple[str, str], int] = {}
    count = 0

    def behind(cell: re.Match[str]) -> str:
        nonlocal count
        text, kind = cell[0], cell[1]
        wires, delays = [], []
        for cells, ports, delay_ps in _ANSWERS:
            if not re.fullmatch(cells, kind):
                continue
            for line, port, answer in re.findall(rf"(    connect \\({ports}) (.*)\n)", text):
                if (kind, port) not in widths:
                    widths[kind, port] = _width(rtlil, kind, port)
                box = Box(widths[kind, port], delay_ps)
                boxes.add(box)
                count += 1
                name = f"$answer${count}"
                text = text.replace(line, f"    connect \\{port} {name}\n")
                wires.append(f"  wire width {box.bits} {name}\n")
                delays.append(
                    f"  cell \\{box.name} {name}$delay\n    connect \\A {name}\n    connect \\Y {answer}\n  end\n"
                )
        return "".join((*wires, text, *delays))

    return _MODULE.sub(lambda module: _at_ports(module[0], top, boxes), _CELL.sub(behind, rtlil)), boxes


class _Port(NamedTuple):
    """A port of a component, with its box.

    Attributes:
        declared: the lines that say what it is.
        name: what it is called outside.
        is_input: into the component.
        box: between that and what it is called inside.
    """

    declared: str
    name: str
    is_input: bool
    box: Box

    @property
    def inside(self) -> str:
        """What it is called there."""
        return f"${'arriving' if self.is_input else 'leaving'}${self.name}"

    @property
    def cell(self) -> str:
        """The box as a cell."""
        before, behind = (f"\\{self.name}", self.inside) if self.is_input else (self.inside, f"\\{self.name}")
        name = f"{self.inside}$delay"
        return f"  cell \\{self.box.name} {name}\n    connect \\A {before}\n    connect \\Y {behind}\n  end\n"


def _at_ports(module: str, top: str, boxes: set[Box]) -> str:
    """A component that is mapped apart, with a box behind each input and before each late output; the boxes are added
    to these."""
    if "\n  cell " not in module:
        return module
    found = _timed_ports(module, top)
    boxes |= {port.box for port in found}
    declared, inside = {port.declared for port in found}, {port.name: port.inside for port in found}
    rest = _DECLARED.sub(lambda lines: "" if lines[0] in declared else lines[0], module)
    rest = _NET.sub(lambda net: inside.get(net[1], net[0]), rest)
    first, rest = rest.removesuffix("end\n").split("\n", 1)
    wires = "".join(f"{port.declared}  wire width {port.box.bits} {port.inside}\n" for port in reversed(found))
    return f"{first}\n{wires}{rest}{''.join(port.cell for port in found)}end\n"


def _timed_ports(module: str, top: str) -> list[_Port]:
    """A component's inputs, and then its late outputs."""
    ports = [*_DECLARED.finditer(module)]
    name = module[len("module \\") :].split("\n", 1)[0]
    # The FPGA's cells are modules, too.
    is_late = name.startswith(f"{top}_") and not re.fullmatch(_TIMED, name)
    inputs = ((rf"(?!(?:{_PROMPT})$).+", _ARRIVAL_PS),) if is_late else ()
    return [
        _Port(port[0], port["name"], is_input, Box(int(port["width"] or 1), delay_ps))
        for is_input, kinds in ((True, inputs), (False, _LATE))
        for names, delay_ps in kinds
        for port in ports
        if (port["direction"] == "input") == is_input and re.fullmatch(names, port["name"])
    ]


def _width(rtlil: str, kind: str, port: str) -> int:
    """Bits of a port of the cells of a kind, which is a module of the design or the FPGA's."""
    module = re.search(rf"^module \\{kind}\n((?:  .*\n)*)end", rtlil, re.M)
    if module is None:
        return _WIDTHS.get(port, 1)
    declared = re.search(rf"^  wire (?:width (\d+) )?output \d+ \\{port}$", module[1], re.M)
    assert declared is not None, f"{kind}: no output {port}"
    return int(declared[1] or 1)
