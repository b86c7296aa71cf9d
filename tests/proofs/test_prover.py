"""A proof says yes only to what is true."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from tests.mutations.mutant import ROOT
from tests.proofs.claims import PROOFS
from tests.proofs.prover import Failed, Opened, Proof, Proven, Refuted


class Count(wiring.Component):
    """A count of steps: what is wrong with it is a parameter."""

    def __init__(self, most: int, assumes: bool = False, covers: int = 1) -> None:
        self._most, self._assumes, self._covers = most, assumes, covers
        super().__init__({"step": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(4)
        with m.If(self.step & (count < 5)):
            m.d.sync += count.eq(count + 1)
        m.d.comb += [Assert(count <= self._most), Cover(count == self._covers)]
        if self._assumes:
            m.d.comb += [Assume(self.step), Assume(count == 0)]
        return m


class Kept(wiring.Component):
    """What is stored in a memory, whose ports do not say: no word is ever `never`."""

    def __init__(self, never: int) -> None:
        self._never = never
        super().__init__({"value": In(2), "address": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        folder = Module()
        folder.submodules.memory = memory = Memory(shape=2, depth=2, init=[])
        write = memory.write_port()
        folder.d.comb += [write.en.eq(self.value != 3), write.addr.eq(self.address), write.data.eq(self.value)]
        opened = Opened(folder)
        m.submodules.folder = opened.fragment
        m.d.comb += [Assert(word != self._never) for word in opened.words("memory")]
        m.d.comb += Cover(Cat(word == 2 for word in opened.words("memory")).all())
        return m


def claim(cycles: int = 8, **parameters: Any) -> Proof:
    return Proof("a count stops", Count, cycles=cycles, mutants=(), parameters=parameters)


def test_what_is_true_is_proven_and_happens() -> None:
    proof = claim(most=5)
    found = proof.proven()
    assert isinstance(found, Proven)
    assert found.how == "induction, k = 1"
    proof.covered()


def test_what_is_false_is_refuted_by_a_trace() -> None:
    found = claim(most=3).proven()
    assert isinstance(found, Refuted)
    assert found.cycle == 4
    assert found.assertion.endswith("m.d.comb += [Assert(count <= self._most), Cover(count == self._covers)]")
    assert found.trace.splitlines()[0].split() == ["count", "0", "1", "2", "3", "4"]


def test_a_claim_may_be_of_the_words_of_a_memory() -> None:
    kept = Proof("no word is 3", Kept, cycles=4, mutants=(), parameters={"never": 3})
    found = kept.proven()
    assert isinstance(found, Proven)
    assert found.how == "induction, k = 1"
    kept.covered()
    found = replace(kept, parameters={"never": 2}).proven()
    assert isinstance(found, Refuted)
    assert found.cycle == 1


@pytest.mark.prove
def test_what_is_true_for_some_cycles_is_not_proven_for_all() -> None:
    with pytest.raises(Failed, match="induction fails with k = 1"):
        claim(most=4, cycles=4).proven()


def test_assumptions_that_contradict_each_other_prove_nothing() -> None:
    with pytest.raises(Failed, match="PREUNSAT"):
        claim(most=5, assumes=True).proven()


def test_what_never_happens_is_told() -> None:
    with pytest.raises(Failed, match="Unreached cover statement"):
        claim(most=5, covers=6).covered()


def test_a_broken_rtl_refutes_a_claim() -> None:
    proof = PROOFS[0]
    assert proof.refuted_by(proof.mutants[0])


@pytest.mark.prove
def test_a_change_that_breaks_nothing_does_not() -> None:
    proof = PROOFS[0]
    same = replace(proof.mutants[0], new=proof.mutants[0].old)
    assert proof.refuted_by(same) is None


@pytest.mark.prove
def test_an_rtl_that_cannot_be_built_refutes_nothing() -> None:
    proof = PROOFS[0]
    with pytest.raises(Failed, match="name 'nonsense' is not defined"):
        proof.refuted_by(replace(proof.mutants[0], new="nonsense"))


def test_no_mutant_of_a_proof_has_rotted() -> None:
    for mutant in (mutant for proof in PROOFS for mutant in proof.mutants):
        assert (ROOT / "rtl" / mutant.file).read_text().count(mutant.old) == 1, mutant.name


def test_every_proof_has_a_mutant() -> None:
    assert all(proof.mutants for proof in PROOFS)
