"""Verilog from Amaranth, with one module for each distinct design instead of one for each instance.

Amaranth emits a module per instance. Here modules whose text is the same, once their submodules are, are merged
before Yosys sees them, so a switch of 36 identical ports is written, read and compiled as one port.

The text of identical components is identical because each is converted by itself (see boundaries), which also skips
most of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from amaranth.back import verilog

from toolchain.build_cache import cached, code_of
from verilog import line_order, memory_contents, plain_names, whole_assignments
from verilog.boundaries import convert_apart
from verilog.line_order import in_order
from verilog.memory_contents import with_contents_in_loops
from verilog.merging import merge_modules
from verilog.nodes import KnownNodes
from verilog.plain_names import with_plain_names
from verilog.whole_assignments import with_whole_assignments

__all__ = ["merged_rtlil", "rtlil_to_verilog", "start_yosys", "to_verilog", "with_waking_processes"]

_TEMPORARY = re.compile(r"\\\$(\d+) ")
_UNDERSCORED = re.compile(r"(?<![\w\\.$])_(\d+)\b")
_LONE_ASSIGNMENT = re.compile(r"^  always @\*\n(?P<assignment>    [^\n]+ = [^\n]+;\n)", re.M)
_WAKING_REGISTER = re.compile(r"^  reg \\\$auto\$verilog_backend\S+  = 0;\n", re.M)
_WAKING_NAME = re.compile(r"\\\$auto\$verilog_backend\S+ ")
_WAKER = "_wake"
_END = "endmodule\n"
_VERILOG_FILE = "design.v"


def merged_rtlil(elaboratable: Any, name: str = "top", ports: Any = None, nodes: KnownNodes | None = None) -> str:
    """RTLIL text of an Amaranth component, top module NAME, identical modules merged, without source locations.

    Of a fabric the nodes' text is taken from `nodes`, if given.

    Raises:
        TypeError: PORTS, (signal, direction) by name, is missing and the elaboratable has no signature.
    """
    text = convert_apart(elaboratable, name, ports, nodes)
    return merge_modules("\n".join([text, *reversed(nodes.texts if nodes else [])]))


def rtlil_to_verilog(rtlil_text: str) -> str:
    """Verilog of an RTLIL design, as simulators need it. The work of Yosys is kept in the build cache."""

    def fill(directory: Path) -> None:
        text = _converted(rtlil_text)
        # Nets that only Amaranth has named get names that nobody gave; Verilator leaves an underscore out of waves.
        first = 1 + max(map(int, _UNDERSCORED.findall(text)), default=-1)
        *modules, rest = _TEMPORARY.sub(lambda net: f"_{first + int(net[1])} ", text).split(_END)
        modules = [
            with_plain_names(with_waking_processes(with_contents_in_loops(in_order(module)))) for module in modules
        ]
        (directory / _VERILOG_FILE).write_text(_END.join([*map(with_whole_assignments, modules), rest]))

    code = code_of(line_order, memory_contents, plain_names, whole_assignments)
    key = {"rtlil": rtlil_text, "yosys": _yosys_version(), "code": [Path(__file__).read_text(), *code]}
    return (cached("verilog", key, fill) / _VERILOG_FILE).read_text()


def _converted(rtlil_text: str) -> str:
    """Verilog as Yosys writes it, from the steps that Amaranth takes, but without optimizations.

    They take a mask of constants apart into its bits, and a CRC has hundreds of them: the text is half as long
    without, and Icarus twice as fast.
    """
    attributes = "-remove generator -remove top -remove src -remove amaranth.hierarchy -remove amaranth.decoding"
    steps = [
        f"read_rtlil <<rtlil\n{rtlil_text}\nrtlil",
        "proc -nomux -norom -noopt",
        "memory_collect",
        f"attrmap {attributes}",
        f"attrmap -modattr {attributes}",
        "write_verilog -norename",
    ]
    # Yosys warns of processes that it did not make into cells: Amaranth writes none but such as Verilog can say.
    return str(_yosys().run(["-q", "-"], "\n".join(steps), ignore_warnings=True))


def to_verilog(elaboratable: Any, name: str = "top", *, ports: Any = None, nodes: KnownNodes | None = None) -> str:
    """Verilog text of an Amaranth component; see `merged_rtlil` and `rtlil_to_verilog`."""
    return rtlil_to_verilog(merged_rtlil(elaboratable, name, ports, nodes))


def start_yosys() -> None:
    """Start Yosys, which is compiled for this processor the first time: two that start it then would do so twice."""
    _yosys_version()


def with_waking_processes(module: str) -> str:
    """A module, as Yosys wrote it, with combinational processes that run at time 0, whatever they read.

    `always @*` waits for a change; where all that is read is constant none ever comes, and the target stays unknown in
    a four-state simulator. Yosys gives most processes a register to read, set to 0 where it is declared, but
    SystemVerilog does that before processes begin to wait. Here one register of the module changes after.
    """
    text = _WAKING_REGISTER.sub("", module)
    text = _WAKING_NAME.sub(f"{_WAKER} ", text)
    text = _LONE_ASSIGNMENT.sub(rf"  always @* begin\n    if ({_WAKER} ) begin end\n\g<assignment>  end\n", text)
    if f"if ({_WAKER} )" not in text:
        return module
    head, semicolon, body = text.partition(");\n")
    return f"{head}{semicolon}  reg {_WAKER} = 0;\n  initial {_WAKER} <= 1;\n{body}"


def _yosys_version() -> str:
    return str(_yosys().version())


def _yosys() -> Any:
    return verilog.find_yosys(lambda version: version >= (0, 40))
