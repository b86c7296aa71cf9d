"""A comparison of two numbers is a carry chain, whichever way it is written."""

import json
import operator
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verilog.emit import merged_rtlil
from verilog.synth.netlist import NETLIST, TOP, make_netlist

BITS = 16


class Comparison(wiring.Component):
    """Compares two registers of these widths, a cycle later."""

    def __init__(self, compare: Callable[..., Any], bits_of_b: int = BITS) -> None:
        self._compare = compare
        self._bits_of_b = bits_of_b
        super().__init__({"a": In(BITS), "b": In(bits_of_b), "given": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = Signal(BITS), Signal(self._bits_of_b)
        m.d.sync += [a.eq(self.a), b.eq(self.b), self.given.eq(self._compare(a, b))]
        return m


def mapped(directory: Path, comparison: Comparison) -> Counter[str]:
    make_netlist(merged_rtlil(comparison, TOP), directory, lambda line: None)
    return Counter(
        cell["type"] for cell in json.loads((directory / NETLIST).read_text())["modules"][TOP]["cells"].values()
    )


@pytest.mark.slow
@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_nothing_but_a_chain_and_an_inverter_is_needed(tmp_path: Path, compare: Callable[..., Any]) -> None:
    cells = mapped(tmp_path, Comparison(compare))
    assert cells["CCU2C"] in (BITS // 2, BITS // 2 + 1)
    assert cells["LUT4"] <= 1


@pytest.mark.slow
def test_what_is_compared_with_nothing_is_left_alone(tmp_path: Path) -> None:
    assert mapped(tmp_path, Comparison(operator.le, bits_of_b=0))["TRELLIS_FF"] >= BITS
