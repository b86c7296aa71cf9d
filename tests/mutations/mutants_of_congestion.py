"""Mutants of congestion control."""

from typing import Final

from tests.mutations.mutant import Mutant, mixed
from wire.trace import Kind

__all__ = ["CONGESTION_MUTANTS"]

CONGESTION_MUTANTS: Final = (
    Mutant(
        "what leaves for good is still counted",
        "crossing/congestion.py",
        "begins = (send.valid & send.first) | self.scrapped",
        "begins = self.charged",
        ("check", "--ports", "2", "--vls", "1", "--cycles", "1800", "--seed", "41"),
        Kind.ROW,
    ),
    Mutant(
        "a packet counts among those that wait behind it",
        "crossing/congestion.py",
        "> limit + need",
        "> limit",
        mixed("congestion", "S"),
        Kind.TX_DATA,
    ),
    Mutant(
        "multicast packets leave the count without having come",
        "crossing/congestion.py",
        "begins & ~multicast, need",
        "begins, need",
        mixed("congestion", "S"),
        Kind.TX_DATA,
    ),
    Mutant(
        "a port marks what has waited for credits",
        "crossing/congestion.py",
        "(self.victim | ~waited)",
        "1",
        mixed("congestion", "S"),
        Kind.TX_DATA,
    ),
    Mutant(
        "between two marks there is one packet less",
        "crossing/congestion.py",
        "self.marks.eq(eligible & (left.data == 0))",
        "self.marks.eq(eligible & (left.data <= 1))",
        mixed("congestion", "S"),
        Kind.TX_DATA,
    ),
    Mutant(
        "of packets that join together one is counted",
        "crossing/arrivals.py",
        "how_many(Mux(mask[o] & slot[vl], need, 0) for mask, slot, need in of_inputs)",
        "any_of(Mux(mask[o] & slot[vl], need, 0) for mask, slot, need in of_inputs)",
        mixed("congestion", "S"),
        Kind.TX_DATA,
    ),
    Mutant(
        "a packet with a GRH has its FECN where others have it",
        "link/marking.py",
        "Mux(has_grh, _ROWS[LNH.IBA_GLOBAL], _ROWS[LNH.IBA_LOCAL])",
        "_ROWS[LNH.IBA_LOCAL]",
        mixed("congestion", "S"),
        Kind.ROW,
    ),
    Mutant(
        "a port's own settings never count",
        "registers/port_registers.py",
        "self.marking.valid.eq(element.valid)",
        "self.marking.valid.eq(0)",
        mixed("congestion", "S"),
        Kind.TX_DATA,
    ),
    Mutant(
        "the log counts on when it is read",
        "switch/congestion_log.py",
        "counted = Mux(reads & (word == _COUNTER.word), 0, counter)",
        "counted = counter",
        mixed("congestion", "S"),
        Kind.BUS_READ,
        "S[0]",
    ),
    Mutant(
        "of two ports that mark together the higher is logged",
        "switch/congestion_log.py",
        "first.eq(select(lowest(m, marks), self.marked))",
        "first.eq(select(marks[::-1] & ~marks[::-1], self.marked))",
        mixed("congestion", "S"),
        Kind.BUS_READ,
        "S[0]",
    ),
    Mutant(
        "a wrong CC_Key sees the right one",
        "management/cc_key.py",
        "self.hidden.eq(~good)",
        "self.hidden.eq(0)",
        mixed("congestion_manager", "S"),
        Kind.ROW,
        "S[1]",
    ),
    Mutant(
        "a CC request with a wrong key is a violation only if it is a Get",
        "management/cc_key.py",
        "self.answered.eq(good | (self.get & ~protect))",
        "self.answered.eq(good | ~protect)",
        mixed("congestion_manager", "S"),
        Kind.SEND,
        "S[0]",
    ),
    Mutant(
        "what is around congestion control's attribute stays in an answer",
        "management/windows.py",
        "(before < window.first) | (before > window.last)",
        "before > window.last",
        mixed("congestion_manager", "S"),
        Kind.ROW,
        "S[1]",
    ),
    Mutant(
        "Control_Map does not say what is set",
        "switch/congestion_registers.py",
        "return (control & component).any()",
        "return Const(1)",
        mixed("congestion_manager", "S"),
        Kind.ROW,
        "S[1]",
    ),
)
