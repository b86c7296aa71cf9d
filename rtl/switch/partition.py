"""Partitions: an input's P_Key tables, and what they say of a packet (docs/pipeline.md, section 3.6)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import LUT_RAM
from rtl.link.packet_check import PacketHeader
from rtl.link.receive import ReceivedRow
from rtl.restoration import restored_write_port
from rtl.widths import LENGTH_BITS, PORT_BITS
from wire.codes import LNH, P_KEY_DEFAULT
from wire.headers import BTH, GRH, LRH
from wire.port_tables import P_KEY_TABLE
from wire.registers import P_KEYS
from wire.symbols import LANES
from wire.trace import Verdict

__all__ = ["PKeyTables", "Partition", "p_key_write_layout", "p_key_written"]

_P_KEY_BITS: Final = P_KEY_TABLE.entry.width
_STEPS: Final = 3
"""Cycles of a search: as many as the smallest packet has rows behind its P_Key."""

_KEYS: Final = -(-P_KEY_TABLE.count // _STEPS)
"""Keys that are looked at in one of them."""

_ENTRY_BITS: Final = (P_KEY_TABLE.count - 1).bit_length()

_P_KEY_ROW: Final = (LRH.size_bytes + BTH["p_key"].end_bits // 8) // LANES
_P_KEY_ROW_BEHIND_GRH: Final = _P_KEY_ROW + GRH.size_bytes // LANES
"""K: the row with the P_Key's last byte, which is its first."""


def p_key_write_layout(ports: int) -> data.StructLayout:
    """A write of an entry of a port's P_Key table, at the node's registered bus stage.

    `step`: in which of a search it is looked at; `place`: of the word of that step in a memory of all ports' tables;
    `lane`: which of the word's keys it is, one-hot.
    """
    return data.StructLayout(
        {
            "valid": 1,
            "port": PORT_BITS,
            "step": range(_STEPS),
            "place": range(_STEPS * ports),
            "lane": _KEYS,
            "key": _P_KEY_BITS,
        }
    )


def p_key_written(m: Module, access: data.View, ports: int) -> Signal:
    """What an access to the node's registers writes to a P_Key table."""
    write = Signal(p_key_write_layout(ports))
    entry, table = access.offset[:_ENTRY_BITS], (access.page - 1)[: len(write.place)]
    in_table = (access.offset[_ENTRY_BITS:] == P_KEYS >> _ENTRY_BITS) & (access.page != 0) & (access.page <= ports)
    of_step = [range(first, min(first + _KEYS, P_KEY_TABLE.count)) for first in range(0, P_KEY_TABLE.count, _KEYS)]
    with m.Switch(entry):
        for step, entries in enumerate(of_step):
            with m.Case(*entries):
                m.d.comb += [write.step.eq(step), write.place.eq(table + step * ports)]
    m.d.comb += [
        write.valid.eq(access.write & in_table & ~access.wdata[_P_KEY_BITS:].any()),
        write.port.eq(access.page),
        write.lane.eq(
            Cat(Cat(entry == at for at in range(lane, P_KEY_TABLE.count, _KEYS)).any() for lane in range(_KEYS))
        ),
        write.key.eq(access.wdata),
    ]
    return write


class PKeyTables(wiring.Component):
    """The P_Key tables of so many ports, in words of the keys that are looked at together.

    Args:
        tables: how many.
        departs: of two members of a partition, the P_Key's and the table's, one has to be a full one.

    Word s of table t is at place s * tables + t.

    Members:
        write: seen from the next cycle on.
        place, key: the word looked at, and what for; `has`: one of its keys matches, in the same cycle.
    """

    def __init__(self, tables: int, *, departs: bool) -> None:
        self.tables = tables
        self._departs = departs
        place = range(_STEPS * tables)
        super().__init__(
            {
                "write": In(data.StructLayout({"valid": 1, "place": place, "lane": _KEYS, "key": _P_KEY_BITS})),
                "place": In(place),
                "key": In(_P_KEY_BITS),
                "has": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One distributed RAM, a comparator for each key of a word."""
        m = Module()
        word = data.ArrayLayout(_P_KEY_BITS, _KEYS)
        first, other = [P_KEY_DEFAULT] + [0] * (_KEYS - 1), [0] * _KEYS
        depth = _STEPS * self.tables
        at_reset = [first if place < self.tables else other for place in range(depth)]
        m.submodules.memory = memory = Memory(shape=word, depth=depth, init=at_reset, attrs=LUT_RAM)
        first_word = Const(P_KEY_DEFAULT, _KEYS * _P_KEY_BITS)
        write = restored_write_port(m, memory, lambda place: Mux(place < self.tables, first_word, 0), granularity=1)
        read = memory.read_port(domain="comb")
        base, full = self.key[:-1], self.key[-1]  # the highest bit says full member
        keys = [read.data[lane] for lane in range(_KEYS)]
        matches = [key[:-1] == base for key in keys]
        if self._departs:
            matches = [match & (key[-1] | full) for match, key in zip(matches, keys, strict=True)]
        m.d.comb += [
            write.addr.eq(self.write.place),
            write.data.eq(self.write.key.replicate(_KEYS)),
            write.en.eq(Mux(self.write.valid, self.write.lane, 0)),
            read.addr.eq(self.place),
            self.has.eq(base.any() & Cat(matches).any()),
        ]
        return m


class Partition(wiring.Component):
    """Judges one input's packets by the table of the port that they come by, and of the one that they would leave by.

    h is the cycle of a packet's row 1, c_K that of row K, in which its P_Key ends.

    Members:
        port: the input's.
        write: of any port's table.
        header: in cycle h+1, and with it what of the packet is checked: on `arrival`, on `departure`.
        standing: in that cycle, the index of the row by which the judgement stands that was made of a P_Key: K + 3.
        output: where it goes, from h+2 on; the last is no port's.
        received: rows, a cycle after the wires.
        has_p_key, p_key: whether the packet has one, and which, in the cycle of its verdict.
        verdict: the objection to the packet, 0 for none, from c_K + 4 on; of one without a P_Key from h+2 on.
    """

    def __init__(self, ports: int) -> None:
        self.ports = ports
        super().__init__(
            {
                "port": In(PORT_BITS),
                "write": In(p_key_write_layout(ports)),
                "header": In(PacketHeader),
                "arrival": In(1),
                "departure": In(1),
                "standing": Out(LENGTH_BITS),
                "output": In(range(ports + 1)),
                "received": In(ReceivedRow),
                "has_p_key": Out(1),
                "p_key": Out(_P_KEY_BITS),
                "verdict": Out(Verdict),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The header, the P_Key, the search in both tables at a time, the verdict."""
        m = Module()
        header, received, write = self.header, self.received, self.write

        # Cycle h+1: what is checked. Raw packets have no P_Key, nor those that end less than three rows behind it.
        is_iba, has_grh = header.lnh >= LNH.IBA_LOCAL, header.lnh == LNH.IBA_GLOBAL
        m.d.comb += self.standing.eq(Mux(has_grh, _P_KEY_ROW_BEHIND_GRH + _STEPS, _P_KEY_ROW + _STEPS))
        arrival, departure = Signal(), Signal()
        searched = Signal()
        row = Signal.like(received.index)
        with m.If(header.valid):
            m.d.sync += [
                arrival.eq(self.arrival),
                departure.eq(self.departure),
                searched.eq(is_iba & (header.n >= self.standing)),
                row.eq(Mux(has_grh, _P_KEY_ROW_BEHIND_GRH, _P_KEY_ROW)),
            ]

        # The P_Key, in c_K + 1 and kept: the last byte of a row and the first of the next.
        begins = Signal()
        key, kept = Signal(_P_KEY_BITS), Signal(_P_KEY_BITS)
        high_byte = Signal(8)
        m.d.comb += [
            begins.eq(searched & received.body & (received.index == row)),
            key.eq(Mux(begins, Cat(received.data[-8:], high_byte), kept)),
        ]
        m.d.sync += kept.eq(key)
        m.d.comb += [self.has_p_key.eq(searched), self.p_key.eq(kept)]
        with m.If(received.body):
            m.d.sync += high_byte.eq(received.data[:8])

        # The search, from c_K + 1 on.
        step = Signal(range(_STEPS))
        searches = begins | (step != 0)
        with m.If(searches):
            m.d.sync += step.eq(Mux(step == _STEPS - 1, 0, step + 1))
        m.submodules.arriving = arriving = PKeyTables(1, departs=False)
        m.submodules.departing = departing = PKeyTables(self.ports, departs=True)
        m.d.comb += [
            arriving.write.valid.eq(write.valid & (write.port == self.port)),
            arriving.write.place.eq(write.step),
            departing.write.valid.eq(write.valid),
            departing.write.place.eq(write.place),
            arriving.place.eq(step),
        ]
        for tables in (arriving, departing):
            m.d.comb += [tables.write.lane.eq(write.lane), tables.write.key.eq(write.key), tables.key.eq(key)]
        # Where the output is no port nothing is checked, but Verilog would read X behind the tables.
        with m.If(searches & (step != _STEPS - 1)):
            m.d.sync += departing.place.eq(departing.place + self.ports)
        with m.Else():
            m.d.sync += departing.place.eq(Mux(self.output == self.ports, 0, self.output))

        arrives, departs = Signal(), Signal()
        with m.If(header.valid):
            m.d.sync += [arrives.eq(0), departs.eq(0)]
        with m.Elif(searches):
            m.d.sync += [arrives.eq(arrives | arriving.has), departs.eq(departs | departing.has)]
        with m.If(arrival & ~arrives):
            m.d.comb += self.verdict.eq(Verdict.RCV_CONSTRAINT)
        with m.Elif(departure & ~departs):
            m.d.comb += self.verdict.eq(Verdict.XMIT_CONSTRAINT)
        return m
