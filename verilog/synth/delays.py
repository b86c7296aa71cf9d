"""What Yosys' ABC9 is told of times that it does not know by itself: of memories, of wires, and of the clock.

To ABC9 a block RAM's answer is there when the cycle begins; in truth a third of the cycle is over then. Its times of
black boxes from a clock on do not come to ABC, those through boxes do. So while ABC9 runs there is a box behind each
answer, which delays it; afterwards the box is a wire. It is a black one: ABC would see that a white one does nothing.
"""

from __future__ import annotations

import re

__all__ = ["BOXES", "PATH_PS", "REMOVE_BOXES", "WIRE_PS", "with_boxes"]

PATH_PS = 10_000
"""How long a path in a component may be, as many go on in another one. What needs less becomes small, not fast."""

WIRE_PS = 700
"""A wire from a cell to the next, as they are placed; Yosys' own estimate is less than half of it."""

_BLOCK_RAM_PS = 4_260
"""From the clock to a block RAM's answer, at the fastest speed grade."""

_LUT_RAM_PS = 379 + WIRE_PS
"""From an address, or rather the cell that gives it, to the answer of memory in LUTs."""

_ANSWERS = {"DP16KD": ("BLOCK_RAM_DELAY", 1, _BLOCK_RAM_PS), "TRELLIS_DPR16X4": ("LUT_RAM_DELAY", 4, _LUT_RAM_PS)}
"""By kind of memory: the box behind each of its answers, how many bits such a one has, and the delay."""

_MEMORY = re.compile(rf"(?:  attribute .*\n)*  cell \\({'|'.join(_ANSWERS)}) .*\n(?:    .*\n)*  end\n")
_ANSWER = re.compile(r"(    connect \\DO[AB]?\d*) (.*)\n")

BOXES = "".join(
    f"(* abc9_box, blackbox *) module {box}(input [{bits - 1}:0] A, output [{bits - 1}:0] Y);\n"
    f"specify (A => Y) = {delay}; endspecify\nendmodule\n"
    for box, bits, delay in _ANSWERS.values()
)
"""The boxes, in Verilog."""

REMOVE_BOXES = "".join(
    f"setparam -set WIDTH {bits} t:{box}; chtype -set $buf t:{box}; delete ={box}; "
    for box, bits, _ in _ANSWERS.values()
)
"""Yosys commands that make wires of the boxes, once the design is cleaned."""


def with_boxes(rtlil: str) -> str:
    """A design whose memories are mapped, with a box behind each answer of each."""
    count = 0

    def behind(memory: re.Match[str]) -> str:
        box, bits, _ = _ANSWERS[memory[1]]
        wires, boxes = [], []

        def delayed(answer: re.Match[str]) -> str:
            nonlocal count
            count += 1
            name = f"$answer${count}"
            wires.append(f"  wire width {bits} {name}\n")
            boxes.append(f"  cell \\{box} {name}$delay\n    connect \\A {name}\n    connect \\Y {answer[2]}\n  end\n")
            return f"{answer[1]} {name}\n"

        cell = _ANSWER.sub(delayed, memory[0])
        return "".join((*wires, cell, *boxes))

    return _MEMORY.sub(behind, rtlil)
