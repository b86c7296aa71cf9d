"""Verilog from Amaranth, with one module for each distinct design instead of one for each instance.

Amaranth emits a module per instance. Here modules whose text is the same, once their submodules are, are merged
before Yosys sees them, so a switch of 36 like ports is written, read and compiled as one port.

What makes the text of like components alike is that each is converted by itself (see boundaries), which also skips
most of those that are alike. Here is decided what is the same: it rests on the text of the modules alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amaranth.back import verilog

from toolchain.build_cache import cached
from verilog import memory_contents, whole_assignments
from verilog.boundaries import convert_apart

__all__ = ["merge_modules", "merged_rtlil", "rtlil_to_verilog", "start_yosys", "to_verilog"]

_MODULE = re.compile(r"^(?P<attributes>(?:attribute [^\n]*\n)*)module \\(?P<name>\S+)\n(?P<body>.*?)^end$", re.M | re.S)
_SUBMODULE = re.compile(r"^(?P<head>\s*cell )\\(?P<type>\S+)(?P<tail> \\\S+)$", re.M)
_SOURCE_ATTRIBUTE = re.compile(r"^\s*attribute \\src [^\n]*\n", re.M)
_INDEX = re.compile(r"[_$]*\d+$")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]+")
_LONE_ASSIGNMENT = re.compile(r"^  always @\*\n(?P<assignment>    [^\n]+ = [^\n]+;\n)", re.M)
_WAKING_REGISTER = re.compile(r"^  reg \\\$auto\$verilog_backend\S+  = 0;\n", re.M)
_WAKING_NAME = re.compile(r"\\\$auto\$verilog_backend\S+ ")
_WAKER = "_wake"
_TEMPORARY = re.compile(r"\\\$(\d+) ")
_UNDERSCORED = re.compile(r"(?<![\w\\.$])_\d+\b")
_END = "endmodule\n"
_VERILOG_FILE = "design.v"


@dataclass(frozen=True)
class _Module:
    """One RTLIL module: its attribute lines, its hierarchical name and the lines up to `end`."""

    attributes: str
    name: str
    body: str

    def submodules(self, known: dict[str, _Module]) -> list[str]:
        """Types of the cells in this module that are modules of the design, in order."""
        return [cell["type"] for cell in _SUBMODULE.finditer(self.body) if cell["type"] in known]

    def with_types(self, types: dict[str, str]) -> _Module:
        """This module with its submodule cells' types replaced as TYPES says."""

        def rename(cell: re.Match[str]) -> str:
            return f"{cell['head']}\\{types.get(cell['type'], cell['type'])}{cell['tail']}"

        return replace(self, body=_SUBMODULE.sub(rename, self.body))

    def __str__(self) -> str:
        return f"{self.attributes}module \\{self.name}\n{self.body}end\n"


def _readable_names(paths: list[str]) -> dict[str, str]:
    """A legal, unique Verilog name for each hierarchical name: the top's, then the last part that tells it apart."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for path in paths:
        parts = [_ILLEGAL.sub("_", _INDEX.sub("", part) or part).strip("_") for part in path.split(".")]
        top, below = parts[0], parts[1:]
        tries = ["_".join([top, *below[start:]]) for start in range(len(below) - 1, -1, -1)] or [top]
        tries += [f"{tries[-1]}_{number}" for number in range(2, len(paths) + 2)]
        names[path] = next(name for name in tries if name not in taken)
        taken.add(names[path])
    return names


def merge_modules(rtlil_text: str) -> str:
    """Merge the modules of an RTLIL design that are the same, and give those kept readable names.

    The first module keeps its name; a module below it becomes `<top>_<instance>`, the instance's index left out
    (`top.sw.port_3` becomes `top_port`). Source locations are dropped.

    Raises:
        ValueError: the text holds no module.
    """
    text = _SOURCE_ATTRIBUTE.sub("", rtlil_text)
    modules = {found["name"]: _Module(**found.groupdict()) for found in _MODULE.finditer(text)}
    if not modules:
        raise ValueError("no module in the RTLIL text")
    kept_as: dict[str, str] = {}
    kept: dict[tuple[str, str], _Module] = {}

    def visit(name: str) -> None:
        if name in kept_as:
            return
        for submodule in modules[name].submodules(modules):
            visit(submodule)
        module = modules[name].with_types(kept_as)
        kept_as[name] = kept.setdefault((module.attributes, module.body), module).name

    for name in modules:
        visit(name)
    order = {name: position for position, name in enumerate(modules)}
    survivors = sorted(kept.values(), key=lambda module: order[module.name])
    names = _readable_names([module.name for module in survivors])
    return "\n".join(str(replace(module.with_types(names), name=names[module.name])) for module in survivors)


def merged_rtlil(elaboratable: Any, name: str = "top", ports: Any = None) -> str:
    """RTLIL text of an Amaranth component, top module NAME, like modules merged, without source locations.

    Raises:
        TypeError: PORTS, (signal, direction) by name, is missing and the elaboratable has no signature.
    """
    return merge_modules(convert_apart(elaboratable, name, ports))


def rtlil_to_verilog(rtlil_text: str) -> str:
    """Verilog of an RTLIL design, as simulators like it. The work of Yosys is kept in the build cache."""

    def fill(directory: Path) -> None:
        text: str = verilog._convert_rtlil_text(rtlil_text, strip_internal_attrs=True)
        for improved in _IMPROVEMENTS:
            text = improved(text)
        (directory / _VERILOG_FILE).write_text(text)

    code = [Path(file).read_text() for file in (__file__, memory_contents.__file__, whole_assignments.__file__)]
    key = {"rtlil": rtlil_text, "yosys": _yosys_version(), "code": code}
    return (cached("verilog", key, fill) / _VERILOG_FILE).read_text()


def to_verilog(elaboratable: Any, name: str = "top", *, ports: Any = None) -> str:
    """Verilog text of an Amaranth component; see `merged_rtlil` and `rtlil_to_verilog`."""
    return rtlil_to_verilog(merged_rtlil(elaboratable, name, ports))


def start_yosys() -> None:
    """Start Yosys, which is compiled for this processor the first time: two that start it then would do so twice."""
    _yosys_version()


def _wake_processes(text: str) -> str:
    """Have every combinational process run at time 0.

    `always @*` waits for a change; where all that is read is constant none ever comes, and the target stays
    unknown in a four-state simulator. Yosys gives most processes a register to read, set to 0 where it is
    declared, but SystemVerilog does that before processes begin to wait. Here it changes after.
    """
    return "".join(f"{_with_waker(module)}{_END}" for module in text.split(_END)[:-1]) + text.rpartition(_END)[2]


def _with_waker(module: str) -> str:
    text = _WAKING_REGISTER.sub("", module)
    text = _WAKING_NAME.sub(f"{_WAKER} ", text)
    text = _LONE_ASSIGNMENT.sub(rf"  always @* begin\n    if ({_WAKER} ) begin end\n\g<assignment>  end\n", text)
    if f"if ({_WAKER} )" not in text:
        return module
    head, semicolon, body = text.partition(");\n")
    return f"{head}{semicolon}  reg {_WAKER} = 0;\n  initial {_WAKER} <= 1;\n{body}"


def _name_temporaries(text: str) -> str:
    """Begin the names of nets that only Amaranth or Yosys has named with an underscore, which Verilator leaves out of
    waves."""
    return text if _UNDERSCORED.search(text) else _TEMPORARY.sub(r"_\1 ", text)


_IMPROVEMENTS = (
    memory_contents.with_contents_in_loops,
    _wake_processes,
    _name_temporaries,
    whole_assignments.with_whole_assignments,
)


def _yosys_version() -> str:
    return str(verilog.find_yosys(lambda version: version >= (0, 40)).version())
