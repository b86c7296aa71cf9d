"""The agent's accesses to the register bus, each at its step (docs/management.md, section 4.3)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.bus import BusSignature
from rtl.management.place import WORD_BITS, place
from rtl.management.set_rules import PORT_INFO_WRITES, SWITCH_INFO_WRITES, WRITES
from rtl.management.sma import Chosen, Target
from rtl.management.step import ANSWER_SLOT, SET_SLOT, SLOT_STEPS, STEP_BITS, first_step
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE
from wire.layout import Layout
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.port_tables import SL_TO_VL_MAPPING_TABLE
from wire.registers import ADDRESS_BITS, DATA_BITS, LFT_PAGE, SL_TO_VL_PAGE, NodeRegister, PortRegister
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO

__all__ = ["READ_BITS", "BusSteps"]

READ_BITS: Final = 8
"""All that the agent reads is this narrow."""

_REGISTERS: Final[dict[str, PortRegister | NodeRegister]] = {
    "lid": NodeRegister.LID,
    "port_state": PortRegister.STATE,
    "port_physical_state": PortRegister.PHYSICAL_STATE,
    "lmc": NodeRegister.LMC,
    "neighbor_mtu": PortRegister.NEIGHBOR_MTU,
    "operational_vls": PortRegister.OPERATIONAL_VLS,
    "local_phy_errors": PortRegister.LOCAL_PHY_ERRORS,
    "overrun_errors": PortRegister.OVERRUN_ERRORS,
    "linear_fdb_top": NodeRegister.LINEAR_FDB_TOP,
}
"""The register that a field is written to."""

_OF_ADAPTERS: Final = ("lid", "lmc")
_OFFSET_BITS: Final = 16
_LFT_ENTRY = LINEAR_FORWARDING_TABLE.entry.width
_SL_ENTRY = SL_TO_VL_MAPPING_TABLE.entry.width
_ROUTE_STEP = 2
_STATE_STEP = first_step(SET_SLOT)


class BusSteps(wiring.Component):
    """Gives each access in the cycle of its step.

    Members:
        go: the step in this cycle is `step`.
        route, lid: the LFT's entry of this LID is wanted, from step 1 on.
        chosen, target, at_port_0: what the SMP names.
        setting, answering: a Set's data are taken, an answer's data are given.
        request: the word of a Set, from the first step of its slot on; `writes`: see `SetRules`, from the second on.
        bus: to the node.
        read, read_before: what was read last, and before that; 5 cycles after it was given.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        self._lft_size = parameters.lft_size if isinstance(parameters, SwitchParameters) else 0
        super().__init__(
            {
                "go": In(1),
                "step": In(STEP_BITS),
                "route": In(1),
                "lid": In(16),
                "chosen": In(Chosen),
                "target": In(Target),
                "at_port_0": In(1),
                "setting": In(1),
                "answering": In(1),
                "request": In(WORD_BITS),
                "writes": In(WRITES),
                "bus": Out(BusSignature()),
                "read": Out(READ_BITS),
                "read_before": Out(READ_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """An access stands ready from the step before its own on."""
        m = Module()
        chosen = self.chosen
        writing, reading = Signal(), Signal()
        address, value = Signal(ADDRESS_BITS), Signal(DATA_BITS)
        give_write, give_read = Signal(), Signal()
        next_address, next_value = Signal(ADDRESS_BITS), Signal(DATA_BITS)
        m.d.comb += [
            self.bus.addr.eq(address),
            self.bus.wdata.eq(value),
            self.bus.write.eq(writing & self.go),
            self.bus.read.eq(reading & self.go),
        ]
        with m.If(self.go):
            m.d.sync += [
                writing.eq(give_write),
                reading.eq(give_read),
                address.eq(next_address),
                value.eq(next_value),
            ]
        with m.If(self.bus.rvalid):
            m.d.sync += [self.read.eq(self.bus.rdata), self.read_before.eq(self.read)]

        def port_page(register: PortRegister | NodeRegister) -> Value:
            page = self.target.port if self._is_switch else Const(1, 1)
            return Cat(Const(register, _OFFSET_BITS), page)

        # Reads.
        on_link = chosen[SmaAttribute.PORT_INFO.name]
        if self._is_switch:
            on_link = on_link & ~self.at_port_0
            with m.If((self.step == _ROUTE_STEP - 1) & self.route):
                m.d.comb += give_read.eq(1)
                m.d.comb += next_address.eq(Cat(self.lid, Const(LFT_PAGE, 8)))
        with m.If((self.step == _STATE_STEP - 1) & self.setting & on_link):
            m.d.comb += give_read.eq(1)
            m.d.comb += next_address.eq(port_page(PortRegister.STATE))
        widths, states = (place(PORT_INFO[name]).word for name in ("link_width_active", "port_state"))
        for word, access, register in (
            (widths, 0, PortRegister.WIDTH),
            (states, 0, PortRegister.STATE),
            (states, 1, PortRegister.PHYSICAL_STATE),
        ):
            with m.If((self.step == first_step(ANSWER_SLOT + word) + access - 1) & self.answering & on_link):
                m.d.comb += give_read.eq(1)
                m.d.comb += next_address.eq(port_page(register))

        # Writes of a Set: access j of word w is number 8 w + j, and its step the one after that.
        number = Signal(STEP_BITS)
        m.d.comb += number.eq(self.step - (first_step(SET_SLOT) + 1))
        access, word = number[:3], number[3:]

        def write_fields(layout: Layout, lists: tuple[tuple[str, ...], ...]) -> None:
            with m.Switch(number):
                for names in lists:
                    for place_in_list, name in enumerate(names):
                        register = _REGISTERS[name]
                        field = place(layout[name])
                        if self._is_switch and name in _OF_ADAPTERS:
                            continue
                        with m.Case(SLOT_STEPS * field.word + place_in_list):
                            of_node = isinstance(register, NodeRegister)
                            m.d.comb += give_write.eq(self.writes[place_in_list])
                            m.d.comb += next_address.eq(Value.cast(register) if of_node else port_page(register))
                            m.d.comb += next_value.eq(field.of(self.request))

        with m.If(self.setting & chosen[SmaAttribute.PORT_INFO.name]):
            write_fields(PORT_INFO, PORT_INFO_WRITES)
        if self._is_switch:
            with m.If(self.setting & chosen[SmaAttribute.SWITCH_INFO.name]):
                write_fields(SWITCH_INFO, SWITCH_INFO_WRITES)

            # Entries of tables, several to a word.
            entries = Signal(WORD_BITS)
            with m.If(self.go):
                with m.If(access == SLOT_STEPS - 1):
                    m.d.sync += entries.eq(self.request)
                with m.Elif(chosen[SmaAttribute.LINEAR_FORWARDING_TABLE.name]):
                    m.d.sync += entries.eq(entries << _LFT_ENTRY)
                with m.Else():
                    m.d.sync += entries.eq(entries << _SL_ENTRY)

            lid = Cat(access[:2], word[:4], self.target.block)[:16]
            of_word = WORD_BITS // _LFT_ENTRY
            in_set = word < LINEAR_FORWARDING_TABLE.count // of_word
            with m.If(self.setting & chosen[SmaAttribute.LINEAR_FORWARDING_TABLE.name] & in_set):
                m.d.comb += give_write.eq((access < of_word) & (lid < self._lft_size))
                m.d.comb += next_address.eq(Cat(lid, Const(LFT_PAGE, 8)))
                m.d.comb += next_value.eq(entries[-_LFT_ENTRY:])

            target = self.target
            in_set = number < SL_TO_VL_MAPPING_TABLE.count
            with m.If(self.setting & chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name] & in_set):
                m.d.comb += give_write.eq((target.in_port != 0) & (target.port != 0))
                page = (SL_TO_VL_PAGE - 1 + target.in_port)[:8]
                m.d.comb += next_address.eq(
                    Cat(number[:4], target.port, Const(0, _OFFSET_BITS - 4 - len(target.port)), page)
                )
                m.d.comb += next_value.eq(entries[-_SL_ENTRY:])
        return m
