"""The M_Key keeps out whoever does not know it (docs/management.md, section 4; IBTA vol 1, 14.2.4)."""

from typing import Final

from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.management.decision import Decision
from rtl.management.mad_head import M_KEY_BITS, MadHead
from rtl.management.place import WORD_BITS
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from wire.mad import MadMethod
from wire.parameters import SwitchParameters

__all__ = ["M_KEY_PROOFS"]


class Gate(wiring.Component):
    """With a wrong M_Key no Set and no TrapRepress does anything, nor a Get with M_KeyProtectBits of 2 or more.

    That words of a Set are written only while its task is one that is answered is assumed.

    Members:
        head: an SMP, here two cycles before its step 0. m_key: the one that it brings.
        trap: a trap instead. `first`: this is step 0.
        cc_good, cc_answered: what is said of a CC request's key, which is another one.
        word: of a Set.
        lease_second: register LEASE_SECOND, cycles.
    """

    def __init__(self) -> None:
        self._decision = Decision(SwitchParameters(ports=2))
        members = self._decision.signature.members
        super().__init__(
            {
                "m_key": In(M_KEY_BITS),
                "first": In(1),
                **{name: members[name] for name in ("head", "trap", "cc_good", "cc_answered", "word", "lease_second")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The key once more, as its words were written, and what it lets pass."""
        m = Module()
        decision = self._decision
        opened = Opened(decision)
        m.submodules.decision = opened.fragment
        key, task = decision.key, decision.task
        head = Value.cast(self.head)
        seen = [Signal.like(head, name=f"head_{ago}") for ago in (1, 2)]
        m.d.sync += [seen[0].eq(head), seen[1].eq(seen[0])]
        m.d.comb += [
            *(decision.head[name].eq(self.head[name]) for name, _ in MadHead if name != "key_matches"),
            decision.head.key_matches.eq(self.m_key == key.m_key),
            decision.trap.eq(self.trap),
            decision.steps.first.eq(self.first),
            decision.cc_good.eq(self.cc_good),
            decision.cc_answered.eq(self.cc_answered),
            decision.lease_second.eq(self.lease_second),
            Value.cast(decision.word.number).eq(self.word.number),
            decision.word.request.eq(self.word.request),
            decision.word.of_own_port_info.eq(self.word.of_own_port_info),
            # The head has been here for two cycles, and what a Set writes comes after its step 0.
            Assume(~self.first | ((head == seen[0]) & (head == seen[1]))),
            Assume(~self.word.of_own_port_info | (~self.first & task.answers & task.is_set)),
        ]

        # The key, as Sets have written its halves.
        stored = Signal(M_KEY_BITS)
        for half in range(2):
            with m.If(self.word.of_own_port_info & (self.word.number == half)):
                m.d.sync += stored.word_select(1 - half, WORD_BITS).eq(self.word.request)
        may = (stored == 0) | (self.m_key == stored)

        is_smp = ~self.trap & ~self.head.is_gmp_request
        gets = is_smp & (self.head.method == MadMethod.GET)
        changes = Signal()
        m.d.comb += changes.eq(
            is_smp & ((self.head.method == MadMethod.SET) | (self.head.method == MadMethod.TRAP_REPRESS))
        )
        was_first = Signal()
        was_smp = Signal()
        refused = Signal()
        shown = Signal()
        m.d.sync += [
            was_first.eq(self.first),
            was_smp.eq(is_smp),
            refused.eq(~may & (changes | (gets & (key.protect >= 2)))),
            shown.eq(may),
        ]
        m.d.comb += [
            Assert(~(was_first & refused) | ~task.answers),
            Assert(~decision.represses | Mux(is_smp, may, self.cc_good)),
            Assert(~decision.violation | ~may),
            Assert(~(self.first & changes & ~may & ~self.head.directed) | decision.violation),
            Assert(~(was_first & was_smp & task.violated) | (key.violations != 0)),
            Cover(was_first & refused & (stored != 0) & task.violated),
            Cover(was_first & task.answers & shown & task.is_set & (stored != 0)),
            *invariants(
                key.m_key == stored,
                opened.inside("key_check.open_halves") == Cat(stored[WORD_BITS:] == 0, stored[:WORD_BITS] == 0),
            ),
        ]
        return m


M_KEY_PROOFS: Final = (
    Proof(
        "with a wrong M_Key no Set and no TrapRepress does anything, and each is a violation",
        Gate,
        cycles=9,
        induction=3,
        reaches=12,
        mutants=(
            Change(
                "a key of which a half is 0 is none",
                "management/m_key.py",
                "self.good.eq(open_halves.all() | self.matches)",
                "self.good.eq(open_halves.any() | self.matches)",
            ),
            Change(
                "a Set is let pass where a Get would be",
                "management/m_key.py",
                "self.answered.eq(self.good | (self.get & ~key.protect[1]))",
                "self.answered.eq(self.good | ~key.protect[1])",
            ),
        ),
    ),
)
