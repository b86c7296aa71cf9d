"""Comparisons as Yosys maps them best.

Of a > b and a <= b it makes a carry chain and, for whether both are equal, LUTs behind it. Of b < a and b >= a, which
are the same, it makes the chain alone.
"""

from __future__ import annotations

__all__ = ["COMPARISONS"]

_PARAMETERS = "parameter A_SIGNED = 0, B_SIGNED = 0, A_WIDTH = 1, B_WIDTH = 1, Y_WIDTH = 1;"
_PORTS = "input [A_WIDTH-1:0] A, input [B_WIDTH-1:0] B, output [Y_WIDTH-1:0] Y"
_SWAPPED = "#(.A_SIGNED(B_SIGNED), .B_SIGNED(A_SIGNED), .A_WIDTH(B_WIDTH), .B_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH))"

COMPARISONS = "".join(
    f"""(* techmap_celltype = "${name}" *)
module _{name}({_PORTS});
{_PARAMETERS}
wire _TECHMAP_FAIL_ = A_WIDTH == 0 || B_WIDTH == 0;
generate if (A_WIDTH > 0 && B_WIDTH > 0) \\${other} {_SWAPPED} _TECHMAP_REPLACE_ (.A(B), .B(A), .Y(Y)); endgenerate
endmodule
"""
    for name, other in (("gt", "lt"), ("le", "ge"))
)
"""What takes their place, for Yosys' `techmap`. What has no bits is left alone."""
