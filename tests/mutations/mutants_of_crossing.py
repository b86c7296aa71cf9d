"""Mutants of the crossing: who sends next, and the buffer."""

from typing import Final

from tests.mutations.mutant import Mutant, mixed
from wire.trace import Kind

__all__ = ["CROSSING_MUTANTS"]

CROSSING_MUTANTS: Final = (
    # Who sends next.
    Mutant(
        "an output prefers the same input for ever",
        "crossing/matcher.py",
        "m.d.sync += places[slot].eq(place_behind)",
        "m.d.sync += places[slot].eq(places[slot])",
        mixed("crowd", "S"),
        Kind.ROW,
        "S[3]",
    ),
    Mutant(
        "the VLs of an output share one turn among the inputs",
        "crossing/matcher.py",
        "with m.If(self.granted & self.slot_granted[slot]):",
        "with m.If(self.granted):",
        mixed("crowd", "S"),
        Kind.ROW,
        "S[1]",
    ),
    Mutant(
        "an input prefers the same output for ever",
        "crossing/matcher.py",
        "accept.serve.eq(self.matched[number])",
        "accept.serve.eq(0)",
        mixed("two_outputs", "S"),
        Kind.ROW,
        "S[2]",
    ),
    Mutant(
        "an output prefers the same VL for ever",
        "crossing/vl_arbiter.py",
        "last_now.eq(Mux(self.serve, self.served, last))",
        "last_now.eq(last)",
        mixed("crowd", "S"),
        Kind.ROW,
        "S[1]",
    ),
    Mutant(
        "a VL's turn is over with its first packet, whatever its weight",
        "crossing/vl_arbiter.py",
        "remains.eq(_less(weight, self.blocks))",
        "remains.eq(0)",
        mixed("weights", "S"),
        Kind.ROW,
        "S[3]",
    ),
    Mutant(
        "the high list of VL arbitration goes first for ever",
        "crossing/vl_arbiter.py",
        "spent.eq(rest == 0)",
        "spent.eq(0)",
        mixed("weights", "S"),
        Kind.ROW,
        "S[2]",
    ),
    Mutant(
        "a FIFO input prefers the same queue for ever",
        "crossing/fifo.py",
        "turn.serve.eq(turn.requests.any())",
        "turn.serve.eq(0)",
        mixed("two_queues", "S"),
        Kind.ROW,
        "S[2]",
    ),
    Mutant(
        "a queue forgets its last packet when another joins",
        "crossing/queues.py",
        "tail_write.en.eq(self.join)",
        "tail_write.en.eq(self.join & starts)",
        mixed("credits_run_out", "H1"),
        Kind.ROW,
        "H1[1]",
    ),
    # The buffer.
    Mutant(
        "a release forgets a block",
        "crossing/reader.py",
        " release.need.eq(description.need)",
        " release.need.eq(description.need - 1)",
        mixed("credits_run_out", "S"),
        Kind.TX_FCP,
        "S[1]",
    ),
    Mutant(
        "of two packets that end together, one is not released",
        "crossing/store.py",
        "reader.released.eq(releaser[number])",
        "reader.released.eq(1)",
        mixed("two_readers", "S"),
        Kind.TX_FCP,
        "S[1]",
    ),
    Mutant(
        "a packet scrapped gives back its first block only",
        "crossing/reader.py",
        "Mux(scrap | swallowed, memory.end, ",
        "Mux(scrap | swallowed, job.first, ",
        mixed("bad_packets_wait", "S"),
        Kind.ROW,
        "S[2]",
    ),
    # Time limits.
    Mutant(
        "a head expires a tick too late",
        "crossing/head_of_queue.py",
        "at_limit = before >= EXPIRED_TICKS",
        "at_limit = before > EXPIRED_TICKS",
        mixed("limits", "S"),
        Kind.TX_DISCARD,
        "S[2]",
    ),
    Mutant(
        "a VL stalls a discard too late",
        "crossing/head_of_queue.py",
        "(more == self.limits.vl_stall_count)",
        "(discards == self.limits.vl_stall_count)",
        mixed("limits", "S"),
        Kind.TX_DISCARD,
        "S[2]",
    ),
    Mutant(
        "a switch does not see that a packet has outlived its time",
        "crossing/time_limits.py",
        "now.eq(now + is_tick_of(tick, self.exponent))",
        "now.eq(now)",
        mixed("limits", "S"),
        Kind.TX_DISCARD,
        "S[3]",
    ),
    Mutant(
        "the record of a discard tells another reason",
        "crossing/causes.py",
        "return (cause - 1)[:REASON_BITS]",
        "return cause[:REASON_BITS]",
        mixed("limits", "S"),
        Kind.TX_DISCARD,
        "S[2]",
    ),
)
