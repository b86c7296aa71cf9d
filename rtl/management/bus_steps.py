"""The agent's accesses to the register bus, each at its step (docs/management.md, sections 4.3 and 6)."""

from itertools import pairwise
from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute_decode import Chosen, Target
from rtl.management.place import WORD_BITS, place
from rtl.management.pma import PMA_ACCESSES, SELECT_BITS
from rtl.management.set_rules import PORT_INFO_WRITES, SWITCH_INFO_WRITES, WRITES
from rtl.management.step import ANSWER_SLOT, SET_SLOT, SLOT_STEPS, STEP_BITS, WORD_TAKEN, first_step
from rtl.registers.bus import BusSignature
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE
from wire.layout import Layout
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import PmaAttribute
from wire.port_info import PORT_INFO
from wire.port_tables import SL_TO_VL_MAPPING_TABLE
from wire.registers import (
    ADDRESS_BITS,
    DATA_BITS,
    LFT_PAGE,
    SL_TO_VL_PAGE,
    Counter,
    CounterHigh,
    NodeRegister,
    PortRegister,
)
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO

__all__ = ["BusSteps"]

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
    "link_width_active": PortRegister.WIDTH,
}
"""The register that a field is written to, or read from."""

_PORT_INFO_READS: Final = (("link_width_active",), ("port_state", "port_physical_state"))
"""The fields that are read for an answer, those of one word in the order of their accesses."""

_OF_ADAPTERS: Final = ("lid", "lmc")
_OFFSET_BITS: Final = 16
_LFT_ENTRY = LINEAR_FORWARDING_TABLE.entry.width
_SL_ENTRY = SL_TO_VL_MAPPING_TABLE.entry.width
_ROUTE_STEP = 2
_STATE_STEP = first_step(SET_SLOT)
_ANSWER_STEP = first_step(ANSWER_SLOT) - 1
_SET_STEP = first_step(SET_SLOT) + 1
"""Steps in which the accesses of word 0 begin to be made ready."""


def _distances() -> dict[int, int]:
    """By word of which several fields are read: how far each of them stands above the next."""
    of_port_info = [place(PORT_INFO[name]) for names in _PORT_INFO_READS for name in names]
    of_counters = [access.value for access in PMA_ACCESSES[PmaAttribute.PORT_COUNTERS] if access.value is not None]
    return {
        before.word: before.lsb - after.lsb
        for fields in (of_port_info, of_counters)
        for before, after in pairwise(fields)
        if before.word == after.word
    }


class BusSteps(wiring.Component):
    """Gives each access in the cycle of its step.

    Members:
        go: the step in this cycle is `step`.
        route, lid: the LFT's entry of this LID is wanted, from step 1 on.
        chosen, target, at_port_0: what the MAD names. `select`: the counters that a PMA's Set names.
        setting, answering: a Set's data are taken, an answer's data are given.
        request: the word of a Set, from the first step of its slot on; `writes`: see `SetRules`, from the second on.
        bus: to the node.
        read: what was read last, 5 cycles after it was given. Of several fields read in one slot, each is put below
            those before as in their word.
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
                "select": In(SELECT_BITS),
                "bus": Out(BusSignature()),
                "read": Out(DATA_BITS),
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

        def port_page(register: PortRegister | NodeRegister | Counter | CounterHigh) -> Value:
            page = self.target.port if self._is_switch else Const(1, 1)
            return Cat(Const(register, _OFFSET_BITS), page)

        # Reads before the slots.
        on_link = chosen[SmaAttribute.PORT_INFO.name]
        if self._is_switch:
            on_link = on_link & ~self.at_port_0
            with m.If((self.step == _ROUTE_STEP - 1) & self.route):
                m.d.comb += give_read.eq(1)
                m.d.comb += next_address.eq(Cat(self.lid, Const(LFT_PAGE, 8)))
        with m.If((self.step == _STATE_STEP - 1) & self.setting & on_link):
            m.d.comb += give_read.eq(1)
            m.d.comb += next_address.eq(port_page(PortRegister.STATE))

        # In the slots, access j of word w is number 8 w + j. That of a step is made ready: of an answer's slot the one
        # of the next step, of a Set's slot the one before.
        in_answer = self.step >= _ANSWER_STEP
        number = Signal(STEP_BITS)
        m.d.comb += number.eq(self.step - Mux(in_answer, _ANSWER_STEP, _SET_STEP))
        access, word = number[:3], number[3:]
        answering, setting = self.answering & in_answer, self.setting & ~in_answer

        with m.If(answering & on_link), m.Switch(number):
            for names in _PORT_INFO_READS:
                for place_in_list, name in enumerate(names):
                    with m.Case(SLOT_STEPS * place(PORT_INFO[name]).word + place_in_list):
                        m.d.comb += give_read.eq(1)
                        m.d.comb += next_address.eq(port_page(_REGISTERS[name]))

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

        with m.If(setting & chosen[SmaAttribute.PORT_INFO.name]):
            write_fields(PORT_INFO, PORT_INFO_WRITES)
        if self._is_switch:
            with m.If(setting & chosen[SmaAttribute.SWITCH_INFO.name]):
                write_fields(SWITCH_INFO, SWITCH_INFO_WRITES)

        # Entries of tables, several to a word; of PortCountersExtended the word before.
        entries = Signal(WORD_BITS)
        of_word_before = chosen[PmaAttribute.PORT_COUNTERS_EXTENDED.name]
        taken = Mux(of_word_before, WORD_TAKEN, 0)
        with m.If(self.go):
            with m.If(self.step[:3] == taken):
                m.d.sync += entries.eq(self.request)
            with m.Elif(chosen[SmaAttribute.LINEAR_FORWARDING_TABLE.name]):
                m.d.sync += entries.eq(entries << _LFT_ENTRY)
            with m.Elif(chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name]):
                m.d.sync += entries.eq(entries << _SL_ENTRY)

        if self._is_switch:
            lid = Cat(access[:2], word[:4], self.target.block)[:16]
            of_word = WORD_BITS // _LFT_ENTRY
            in_set = word < LINEAR_FORWARDING_TABLE.count // of_word
            with m.If(setting & chosen[SmaAttribute.LINEAR_FORWARDING_TABLE.name] & in_set):
                m.d.comb += give_write.eq((access < of_word) & (lid < self._lft_size))
                m.d.comb += next_address.eq(Cat(lid, Const(LFT_PAGE, 8)))
                m.d.comb += next_value.eq(entries[-_LFT_ENTRY:])

            target = self.target
            in_set = number < SL_TO_VL_MAPPING_TABLE.count
            with m.If(setting & chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name] & in_set):
                m.d.comb += give_write.eq((target.in_port != 0) & (target.port != 0))
                page = (SL_TO_VL_PAGE - 1 + target.in_port)[:8]
                m.d.comb += next_address.eq(
                    Cat(number[:4], target.port, Const(0, _OFFSET_BITS - 4 - len(target.port)), page)
                )
                m.d.comb += next_value.eq(entries[-_SL_ENTRY:])

        for attribute, accesses in PMA_ACCESSES.items():
            with m.If(chosen[attribute.name]), m.Switch(number):
                for given in accesses:
                    with m.Case(SLOT_STEPS * given.word + given.number):
                        selected = self.select[given.select] if given.select is not None else 1
                        m.d.comb += next_address.eq(port_page(given.register))
                        m.d.comb += next_value.eq(entries if given.value is None else given.value.of(self.request))
                        if given.read:
                            m.d.comb += give_read.eq(answering)
                        if given.written:
                            m.d.comb += give_write.eq(setting & selected)

        # What is read. It comes before the last step of its slot.
        first = Signal()
        with m.If(self.step[:3] == 0):
            m.d.sync += first.eq(1)
        above = Signal(DATA_BITS)
        with m.Switch(word):
            for of_word, distance in _distances().items():
                with m.Case(of_word):
                    m.d.comb += above.eq(self.read << distance)
        with m.If(self.bus.rvalid):
            m.d.sync += [self.read.eq(self.bus.rdata | Mux(first, 0, above)), first.eq(0)]
        return m
