"""What a switch computes, as Amaranth writes it: nothing for which a tool would take an FPGA's few multipliers."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.switch.switch import Switch
from verilog.emit import merged_rtlil
from verilog.export.rtlil import parse
from wire.parameters import SwitchParameters

MULTIPLIERS = {"$mul", "$divfloor", "$modfloor", "$div", "$mod", "$pow"}


class Product(wiring.Component):
    factor: In(4)
    product: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        factor = Signal(4)
        m.d.sync += [factor.eq(self.factor), self.product.eq(factor * 3)]
        return m


def multipliers(design: wiring.Component) -> set[tuple[str, str]]:
    modules = parse(merged_rtlil(design, "top"))
    return {(module.name, cell.type) for module in modules.values() for cell in module.cells} & {
        (name, kind) for name in modules for kind in MULTIPLIERS
    }


def test_no_part_of_a_switch_multiplies_where_slots_are_no_power_of_two() -> None:
    assert multipliers(Switch(SwitchParameters(ports=2, vls=2, mtu=256, buffer_blocks=20))) == set()


def test_one_that_does_is_found() -> None:
    assert {kind for _, kind in multipliers(Product())} == {"$mul"}
