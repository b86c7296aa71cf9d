"""The agent's accesses to the register bus, each at its step (docs/management.md, sections 4.3 and 6)."""

from collections import defaultdict
from typing import Any, Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from rtl.management.attribute import WORDS, Attribute, Word
from rtl.management.attribute_memory import BLOCK_WORDS, SL_TO_VL_WORDS
from rtl.management.departure import Route
from rtl.management.place import WORD_BITS, Place, place
from rtl.management.pma import PMA_ACCESSES, PmaAccess
from rtl.management.set_rules import PORT_INFO_WRITES, SWITCH_INFO_WRITES, WRITES
from rtl.management.task import IN_SLOT_BITS, SET_SLOT, SHORT_STEPS, SLOT_STEPS, WORD_TAKEN, OfSlot, Stage
from rtl.management.windows import Access
from rtl.registers.bus import BusSignature
from rtl.rotation import any_of, select
from rtl.widths import VL_BITS, VL_WEIGHT_BITS
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE, MFT_MODIFIER, MULTICAST_FORWARDING_TABLE
from wire.layout import Layout
from wire.packet import WORD_BYTES
from wire.parameters import NodeParameters, SwitchParameters, vl_arbitration_entries
from wire.pma import PmaAttribute
from wire.port_info import PORT_INFO
from wire.port_tables import (
    P_KEY_TABLE,
    SL_TO_VL_MAPPING_TABLE,
    VL_ARBITRATION_MODIFIER,
    VL_ARBITRATION_TABLE,
    VLArbitrationBlock,
)
from wire.registers import (
    DATA_BITS,
    LFT_PAGE,
    MFT_PAGE,
    P_KEYS,
    SL_TO_VL_PAGE,
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    NodeRegister,
    PartitionCheck,
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
    "vl_high_limit": PortRegister.VL_HIGH_LIMIT,
    "operational_vls": PortRegister.OPERATIONAL_VLS,
    "local_phy_errors": PortRegister.LOCAL_PHY_ERRORS,
    "overrun_errors": PortRegister.OVERRUN_ERRORS,
    "hoq_life": PortRegister.HOQ_LIFE,
    "vl_stall_count": PortRegister.VL_STALL_COUNT,
    "linear_fdb_top": NodeRegister.LINEAR_FDB_TOP,
    "life_time_value": NodeRegister.LIFE_TIME,
    "default_multicast_primary_port": NodeRegister.DEFAULT_MULTICAST_PRIMARY,
    "default_multicast_not_primary_port": NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY,
    "multicast_fdb_top": NodeRegister.MULTICAST_FDB_TOP,
    "link_width_active": PortRegister.WIDTH,
}
"""The register that a field is written to, or read from."""

_PORT_INFO_READS: Final = (("link_width_active",), ("port_state", "port_physical_state"))
"""The fields that are read for an answer, those of one word in the order of their accesses."""

_PARTITION: Final = {
    PartitionCheck.INBOUND: "partition_enforcement_inbound",
    PartitionCheck.OUTBOUND: "partition_enforcement_outbound",
    PartitionCheck.RAW_INBOUND: "filter_raw_inbound",
    PartitionCheck.RAW_OUTBOUND: "filter_raw_outbound",
}
"""The fields that PARTITION has, from its lowest bit on."""
_PARTITION_ACCESS: Final = 3
"""The place of its write among those of its word."""

_OF_ADAPTERS: Final = ("lid", "lmc")
_OF_SWITCHES: Final = ("hoq_life", "vl_stall_count")
_OFFSET_BITS: Final = 16
_LFT_ENTRY = LINEAR_FORWARDING_TABLE.entry.width
_MFT_ENTRY = MULTICAST_FORWARDING_TABLE.entry.width
_MFT_ENTRIES_OF_WORD = WORD_BITS // _MFT_ENTRY
_SL_ENTRY = SL_TO_VL_MAPPING_TABLE.entry.width
_P_KEY = P_KEY_TABLE.entry.width
_P_KEYS_OF_WORD = WORD_BITS // _P_KEY
_VL_ENTRY = VL_ARBITRATION_TABLE.entry.width
_VL_ENTRIES_OF_WORD = WORD_BITS // _VL_ENTRY
_ROUTE_STEP = 2
_STATE_STEP = SLOT_STEPS * SET_SLOT
_NUMBER_BITS: Final = IN_SLOT_BITS + (WORDS - 1).bit_length()
"""Of an access' number in a Set, and for an answer."""


# By names: an SMA's and a PMA's attribute may have the same code.
_OF_PMA: Final = {kind.name: accesses for kind, accesses in PMA_ACCESSES.items()}


def _heights() -> dict[str, dict[tuple[int, int], int]]:
    """By attribute, word and place among the reads of it: how far a field is above the lowest, if it is."""
    places: dict[str, list[Place]] = {
        SmaAttribute.PORT_INFO.name: [place(PORT_INFO[name]) for names in _PORT_INFO_READS for name in names],
        **{name: [one.value for one in accesses if one.read and one.value] for name, accesses in _OF_PMA.items()},
    }
    heights: dict[str, dict[tuple[int, int], int]] = {}
    for name, found in places.items():
        of_words = {word: [one.lsb for one in found if one.word == word] for word in {one.word for one in found}}
        above = {
            (word, number): lsb - min(lsbs)
            for word, lsbs in sorted(of_words.items())
            for number, lsb in enumerate(lsbs)
            if lsb != min(lsbs)
        }
        if above:
            heights[name] = above
    return heights


_WORDS_SET: Final[dict[str, set[int]]] = {
    SmaAttribute.SWITCH_INFO.name: {place(SWITCH_INFO[names[0]]).word for names in SWITCH_INFO_WRITES},
    SmaAttribute.PORT_INFO.name: {place(PORT_INFO[names[0]]).word for names in PORT_INFO_WRITES},
    SmaAttribute.SL_TO_VL_MAPPING_TABLE.name: set(range(SL_TO_VL_WORDS)),
    SmaAttribute.LINEAR_FORWARDING_TABLE.name: set(range(LINEAR_FORWARDING_TABLE.size_bytes // WORD_BYTES)),
    SmaAttribute.MULTICAST_FORWARDING_TABLE.name: set(range(MULTICAST_FORWARDING_TABLE.size_bytes // WORD_BYTES)),
    **{name: {access.word for access in accesses if access.written} for name, accesses in _OF_PMA.items()},
}
_WORDS_READ: Final[dict[str, set[int]]] = {
    SmaAttribute.PORT_INFO.name: {place(PORT_INFO[names[0]]).word for names in _PORT_INFO_READS},
    **{name: {access.word for access in accesses if access.read} for name, accesses in _OF_PMA.items()},
}
"""The words with accesses in a Set, and for the answer, by attribute."""


def _by_number(accesses: list[PmaAccess]) -> list[list[PmaAccess]]:
    """Those that are given in the same step: one, or one for an answer and one in a Set."""
    numbers: dict[tuple[int, int], list[PmaAccess]] = defaultdict(list)
    for access in accesses:
        numbers[access.word, access.number].append(access)
    return [*numbers.values()]


def _one_more(accesses: list[Signal]) -> Any:
    """Another access in the list: none, until it is said what it is."""
    accesses.append(Signal(Access, name=f"access_{len(accesses)}"))
    return accesses[-1]


class BusSteps(Stage):
    """Gives each access in the cycle of its step.

    Members:
        route: the entry of the LFT that is wanted.
        attribute, word: the attribute, and its word that came.
        writes: see `SetRules`, from the slot's second step on.
        window (switch): the access of a CC request, in the step before its own.
        short: the slot of the step before has no accesses.
        bus: to the node.
        read: what was read last, 5 cycles after it was given. Of several fields read in one slot, each is put as far
            above the lowest as in their word.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._list_words = vl_arbitration_entries(parameters.vls) // _VL_ENTRIES_OF_WORD
        super().__init__(
            parameters,
            route=In(Route),
            attribute=In(Attribute),
            word=In(Word),
            writes=In(WRITES),
            short=Out(1),
            bus=Out(BusSignature),
            read=Out(DATA_BITS),
            **({"window": In(Access)} if isinstance(parameters, SwitchParameters) else {}),
        )

    def elaborate(self, platform: object) -> Module:
        """An access is ready from the step before its own on."""
        m = Module()
        steps, attribute = self.steps, self.attribute
        given = Signal(Access)
        ready: list[Signal] = []  # of each kind of access that there is; at most one is not 0
        m.d.comb += [
            self.bus.addr.eq(given.addr),
            self.bus.wdata.eq(given.wdata),
            self.bus.write.eq(given.write & steps.go),
            self.bus.read.eq(given.read & steps.go),
        ]

        # Reads before the slots.
        on_link = attribute.chosen[SmaAttribute.PORT_INFO.name]
        if self._is_switch:
            on_link = on_link & ~attribute.target.at_port_0
            of_route = _one_more(ready)
            with m.If((steps.number == _ROUTE_STEP - 1) & self.route.wanted):
                m.d.comb += [of_route.read.eq(1), of_route.addr.eq(Cat(self.route.lid, Const(LFT_PAGE, 8)))]
        of_state = _one_more(ready)
        with m.If((steps.number == _STATE_STEP - 1) & attribute.setting & on_link):
            m.d.comb += [of_state.read.eq(1), of_state.addr.eq(self._of_port(PortRegister.STATE))]

        # In the slots, access j of word w is number 8 w + j.
        number, of_set, of_answer = self._number(m)
        answering, setting = attribute.answering & of_answer, attribute.setting & of_set
        of_port_info = _one_more(ready)
        with m.If(answering & on_link), m.Switch(number):
            for names in _PORT_INFO_READS:
                for place_in_list, name in enumerate(names):
                    with m.Case(SLOT_STEPS * place(PORT_INFO[name]).word + place_in_list):
                        m.d.comb += [of_port_info.read.eq(1), of_port_info.addr.eq(self._of_port(_REGISTERS[name]))]
        with m.If(setting & attribute.chosen[SmaAttribute.PORT_INFO.name]):
            self._write_fields(m, ready, number, PORT_INFO, PORT_INFO_WRITES)
            if self._is_switch:
                self._write_partition(m, ready, number)
        if self._is_switch:
            with m.If(setting & attribute.chosen[SmaAttribute.SWITCH_INFO.name]):
                self._write_fields(m, ready, number, SWITCH_INFO, SWITCH_INFO_WRITES)
        entries = self._entries(m)
        with m.If(setting):
            if self._is_switch:
                self._write_tables(m, ready, number, entries)
            if self._list_words:
                self._write_lists(m, ready, number, entries)
        self._access_counters(m, ready, number, entries, answering, setting)
        if self._is_switch:
            of_window = _one_more(ready)
            with m.If(self.window.read | self.window.write):
                m.d.comb += of_window.eq(self.window)
        with m.If(steps.go):
            m.d.sync += given.eq(any_of(map(Value.cast, ready)))
        m.d.sync += self.short.eq(self._is_short())
        self._take_what_is_read(m)
        return m

    def _number(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """Of the access that a step makes ready, and whether it is a Set's, an answer's: found in the step before.

        In a Set's slot it is that of the step before, in an answer's that of the next one.
        """
        steps, this = self.steps, self.steps.of_slot
        before_last = (steps.in_slot == SLOT_STEPS - 2) | (self.short & (steps.in_slot == SHORT_STEPS - 2))
        last, place = steps.in_slot == SLOT_STEPS - 1, Signal(IN_SLOT_BITS)
        following, next_of = Signal(OfSlot), Signal(OfSlot)
        m.d.comb += [
            following.eq(Mux(steps.again, this, steps.next_slot)),
            next_of.eq(Mux(before_last | last, following, this)),
            place.eq(Mux(before_last, 0, steps.in_slot + 2)),
        ]
        with m.If(last & steps.skips):
            m.d.comb += [next_of.in_answer.eq(1), next_of.word.eq(0), place.eq(0)]
        number, of_set, of_answer = Signal(_NUMBER_BITS), Signal(), Signal()
        with m.If(steps.go):
            m.d.sync += [
                of_set.eq(this.in_set & ~next_of.in_answer),
                of_answer.eq(next_of.in_answer),
                number.eq(Mux(next_of.in_answer, Cat(place, next_of.word), Cat(steps.in_slot, this.word))),
            ]
        return number, of_set, of_answer

    def _is_short(self) -> Value:
        """The step's slot is a word's, and no access is named for that word; a trap's packet takes all of the first."""
        steps, chosen = self.steps, self.attribute.chosen

        def accessed(lists: dict[str, set[int]]) -> Value:
            masks = {name: Const(sum(1 << of_word for of_word in words), WORDS) for name, words in lists.items()}
            return Cat(chosen[name] & mask.bit_select(steps.of_slot.word, 1) for name, mask in masks.items()).any()

        of_kind = {SmaAttribute.VL_ARBITRATION_TABLE.name: set(range(self._list_words))} if self._list_words else {}
        if self._is_switch:
            of_kind[SmaAttribute.P_KEY_TABLE.name] = set(range(BLOCK_WORDS))
        in_set = steps.of_slot.in_set & ~self.task.trap & ~accessed(_WORDS_SET | of_kind)
        return (in_set | (steps.of_slot.in_answer & ~accessed(_WORDS_READ))) & ~self.task.congestion

    def _of_port(self, register: Value | int) -> Value:
        """The address of the port's register."""
        offset = Const(register, _OFFSET_BITS) if isinstance(register, int) else register
        return Cat(offset, self.attribute.target.port if self._is_switch else Const(1, 1))

    def _write_fields(
        self, m: Module, ready: list[Signal], number: Signal, layout: Layout, lists: tuple[tuple[str, ...], ...]
    ) -> None:
        """The fields of a Set that are registers, too."""
        of_field = _one_more(ready)
        with m.Switch(number):
            for names in lists:
                for place_in_list, name in enumerate(names):
                    register, field = _REGISTERS[name], place(layout[name])
                    if name in (_OF_ADAPTERS if self._is_switch else _OF_SWITCHES):
                        continue
                    of_node = isinstance(register, NodeRegister)
                    with m.Case(SLOT_STEPS * field.word + place_in_list):
                        m.d.comb += [
                            of_field.write.eq(self.writes[place_in_list]),
                            of_field.addr.eq(Value.cast(register) if of_node else self._of_port(register)),
                            of_field.wdata.eq(field.of(self.word.request)),
                        ]

    def _write_partition(self, m: Module, ready: list[Signal], number: Signal) -> None:
        """A switch's port has what it checks in one register."""
        fields = [place(PORT_INFO[name]) for name in _PARTITION.values()]
        of_partition = _one_more(ready)
        with m.If(number == SLOT_STEPS * fields[0].word + _PARTITION_ACCESS):
            m.d.comb += [
                of_partition.write.eq(~self.attribute.target.at_port_0),
                of_partition.addr.eq(self._of_port(PortRegister.PARTITION)),
                of_partition.wdata.eq(Cat(field.of(self.word.request) for field in fields)),
            ]

    def _entries(self, m: Module) -> Signal:
        """The rest of a word with entries of a table, the next highest; of PortCountersExtended the word before."""
        steps, chosen = self.steps, self.attribute.chosen
        entries = Signal(WORD_BITS)
        taken = Mux(chosen[PmaAttribute.PORT_COUNTERS_EXTENDED.name], WORD_TAKEN, 0)
        with m.If(steps.go):
            with m.If((steps.in_slot == taken) & ~steps.again):
                m.d.sync += entries.eq(self.word.request)
            with m.Elif(chosen[SmaAttribute.LINEAR_FORWARDING_TABLE.name]):
                m.d.sync += entries.eq(entries << _LFT_ENTRY)
            with m.Elif(chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name]):
                m.d.sync += entries.eq(entries << _SL_ENTRY)
            if self._is_switch:
                with m.Elif(chosen[SmaAttribute.P_KEY_TABLE.name]):
                    m.d.sync += entries.eq(entries << _P_KEY)
                with m.Elif(chosen[SmaAttribute.MULTICAST_FORWARDING_TABLE.name]):
                    m.d.sync += entries.eq(entries << _MFT_ENTRY)
            if self._list_words:
                with m.Elif(chosen[SmaAttribute.VL_ARBITRATION_TABLE.name]):
                    m.d.sync += entries.eq(entries << _VL_ENTRY)
        return entries

    def _write_tables(self, m: Module, ready: list[Signal], number: Signal, entries: Signal) -> None:
        """A switch's tables, entry by entry."""
        access, word = number[:3], number[3:]
        chosen, target = self.attribute.chosen, self.attribute.target
        lid = Cat(access[:2], word[:4], target.block)[:16]
        of_word = WORD_BITS // _LFT_ENTRY
        in_set = word < LINEAR_FORWARDING_TABLE.count // of_word
        of_lft = _one_more(ready)
        with m.If(chosen[SmaAttribute.LINEAR_FORWARDING_TABLE.name] & in_set):
            m.d.comb += [
                of_lft.write.eq((access < of_word) & (lid < self._lft_size)),
                of_lft.addr.eq(Cat(lid, Const(LFT_PAGE, 8))),
                of_lft.wdata.eq(entries[-_LFT_ENTRY:]),
            ]
        mlid = Cat(access[:1], word[:4], target.block)[:_OFFSET_BITS]
        position = place(MFT_MODIFIER["position"]).of(self.task.head.attribute_modifier)
        in_set = word < MULTICAST_FORWARDING_TABLE.count // _MFT_ENTRIES_OF_WORD
        of_mft = _one_more(ready)
        with m.If(chosen[SmaAttribute.MULTICAST_FORWARDING_TABLE.name] & in_set):
            m.d.comb += [
                of_mft.write.eq(access < _MFT_ENTRIES_OF_WORD),
                of_mft.addr.eq(Cat(mlid, Const(0, _OFFSET_BITS - len(mlid)), (MFT_PAGE + position)[:8])),
                of_mft.wdata.eq(entries[-_MFT_ENTRY:]),
            ]
        in_set = number < SL_TO_VL_MAPPING_TABLE.count
        page = (SL_TO_VL_PAGE - 1 + target.in_port)[:8]
        of_sl_to_vl = _one_more(ready)
        with m.If(chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name] & in_set):
            m.d.comb += [
                of_sl_to_vl.write.eq((target.in_port != 0) & (target.port != 0)),
                of_sl_to_vl.addr.eq(Cat(number[:4], target.port, Const(0, _OFFSET_BITS - 4 - len(target.port)), page)),
                of_sl_to_vl.wdata.eq(entries[-_SL_ENTRY:]),
            ]
        entry = Cat(access[:1], word)[: (P_KEY_TABLE.count - 1).bit_length()]
        of_p_keys = _one_more(ready)
        with m.If(chosen[SmaAttribute.P_KEY_TABLE.name] & (word < P_KEY_TABLE.count // _P_KEYS_OF_WORD)):
            m.d.comb += [
                of_p_keys.write.eq((access < _P_KEYS_OF_WORD) & (target.port != 0)),
                of_p_keys.addr.eq(self._of_port(Cat(entry, Const(P_KEYS >> len(entry), _OFFSET_BITS - len(entry))))),
                of_p_keys.wdata.eq(entries[-_P_KEY:]),
            ]

    def _write_lists(self, m: Module, ready: list[Signal], number: Signal, entries: Signal) -> None:
        """A port's lists of VL arbitration, entry by entry."""
        access, word = number[:3], number[3:]
        block = place(VL_ARBITRATION_MODIFIER["block"]).of(self.task.head.attribute_modifier)
        entry = Cat(access[0], word[: (self._list_words - 1).bit_length()])
        offset = Signal(_OFFSET_BITS)
        with m.If(block == VLArbitrationBlock.HIGH_0_31):
            m.d.comb += offset.eq(VL_ARBITRATION_HIGH | entry)
        with m.Else():
            m.d.comb += offset.eq(VL_ARBITRATION_LOW | entry)
        of_list = _one_more(ready)
        with m.If(self.attribute.chosen[SmaAttribute.VL_ARBITRATION_TABLE.name] & (word < self._list_words)):
            m.d.comb += [
                of_list.write.eq(access < _VL_ENTRIES_OF_WORD),
                of_list.addr.eq(self._of_port(offset)),
                of_list.wdata.eq(entries[-_VL_ENTRY:][: VL_WEIGHT_BITS + VL_BITS]),
            ]

    def _access_counters(
        self, m: Module, ready: list[Signal], number: Signal, entries: Signal, answering: Value, setting: Value
    ) -> None:
        """A PMA's counters. A Set names them in CounterSelect and CounterSelect2."""
        select = Cat(self.task.head.counter_select, self.task.head.counter_select2[0])
        for attribute, accesses in PMA_ACCESSES.items():
            of_counter = _one_more(ready)
            with m.If(self.attribute.chosen[attribute.name] & (answering | setting)), m.Switch(number):
                for of_number in _by_number(accesses):
                    with m.Case(SLOT_STEPS * of_number[0].word + of_number[0].number):
                        for access in of_number:
                            word = entries if access.before else self.word.request
                            value = access.value.of(word) if access.value else self.task.head.counter_select
                            selected = 1 if access.select is None else select[access.select]
                            if access.read:
                                m.d.comb += of_counter.read.eq(answering)
                            if access.written:
                                m.d.comb += [of_counter.write.eq(setting & selected), of_counter.wdata.eq(value)]
                        registers = [self._of_port(access.register) for access in of_number]
                        m.d.comb += of_counter.addr.eq(
                            registers[0] if len(registers) == 1 else Mux(answering, *registers)
                        )

    def _take_what_is_read(self, m: Module) -> None:
        """It comes in the last step of its slot at the latest."""
        number, following = Signal(2), Signal(2)  # of what has been read in the slot
        m.d.comb += following.eq(Mux(self.steps.in_slot == 0, 0, number + self.bus.rvalid))
        m.d.sync += number.eq(following)

        # How far it is put above the lowest is known before it comes.
        at_height: dict[int, list[Value]] = defaultdict(list)
        for name, heights in _heights().items():
            for (word, place_in_list), height in heights.items():
                here = (self.word.number == word) & (following == place_in_list)
                at_height[height].append(self.attribute.chosen[name] & here)
        heights_of_next = Signal(len(at_height))
        m.d.sync += heights_of_next.eq(Cat(Cat(places).any() for places in at_height.values()))
        raised = select(heights_of_next, [self.bus.rdata << height for height in at_height])
        come = Mux(heights_of_next.any(), raised, self.bus.rdata)
        with m.If(self.bus.rvalid):
            m.d.sync += self.read.eq(come | Mux(number == 0, 0, self.read))
