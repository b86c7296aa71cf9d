"""What a switch computes, as Amaranth writes it: nothing for which a tool would take an FPGA's few multipliers."""

from collections.abc import Callable

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tests.verilog.switches import SMALL, SMALLEST
from verilog.emit import merged_rtlil
from verilog.export.rtlil import parse
from wire.parameters import SwitchParameters

MULTIPLIERS = {"$mul", "$div", "$divfloor", "$mod", "$modfloor", "$pow"}


class Product(wiring.Component):
    factor: In(4)
    product: Out(6)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.product.eq(self.factor * 3)
        return m


class Whole(wiring.Component):
    factor: In(4)
    product: Out(6)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.part = part = Product()
        connect(m, flipped(self), part)
        return m


def multipliers(rtlil: str) -> set[str]:
    return {cell.type for module in parse(rtlil).values() for cell in module.cells} & MULTIPLIERS


@pytest.mark.parametrize("parameters", [SMALL, SMALLEST], ids=["voq", "fifo"])
def test_no_part_of_a_switch_multiplies_where_slots_are_no_power_of_two(
    parameters: SwitchParameters, netlist: Callable[[SwitchParameters], str]
) -> None:
    assert parameters.vls + 1 == 3
    assert multipliers(netlist(parameters)) == set()


def test_a_part_that_does_is_found() -> None:
    assert multipliers(merged_rtlil(Whole(), "top")) == {"$mul"}
