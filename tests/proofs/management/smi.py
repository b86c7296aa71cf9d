"""Where SMPs may go (docs/management.md, section 3; IBTA vol 1, 14.2.2)."""

from typing import Final

from amaranth.hdl import Assert, Cat, Cover, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.management.mad_head import MadHead
from rtl.management.smi import Goes, Hop, Smi
from tests.mutations.mutant import Change
from tests.proofs.prover import Proof
from wire.codes import LID_PERMISSIVE
from wire.smp import MAX_HOPS

__all__ = ["SMI_PROOFS"]


class Path(wiring.Component):
    """A directed-route SMP leaves by what its path names: by an entry from the first to the last of its hops, or, where
    its directed part has ended or has not begun, by a LID. Only one on its way out is recorded in the ReturnPath.

    Members:
        head, from_host, for_own_lid: see `Smi`.
    """

    def __init__(self, is_switch: bool) -> None:
        self._is_switch = is_switch
        super().__init__({"head": In(MadHead), "from_host": In(1), "for_own_lid": In(1)})

    def elaborate(self, platform: object) -> Module:
        """The claim, of a head that has been there for two cycles."""
        m = Module()
        m.submodules.smi = smi = Smi(self._is_switch)
        host = self.from_host & (not self._is_switch)
        m.d.comb += [smi.head.eq(self.head), smi.from_host.eq(host), smi.for_own_lid.eq(self.for_own_lid)]
        head, head_before = Signal(MadHead), Signal(MadHead)
        from_host = Signal()
        m.d.sync += [head.eq(self.head), head_before.eq(head), from_host.eq(host)]
        seen = Signal(2)
        m.d.sync += seen.eq(Cat(1, seen[0]))
        directed = Signal()
        m.d.comb += directed.eq(seen[1] & head.directed & (Value.cast(head) == Value.cast(head_before)))

        pointer, count = head.hop_pointer, head.hop_count
        way, answer = smi.way, smi.answer_way
        entry = Signal(9)  # the HopPointer with which it goes on
        m.d.comb += entry.eq(pointer)
        with m.Switch(way.hop):
            with m.Case(Hop.NEXT):
                m.d.comb += entry.eq(pointer + 1)
            with m.Case(Hop.BACK):
                m.d.comb += entry.eq(pointer - 1)
        out, back = ~head.d, head.d

        def goes(*places: Goes) -> Value:
            return directed & Cat(way.goes == place for place in places).any()

        def implies(if_so: Value, then: Value) -> Assert:
            return Assert(~if_so | then, src_loc_at=1)

        if self._is_switch:
            m.d.comb += implies(directed, ~goes(Goes.HOST, Goes.LINK, Goes.RETURN))
        m.d.comb += [
            implies(goes(Goes.PATH), (entry >= 1) & (entry <= count) & (count <= MAX_HOPS)),
            implies(goes(Goes.PATH) & out, (way.hop == Hop.NEXT)),
            implies(goes(Goes.PATH) & back, (way.hop == Hop.BACK)),
            # By LID: behind the end of its directed part, or back where that began, and only if there is more.
            implies(goes(Goes.ROUTE) & out, (pointer == count) & (head.dr_dlid != LID_PERMISSIVE)),
            implies(goes(Goes.ROUTE) & back, (pointer == 1) & (head.dr_slid != LID_PERMISSIVE)),
            implies(goes(Goes.LINK), from_host),
            implies(goes(Goes.HOST), ~from_host & back),
            implies(goes(Goes.AGENT), out & ((pointer == count) | (pointer == count + 1))),
            implies(directed & smi.record, out & ~from_host & (pointer >= 1) & (pointer <= count)),
            # Its answer goes by the last entry of the ReturnPath, by LID, or where it came from if there were no hops.
            implies(directed & (answer.goes == Goes.PATH), (count != 0) & (answer.hop == Hop.COUNT)),
            implies(directed & (answer.goes == Goes.ROUTE), head.dr_dlid != LID_PERMISSIVE),
            implies(directed & (count == 0), answer.goes == (Goes.RETURN if self._is_switch else answer.goes)),
            Cover(goes(Goes.PATH) & back),
            Cover(goes(Goes.PATH) & out & (entry == (MAX_HOPS if self._is_switch else 1))),
            Cover(goes(Goes.AGENT) & smi.record),
        ]
        return m


SMI_PROOFS: Final = (
    Proof(
        "a directed-route SMP leaves a switch only by one of its path's hops, or by LID where its directed part ends",
        Path,
        parameters={"is_switch": True},
        cycles=4,
        induction=2,
        quick=True,
        mutants=(
            Change(
                "an SMP goes on behind the last of its hops",
                "management/smi.py",
                "before_last = later(pointer < count,",
                "before_last = later(pointer <= count,",
            ),
        ),
    ),
    Proof(
        "a directed-route SMP leaves an adapter only so, and one from the link never by the link",
        Path,
        parameters={"is_switch": False},
        cycles=4,
        induction=2,
        quick=True,
        mutants=(
            Change(
                "an SMP that has come back from the link goes out by it",
                "management/smi.py",
                "(back & host & ~no_hops & beyond_last & lid_routed_behind, Goes.LINK,",
                "(back & ~no_hops & beyond_last & lid_routed_behind, Goes.LINK,",
            ),
        ),
    ),
)
