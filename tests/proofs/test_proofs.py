"""What is claimed of the RTL is true in all cases, it does speak of something, and a broken RTL refutes it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.mutations.mutant import Change
from tests.proofs.claims import PROOFS
from tests.proofs.prover import Proof, Proven

pytestmark = pytest.mark.prove

Record = Callable[[str, str], None]


def case(name: str, proof: Proof, *more: Change) -> Any:
    """Parameters of a test; those of quick proofs are a part of `make test`."""
    return pytest.param(proof, *more, id=name, marks=[pytest.mark.quick] if proof.quick else [])


each_proof = pytest.mark.parametrize("proof", [case(proof.name, proof) for proof in PROOFS])


@each_proof
def test_it_holds(proof: Proof, record_property: Record) -> None:
    found = proof.proven()
    assert isinstance(found, Proven), f"{found.assertion}, in cycle {found.cycle}\n{found.trace}"
    record_property("proof", f"{found.seconds:6.1f} s  {found.how:>17}  {proof.name}")


@each_proof
def test_what_it_speaks_of_happens(proof: Proof) -> None:
    proof.covered()


@pytest.mark.parametrize(
    ("proof", "mutant"), [case(mutant.name, proof, mutant) for proof in PROOFS for mutant in proof.mutants]
)
def test_a_mutant_refutes_it(proof: Proof, mutant: Change, record_property: Record) -> None:
    found = proof.refuted_by(mutant)
    assert found is not None
    record_property("mutant", f"cycle {found.cycle:3}  {mutant.name}: {found.assertion}")
