"""Wide multiplexers as the FPGA has them, which Yosys does not find.

The eight LUTs of a tile, of four inputs each, are joined by multiplexers: pairs of them, pairs of those, and both of
these. To ABC9 that makes LUTs of up to seven inputs; but as each of the eight may have inputs of its own, they choose
among sixteen values. So while ABC9 runs a multiplexer of eight values or sixteen is a box. Of four it is not: one that
ABC9 puts together with what is around it is smaller.
"""

from __future__ import annotations

from string import ascii_uppercase

__all__ = ["BOXES", "CELLS", "COVER", "GATES"]

_SIZES = {8: 700, 16: 800}
"""Values, and picoseconds from any input to the answer: a LUT, and a multiplexer for each doubling."""

_SELECTIONS = "STUV"

COVER = f"muxcover {' '.join(f'-mux{size}' for size in _SIZES)} -nopartial; "
"""Yosys' command that finds trees of multiplexers of two values each."""


def _gate(size: int) -> str:
    """What takes the place of such a tree."""
    values, selections = ascii_uppercase[:size], _SELECTIONS[: (size - 1).bit_length()]
    return f"""(* techmap_celltype = "$_MUX{size}_" *)
module _gate_{size}(input {", ".join((*values, *selections))}, output Y);
MUX{size} _TECHMAP_REPLACE_ (.I({{{", ".join(reversed(values))}}}), .S({{{", ".join(reversed(selections))}}}), .Y(Y));
endmodule
"""


def _box(size: int, delay_ps: int) -> str:
    bits = (size - 1).bit_length()
    return f"""(* abc9_box, blackbox *)
module MUX{size}(input [{size - 1}:0] I, input [{bits - 1}:0] S, output Y);
specify (I *> Y) = {delay_ps}; (S *> Y) = {delay_ps}; endspecify
endmodule
"""


def _cells(size: int) -> str:
    """LUTs that choose one of two values, and a tree of multiplexers behind."""
    lines = [
        f"\\$lut #(.WIDTH(3), .LUT(8'hCA)) of_{at} (.A({{S[0], I[{2 * at + 1}], I[{2 * at}]}}), .Y(level_1[{at}]));"
        for at in range(size // 2)
    ]
    levels = (size - 1).bit_length()
    for level in range(1, levels):
        for at in range(size >> level + 1):
            odd, even = f"level_{level}[{2 * at + 1}]", f"level_{level}[{2 * at}]"
            ports = f".ALUT({odd}), .BLUT({even}), .C0" if level == 1 else f".D1({odd}), .D0({even}), .SD"
            kind = "PFUMX" if level == 1 else "L6MUX21"
            lines.append(f"{kind} join_{level}_{at} ({ports}(S[{level}]), .Z(level_{level + 1}[{at}]));")
    wires = "".join(f"wire [{(size >> level) - 1}:0] level_{level}; " for level in range(1, levels + 1))
    return f"""module MUX{size}(input [{size - 1}:0] I, input [{levels - 1}:0] S, output Y);
{wires}
{chr(10).join(lines)}
assign Y = level_{levels};
endmodule
"""


GATES = "".join(map(_gate, _SIZES))
"""Boxes in place of what COVER finds, for Yosys' `techmap`."""

BOXES = "".join(_box(size, delay_ps) for size, delay_ps in _SIZES.items())
"""Those boxes, for ABC9."""

CELLS = "".join(map(_cells, _SIZES))
"""Cells of the FPGA in place of the boxes, for Yosys' `techmap`."""
