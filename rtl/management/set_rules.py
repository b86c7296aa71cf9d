"""What a Set may change (docs/management.md, sections 4.1 and 4.2)."""

from collections import defaultdict
from collections.abc import Collection
from typing import Final, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.management.attribute import Attribute, Word
from rtl.management.attribute_memory import SL_TO_VL_WORDS
from rtl.management.place import WORD_BITS, masks, place
from rtl.management.port_info_fields import LINK_SPEEDS, WRITABLE, PortKind
from rtl.rotation import any_of
from wire.codes import LID_UNICAST_MAX, LINK_WIDTHS, PortPhysicalState, PortState, mtu_code, operational_vls
from wire.layout import Layout
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import LINK_SPEED_ALL, LINK_WIDTH_ALL, NO_CHANGE, PORT_INFO
from wire.port_tables import GUID_INFO
from wire.sma import LED_INFO, SmaAttribute
from wire.switch_info import SWITCH_INFO

__all__ = ["PORT_INFO_WRITES", "SWITCH_INFO_WRITES", "WRITES", "Judged", "SetRules", "shown_state"]

WRITES: Final = 4
"""Most registers that one word of a Set of PortInfo or SwitchInfo writes."""

PORT_INFO_WRITES: Final = (
    ("lid",),
    ("port_physical_state", "port_state", "lmc", "link_down_default_state"),
    ("neighbor_mtu", "vl_high_limit"),
    ("operational_vls", "hoq_life", "vl_stall_count"),
    ("local_phy_errors", "overrun_errors"),
)
"""The fields that are written to registers, those of one word in the order of their accesses."""

SWITCH_INFO_WRITES: Final = (
    ("linear_fdb_top",),
    ("life_time_value", "default_multicast_primary_port", "default_multicast_not_primary_port"),
    ("multicast_fdb_top",),
)

_SWITCH_INFO_STORED: Final = (
    "linear_fdb_top",
    "default_port",
    "default_multicast_primary_port",
    "default_multicast_not_primary_port",
    "life_time_value",
    "multicast_fdb_top",
)
_WHOLE: Final = (
    SmaAttribute.P_KEY_TABLE,
    SmaAttribute.VL_ARBITRATION_TABLE,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
)
"""Attributes that are stored as they come."""

_LIDS: Final = ("lid", "master_sm_lid")
_ALL = (1 << WORD_BITS) - 1


Judged = data.StructLayout({"mask": WORD_BITS, "refused": 1, "writes": WRITES})
"""For a word: the bits taken, whether some field is refused, and which registers are written, in the order of
`PORT_INFO_WRITES`."""


class _Rule(NamedTuple):
    """For a field as it is in the word: what makes it taken, what makes it refused; and whether it is kept at all."""

    taken: Value
    refused: Value
    kept: int


def shown_state(state: Value) -> Value:
    """What PortInfo says of a port's state: a link in recovery has not been lost yet, ActiveDefer is Active."""
    return Mux(state == PortState.ACTIVE_DEFER, PortState.ACTIVE, state)


class SetRules(wiring.Component):
    """Judges a request's data word by word.

    Members:
        attribute, word: which attribute, and its word that came.
        state: of the port, for PortState.
        judged: what is taken of it, in the next cycle.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._parameters = parameters
        self._is_switch = isinstance(parameters, SwitchParameters)
        super().__init__(
            {
                "attribute": In(Attribute),
                "word": In(Word),
                "state": In(PORT_INFO["port_state"].width),
                "judged": Out(Judged),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A Switch over the words for each attribute that is not stored whole."""
        m = Module()
        judged = Signal(Judged)
        chosen, word = self.attribute.chosen, self.word.number
        with m.If(chosen[SmaAttribute.PORT_INFO.name]):
            self._judge(m, PORT_INFO, self._port_info_rules(), PORT_INFO_WRITES, judged)
        stored = [chosen[attribute.name] for attribute in _WHOLE]
        stored.append(chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name] & below(word, SL_TO_VL_WORDS))
        stored.append(chosen[SmaAttribute.GUID_INFO.name] & ~below(word, GUID_INFO.entry.width // WORD_BITS))
        with m.If(Cat(stored).any()):
            m.d.comb += judged.mask.eq(_ALL)
        with m.If(chosen[SmaAttribute.LED_INFO.name] & (word == 0)):
            m.d.comb += judged.mask.eq(place(LED_INFO["led_mask"]).mask)
        if self._is_switch:
            with m.If(chosen[SmaAttribute.SWITCH_INFO.name]):
                self._judge(m, SWITCH_INFO, self._switch_info_rules(), SWITCH_INFO_WRITES, judged)
        m.d.sync += self.judged.eq(judged)
        return m

    def _judge(
        self,
        m: Module,
        layout: Layout,
        rules: dict[str, _Rule],
        registers: tuple[tuple[str, ...], ...],
        judged: data.View,
    ) -> None:
        by_word: dict[int, list[tuple[int, _Rule]]] = defaultdict(list)
        for name, rule in rules.items():
            for word, bits in masks(layout[name]).items():
                by_word[word].append((bits & rule.kept, rule))
        written = {place(layout[names[0]]).word: names for names in registers}
        with m.Switch(self.word.number):
            for word, parts in sorted(by_word.items()):
                with m.Case(word):
                    taken = [Mux(rule.taken, Const(bits, WORD_BITS), 0) for bits, rule in parts]
                    m.d.comb += [
                        judged.mask.eq(any_of(taken)),
                        judged.refused.eq(Cat(rule.refused for _, rule in parts).any()),
                        judged.writes.eq(Cat(rules[name].taken for name in written.get(word, ()))),
                    ]

    def _at(self, kinds: Collection[PortKind]) -> Value:
        """The port is of one of these kinds."""
        if not self._is_switch:
            return Const(PortKind.ADAPTER in kinds, 1)
        at_port_0 = self.attribute.target.at_port_0
        base, external = PortKind.BASE in kinds, PortKind.EXTERNAL in kinds
        if base == external:
            return Const(base, 1)
        return at_port_0 if base else ~at_port_0

    def _port_info_rules(self) -> dict[str, _Rule]:
        def given(name: str) -> Value:
            return place(PORT_INFO[name]).of(self.word.request)

        def one_of(value: Value, allowed: Collection[int]) -> Value:
            return Cat(value == one for one in allowed).any()

        most_mtu, most_vls = mtu_code(self._parameters.mtu), operational_vls(self._parameters.vls)
        width, speed = map(given, ("link_width_enabled", "link_speed_enabled"))
        default_state, mtu, vls = map(given, ("link_down_default_state", "neighbor_mtu", "operational_vls"))
        state, physical = map(given, ("port_state", "port_physical_state"))
        steps = ((PortState.ARMED, PortState.INITIALIZE), (PortState.ACTIVE, PortState.ARMED))
        now = shown_state(self.state)
        written = (state == PortState.DOWN) | Cat((state == to) & (now == of) for to, of in steps).any()
        there = Cat((state == to) & (now == to) for to, _ in steps).any()
        settable = (PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED)
        may_go = one_of(state, (NO_CHANGE, PortState.DOWN))
        # What is taken of a field; what else leaves it as it is.
        checked: dict[str, tuple[Value, Value]] = {
            **{name: ((given(name) != 0) & below(given(name), LID_UNICAST_MAX + 1), Const(0, 1)) for name in _LIDS},
            "link_width_enabled": (
                (width == LINK_WIDTH_ALL) | ((width != NO_CHANGE) & below(width, LINK_WIDTHS + 1)),
                width == NO_CHANGE,
            ),
            "link_speed_enabled": (one_of(speed, (LINK_SPEED_ALL, LINK_SPEEDS)), speed == NO_CHANGE),
            "link_down_default_state": (
                one_of(default_state, (PortPhysicalState.SLEEP, PortPhysicalState.POLLING)),
                default_state == NO_CHANGE,
            ),
            "neighbor_mtu": ((mtu != 0) & below(mtu, most_mtu + 1), Const(0, 1)),
            "operational_vls": ((vls != NO_CHANGE) & below(vls, most_vls + 1), vls == NO_CHANGE),
            "port_state": (written, (state == NO_CHANGE) | there),
            "port_physical_state": (one_of(physical, settable) & may_go, physical == NO_CHANGE),
        }
        every = Const(1, 1)
        kept = {"link_width_enabled": place(PORT_INFO["link_width_enabled"]).put(LINK_WIDTHS)}
        rules = {}
        for name, kinds in WRITABLE.items():
            taken, unchanged = checked.get(name, (every, every))
            there_is = self._at(kinds)
            rules[name] = _Rule(there_is & taken, there_is & ~taken & ~unchanged, kept.get(name, _ALL))
        on_link = self._at((PortKind.EXTERNAL, PortKind.ADAPTER))
        for name in ("link_speed_enabled", "port_state", "port_physical_state"):
            taken, unchanged = checked[name]
            rules[name] = _Rule(on_link & taken, on_link & ~taken & ~unchanged, 0)
        for name in ("port_state", "port_physical_state"):
            rule = rules[name]
            rules[name] = rule._replace(refused=rule.refused | (~on_link & (given(name) != NO_CHANGE)))
        return rules

    def _switch_info_rules(self) -> dict[str, _Rule]:
        assert isinstance(self._parameters, SwitchParameters)
        always, never = Const(1, 1), Const(0, 1)
        rules = {name: _Rule(always, never, _ALL) for name in _SWITCH_INFO_STORED}
        there = below(place(SWITCH_INFO["linear_fdb_top"]).of(self.word.request), self._parameters.lft_size)
        rules["linear_fdb_top"] = _Rule(there, ~there, _ALL)
        return rules
