"""The Subnet Management Interface: where an SMP goes (docs/management.md, section 3; IBTA vol 1, 14.2.2)."""

from enum import IntEnum
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.management.mad_head import MadHead
from wire.codes import LID_PERMISSIVE
from wire.smp import MAX_HOPS

__all__ = ["Goes", "Hop", "Smi", "Way"]


class Goes(IntEnum):
    """Where an SMP goes."""

    NOWHERE = 0
    AGENT = 1
    HOST = 2
    LINK = 3
    """Out 1, in an adapter, as it came."""
    PATH = 4
    """Out by the entry of the new HopPointer of InitialPath or, when returning, ReturnPath."""
    ROUTE = 5
    """By the LFT, to the packet's new DLID; in an adapter Out 1."""
    RETURN = 6
    """Out by the port that it came in by."""


class Hop(IntEnum):
    """What becomes of the HopPointer."""

    KEEP = 0
    NEXT = 1
    BACK = 2
    COUNT = 3
    """It becomes the HopCount."""


Way = data.StructLayout({"goes": Goes, "hop": Hop})
"""Where an SMP or its answer goes, and with which HopPointer."""


class Smi(wiring.Component):
    """The table of section 3, and where section 4 sends an answer.

    Args:
        is_switch: in a switch, else in an adapter.

    Members:
        head: the SMP.
        from_host: it came from the adapter's host.
        for_own_lid: its DLID is one of the adapter's own.
        way, answer_way: of the SMP and of its answer, two cycles later.
        record: the ReturnPath's entry of the old HopPointer becomes the port that it came in by; with `way`.
    """

    def __init__(self, is_switch: bool) -> None:
        self._is_switch = is_switch
        super().__init__(
            {
                "head": In(MadHead),
                "from_host": In(1),
                "for_own_lid": In(1),
                "way": Out(Way),
                "answer_way": Out(Way),
                "record": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Comparisons, and in the next cycle the rows, the first that applies."""
        m = Module()
        head = self.head

        def later(value: Value, name: str) -> Signal:
            seen = Signal(name=name)
            m.d.sync += seen.eq(value)
            return seen

        pointer, count = head.hop_pointer, head.hop_count
        too_many = later(~below(count, MAX_HOPS + 1), "too_many")
        no_hops = later(count == 0, "no_hops")
        at_0 = later(pointer == 0, "at_0")
        at_1 = later(pointer == 1, "at_1")
        before_last = later(pointer < count, "before_last")
        at_last = later(pointer == count, "at_last")
        beyond_last = later(pointer == count + 1, "beyond_last")
        lid_routed = later(head.dlid != LID_PERMISSIVE, "lid_routed")
        lid_routed_before = later(head.dr_slid != LID_PERMISSIVE, "lid_routed_before")
        lid_routed_behind = later(head.dr_dlid != LID_PERMISSIVE, "lid_routed_behind")

        out, back = ~head.d, head.d
        host = Value.cast(self.from_host)
        link = ~host
        rows: list[tuple[Any, Goes, Hop, bool]] = [
            (too_many, Goes.NOWHERE, Hop.KEEP, False),
            (out & at_0 & no_hops, Goes.AGENT, Hop.NEXT, False),
        ]
        if self._is_switch:
            rows += [
                (out & at_0 & lid_routed, Goes.PATH, Hop.NEXT, False),
                (out & ~at_0 & before_last, Goes.PATH, Hop.NEXT, True),
                (out & at_last & ~lid_routed_behind, Goes.AGENT, Hop.NEXT, True),
                (out & at_last, Goes.ROUTE, Hop.NEXT, True),
                (out & beyond_last, Goes.AGENT, Hop.KEEP, False),
                (back & ~no_hops & beyond_last & lid_routed, Goes.PATH, Hop.BACK, False),
                (back & ~at_0 & ~at_1 & (before_last | at_last), Goes.PATH, Hop.BACK, False),
                (back & at_1 & lid_routed_before, Goes.ROUTE, Hop.BACK, False),
            ]
        else:
            rows += [
                (out & host & at_0 & lid_routed_before, Goes.LINK, Hop.KEEP, False),
                (out & host & at_0, Goes.PATH, Hop.NEXT, False),
                (out & link & at_last & ~lid_routed_behind, Goes.AGENT, Hop.NEXT, True),
                (out & link & beyond_last, Goes.AGENT, Hop.KEEP, False),
                (back & host & ~no_hops & beyond_last & lid_routed_behind, Goes.LINK, Hop.KEEP, False),
                (back & host & ~no_hops & beyond_last, Goes.PATH, Hop.BACK, False),
                (back & link & at_1 & ~lid_routed_before, Goes.HOST, Hop.BACK, False),
                (back & link & at_0, Goes.HOST, Hop.KEEP, False),
            ]

        way, record = Signal(Way), Signal()  # NOWHERE, if no row applies
        for number, (applies, goes, hop, recorded) in enumerate(rows):
            with m.If(applies) if number == 0 else m.Elif(applies):
                m.d.comb += [way.goes.eq(goes), way.hop.eq(hop), record.eq(recorded)]
        answer_way = Signal(Way)
        with m.If(no_hops):
            m.d.comb += [answer_way.goes.eq(Mux(host, Goes.HOST, Goes.RETURN)), answer_way.hop.eq(Hop.COUNT)]
        with m.Elif(lid_routed_behind):
            m.d.comb += [answer_way.goes.eq(Goes.ROUTE), answer_way.hop.eq(Hop.KEEP)]
        with m.Else():
            m.d.comb += [answer_way.goes.eq(Goes.PATH), answer_way.hop.eq(Hop.COUNT)]

        m.d.sync += [self.way.eq(way), self.record.eq(record), self.answer_way.eq(answer_way)]
        with m.If(~head.directed):
            m.d.sync += [
                self.way.goes.eq(Mux(host & ~self.for_own_lid, Goes.LINK, Goes.AGENT)),
                self.way.hop.eq(Hop.KEEP),
                self.record.eq(0),
                self.answer_way.goes.eq(Mux(host, Goes.HOST, Goes.ROUTE)),
                self.answer_way.hop.eq(Hop.KEEP),
            ]
        return m
