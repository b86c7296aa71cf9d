"""Mutants of a node of a design: its netlist broken in one place each, drawn by Yosys, and a design with many of them.

Yosys' `mutate` draws evenly over the cells, wires and lines of a netlist, from a seed: who draws has no say in where.
A mutant inverts a bit, holds it at 0 or 1, or ties it to another. What only the debug trace depends on is left out.
Which mutant of a design is broken says the simulation's plusarg `mutant`; without it none is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from toolchain.build_cache import cached
from verilog import tools
from verilog.design import MODULE, Design

__all__ = [
    "FLAT",
    "MOST_MUTANTS",
    "PLUSARG",
    "DrawnMutants",
    "Mutant",
    "Place",
    "drawn_mutants",
    "place_of",
    "with_mutants",
]

PLUSARG = "mutant"
"""Of a simulation: the number of the mutant that it is of."""

_BITS = 16
MOST_MUTANTS = (1 << _BITS) - 1
"""Numbers that the plusarg has, 0 is none."""

FLAT = "flat.il"
"""The netlist, in the directory of `DrawnMutants`."""

_SIMPLIFIED = "opt -keepdc -nodffe -nosdff; wreduce -keepdc; opt -keepdc -nodffe -nosdff"
"""As Yosys' `prep` does, which `mutate` is meant to follow: what the exporter wrote twice is there once, and nothing is
wider than it needs to be. Registers stay as they are."""

_SOURCE = "design.v"
_DRAWN = "drawn.ys"
_MUTATED = "mutated.v"
_INSTANCE = r"^  (?P<module>\w+) {} \("
_COMMAND = re.compile(
    rf"mutate -ctrl {PLUSARG} {_BITS} (?P<number>\d+) -mode (?P<mode>\w+) -module \S+ -cell (?P<cell>\S+)"
    r" -port \\?(?P<port>\S+) -portbit (?P<bit>\d+)(?: -ctrlbit (?P<control>\d+))?"
    r"(?: -wire (?P<wire>\S+) -wirebit (?P<wire_bit>\d+))?"
)
_READ = re.compile(r"^  cell \$memrd\S* (\S+)$", re.M)
_OF_CLOCK = ("EN[0]", "CLK[0]", "ARST[0]", "SRST[0]")
_PORT = f"  input [{_BITS - 1}:0] {PLUSARG};\n  wire [{_BITS - 1}:0] {PLUSARG};\n"
_CHOICE = (
    f'  reg [{_BITS - 1}:0] {PLUSARG};\n  initial if (!$value$plusargs("{PLUSARG}=%d", {PLUSARG})) {PLUSARG} = 0;\n'
)
_WAIVED = ("CASEOVERLAP", "UNOPTFLAT")
"""What Verilator warns of in a netlist without hierarchy: bits of one wire that depend on each other."""


@dataclass(frozen=True)
class Mutant:
    """One place where a netlist is broken.

    Attributes:
        number: from 1.
        mode: `inv`, `const0`, `const1`, or `cnot0` and `cnot1`, inverted where another bit is 0 or 1.
        component: of the node, by its path; empty for the node itself.
        cell: a kind of cell of Yosys, such as `procdff`.
        port: of the cell, and its bit.
        wire: the wire there and its bit, if it has a name.
        command: Yosys' own.
    """

    number: int
    mode: str
    component: str
    cell: str
    port: str
    wire: str
    command: str

    def __str__(self) -> str:
        place = self.wire or f"{self.cell} {self.port}"
        return f"{self.mode} {self.component + '.' if self.component else ''}{place}"


class Place(NamedTuple):
    """Where a netlist is broken, and how: a bit of a port of a cell, by its name, and the bit that decides with it."""

    cell: str
    port: str
    bit: int
    control: int | None
    mode: str


@dataclass(frozen=True)
class DrawnMutants:
    """Mutants of a node of a design.

    Attributes:
        design: the design as it is.
        module: of the node.
        directory: where the netlist is.
        mutants: in the order in which they were drawn.
    """

    design: Design
    module: str
    directory: Path
    mutants: tuple[Mutant, ...]

    @property
    def netlist(self) -> str:
        """What tells this netlist, and these mutants, from all others."""
        return self.directory.name


def drawn_mutants(design: Design, node: str, count: int, seed: int) -> DrawnMutants:
    """COUNT mutants of a NODE of a design, drawn from SEED, but for those at clock, enable, resets of a memory's read.

    These are in Yosys' netlist alone: reads have no clock there, a register is behind them.

    Raises:
        ValueError: there is no such node, or more are asked for than there are numbers.
        ToolMissing, ToolFailed: Yosys is not there, or ended with an error.
        BuildDirectoryError: the build output cannot be written.
    """
    if not 1 <= count <= MOST_MUTANTS:
        raise ValueError(f"{count} mutants: expected 1..{MOST_MUTANTS}")
    top = _module(MODULE).search(design.verilog)
    found = top and re.search(_INSTANCE.format(re.escape(node)), top[0], re.M)
    if not found:
        raise ValueError(f"{node}: no such node in the design")
    module = found["module"]

    steps = (
        f"read_verilog {_SOURCE}; hierarchy -top {module}; proc; flatten; opt_expr; opt_clean",
        _SIMPLIFIED,
        f"delete t:$scopeinfo; write_rtlil {FLAT}; delete t:$meminit t:$meminit_v2",
        # All that an output depends on, in this cycle or an earlier one, but for those of the trace.
        "select -set real o:* o:*trace* %d %ci*",
        f"mutate -list {count} -seed {seed} -ctrl {PLUSARG} {_BITS} 1 -o {_DRAWN} @real",
    )

    def fill(directory: Path) -> None:
        (directory / _SOURCE).write_text(design.verilog)
        _yosys(directory, *steps)
        (directory / _SOURCE).unlink()

    key = {"verilog": design.verilog, "steps": steps, **_versions()}
    directory = cached("mutants", key, fill)
    reads = set(_READ.findall((directory / FLAT).read_text()))
    places = map(_mutant, (directory / _DRAWN).read_text().splitlines())
    mutants = tuple(one for one in places if not (one.port in _OF_CLOCK and place_of(one).cell in reads))
    return DrawnMutants(design, module, directory, mutants)


def with_mutants(drawn: DrawnMutants, mutants: Sequence[Mutant]) -> Design:
    """The design with some of its mutants, of which the plusarg chooses one. For Verilator alone.

    Raises:
        ToolFailed: Yosys ended with an error.
        BuildDirectoryError: the build output cannot be written.
    """
    script = "".join(f"{mutant.command}\n" for mutant in mutants)
    flat = (drawn.directory / FLAT).read_text()
    # Of several matches the first counts, as in the source: `parallel_case` would say that there is one only.
    broken = f"script {_DRAWN}; pmuxtree"
    steps = f"read_rtlil {FLAT}; {broken}; opt_clean; memory_collect; write_verilog -noattr {_MUTATED}"

    def fill(directory: Path) -> None:
        (directory / FLAT).write_text(flat)
        (directory / _DRAWN).write_text(script)
        _yosys(directory, steps)
        (directory / FLAT).unlink()

    directory = cached("mutated", {"flat": flat, "script": script, "steps": steps, **_versions()}, fill)
    mutated = _chosen_by_plusarg((directory / _MUTATED).read_text(), drawn.module)
    verilog = _module(drawn.module).sub(lambda _: _waived(mutated), drawn.design.verilog, count=1)
    # A node's output that is tied to another bit of it depends on itself as a whole, and does so outside the node too.
    return replace(drawn.design, verilog=_module(MODULE).sub(lambda top: _waived(top[0]), verilog, count=1))


def _chosen_by_plusarg(text: str, module: str) -> str:
    """The module of a netlist with mutants, whose input for their number is a register that is set once."""
    text = text[text.index(f"module {module}(") :]
    assert _PORT in text, "no mutant acts on the module"
    return text.replace(f", {PLUSARG});\n", ");\n", 1).replace(_PORT, _CHOICE, 1)


def _waived(text: str) -> str:
    """The module without warnings that mean nothing in a netlist: inside it, since what stands between modules is lost
    where some are compiled apart."""
    off, on = ("".join(f"/* verilator lint_{what} {name} */\n" for name in _WAIVED) for what in ("off", "on"))
    return text.replace(");\n", f");\n{off}", 1).replace("\nendmodule\n", f"\n{on}endmodule\n", 1)


def _module(name: str) -> re.Pattern[str]:
    return re.compile(rf"^module {name}\(.*?^endmodule\n", re.M | re.S)


def place_of(mutant: Mutant) -> Place:
    """Where it is in the netlist."""
    found = _found(mutant.command)
    control = found["control"]
    return Place(found["cell"], found["port"], int(found["bit"]), int(control) if control else None, found["mode"])


def _found(command: str) -> re.Match[str]:
    found = _COMMAND.match(command)
    assert found, f"Yosys wrote {command!r}"
    return found


def _mutant(command: str) -> Mutant:
    found = _found(command)
    # Such as $flatten\port_2.\packet_check.$procdff$75472.
    *path, cell = found["cell"].removeprefix("$flatten").replace("\\", "").split(".$")
    kind = cell.removeprefix("$").partition("$")[0]
    wire = f"{found['wire'].rpartition('.')[2]}[{found['wire_bit']}]" if found["wire"] else ""
    port = f"{found['port']}[{found['bit']}]"
    return Mutant(int(found["number"]), found["mode"], ".$".join(path), kind, port, wire, command)


def _yosys(directory: Path, *steps: str) -> None:
    tools.require("mutate", tools.YOSYS)
    tools.run(tools.YOSYS, ["-q", "-p", "; ".join(steps)], directory, lambda line: None)


def _versions() -> dict[str, str]:
    tools.require("mutate", tools.YOSYS)
    return tools.versions(tools.YOSYS)
