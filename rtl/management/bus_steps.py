"""The agent's accesses to the register bus, each at its step (docs/management.md, sections 4.3 and 6)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.management.attribute import WORDS, Attribute, Word
from rtl.management.attribute_memory import BLOCK_WORDS, SL_TO_VL_WORDS
from rtl.management.departure import Route
from rtl.management.place import WORD_BITS, Place, part_of, place
from rtl.management.pma import PMA_ACCESSES
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
from wire.port_info import PORT_INFO
from wire.port_tables import (
    P_KEY_TABLE,
    SL_TO_VL_MAPPING_TABLE,
    VL_ARBITRATION_MODIFIER,
    VL_ARBITRATION_TABLE,
    VLArbitrationBlock,
)
from wire.registers import (
    ADDRESS_BITS,
    DATA_BITS,
    LFT_PAGE,
    MFT_PAGE,
    P_KEYS,
    SL_TO_VL_PAGE,
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    Detail,
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
    "link_down_default_state": PortRegister.LINK_DOWN_DEFAULT,
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
_WIDTH_ACCESS: Final = 4
_VIOLATIONS_ACCESS: Final = 2
"""The places of writes, and of the read of P_KEY_VIOLATIONS, among those of the words in whose slots they are."""

_WIDTH: Final = place(PORT_INFO["link_width_enabled"])
_VIOLATIONS: Final = place(PORT_INFO["p_key_violations"])
_VIOLATIONS_CLEARED: Final = place(PORT_INFO["overrun_errors"]).word
_VIOLATIONS_READ: Final = place(PORT_INFO["port_state"]).word
"""The words in whose slots P_KEY_VIOLATIONS is cleared and read."""

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
# The words of which what is written is a field: that of the slot, its bits in reverse, the one before, CounterSelect.
_REQUEST: Final = "request"
_REVERSED: Final = "reversed"
_BEFORE: Final = "before"
_COUNTER_SELECT: Final = "counter_select"
_NUMBER_BITS: Final = IN_SLOT_BITS + (WORDS - 1).bit_length()
"""Of an access' number in a Set, and for an answer."""


# By names: an SMA's and a PMA's attribute may have the same code.
_OF_PMA: Final = {kind.name: accesses for kind, accesses in PMA_ACCESSES.items()}


def _heights() -> dict[str, dict[tuple[int, int], tuple[int, int]]]:
    """By attribute, word and place among the reads of it: how far a field is above the lowest, if it is; its width."""
    places: dict[str, list[Place]] = {
        SmaAttribute.PORT_INFO.name: [place(PORT_INFO[name]) for names in _PORT_INFO_READS for name in names],
        **{name: [one.value for one in accesses if one.read and one.value] for name, accesses in _OF_PMA.items()},
    }
    heights: dict[str, dict[tuple[int, int], tuple[int, int]]] = {}
    for name, found in places.items():
        of_words = {word: [one for one in found if one.word == word] for word in {one.word for one in found}}
        above = {
            (word, number): (one.lsb - min(of_word).lsb, one.width)
            for word, of_word in sorted(of_words.items())
            for number, one in enumerate(of_word)
            if one != min(of_word)
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


class _Registers:
    """The access to a register of a port or of the node that a step makes ready, if it has one: put together of many.

    Attributes:
        reads, writes: it is given, if any of these is 1. `on_port`: it is of the port's.
        offsets: of the register; of these and of `fields` none or one counts.
        fields: when a field is written, by the name of the word that it is of (see `BusSteps`), and its place there.
    """

    def __init__(self) -> None:
        self.reads: list[Value] = []
        self.writes: list[Value] = []
        self.on_port: list[Value] = []
        self.offsets: list[Value] = []
        self.fields: dict[tuple[str, Place], list[Value]] = defaultdict(list)

    def is_at(self, here: Value, register: int) -> None:
        """It is this register's, if `here`."""
        if not isinstance(register, NodeRegister):
            self.on_port.append(here)
        self.offsets.append(Mux(here, Const(register), 0))

    def has(self, here: Value, word: str, field: Place) -> None:
        """What is written is this field, if `here`."""
        self.fields[word, field._replace(word=0)].append(here)

    def access(self, port: Value, words: Mapping[str, Value]) -> Value:
        """The `Access`."""
        values = [Mux(_any(heres), field.of(words[word]), 0) for (word, field), heres in self.fields.items()]
        offset = _as_wide(any_of(self.offsets), _OFFSET_BITS)
        addr = Cat(offset, Mux(_any(self.on_port), port, 0))
        return _access(read=_any(self.reads), write=_any(self.writes), addr=addr, wdata=any_of(values))


def _is_one_of(word: Value, words: Iterable[int]) -> Value:
    return Const(sum(1 << of_word for of_word in words), WORDS).bit_select(word, 1)


def _looked_up(word: Value, found: Mapping[int, int]) -> Value:
    """What is found by the word's number; for a word that has nothing, what that before it has, which is simpler."""
    values: list[int] = []
    for of_word in range(WORDS):
        values.append(found.get(of_word, values[-1] if values else next(iter(found.values()), 0)))
    return Array(map(Const, values))[word]


def _access(read: Value | int = 0, write: Value | int = 0, addr: Value | int = 0, wdata: Value | int = 0) -> Value:
    """An `Access`, which is put together."""
    return Cat(_as_wide(write, 1), _as_wide(read, 1), _as_wide(addr, ADDRESS_BITS), _as_wide(wdata, WORD_BITS))


def _as_wide(value: Value | int, bits: int) -> Value:
    """With zeros above."""
    return Cat(Value.cast(value), Const(0, bits))[:bits]


def _any(values: Iterable[Value]) -> Value:
    return Cat(values).any()


class BusSteps(Stage):
    """Gives each access in the cycle of its step.

    Members:
        route: the entry of the LFT that is wanted.
        attribute, word: the attribute, and its word that came.
        writes: see `SetRules`, from the slot's second step on.
        window (switch): the access of a CC request, in the step before its own.
        short: the slot of the step before has no accesses.
        bus: to the node.
        p_key_violations (switch): of the port whose PortInfo is the answer, from the slot behind its state's on.
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
            **(
                {"window": In(Access), "p_key_violations": Out(PORT_INFO["p_key_violations"].width)}
                if isinstance(parameters, SwitchParameters)
                else {}
            ),
        )

    def elaborate(self, platform: object) -> Module:
        """An access is ready from the step before its own on."""
        m = Module()
        steps = self.steps
        given = Signal(Access)
        m.d.comb += [
            self.bus.addr.eq(given.addr),
            self.bus.wdata.eq(given.wdata),
            self.bus.write.eq(given.write & steps.go),
            self.bus.read.eq(given.read & steps.go),
        ]
        # In the slots, access j of word w is number 8 w + j.
        number, of_set, of_answer = self._number(m)
        answering, setting = self.attribute.answering & of_answer, self.attribute.setting & of_set
        before = Signal(WORD_BITS)  # the word before the slot's
        with m.If(steps.at_in_slot(WORD_TAKEN) & ~steps.again):
            m.d.sync += before.eq(self.word.request)
        registers = _Registers()
        self._access_port_info(m, registers, number, answering, setting)
        self._access_counters(registers, number, answering, setting)
        if self._is_switch:
            of_set = setting & self.attribute.chosen[SmaAttribute.SWITCH_INFO.name]
            self._write_fields(registers, number, of_set, SWITCH_INFO, SWITCH_INFO_WRITES)
        words = {
            _REQUEST: self.word.request,
            _REVERSED: self.word.request[::-1],
            _BEFORE: before,
            _COUNTER_SELECT: self.task.head.counter_select,
        }
        port = self.attribute.target.port if self._is_switch else Const(1, 1)
        ready = [registers.access(port, words)]  # of each kind of access; at most one is not 0
        tables = self._tables(m, number, setting, before)
        if tables:
            ready.append(any_of(tables))
        if self._is_switch:
            wanted = (steps.number == _ROUTE_STEP - 1) & self.route.wanted
            lid = Cat(self.route.lid, Const(LFT_PAGE, 8))
            ready.append(Mux(wanted, _access(read=1, addr=lid), 0))
            ready.append(Mux(self.window.read | self.window.write, self.window.as_value(), 0))
        with m.If(steps.go):
            m.d.sync += given.eq(any_of(ready))
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

    def _access_port_info(
        self, m: Module, registers: _Registers, number: Value, answering: Value, setting: Value
    ) -> None:
        """The state before a Set's slots; what of a port's PortInfo are registers."""
        target = self.attribute.target
        chosen = self.attribute.chosen[SmaAttribute.PORT_INFO.name]
        on_link = chosen & ~target.at_port_0 if self._is_switch else chosen
        reads: list[tuple[Value, int]] = [
            ((self.steps.number == _STATE_STEP - 1) & self.attribute.setting & on_link, PortRegister.STATE)
        ]
        for names in _PORT_INFO_READS:
            for place_in_list, name in enumerate(names):
                here = answering & on_link & (number == SLOT_STEPS * place(PORT_INFO[name]).word + place_in_list)
                reads.append((here, _REGISTERS[name]))
        if self._is_switch:
            here = answering & on_link & (number == SLOT_STEPS * _VIOLATIONS_READ + _VIOLATIONS_ACCESS)
            reads.append((here, Detail.P_KEY_VIOLATIONS))
        for here, register in reads:
            registers.reads.append(here)
            registers.is_at(here, register)
        here = setting & on_link & (number == SLOT_STEPS * (_WIDTH.word + 1) + _WIDTH_ACCESS)
        registers.writes.append(here)
        registers.is_at(here, PortRegister.LINK_WIDTH_ENABLED)
        registers.has(here, _BEFORE, _WIDTH)
        self._write_fields(registers, number, setting & chosen, PORT_INFO, PORT_INFO_WRITES)
        if self._is_switch:
            fields = [place(PORT_INFO[name]) for name in _PARTITION.values()]
            word, lsb = fields[0].word, min(field.lsb for field in fields)
            here = setting & on_link & (number == SLOT_STEPS * word + _PARTITION_ACCESS)
            registers.writes.append(here)
            registers.is_at(here, PortRegister.PARTITION)
            registers.has(here, _REVERSED, Place(word, WORD_BITS - lsb - len(fields), len(fields)))
            clears = Signal()
            with m.If(self.steps.at(SLOT_STEPS * (SET_SLOT + _VIOLATIONS.word) + 1)):
                m.d.sync += clears.eq(_VIOLATIONS.of(self.word.request) == 0)
            here = setting & on_link & (number == SLOT_STEPS * _VIOLATIONS_CLEARED + _VIOLATIONS_ACCESS)
            registers.writes.append(here & clears)
            registers.is_at(here, Detail.P_KEY_VIOLATIONS)

    def _write_fields(
        self, registers: _Registers, number: Value, setting: Value, layout: Layout, lists: tuple[tuple[str, ...], ...]
    ) -> None:
        """The fields of a Set that are registers, too."""
        elsewhere = _OF_ADAPTERS if self._is_switch else _OF_SWITCHES
        for names in lists:
            for place_in_list, name in enumerate(names):
                if name not in elsewhere:
                    field = place(layout[name])
                    here = setting & (number == SLOT_STEPS * field.word + place_in_list)
                    registers.writes.append(here & self.writes[place_in_list])
                    registers.is_at(here, _REGISTERS[name])
                    registers.has(here, _REQUEST, field)

    def _access_counters(self, registers: _Registers, number: Value, answering: Value, setting: Value) -> None:
        """A PMA's counters. A Set names them in CounterSelect and CounterSelect2."""
        place_in_slot, word, head = number[:IN_SLOT_BITS], number[IN_SLOT_BITS:], self.task.head
        select = Cat(head.counter_select, head.counter_select2[0], Const(1))
        selectors: list[Value] = []  # which bit of these has to be 1
        always, whole = len(select) - 1, Place(0, 0, len(head.counter_select))
        writes: list[Value] = []
        for attribute, accesses in PMA_ACCESSES.items():
            moves = self.attribute.chosen[attribute.name] & (answering | setting)
            registers.on_port.append(moves)
            for place_in_list in sorted({one.number for one in accesses}):
                here = moves & (place_in_slot == place_in_list)
                read = {one.word: one for one in accesses if one.number == place_in_list and one.read}
                written = {one.word: one for one in accesses if one.number == place_in_list and one.written}
                registers.reads.append(here & answering & _is_one_of(word, read))
                writes.append(here & setting & _is_one_of(word, written))
                of_read, of_written = (
                    {of: one.register for of, one in of_words.items()} for of_words in (read, written)
                )
                if of_read | of_written == of_written | of_read:
                    offset = _looked_up(word, of_read | of_written)
                else:
                    offset = Mux(answering, _looked_up(word, of_read), _looked_up(word, of_written))
                registers.offsets.append(Mux(here, offset, 0))
                selects = {of: always if one.select is None else one.select for of, one in written.items()}
                selectors.append(Mux(here, _looked_up(word, selects), 0))
                fields: dict[tuple[str, Place], list[int]] = defaultdict(list)
                for of, one in written.items():
                    name = _BEFORE if one.before else _REQUEST if one.value else _COUNTER_SELECT
                    fields[name, (one.value or whole)._replace(word=0)].append(of)
                for (name, field), of_words in fields.items():
                    registers.has(here if len(fields) == 1 else here & _is_one_of(word, of_words), name, field)
        registers.writes.append(_any(writes) & select.bit_select(any_of(selectors), 1))

    def _tables(self, m: Module, number: Value, setting: Value, before: Value) -> list[Value]:
        """Tables of a switch, and a port's lists of VL arbitration, entry by entry, the highest of a word first."""
        access, word = number[:3], number[3:]
        chosen, target, modifier = self.attribute.chosen, self.attribute.target, self.task.head.attribute_modifier
        port = target.port if self._is_switch else Const(1, 1)
        half = part_of(self.word.request, access[:1])
        found = []

        def add(kind: SmaAttribute, write: Value, addr: Value, entry: Value) -> None:
            there = setting & chosen[kind.name] & write
            found.append(Mux(there, _access(write=1, addr=addr, wdata=entry), 0))

        if self._list_words:
            block = place(VL_ARBITRATION_MODIFIER["block"]).of(modifier)
            entry = Cat(access[0], word[: (self._list_words - 1).bit_length()])
            start = Mux(block == VLArbitrationBlock.HIGH_0_31, VL_ARBITRATION_HIGH, VL_ARBITRATION_LOW)
            add(
                SmaAttribute.VL_ARBITRATION_TABLE,
                below(word, self._list_words) & below(access, _VL_ENTRIES_OF_WORD),
                Cat((start | entry)[:_OFFSET_BITS], Const(0, _OFFSET_BITS - len(start)), port),
                half[: VL_WEIGHT_BITS + VL_BITS],
            )
        if not self._is_switch:
            return found
        lid = Cat(access[:2], word[:4], target.block)[:_OFFSET_BITS]
        add(
            SmaAttribute.LINEAR_FORWARDING_TABLE,
            below(word, BLOCK_WORDS) & below(access, WORD_BITS // _LFT_ENTRY) & below(lid, self._lft_size),
            Cat(lid, Const(LFT_PAGE, 8)),
            part_of(self.word.request, access[:2]),
        )
        mlid = Cat(access[:1], word[:4], target.block)[:_OFFSET_BITS]
        position = place(MFT_MODIFIER["position"]).of(modifier)
        add(
            SmaAttribute.MULTICAST_FORWARDING_TABLE,
            below(word, BLOCK_WORDS) & below(access, WORD_BITS // _MFT_ENTRY),
            Cat(mlid, Const(0, _OFFSET_BITS - len(mlid)), (MFT_PAGE + position)[:8]),
            half,
        )
        # The last entry of a word is written when the next word is there.
        of_last = access.all()
        of_sl = Mux(of_last, before[:_SL_ENTRY], part_of(self.word.request, access))
        page = (SL_TO_VL_PAGE - 1 + target.in_port)[:8]
        add(
            SmaAttribute.SL_TO_VL_MAPPING_TABLE,
            below(number, SL_TO_VL_MAPPING_TABLE.count) & (target.in_port != 0) & (target.port != 0),
            Cat(number[:4], target.port, Const(0, _OFFSET_BITS - 4 - len(target.port)), page),
            of_sl,
        )
        entry = Cat(access[:1], word)[: (P_KEY_TABLE.count - 1).bit_length()]
        add(
            SmaAttribute.P_KEY_TABLE,
            below(word, BLOCK_WORDS) & below(access, _P_KEYS_OF_WORD) & (target.port != 0),
            Cat(entry, Const(P_KEYS >> len(entry), _OFFSET_BITS - len(entry)), port),
            half,
        )
        return found

    def _take_what_is_read(self, m: Module) -> None:
        """It comes in the last step of its slot at the latest."""
        number, following = Signal(2), Signal(2)  # of what has been read in the slot
        m.d.comb += following.eq(Mux(self.steps.in_slot == 0, 0, number + self.bus.rvalid))
        m.d.sync += number.eq(following)

        # How far it is put above the lowest is known before it comes.
        at_height: dict[int, list[Value]] = defaultdict(list)
        widths: dict[int, int] = defaultdict(int)  # of the widest field there
        for name, heights in _heights().items():
            for (word, place_in_list), (height, width) in heights.items():
                here = (self.word.number == word) & (following == place_in_list)
                at_height[height].append(self.attribute.chosen[name] & here)
                widths[height] = max(widths[height], width)
        heights_of_next = Signal(len(at_height))
        m.d.sync += heights_of_next.eq(Cat(Cat(places).any() for places in at_height.values()))
        raised = select(heights_of_next, [self.bus.rdata[: widths[height]] << height for height in at_height])
        come = Mux(heights_of_next.any(), raised, self.bus.rdata)
        apart = Const(0)  # what comes is of another word
        if self._is_switch:
            apart = Signal()
            here = (self.word.number == _VIOLATIONS_READ) & (following == _VIOLATIONS_ACCESS)
            m.d.sync += apart.eq(self.attribute.chosen[SmaAttribute.PORT_INFO.name] & here)
            with m.If(self.bus.rvalid & apart):
                m.d.sync += self.p_key_violations.eq(self.bus.rdata)
        with m.If(self.bus.rvalid & ~apart):
            m.d.sync += self.read.eq(come | Mux(number == 0, 0, self.read))
