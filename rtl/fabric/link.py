"""One direction of a link, with its error injector (docs/pipeline.md, section 2)."""

from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.link.row import RowSignature
from rtl.trace import TraceSignature, report
from rtl.widths import INDEX_BITS
from wire.stimulus import Trigger
from wire.symbols import Control
from wire.trace import Kind
from wire.trace_layout import Inject

__all__ = ["LINK_KINDS", "InjectionArguments", "Injector", "LinkDirection"]

LINK_KINDS: Final = (Kind.INJECT,)
"""What slot i of a link direction's trace holds."""


InjectionArguments = data.StructLayout(
    {
        "trigger": 2,
        "at_end": 1,
        "_3": 1,
        "first": 12,
        "last": 12,
        "_28": 4,
        "keep": 32,
        "flip": 32,
        "keep_k": 4,
        "flip_k": 4,
        "_104": 24,
    }
)
"""`wire.stimulus.Injection.args`, args[0] in the lowest bits."""


class Injector(wiring.Component):
    """Changes rows that enter a link (docs/pipeline.md, section 2.1).

    Members:
        row: what the transmitter drives, in cycle c.
        up: the link is up in cycle c.
        arm, arguments: an INJECT operation, given in cycle c and armed from c+1.
        changed_row: what enters the link, in cycle c; valid only if the link is up.
        acts, trigger, index: the first row of an operation is changed in this cycle; what it waited
            for, and the row's index.
    """

    row: In(RowSignature)
    up: In(1)
    arm: In(1)
    arguments: In(InjectionArguments)
    changed_row: Out(RowSignature)
    acts: Out(1)
    trigger: Out(Trigger)
    index: Out(INDEX_BITS)

    def elaborate(self, platform: object) -> Module:
        """Build the injector."""
        m = Module()
        row = self.row
        lane_0 = Cat(row.data[24:32], row.k[3])
        lane_3 = Cat(row.data[0:8], row.k[0])

        # The unmodified rows.
        present = Signal()
        inside = Signal()  # a packet has begun and not ended
        starts = Signal()
        ends = Signal()
        following = Signal.like(self.index)
        row_kind = Signal(Trigger)  # of a row outside packets
        m.d.comb += [
            present.eq(row.valid & self.up),
            row_kind.eq(
                Mux(
                    lane_0 == Control.SDP.symbol,
                    Trigger.DATA,
                    Mux(lane_0 == Control.SLP.symbol, Trigger.LINK, Trigger.IDLE),
                )
            ),
            starts.eq(present & ~inside & (row_kind != Trigger.IDLE)),
            ends.eq(present & inside & ((lane_3 == Control.EGP.symbol) | (lane_3 == Control.EBP.symbol))),
            self.index.eq(Mux(inside, following, 0)),
        ]
        with m.If(present):
            m.d.sync += following.eq(self.index + 1)
        with m.If(starts):
            m.d.sync += inside.eq(1)
        with m.If(ends | ~self.up):
            m.d.sync += inside.eq(0)

        # The operation.
        operation = Signal(InjectionArguments)
        armed = Signal()
        begun = Signal()  # and not over
        acted = Signal()
        begins = Signal()
        stays = Signal()  # inside its packet in the next cycle
        m.d.comb += [
            begins.eq(present & armed & ~inside & (row_kind == operation.trigger)),
            stays.eq((begins & (row_kind != Trigger.IDLE)) | (begun & ~ends & self.up)),
        ]
        m.d.sync += begun.eq(stays)
        with m.If(begins):
            m.d.sync += armed.eq(0)
        with m.If(self.arm & ~stays):
            m.d.sync += [armed.eq(1), operation.eq(self.arguments)]

        # The row.
        in_range = (self.index >= operation.first) & (self.index <= operation.last)
        is_end = ends | (begins & (row_kind == Trigger.IDLE))
        acts_on_row = Signal()
        m.d.comb += acts_on_row.eq(present & (begins | begun) & Mux(operation.at_end, is_end, in_range))
        with m.If(acts_on_row):
            m.d.comb += [
                self.changed_row.data.eq((row.data & operation.keep) ^ operation.flip),
                self.changed_row.k.eq((row.k & operation.keep_k) ^ operation.flip_k),
            ]
            m.d.sync += acted.eq(1)
        with m.Else():
            m.d.comb += [self.changed_row.data.eq(row.data), self.changed_row.k.eq(row.k)]
        with m.If(~stays):
            m.d.sync += acted.eq(0)
        m.d.comb += [
            self.changed_row.valid.eq(present),
            self.acts.eq(acts_on_row & ~acted),
            self.trigger.eq(operation.trigger),
        ]
        return m


class _Flight(wiring.Component):
    """A row's flight: what comes in at c goes out at c + `flight`."""

    def __init__(self, flight: int) -> None:
        self._flight = flight
        super().__init__({"input": In(RowSignature), "output": Out(RowSignature)})

    def elaborate(self, platform: object) -> Module:
        """Build the delay, in a memory from three cycles on."""
        m = Module()
        came = Cat(self.input.data, self.input.k, self.input.valid)
        goes = Cat(self.output.data, self.output.k, self.output.valid)
        if self._flight <= 2:
            for stage in range(self._flight):
                delayed = Signal(len(came), name=f"stage_{stage}")
                m.d.sync += delayed.eq(came)
                came = delayed
            m.d.comb += goes.eq(came)
            return m

        # A word is read when it is about to be overwritten, and read before it is written.
        depth = self._flight - 1
        m.submodules.rows = rows = memory.Memory(shape=len(came), depth=depth, init=[])
        place = Signal(range(depth))
        m.d.sync += place.eq(Mux(place == depth - 1, 0, place + 1))
        write, read = rows.write_port(), rows.read_port()
        m.d.comb += [
            write.addr.eq(place),
            write.data.eq(came),
            write.en.eq(1),
            read.addr.eq(place),
            read.en.eq(1),
            goes.eq(read.data),
        ]
        return m


class LinkDirection(wiring.Component):
    """One direction of a link. What is on it when it goes down is lost.

    Args:
        flight: cycles from the transmitter's wires to the receiver's.

    Members:
        input, output: the transmitter's and the receiver's wires. `entered`: what enters of the one.
        up: the link is up.
        inject_valid, inject_args: an INJECT operation and its arguments, args[0] in the lowest bits.
        trace: slots in the order of `LINK_KINDS`.

    Raises:
        ValueError: a flight time below 1.
    """

    def __init__(self, flight: int) -> None:
        if flight < 1:
            raise ValueError(f"flight {flight}: expected 1 and above")
        self._flight = flight
        super().__init__(
            {
                "input": In(RowSignature),
                "output": Out(RowSignature),
                "entered": Out(RowSignature),
                "up": In(1),
                "inject_valid": In(1),
                "inject_args": In(128),
                "trace": Out(TraceSignature(len(LINK_KINDS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the injector and the delay."""
        m = Module()
        m.submodules.injector = injector = Injector()
        m.submodules.flight = flight = _Flight(self._flight)
        # Cycles that the link has been up before this one, no more than a flight.
        up_for = Signal(range(self._flight + 1))
        with m.If(~self.up):
            m.d.sync += up_for.eq(0)
        with m.Elif(up_for != self._flight):
            m.d.sync += up_for.eq(up_for + 1)
        connect(m, flipped(self.input), injector.row)
        connect(m, injector.changed_row, flight.input, flipped(self.entered))
        connect(m, flight.output, flipped(self.output))
        m.d.comb += [
            injector.up.eq(self.up),
            injector.arm.eq(self.inject_valid),
            injector.arguments.eq(self.inject_args),
            self.output.valid.eq(flight.output.valid & self.up & (up_for == self._flight)),
        ]
        report(m, self.trace, 0, injector.acts, Inject, trigger=injector.trigger, row=injector.index)
        return m
