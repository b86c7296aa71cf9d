"""No two readers are busy with one output (docs/pipeline.md, sections 7 and 8.1)."""

from typing import Any, Final

from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from rtl.crossing.matcher import Matcher
from rtl.crossing.others import of_others, turned
from rtl.crossing.reader import job_layout
from rtl.crossing.store import PacketStore
from rtl.widths import LENGTH_BITS
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from tests.proofs.rotation import one_of

__all__ = ["ONE_READER_PROOFS"]

_COUNT: Final = 3
"""Of inputs, and of outputs: each has two others."""
_READERS: Final = 2
_LEAST_WORDS: Final = 5


class OneReader(wiring.Component):
    """Match, stores and readers: an output is available if no reader holds it, and then no two have a row for it.

    What is in the buffers, and which heads ask for what, may be anything; a packet's PktLen is 5 at least.

    Members:
        requests, urgent, changed: see `Matcher`. wide: of the outputs.
        joins, words: a packet of this PktLen joins a queue of every input, for what is known of its first block.
    """

    def __init__(self) -> None:
        self._matcher = Matcher(_COUNT, 0, 1)
        members = self._matcher.signature.members
        own = {"wide": In(_COUNT), "joins": In(1), "words": In(LENGTH_BITS)}
        super().__init__({**own, **{name: members[name] for name in ("requests", "urgent", "changed")}})

    def elaborate(self, platform: object) -> Module:
        """The crossing without its queues and its ports."""
        m = Module()
        m.submodules.matcher = matcher = self._matcher
        phase = Signal(2)
        m.d.sync += phase.eq(phase + 1)
        stores = [PacketStore((1, 1), _COUNT - 1, _COUNT - 1, 4096, readers=_READERS) for _ in range(_COUNT)]
        opened = [Opened(store) for store in stores]
        crossings: list[Any] = [store.crossing for store in stores]
        holds = turned([crossing.holds for crossing in crossings], _COUNT)
        held = Cat(mask.any() for mask in holds)
        m.d.comb += [
            matcher.requests.eq(self.requests),
            matcher.urgent.eq(self.urgent),
            matcher.changed.eq(self.changed),
            matcher.outputs_available.eq(~held & ~matcher.offered & ~matcher.flow_control),
        ]
        m.d.comb += Assume(~self.joins | (self.words >= _LEAST_WORDS))
        offers = turned(matcher.offers, _COUNT)
        # Of each input's readers the output that each holds, or of which it reads the last row.
        reading: list[list[Value]] = [[] for _ in crossings]
        for number, (of, crossing) in enumerate(zip(opened, crossings, strict=True)):
            m.submodules[f"store_{number}"] = of.fragment
            m.d.comb += [
                stores[number].join.eq(self.joins),
                stores[number].packet.words.eq(self.words),
                crossing.phase.eq(phase),
                crossing.wide.eq(of_others(number, self.wide)),
                crossing.offers.eq(matcher.offers[number]),
                matcher.accepted[number].eq(crossing.accepted),
                matcher.some_free[number].eq(crossing.some_free),
                matcher.several_free[number].eq(crossing.several_free),
            ]
            for reader in range(_READERS):

                def inside(name: str, of: Opened = of, reader: int = reader) -> Any:
                    return of.inside(f"reader_{reader}.{name}")

                active, served, free, ready = (inside(name) for name in ("active", "served", "free", "ready"))
                job = data.View(job_layout(stores[number].block_bits), inside("job"))
                kept = data.View(stores[number].description, inside("description_kept"))
                over = inside("dropped") | inside("early")
                is_last = inside("final_due") & (job.wide | (phase == 1))
                mine = active.replicate(_COUNT - 1) & served
                reading[number].append(mine)
                m.d.comb += [
                    Assume((kept.words == 0) | (kept.words >= _LEAST_WORDS)),
                    *invariants(
                        ~active | (one_of(served) & served.any()),
                        ~active | free | ((served & ~crossing.holds) == 0),
                        ~(active & free) | over | is_last,
                        ~(active & free) | ((served & crossing.holds) == 0),
                        ~ready | (free & ~active),
                        (mine & of_others(number, matcher.offered)) == 0,
                    ),
                ]
        rows = [[crossing.to_output[reader] for crossing in crossings] for reader in range(_READERS)]
        due = [turned(of_inputs, _COUNT) for of_inputs in rows]
        taken = [turned(of_inputs, _COUNT) for of_inputs in zip(*reading, strict=True)]
        for o in range(_COUNT):
            to_here = Cat(of_reader[o] for of_reader in due)
            mine = Cat(of_reader[o] for of_reader in taken)
            m.d.comb += [
                Assert(one_of(to_here)),
                Cover((to_here == 1) & matcher.offered[(o + 1) % _COUNT]),
                *invariants(
                    one_of(holds[o]),
                    one_of(mine),
                    ~(matcher.offered[o] & held[o]),
                    one_of(offers[o]),
                    matcher.offered[o] == offers[o].any(),
                    ~held[o] | mine.any(),
                ),
            ]
        return m


ONE_READER_PROOFS: Final = (
    Proof(
        "no two readers have a row for the same output",
        OneReader,
        cycles=12,
        induction=3,
        mutants=(
            Change(
                "an output is held a cycle too short",
                "crossing/reader.py",
                "last_follows.eq(turn_follows & Mux(goes_on, following == words, final_due))",
                "last_follows.eq(turn_follows & Mux(goes_on, following + 1 == words, final_due))",
            ),
        ),
    ),
)
