"""Combinational processes that run at time 0, whatever they read.

`always @*` waits for a change; where all that is read is constant none ever comes, and the target stays unknown in a
four-state simulator. Yosys gives most processes a register to read, set to 0 where it is declared, but SystemVerilog
does that before processes begin to wait. Here it changes after.
"""

from __future__ import annotations

import re

__all__ = ["with_waking_processes"]

_LONE_ASSIGNMENT = re.compile(r"^  always @\*\n(?P<assignment>    [^\n]+ = [^\n]+;\n)", re.M)
_WAKING_REGISTER = re.compile(r"^  reg \\\$auto\$verilog_backend\S+  = 0;\n", re.M)
_WAKING_NAME = re.compile(r"\\\$auto\$verilog_backend\S+ ")
_WAKER = "_wake"


def with_waking_processes(module: str) -> str:
    """The same module, as Yosys wrote it, each of its combinational processes woken by one register."""
    text = _WAKING_REGISTER.sub("", module)
    text = _WAKING_NAME.sub(f"{_WAKER} ", text)
    text = _LONE_ASSIGNMENT.sub(rf"  always @* begin\n    if ({_WAKER} ) begin end\n\g<assignment>  end\n", text)
    if f"if ({_WAKER} )" not in text:
        return module
    head, semicolon, body = text.partition(");\n")
    return f"{head}{semicolon}  reg {_WAKER} = 0;\n  initial {_WAKER} <= 1;\n{body}"
