"""VL arbitration of an output: which data VL sends next (IBTA vol 1, 7.6.9; docs/pipeline.md, section 7.1)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.link.port import VlArbitrationSignature
from rtl.rotation import RotatingChoice, select
from rtl.widths import VL_BITS, VL_LIMIT_BITS, VL_WEIGHT_BITS
from wire.packet import BLOCK_BYTES
from wire.parameters import vl_arbitration_entries

__all__ = ["VlArbiter", "VlList", "VlTurns"]

_NO_LIMIT: Final = (1 << VL_LIMIT_BITS) - 1
_LIMIT_SHIFT: Final = (4096 // BLOCK_BYTES).bit_length() - 1
"""The limit is in 4096 bytes; all else in blocks."""


class VlTurns(wiring.Component):
    """Every VL in turn, a packet at a time.

    Members:
        eligible: data VLs with a packet and the credits for the whole of it.
        chosen: one of them, one-hot, in the same cycle; anything if there is none.
        serve, served: what was chosen two cycles ago was granted, on this VL (one-hot; g+2); the next cycle chooses
            from behind it.
    """

    def __init__(self, vls: int) -> None:
        self.vls = vls
        super().__init__({"eligible": In(vls), "chosen": Out(vls), "serve": In(1), "served": In(vls)})

    def elaborate(self, platform: object) -> Module:
        """A rotating choice; a single VL needs none."""
        m = Module()
        if self.vls == 1:
            m.d.comb += self.chosen.eq(1)
            return m
        m.submodules.turn = turn = RotatingChoice(self.vls)
        m.d.comb += [
            turn.requests.eq(self.eligible),
            turn.serve.eq(self.serve),
            turn.served.eq(self.served),
            self.chosen.eq(turn.chosen),
        ]
        return m


class VlList(wiring.Component):
    """One of an output's two lists: the entries of each VL, and how far it has come.

    Args:
        vls: data VLs.
        entries: of the list.

    Members:
        write, written, vl, counts: the number of an entry that is written, its VL from the next cycle on, and whether
            it counts.
        of_vl: for each VL the mask of its entries that count.
        first: the number of the entry that its sequence begins with.
        charge, charged, some, rest: this entry is charged, and some of its weight is left, so many blocks; seen in
            `first` in the next cycle.
        goes_on, remains: in this cycle the entry `charged` is that with which the sequence begins because something of
            its weight remains, so many blocks.
    """

    def __init__(self, vls: int, entries: int) -> None:
        self.vls = vls
        self.entries = entries
        super().__init__(
            {
                "write": In(1),
                "written": In(range(entries)),
                "vl": In(VL_BITS),
                "counts": In(1),
                "of_vl": Out(data.ArrayLayout(entries, vls)),
                "first": Out(range(entries)),
                "charge": In(1),
                "some": In(1),
                "charged": In(range(entries)),
                "rest": In(VL_WEIGHT_BITS),
                "goes_on": Out(1),
                "remains": Out(VL_WEIGHT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The order looks at masks."""
        m = Module()
        with m.If(self.write):
            for vl in range(self.vls):
                m.d.sync += self.of_vl[vl].bit_select(self.written, 1).eq(self.counts & (self.vl == vl))
        stays = Signal()
        m.d.comb += self.goes_on.eq(stays & (self.first == self.charged))
        with m.If(self.charge):
            m.d.sync += [self.first.eq(self.charged + ~self.some), stays.eq(self.some), self.remains.eq(self.rest)]
        return m


def _lowest_number(bits: Value) -> Value:
    """The number of the lowest bit that is set, of as many bits as a power of two; the highest, if none is."""
    half = len(bits) // 2
    if not half:
        return Const(0, 0)
    low, high = bits[:half], bits[half:]
    return Cat(Mux(low.any(), _lowest_number(low), _lowest_number(high)), ~low.any())


def _key_layout(entries: int) -> data.StructLayout:
    """What puts VLs in order: the lower key is before the higher.

    `number`, `wrapped`: the number of its entry, the highest if it has none, and whether that is before the list's
    first, or the VL before vl_ptr. `second`: only the list has it that comes second. `unlisted`: neither has it.
    """
    return data.StructLayout({"number": range(entries), "wrapped": 1, "second": 1, "unlisted": 1})


class VlArbiter(wiring.Component):
    """The VLs of a port with several, by its two lists.

    g is the cycle of a choice. The order of the VLs is made before: each VL has its key at g-1, and all that is left
    for g is which of two VLs comes before the other.

    Members:
        eligible, chosen: see `VlTurns` (cycle g).
        serve, served: likewise (g+2). The next choice that counts is at g+4 at the earliest.
        port: entries as they are written, the limit, and what is charged, just in g+3.
    """

    def __init__(self, vls: int) -> None:
        self.vls = vls
        self.entries = vl_arbitration_entries(vls)
        super().__init__(
            {
                "eligible": In(vls),
                "chosen": Out(vls),
                "serve": In(1),
                "served": In(vls),
                "port": In(VlArbitrationSignature),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Keys, order, choice; then what the packet that goes is charged to."""
        m = Module()
        vls, layout = range(self.vls), _key_layout(self.entries)
        m.submodules.low, m.submodules.high = VlList(self.vls, self.entries), VlList(self.vls, self.entries)
        spent = Signal()

        # g-2: keys.
        last = Signal(self.vls)
        with m.If(self.serve):
            m.d.sync += last.eq(self.served)
        at_reset = {"number": self.entries - 1, "wrapped": 1, "unlisted": 1}
        keys = Signal(data.ArrayLayout(layout, self.vls), init=[at_reset] * self.vls)
        for vl in vls:
            self._find_key(m, vl, keys[vl], spent, last[:vl].any())

        # g-1: order; of two that no list has, and that are on the same side of vl_ptr, the lower VL is first.
        before = {(u, v): Signal(init=1, name=f"before_{u}_{v}") for v in vls for u in range(v)}
        keys_before = Signal.like(keys)
        m.d.sync += [first.eq(keys[u].as_value() <= keys[v].as_value()) for (u, v), first in before.items()]
        m.d.sync += keys_before.eq(keys)

        # g: the VL that none is before.
        for v in vls:
            lower = Cat(self.eligible[u] & before[u, v] for u in range(v))
            higher = Cat(self.eligible[u] & ~before[v, u] for u in range(v + 1, self.vls))
            m.d.comb += self.chosen[v].eq(self.eligible[v] & ~Cat(lower, higher).any())

        # g+1: its key, by what was chosen, which is late in g. g+3: that of the packet that is charged, if one is.
        chosen, keys_then = Signal(self.vls), Signal.like(keys)  # in the cycle before
        key_before, goes = Signal(layout), Signal(layout)
        m.d.sync += [
            chosen.eq(self.chosen),
            keys_then.eq(keys_before),
            key_before.eq(select(chosen, [keys_then[vl].as_value() for vl in vls])),
            goes.eq(key_before),
        ]
        self._charge(m, goes, spent)
        return m

    def _find_key(self, m: Module, vl: int, key: data.View, spent: Value, in_turn: Value) -> None:
        """A VL's key, of the list by which it is in the order."""
        low, high = m.submodules.low, m.submodules.high
        in_low, in_high, by_high = (Signal(name=f"{name}_{vl}") for name in ("in_low", "in_high", "by_high"))
        m.d.comb += [
            in_low.eq(low.of_vl[vl].any()),
            in_high.eq(high.of_vl[vl].any()),
            by_high.eq(in_high & ~(spent & in_low)),
        ]
        listed = in_low | in_high
        entries, ahead = Signal(self.entries, name=f"entries_{vl}"), Signal(self.entries, name=f"ahead_{vl}")
        first, wrapped = Mux(by_high, high.first, low.first), ~ahead.any()
        m.d.comb += [
            entries.eq(Mux(by_high, high.of_vl[vl], low.of_vl[vl])),
            ahead.eq(entries & Cat(*(first <= entry for entry in range(self.entries - 1)), 1)),
        ]
        m.d.sync += [
            key.number.eq(Mux(wrapped, _lowest_number(entries), _lowest_number(ahead))),
            key.wrapped.eq(wrapped & (listed | ~in_turn)),
            key.second.eq(listed & (by_high == spent)),
            key.unlisted.eq(~listed),
        ]

    def _charge(self, m: Module, goes: data.View, spent: Signal) -> None:
        """The lists, and the high list's allowance, which is `spent` where the low list comes first.

        Weights are in a memory: one is wanted at a time, of an entry that was written.
        """
        port, low, high = self.port, m.submodules.low, m.submodules.high
        entry, charged, by_high = port.entry, port.charged & ~goes.unlisted, Signal()
        m.submodules.weights = weights = Memory(shape=VL_WEIGHT_BITS, depth=2 * self.entries, init=[])
        writer, reader = weights.write_port(), weights.read_port(domain="comb")
        goes_on, weight = Signal(), Signal(VL_WEIGHT_BITS)
        some, rest_of_weight = Signal(), Signal(VL_WEIGHT_BITS + 1)
        m.d.comb += [
            by_high.eq(goes.second == spent),
            writer.en.eq(entry.write),
            writer.addr.eq(Cat(entry.number[: len(goes.number)], entry.high)),
            writer.data.eq(entry.weight),
            reader.addr.eq(Cat(goes.number, by_high)),
            goes_on.eq(Mux(by_high, high.goes_on, low.goes_on)),
            weight.eq(Mux(goes_on, Mux(by_high, high.remains, low.remains), reader.data)),
            rest_of_weight.eq(weight - port.blocks),
            some.eq(~rest_of_weight[-1] & rest_of_weight.any()),
        ]
        for of_list, is_high in ((low, 0), (high, 1)):
            m.d.comb += [
                of_list.write.eq(entry.write & (entry.high == is_high)),
                of_list.written.eq(entry.number),
                of_list.vl.eq(entry.vl),
                of_list.counts.eq(entry.weight != 0),
                of_list.charge.eq(charged & (by_high == is_high)),
                of_list.charged.eq(goes.number),
                of_list.some.eq(some),
                of_list.rest.eq(rest_of_weight),
            ]
        allowance = port.high_limit << _LIMIT_SHIFT
        left = Signal(len(allowance))  # 0 where it is spent
        rest = Signal(len(left) + 1)
        is_over = Signal()
        m.d.comb += [
            rest.eq((left | Mux(spent, allowance, 0)) - port.blocks),
            is_over.eq(rest[-1] | ~rest.any()),
        ]
        with m.If(charged & ~by_high):
            m.d.sync += [left.eq(allowance), spent.eq(0)]
        with m.Elif(charged & (port.high_limit == _NO_LIMIT)):
            m.d.sync += spent.eq(0)
        with m.Elif(charged):
            m.d.sync += [left.eq(Mux(is_over, 0, rest)), spent.eq(is_over)]
