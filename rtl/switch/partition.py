"""Partitions: an input's P_Key tables, and what they say of a packet (docs/pipeline.md, section 3.6)."""

from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
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
"""Keys of a table that are looked at in one of them."""

_ARRIVING_COLUMNS: Final = _KEYS
_DEPARTING_COLUMNS: Final = 16
"""Of one table, as few comparators as there can be. Of many two keys a column: in the 16 words of a cell of distributed
RAM are then 8 tables, and a multiplexer behind more of them costs more than comparators."""

_ENTRY_BITS: Final = (P_KEY_TABLE.count - 1).bit_length()

_P_KEY_ROW: Final = (LRH.size_bytes + BTH["p_key"].end_bits // 8) // LANES
_P_KEY_ROW_BEHIND_GRH: Final = _P_KEY_ROW + GRH.size_bytes // LANES
"""K: the row with the P_Key's last byte, which is its first."""


def _place_layout(columns: int) -> data.StructLayout:
    """Where an entry is in `PKeyTables` of so many columns: `column` is one-hot, or 0 if there is none."""
    return data.StructLayout({"row": range(-(-P_KEY_TABLE.count // columns)), "column": columns})


def _table_number(tables: int) -> range:
    """Of so many tables; no signal of one has no bits."""
    return range(max(2, tables))


def p_key_write_layout(ports: int) -> data.StructLayout:
    """A write of an entry of the P_Key table of port `table_number` + 1, at the node's registered bus stage."""
    return data.StructLayout(
        {
            "table_number": range(ports),
            "arriving": _place_layout(_ARRIVING_COLUMNS),
            "departing": _place_layout(_DEPARTING_COLUMNS),
            "key": _P_KEY_BITS,
        }
    )


def p_key_written(m: Module, access: data.View, ports: int) -> Signal:
    """What an access to the node's registers writes to a P_Key table."""
    write = Signal(p_key_write_layout(ports))
    entry = access.offset[:_ENTRY_BITS]
    in_table = (access.offset[_ENTRY_BITS:] == P_KEYS >> _ENTRY_BITS) & (access.page != 0) & (access.page <= ports)
    m.d.comb += [write.table_number.eq(access.page - 1), write.key.eq(access.wdata)]
    with m.If(access.write & in_table & ~access.wdata[_P_KEY_BITS:].any()), m.Switch(entry):
        for number in range(P_KEY_TABLE.count):
            with m.Case(number):
                for place in (write.arriving, write.departing):
                    row, column = divmod(number, len(place.column))
                    m.d.comb += [place.row.eq(row), place.column.eq(1 << column)]
    return write


class PKeyTables(wiring.Component):
    """The P_Key tables of so many ports, with a comparator for each column of their keys.

    Args:
        tables: how many.
        columns: entry e is in column e mod `columns`; not fewer than the keys that are looked at in a step.
        departs: of two members of a partition, the P_Key's and the table's, one has to be a full one.

    Members:
        write: seen from the next cycle on.
        table_number, step, key: where is looked, at which of its keys, and what for.
        has: one of these matches, in the same cycle.
    """

    def __init__(self, tables: int, columns: int, *, departs: bool) -> None:
        self.tables = tables
        self.columns = columns
        self._departs = departs
        super().__init__(
            {
                "write": In(
                    data.StructLayout(
                        {"table_number": _table_number(tables), "place": _place_layout(columns), "key": _P_KEY_BITS}
                    )
                ),
                "table_number": In(_table_number(tables)),
                "step": In(range(_STEPS)),
                "key": In(_P_KEY_BITS),
                "has": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A distributed RAM for the columns that are looked at in the same steps."""
        m = Module()
        together: dict[tuple[int, ...], list[int]] = {}
        for column in range(self.columns):
            steps = tuple(entry // _KEYS for entry in range(column, P_KEY_TABLE.count, self.columns))
            together.setdefault(steps, []).append(column)
        matches = [self._looked_for(m, *of_steps) for of_steps in together.items()]
        m.d.comb += self.has.eq(self.key[:-1].any() & Cat(matches).any())
        return m

    def _looked_for(self, m: Module, steps: tuple[int, ...], columns: list[int]) -> Value:
        """One of these columns' keys matches: those in row r are looked at in the step that is the r-th of STEPS."""
        row_bits = (len(steps) - 1).bit_length()
        first, other = [P_KEY_DEFAULT if column == 0 else 0 for column in columns], [0] * len(columns)
        depth = (self.tables - 1 << row_bits) + len(steps)
        m.submodules["_".join(("first", "second", "third")[step] for step in steps)] = memory = Memory(
            shape=data.ArrayLayout(_P_KEY_BITS, len(columns)),
            depth=depth,
            init=[first if place % (1 << row_bits) == 0 else other for place in range(depth)],
            attrs=LUT_RAM,
        )
        at_reset = Const(first[0], len(columns) * _P_KEY_BITS)
        write = restored_write_port(m, memory, lambda place: Mux(place[:row_bits] == 0, at_reset, 0), granularity=1)
        read = memory.read_port(domain="comb")
        looks = Array(step in steps for step in range(_STEPS))[self.step]
        row = Array(steps.index(step) if step in steps else 0 for step in range(_STEPS))[self.step]
        m.d.comb += [
            write.addr.eq(Cat(self.write.place.row[:row_bits], self.write.table_number)),
            write.data.eq(self.write.key.replicate(len(columns))),
            write.en.eq(Cat(self.write.place.column[column] for column in columns)),
            read.addr.eq(Cat(Value.cast(row)[:row_bits], self.table_number)),
        ]
        keys = [read.data[place] for place in range(len(columns))]
        matches = Cat(key[:-1] == self.key[:-1] for key in keys)
        if self._departs:  # the highest bit says full member
            return looks & ((self.key[-1] & matches.any()) | (matches & Cat(key[-1] for key in keys)).any())
        return looks & matches.any()


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
        row_before = Signal.like(received.index)
        with m.If(header.valid):
            m.d.sync += [
                arrival.eq(self.arrival),
                departure.eq(self.departure),
                searched.eq(is_iba & (header.n >= self.standing)),
                row_before.eq(Mux(has_grh, _P_KEY_ROW_BEHIND_GRH - 1, _P_KEY_ROW - 1)),
            ]

        # The P_Key, in c_K + 1 and kept: the last byte of a row and the first of the next. When that comes the row
        # before says, and the step which key is looked for: a comparison of rows would come before those of keys.
        step = Signal(range(_STEPS))
        follows, begins = Signal(), Signal()
        key, kept = Signal(_P_KEY_BITS), Signal(_P_KEY_BITS)
        high_byte = Signal(8)
        m.d.comb += [
            begins.eq(follows & received.body),
            key.eq(Mux(step == 0, Cat(received.data[-8:], high_byte), kept)),
            self.has_p_key.eq(searched),
            self.p_key.eq(kept),
        ]
        with m.If(received.first | received.body):
            m.d.sync += follows.eq(searched & received.body & (received.index == row_before))
        with m.If(received.body):
            m.d.sync += high_byte.eq(received.data[:8])
        with m.If(begins):
            m.d.sync += kept.eq(key)

        # The search, from c_K + 1 on. Where the output is no port nothing is checked, but Verilog would read X behind
        # the tables.
        searches = begins | (step != 0)
        with m.If(searches):
            m.d.sync += step.eq(Mux(step == _STEPS - 1, 0, step + 1))
        m.submodules.arriving = arriving = PKeyTables(1, _ARRIVING_COLUMNS, departs=False)
        m.submodules.departing = departing = PKeyTables(self.ports, _DEPARTING_COLUMNS, departs=True)
        m.d.sync += departing.table_number.eq(Mux(self.output == self.ports, 0, self.output))
        m.d.comb += [
            arriving.write.place.row.eq(write.arriving.row),
            arriving.write.place.column.eq(Mux(write.table_number == self.port - 1, write.arriving.column, 0)),
            departing.write.place.eq(write.departing),
            departing.write.table_number.eq(write.table_number),
        ]
        for tables in (arriving, departing):
            m.d.comb += [tables.write.key.eq(write.key), tables.step.eq(step), tables.key.eq(key)]

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
