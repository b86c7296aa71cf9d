"""Writes to P_Key tables take their turns (docs/pipeline.md, section 3.6), and change the tables of all inputs."""

from typing import Final

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import LUT_RAM, NO_COLLISION
from rtl.registers.bus import NodeAccess
from rtl.restoration import restored_write_port
from rtl.switch.p_key_tables import CHUNK_BITS, P_KEY_BITS, entries_at_reset, p_key_change_layout
from wire.codes import P_KEY_DEFAULT
from wire.port_tables import P_KEY_TABLE
from wire.registers import P_KEYS

__all__ = ["PKeyTurns", "p_key_words"]

_ENTRIES: Final = P_KEY_TABLE.count
_ENTRY_BITS: Final = (_ENTRIES - 1).bit_length()
_WAITING_BITS: Final = 5
"""Of the number of a write that waits for its turn."""

_KIND_BITS: Final = 2
_FIRST, _LIMITED, _FULL, _SECOND = range(1 << _KIND_BITS)
"""Kinds of words: of the first and the second chunk, of the third for limited and for full members' P_Keys.

What is not in the first's words is in no table. So an entry leaves these before all others, and comes to them last."""

_STEP_BITS: Final = 4
_IDLE, _FETCHES = 8, 15
"""Of a turn at t: the step in t + 1, in which the entry's old P_Key is known; 0 to 7 follow, and IDLE in t + 10."""


def p_key_words(ports: int) -> int:
    """Of all tables of a switch: of each a word for each value of a chunk of each kind."""
    return ports << _KIND_BITS + CHUNK_BITS


class PKeyTurns(wiring.Component):
    """One a switch: it keeps the P_Keys of all its ports, to know which words of the tables a write changes.

    In the steps 0 to 3 the words of the old P_Key are read, which the entry leaves, in 4 to 7 those of the new one. The
    cycle after changes the word, and the inputs write it in the one behind that, from t + 4 to t + 11.

    Members:
        access: to the registers.
        change: what the tables of all inputs are to change. During reset, all their words, one after the other.
    """

    def __init__(self, ports: int) -> None:
        self.ports = ports
        super().__init__({"access": In(NodeAccess), "change": Out(p_key_change_layout(ports))})

    def elaborate(self, platform: object) -> Module:
        """What waits, and the steps of a turn."""
        m = Module()
        entry_layout = data.StructLayout({"entry": _ENTRY_BITS, "table_number": range(self.ports)})
        write_layout = data.StructLayout({"place": entry_layout, "key": P_KEY_BITS})

        step = Signal(_STEP_BITS, init=_IDLE)
        begins, current = Signal(), Signal(write_layout)
        waits, waiting = self._waiting(m, write_layout, begins)
        m.d.comb += begins.eq(waits & (step == _IDLE))
        with m.If(begins):
            m.d.sync += [step.eq(_FETCHES), current.eq(waiting)]
        with m.Elif(step != _IDLE):
            m.d.sync += step.eq(step + 1)

        # The old P_Key, read with the turn; the new one takes its place.
        m.submodules.keys = keys = Memory(
            shape=P_KEY_BITS,
            depth=self.ports * _ENTRIES,
            init=([P_KEY_DEFAULT] + [0] * (_ENTRIES - 1)) * self.ports,
            attrs=NO_COLLISION,
        )
        kept = restored_write_port(m, keys, lambda place: Mux(place[:_ENTRY_BITS] == 0, P_KEY_DEFAULT, 0))
        fetched = keys.read_port()
        old = Signal(P_KEY_BITS)
        m.d.comb += [
            fetched.addr.eq(waiting.place),
            kept.addr.eq(current.place),
            kept.data.eq(current.key),
            kept.en.eq(step == _FETCHES),
        ]
        with m.If(step == _FETCHES):
            m.d.sync += old.eq(fetched.data)
        self._change_words(m, step, old, current)
        return m

    def _waiting(self, m: Module, layout: data.StructLayout, taken: Value) -> tuple[Value, data.View]:
        """Whether a write waits for its turn, and the first that does, until it is taken."""
        access = self.access
        in_table = (access.offset[_ENTRY_BITS:] == P_KEYS >> _ENTRY_BITS) & ~access.wdata[P_KEY_BITS:].any()
        of_port = (access.page != 0) & (access.page <= self.ports)
        m.submodules.waiting = memory = Memory(shape=layout, depth=1 << _WAITING_BITS, init=[], attrs=LUT_RAM)
        write, read = memory.write_port(), memory.read_port(domain="comb")
        head, tail = Signal(_WAITING_BITS + 1), Signal(_WAITING_BITS + 1)
        is_full = (tail ^ head) == 1 << _WAITING_BITS
        m.d.comb += [
            write.addr.eq(tail),
            write.data.place.entry.eq(access.offset),
            write.data.place.table_number.eq(access.page - 1),
            write.data.key.eq(access.wdata),
            write.en.eq(access.write & in_table & of_port & ~is_full),
            read.addr.eq(head),
        ]
        m.d.sync += [tail.eq(tail + write.en), head.eq(head + taken)]
        return head != tail, read.data

    def _change_words(self, m: Module, step: Value, old: Value, current: data.View) -> None:
        """A word is read in its step, changed in the cycle after, and then told to the inputs."""
        m.submodules.words = words = Memory(
            shape=_ENTRIES,
            depth=p_key_words(self.ports),
            init=[entries_at_reset(place % (1 << CHUNK_BITS)) for place in range(p_key_words(self.ports))],
            attrs=NO_COLLISION,
        )
        write = restored_write_port(m, words, lambda place: entries_at_reset(place[:CHUNK_BITS]))
        read = words.read_port()

        sets, kind = step[2], Signal(_KIND_BITS)
        key = Mux(sets, current.key, old)
        first, second, third = (key[CHUNK_BITS * place :][:CHUNK_BITS] for place in range(3))
        is_full, is_partition = current.key[-1], current.key[:-1].any()
        m.d.comb += [
            kind.eq(step[:_KIND_BITS] + sets),  # so that nothing is read that is changed meanwhile, or is to be
            read.addr.eq(Cat(Array((first, third, third, second))[kind], kind, current.place.table_number)),
        ]

        is_read, differs, place, is_in = Signal(), Signal(), Signal.like(read.addr), Signal()
        m.d.sync += [
            is_read.eq(~step[-1]),
            place.eq(read.addr),
            is_in.eq(sets & is_partition & (is_full | (kind != _LIMITED))),
        ]
        with m.If(step == 0):
            m.d.sync += differs.eq(old != current.key)
        entry = Signal(_ENTRIES)
        m.d.comb += [
            entry.eq(1 << current.place.entry),
            write.addr.eq(place),
            write.data.eq((read.data & ~entry) | (entry & is_in.replicate(_ENTRIES))),
            write.en.eq(is_read & differs),
        ]

        # What is written, also during reset, and therefore in registers that go on during it.
        [written] = words.write_ports
        change = Signal(p_key_change_layout(self.ports), reset_less=True)
        value, of_kind = written.addr[:CHUNK_BITS], written.addr[CHUNK_BITS:]
        kind, table_number = of_kind[:_KIND_BITS], of_kind[_KIND_BITS:]
        m.d.sync += [
            change.first.eq(written.en & (kind == _FIRST)),
            change.second.eq(written.en & (kind == _SECOND)),
            change.third.eq(written.en & ((kind == _LIMITED) | (kind == _FULL))),
            change.value.eq(value),
            change.full.eq(kind == _FULL),
            change.table_number.eq(table_number),
            change.entries.eq(written.data),
        ]
        m.d.comb += self.change.eq(change)
