"""An access to a port's page of the bus, decoded once for all ports of a node (docs/pipeline.md, section 10)."""

from collections.abc import Iterable
from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import NodeAccess
from rtl.registers.counter_places import (
    COLUMN_BITS,
    DETAIL_WORDS,
    LANE_BITS,
    LANES,
    WHOLE_WORDS,
    XMIT_WAIT_WORD,
    bits_of_counters,
    narrow_widths,
    places_of_counters,
    vls_of_slots,
    word_bits,
)
from rtl.registers.marking import Element
from rtl.widths import OFFERED_BITS, VL_BITS, VL_WEIGHT_BITS
from wire.codes import LinkWidth, PortPhysicalState, PortState, mtu_code, operational_vls
from wire.parameters import vl_arbitration_entries
from wire.port_info import LINK_WIDTH_ALL
from wire.registers import (
    DATA_BITS,
    HIGH_OF_COUNTER,
    PORT_REGISTER_WIDTHS,
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    VL_ARBITRATION_SPAN,
    VL_XMIT_WAIT,
    Counter,
    Detail,
    PacketCounter,
    PortRegister,
)

__all__ = ["ListEntry", "PortDecoder", "port_access_layout"]

_NOT_0: Final = (PortRegister.FCP_PERIOD, PortRegister.FC_WATCHDOG, PortRegister.LINK_DOWN_TIMEOUT)
"""Those that hold a duration, but for TICK, which may be 0: a tick lasts a cycle more."""

_CODE_BITS: Final = 4
"""Codes are below 16."""

_OFFSET_BITS: Final = 8
"""Of the offsets in a port's page that are of anything."""

_ENTRY_BITS: Final = (VL_ARBITRATION_SPAN - 1).bit_length()

ListEntry = data.StructLayout({"write": 1, "high": 1, "number": _ENTRY_BITS, "vl": VL_BITS, "weight": VL_WEIGHT_BITS})
"""A write of an entry of the high or the low list of VL arbitration."""

_Registers: Final = data.StructLayout({register.name: 1 for register in PortRegister})


def _counter_access_layout(vls: int) -> data.StructLayout:
    """An access to a counter.

    Members:
        is_any, word: there is one; where it is.
        upper: it is to the upper half of one of 64 bits.
        shows, ends: masks of the lanes that a read shows, the first and the last one.
        gives, sets: of those that a write gives a value and that it sets, all others to 0, if it is not `too_large`.
            `gives_above`: it gives more than 32 bits.
        odd: what it gives to the second lane of two.
        narrow: one-hot, which of `narrow_widths` the register has.
    """
    return data.StructLayout(
        {
            "is_any": 1,
            "word": word_bits(vls),
            "upper": 1,
            "shows": LANES,
            "ends": LANES,
            "gives": LANES,
            "sets": LANES,
            "too_large": 1,
            "gives_above": 1,
            "odd": LANE_BITS,
            "narrow": len(narrow_widths(vls)),
        }
    )


def port_access_layout(vls: int) -> data.StructLayout:
    """The bus as a port sees it.

    Members:
        select: the access is to this port's page; all else is the same for all ports, and counts only then.
        wdata: the value written.
        reads, writes: the register that is read, or written with a value that is allowed.
        list_entry, counter: what is to an entry of VL arbitration, or to a counter.
    """
    return data.StructLayout(
        {
            "select": 1,
            "wdata": DATA_BITS,
            "reads": _Registers,
            "writes": _Registers,
            "list_entry": ListEntry,
            "counter": _counter_access_layout(vls),
        }
    )


class PortDecoder(wiring.Component):
    """Decodes accesses for the ports of a node, which are far: each has registers of its own for what it sees.

    Args:
        ports: of the node.
        vls: data VLs of each.
        mtu: MTU in bytes that they are built for.

    Members:
        given: an access, in the cycle in which it is given.
        reg: by port, what it sees, in the same cycle.
    """

    def __init__(self, ports: int, vls: int, mtu: int) -> None:
        self._ports = ports
        self._vls = vls
        self._mtu = mtu
        super().__init__({"given": In(NodeAccess), "reg": Out(port_access_layout(vls)).array(ports)})

    def elaborate(self, platform: object) -> Module:
        """Offset and value are looked at side by side, both come late."""
        m = Module()
        given, access = self.given, Signal(port_access_layout(self._vls))
        offset, beyond = given.offset[:_OFFSET_BITS], given.offset[_OFFSET_BITS:]
        m.d.comb += access.wdata.eq(given.wdata)
        for register in PortRegister:
            is_it = offset == register
            m.d.comb += [
                access.reads[register.name].eq(given.read & is_it),
                access.writes[register.name].eq(given.write & is_it & self._is_allowed(register)),
            ]
        if self._vls > 1:
            self._decode_entry(m, offset, access.list_entry)
        self._decode_counter(m, offset, access.counter)
        for port, reg in enumerate(self.reg, start=1):
            select = Signal(name=f"select_{port}")
            m.d.comb += select.eq((given.page == port) & (beyond == 0))
            m.d.comb += [reg.eq(access), reg.select.eq(select)]
        return m

    def _is_allowed(self, register: PortRegister) -> Value:
        """That the value may be written to it."""
        value = self.given.wdata
        codes = {
            PortRegister.STATE: (PortState.DOWN, PortState.ARMED, PortState.ACTIVE),
            PortRegister.WIDTH: (LinkWidth.X1, LinkWidth.X4),
            PortRegister.NEIGHBOR_MTU: range(1, mtu_code(self._mtu) + 1),
            PortRegister.OPERATIONAL_VLS: range(1, operational_vls(self._vls) + 1),
            PortRegister.LINK_DOWN_DEFAULT: (PortPhysicalState.SLEEP, PortPhysicalState.POLLING),
            PortRegister.PHYSICAL_STATE: (
                PortPhysicalState.SLEEP,
                PortPhysicalState.POLLING,
                PortPhysicalState.DISABLED,
            ),
        }
        if register in codes:
            return ~value[_CODE_BITS:].any() & _is_one_of(value[:_CODE_BITS], codes[register])
        if register == PortRegister.LINK_WIDTH_ENABLED:
            return (value == LINK_WIDTH_ALL) | (value[:OFFERED_BITS].any() & ~value[OFFERED_BITS:].any())
        if register == PortRegister.CONGESTION:
            return ~Element(value).control_type
        bits = PORT_REGISTER_WIDTHS.get(register, DATA_BITS)
        return ~value[bits:].any() & (value[:bits].any() if register in _NOT_0 else 1)

    def _decode_entry(self, m: Module, offset: Value, entry: data.View) -> None:
        """Of a list of VL arbitration."""
        given, number_bits = self.given, (vl_arbitration_entries(self._vls) - 1).bit_length()
        in_low, in_high = (
            offset[number_bits:] == first >> number_bits for first in (VL_ARBITRATION_LOW, VL_ARBITRATION_HIGH)
        )
        fits = ~given.wdata[VL_WEIGHT_BITS + VL_BITS :].any()
        m.d.comb += [
            entry.write.eq(given.write & (in_low | in_high) & fits),
            entry.high.eq(in_high),
            entry.number.eq(offset[:number_bits]),
            Cat(entry.weight, entry.vl).eq(given.wdata),
        ]

    def _decode_counter(self, m: Module, offset: Value, counter: data.View) -> None:
        """A register shows a counter's only lane, or its first two, or the last two of four."""
        read, write, value = self.given.read, self.given.write, self.given.wdata
        places, bits_of = places_of_counters(self._vls), bits_of_counters(self._vls)
        highs = HIGH_OF_COUNTER.values()
        kept = {at: range(place.lane, place.lane + place.lanes) for at, place in places.items()}
        shown = {at: lanes[:2] for at, lanes in kept.items()} | dict.fromkeys(highs, range(2, LANES))
        kept |= dict.fromkeys(highs, range(LANES))
        upper = _is_one_of(offset, highs)
        is_double = _is_one_of(offset, (at for at, lanes in shown.items() if len(lanes) > 1))
        m.d.comb += [
            counter.is_any.eq((read | write) & _is_one_of(offset, kept)),
            counter.word.eq(self._word(m, offset)),
            counter.upper.eq(upper),
            counter.gives_above.eq(write & upper & value.any()),
            counter.odd.eq(Mux(is_double, value[LANE_BITS:], value[:LANE_BITS])),
        ]
        for lane in range(LANES):
            first, last = ([at for at, lanes in shown.items() if lanes[end] == lane] for end in (0, -1))
            # The upper half is given together with the lower one, which EXTENDED_LOW has.
            given = [at for at, lanes in shown.items() if lane in lanes or at in highs]
            cleared = [at for at, lanes in kept.items() if lane in lanes]
            m.d.comb += [
                counter.shows[lane].eq(read & _is_one_of(offset, first)),
                counter.ends[lane].eq(read & _is_one_of(offset, last)),
                counter.gives[lane].eq(write & _is_one_of(offset, given)),
                counter.sets[lane].eq(write & _is_one_of(offset, cleared)),
            ]
        of_width = {
            width: _is_one_of(offset, (at for at, bits in bits_of.items() if bits == width))
            for width in {*bits_of.values()} - {DATA_BITS}
        }
        m.d.comb += [
            counter.too_large.eq(Cat(is_it & value[width:].any() for width, is_it in of_width.items()).any()),
            counter.narrow.eq(Cat(of_width[width] for width in narrow_widths(self._vls))),
        ]

    def _word(self, m: Module, offset: Value) -> Signal:
        """That of a counter."""
        row, column, word = offset[COLUMN_BITS:], offset[:COLUMN_BITS], Signal(word_bits(self._vls))
        places = places_of_counters(self._vls)
        with m.Switch(row[:3]):
            with m.Case(Counter.SYMBOL_ERROR >> COLUMN_BITS):
                m.d.comb += word.eq(Mux(column[2:].all(), column, column[2:]))
            with m.Case(Counter.XMIT_WAIT >> COLUMN_BITS):
                m.d.comb += word.eq(Mux(column[2:].all(), column, XMIT_WAIT_WORD))
            with m.Case(Detail.LOCAL_PHYSICAL_ERRORS >> COLUMN_BITS):
                m.d.comb += word.eq(DETAIL_WORDS | column[2:])
            with m.Case(PacketCounter.UNICAST_XMIT_PKTS >> COLUMN_BITS):
                m.d.comb += word.eq(WHOLE_WORDS | column[:2])
            with m.Default(), m.Switch(column):
                for vl in vls_of_slots(self._vls):
                    with m.Case(vl):
                        m.d.comb += word.eq(places[VL_XMIT_WAIT + vl].word)
        return word


def _is_one_of(value: Value, numbers: Iterable[int]) -> Value:
    return Cat(value == number for number in numbers).any()
