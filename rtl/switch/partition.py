"""Partitions: what P_Key tables say of an input's packets (docs/pipeline.md, section 3.6)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.link.packet_check import PacketHeader
from rtl.link.receive import ReceivedRow
from rtl.switch.p_key_tables import P_KEY_BITS, PKeyTables, p_key_change_layout
from rtl.widths import LENGTH_BITS
from wire.codes import LNH
from wire.headers import BTH, GRH, LRH
from wire.symbols import LANES
from wire.trace import Verdict

__all__ = ["Partition"]

_STANDING: Final = 3
"""Rows behind the P_Key that the smallest packet has: as many as both tables take to be looked into."""

_P_KEY_ROW: Final = (LRH.size_bytes + BTH["p_key"].end_bits // 8) // LANES
_P_KEY_ROW_BEHIND_GRH: Final = _P_KEY_ROW + GRH.size_bytes // LANES
"""K: the row with the P_Key's last byte, which is its first."""


class Partition(wiring.Component):
    """Judges one input's packets by the table of the port that they come by, and of the one that they would leave by.

    h is the cycle of a packet's row 1, c_K that of row K, in which its P_Key ends.

    Members:
        input: its number, and that of the port's table.
        change: of any port's table.
        header: in cycle h+1, and with it what of the packet is checked: on `arrival`, on `departure`; whether it is
            `guarded`; `accept`: that it is accepted.
        keyed: in that cycle, it has a P_Key. `standing`: the index of the row by which the judgement stands that was
            made of that: K + 3.
        output: where it goes, from h+2 on; the last is no port's.
        received: rows, a cycle after the wires.
        has_p_key, p_key: whether the packet, checked or guarded, has one, and which, in the cycle in which it joins its
            queue and in that of its verdict.
        verdict: the objection to the packet, 0 for none, from c_K + 4 on; of one without a P_Key from h+2 on. `right`:
            there is none.
        free: nothing of a packet is looked for in this cycle. `other_table`, `other_key`: then this is. `has`: what was
            looked for in the cycle before is there.
    """

    def __init__(self, ports: int) -> None:
        self.ports = ports
        super().__init__(
            {
                "input": In(range(ports)),
                "change": In(p_key_change_layout(ports)),
                "header": In(PacketHeader),
                "arrival": In(1),
                "departure": In(1),
                "guarded": In(1),
                "accept": In(1),
                "keyed": Out(1),
                "standing": Out(LENGTH_BITS),
                "output": In(range(ports + 1)),
                "received": In(ReceivedRow),
                "has_p_key": Out(1),
                "p_key": Out(P_KEY_BITS),
                "right": Out(1),
                "verdict": Out(Verdict),
                "free": Out(1),
                "other_table": In(range(ports)),
                "other_key": In(P_KEY_BITS),
                "has": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The header, the P_Key, both tables one after the other, the verdict."""
        m = Module()
        header, received = self.header, self.received

        # Cycle h+1: what is checked. Raw packets have no P_Key, nor those that end less than three rows behind it.
        is_iba, has_grh = header.lnh >= LNH.IBA_LOCAL, header.lnh == LNH.IBA_GLOBAL
        behind_grh, behind_lrh = _P_KEY_ROW_BEHIND_GRH + _STANDING, _P_KEY_ROW + _STANDING
        is_long_enough = ~Mux(has_grh, below(header.n, behind_grh), below(header.n, behind_lrh))
        m.d.comb += [
            self.standing.eq(Mux(has_grh, behind_grh, behind_lrh)),
            self.keyed.eq(is_iba & is_long_enough),
        ]
        searched = Signal()
        row_before = Signal.like(received.index)
        with m.If(header.valid):
            m.d.sync += [
                searched.eq(self.keyed & self.accept & (self.arrival | self.departure | self.guarded)),
                row_before.eq(Mux(has_grh, _P_KEY_ROW_BEHIND_GRH - 1, _P_KEY_ROW - 1)),
            ]

        # The P_Key, in c_K + 1 and kept: the last byte of a row and the first of the next. When that comes the row
        # before says: a comparison of rows would come before the tables.
        follows, comes = Signal(), Signal()
        key, kept = Signal(P_KEY_BITS), Signal(P_KEY_BITS)
        high_byte = Signal(8)
        m.d.comb += [
            comes.eq(follows & received.body),
            key.eq(Cat(received.data[-8:], high_byte)),
            self.has_p_key.eq(searched),
            self.p_key.eq(kept),
        ]
        with m.If(received.first | received.body):
            m.d.sync += follows.eq(searched & received.body & (received.index == row_before))
        with m.If(received.body):
            m.d.sync += high_byte.eq(received.data[:8])
        with m.If(comes):
            m.d.sync += kept.eq(key)

        # The table of arrival is looked into in c_K + 1, for members of both kinds, that of departure in c_K + 2; in
        # other cycles any. Where the output is no port nothing is checked, but Verilog would read X behind the tables.
        m.submodules.tables = tables = PKeyTables(self.ports)
        departing = Signal(range(self.ports))
        m.d.sync += departing.eq(Mux(self.output == self.ports, 0, self.output))
        says_arrives, says_departs = Signal(), Signal()
        m.d.comb += [
            tables.change.eq(self.change),
            tables.table_number.eq(Mux(comes, self.input, Mux(says_arrives, departing, self.other_table))),
            tables.key.eq(Mux(comes, Cat(key[:-1], Const(1)), Mux(says_arrives, kept, self.other_key))),
            self.free.eq(~comes & ~says_arrives),
            self.has.eq(tables.has),
        ]

        # What is checked is wrong until the table says that it has the P_Key.
        wrong_arrival, wrong_departure = Signal(), Signal()
        m.d.sync += [says_arrives.eq(comes), says_departs.eq(says_arrives)]
        with m.If(says_arrives & tables.has):
            m.d.sync += wrong_arrival.eq(0)
        with m.If(says_departs & tables.has):
            m.d.sync += wrong_departure.eq(0)
        with m.If(header.valid):
            m.d.sync += [wrong_arrival.eq(self.arrival), wrong_departure.eq(self.departure)]
        m.d.comb += self.right.eq(~(wrong_arrival | wrong_departure))
        with m.If(wrong_arrival):
            m.d.comb += self.verdict.eq(Verdict.RCV_CONSTRAINT)
        with m.Elif(wrong_departure):
            m.d.comb += self.verdict.eq(Verdict.XMIT_CONSTRAINT)
        return m
