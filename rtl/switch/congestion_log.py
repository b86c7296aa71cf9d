"""What a switch has marked of late (docs/pipeline.md, 7.3; docs/management.md, 7; IBTA vol 1, A10.4.3.5)."""

from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import LUT_RAM
from rtl.link.marking import Marked
from rtl.management.place import WORD_BITS, fields_in_words, place, word_of
from rtl.registers.bus import PageAccess
from rtl.rotation import any_of, lowest, select
from rtl.switch.congestion_window import WINDOW_WORDS, bits_by_word, of_attribute, word_of_access
from wire.congestion_control import (
    CONGESTION_LOG,
    CONGESTION_LOG_EVENT,
    CONGESTION_LOG_EVENTS,
    CONGESTION_TIME_STAMP,
    CcAttribute,
    LogType,
)
from wire.layout import Field
from wire.packet import WORD_BYTES
from wire.time_limits import TICK_CYCLES

__all__ = ["CongestionLog"]

_COUNTER: Final = place(CONGESTION_LOG["log_events_counter"])
_STAMP_BITS: Final = CONGESTION_TIME_STAMP["time_stamp"].width
_NUMBER_BITS: Final = CONGESTION_LOG_EVENTS.bit_length()
_FIRST_EVENT: Final = word_of(CONGESTION_LOG["event0"])
_EVENT_WORDS: Final = CONGESTION_LOG_EVENT.size_bytes // WORD_BYTES
_Event: Final = data.StructLayout({field.name: field.width for field in CONGESTION_LOG_EVENT.fields})


class CongestionLog(wiring.Component):
    """One a switch: CongestionLog and TimeStamp.

    Args:
        ports: of the switch.

    Members:
        marked: of each port, see `rtl.link.transmit.Transmitter`.
        access: to the page of congestion control.
        rdata: two cycles after a read what was visible in the cycle between, else 0.
    """

    def __init__(self, ports: int) -> None:
        self._ports = ports
        super().__init__({"marked": In(Marked).array(ports), "access": In(PageAccess), "rdata": Out(WORD_BITS)})

    def elaborate(self, platform: object) -> Module:
        """The clock; what comes, and in the next cycle what it does to the log; what is read."""
        m = Module()
        stamp = Signal(_STAMP_BITS)
        phase = Signal(range(TICK_CYCLES))
        m.d.sync += phase.eq(phase + 1)
        with m.If(phase == TICK_CYCLES - 1):
            m.d.sync += stamp.eq(stamp + 1)

        # Cycle w_r. Of several ports one is logged.
        marks, event = Signal(self._ports), Signal(_Event, reset_less=True)
        ports, logged = Signal(self._ports), Signal()
        first = Signal(Marked)
        m.d.comb += [
            marks.eq(Cat(marked.valid for marked in self.marked)),
            first.eq(select(lowest(m, marks), self.marked)),
        ]
        m.d.sync += [ports.eq(marks), logged.eq(marks.any())]
        with m.If(marks.any()):
            m.d.sync += [event.time_stamp.eq(stamp), *(event[name].eq(first[name]) for name in ("slid", "dlid", "sl"))]

        # The cycle after that. A read is here in the second after it was given, and clears what it reads.
        access, reads, reads_clock, word = self.access, Signal(), Signal(), Signal(range(WINDOW_WORDS))
        m.d.sync += [
            reads.eq(access.read & of_attribute(access, CcAttribute.CONGESTION_LOG)),
            reads_clock.eq(access.read & of_attribute(access, CcAttribute.TIME_STAMP)),
            word.eq(word_of_access(access)),
        ]
        counter, port_map = Signal(_COUNTER.width), Signal(self._ports)
        counted = Mux(reads & (word == _COUNTER.word), 0, counter)
        m.d.sync += counter.eq(counted + (logged & ~counted.all()))
        for number, bits in bits_by_word(CONGESTION_LOG["port_map"], self._ports).items():
            kept = Mux(reads & (word == number), 0, port_map[bits])
            m.d.sync += port_map[bits].eq(kept | ports[bits])
        head = fields_in_words(
            {
                CONGESTION_LOG["log_type"]: Const(LogType.SWITCH),
                CONGESTION_LOG["log_events_counter"]: counter,
                CONGESTION_LOG["current_time_stamp"]: stamp,
                CONGESTION_LOG["port_map"]: Cat(Const(0, 1), port_map),
            }
        )
        clock = fields_in_words({CONGESTION_TIME_STAMP["time_stamp"]: stamp})
        of_event = self._keep_events(m, event, logged, word)
        m.d.sync += self.rdata.eq(0)
        with m.If(reads):
            m.d.sync += self.rdata.eq(any_of([of_event, *(Mux(word == at, value, 0) for at, value in head.items())]))
        with m.If(reads_clock):
            m.d.sync += self.rdata.eq(any_of(Mux(word == at, value, 0) for at, value in clock.items()))
        return m

    def _keep_events(self, m: Module, event: data.View, logged: Value, word: Value) -> Value:
        """The latest are in a ring. Returns this word of the log, if it is of an event that there has been, or 0."""
        following, kept = Signal(_NUMBER_BITS), Signal(_NUMBER_BITS)
        with m.If(logged):
            m.d.sync += [following.eq(following + 1), kept.eq(kept + (kept != CONGESTION_LOG_EVENTS))]
        places = range(-_FIRST_EVENT, WINDOW_WORDS - _FIRST_EVENT)  # by the log's word: behind that of the first event
        number = Array(place // _EVENT_WORDS % (1 << _NUMBER_BITS) for place in places)[word]
        part = Array(place % _EVENT_WORDS for place in places)[word]

        # Two memories: one would be too large for LUT RAM.
        fields: dict[Field, Value] = {}
        for name, members in (("lids", ("slid", "dlid")), ("others", ("sl", "time_stamp"))):
            layout = data.StructLayout({member: _Event[member].width for member in members})
            m.submodules[name] = memory = Memory(shape=layout, depth=1 << _NUMBER_BITS, init=[], attrs=LUT_RAM)
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [write.en.eq(logged), write.addr.eq(following), read.addr.eq(following - 1 - number)]
            m.d.comb += [write.data[member].eq(event[member]) for member in members]
            fields |= {CONGESTION_LOG_EVENT[member]: read.data[member] for member in members}
        words = fields_in_words(fields)
        there = (word >= _FIRST_EVENT) & (number < kept)
        return Mux(there, Array(words[at] for at in range(_EVENT_WORDS))[part], 0)
