"""A switch's own registers of congestion control (docs/management.md, section 7; IBTA vol 1, A10.4.3)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.place import WORD_BITS, fields_in_words, place, word_of
from rtl.registers.bus import PageAccess
from rtl.registers.marking import MarkingSettings, switch_marking_layout
from rtl.rotation import any_of, select
from rtl.switch.congestion_window import WINDOW_WORDS, bits_by_word, of_attribute, word_of_access
from wire.congestion_control import (
    CONGESTION_INFO,
    SWITCH_CONGESTION_INFO,
    SWITCH_CONGESTION_SETTING,
    CcAttribute,
    SwitchControl,
)

__all__ = ["CongestionRegisters"]

_CONTROL_BITS: Final = max(SwitchControl).bit_length()


class CongestionRegisters(wiring.Component):
    """CongestionInfo, SwitchCongestionSetting.

    Args:
        ports: of the switch.

    Members:
        access: to the page of congestion control; a write is visible in the next cycle.
        rdata: two cycles after a read what was visible in the cycle between, else 0.
        marking: what has been set.
    """

    def __init__(self, ports: int) -> None:
        self._ports = ports
        super().__init__(
            {"access": In(PageAccess), "rdata": Out(WORD_BITS), "marking": Out(switch_marking_layout(ports))}
        )

    def elaborate(self, platform: object) -> Module:
        """What is set, component by component; what is read."""
        m = Module()
        access, marking, layout = self.access, self.marking, SWITCH_CONGESTION_SETTING
        control = Signal(_CONTROL_BITS)
        word = word_of_access(access)
        sets = access.write & of_attribute(access, CcAttribute.SWITCH_CONGESTION_SETTING)
        with m.If(sets & (word == word_of(layout["control_map"]))):
            m.d.sync += control.eq(access.wdata)
        for number, bits in bits_by_word(layout["victim_mask"], self._ports).items():
            lsb = (bits.start + 1) % WORD_BITS
            with m.If(sets & _controlled(control, SwitchControl.VICTIM_MASK) & (word == number)):
                m.d.sync += marking.victims[bits].eq(access.wdata[lsb:])
        for name, component in (
            ("threshold", SwitchControl.THRESHOLD),
            ("packet_size", SwitchControl.THRESHOLD),
            ("marking_rate", SwitchControl.MARKING_RATE),
        ):
            where = place(layout[name])
            with m.If(sets & _controlled(control, component) & (word == where.word)):
                m.d.sync += marking.settings[name].eq(where.of(access.wdata))

        settings = {layout[name]: marking.settings[name] for name in MarkingSettings.members}
        victims = {layout["victim_mask"]: Cat(Const(0, 1), marking.victims)}
        windows: dict[CcAttribute, dict[int, Value]] = {
            CcAttribute.CONGESTION_INFO: fields_in_words(
                {CONGESTION_INFO["congestion_info"]: Const(SWITCH_CONGESTION_INFO)}
            ),
            CcAttribute.SWITCH_CONGESTION_SETTING: fields_in_words(
                {layout["control_map"]: control, **victims, **settings}
            ),
        }
        reading, at = Signal(len(windows)), Signal(range(WINDOW_WORDS))
        m.d.sync += [
            reading.eq(Cat(access.read & of_attribute(access, attribute) for attribute in windows)),
            at.eq(word),
            self.rdata.eq(
                select(
                    reading,
                    [any_of(Mux(at == number, value, 0) for number, value in of.items()) for of in windows.values()],
                )
            ),
        ]
        return m


def _controlled(control: Value, component: SwitchControl) -> Value:
    return (control & component).any()
