"""What is claimed of the RTL is true in all cases, it does speak of something, and a broken RTL refutes it.

That quick ones hold is a part of `make test`.
"""

from collections.abc import Callable

import pytest

from tests.mutations.mutant import Change
from tests.proofs.claims import PROOFS
from tests.proofs.prover import Proof, Proven

pytestmark = pytest.mark.prove

Record = Callable[[str, str], None]


@pytest.mark.parametrize(
    "proof", [pytest.param(proof, id=proof.name, marks=[pytest.mark.quick] if proof.quick else []) for proof in PROOFS]
)
def test_it_holds(proof: Proof, record_property: Record) -> None:
    found = proof.proven()
    assert isinstance(found, Proven), f"{found.assertion}, in cycle {found.cycle}\n{found.trace}"
    record_property("proof", f"{found.seconds:6.1f} s  {found.how:>17}  {proof.name}")


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
def test_what_it_speaks_of_happens(proof: Proof) -> None:
    proof.covered()


@pytest.mark.parametrize(
    ("proof", "mutant"),
    [pytest.param(proof, mutant, id=mutant.name) for proof in PROOFS for mutant in proof.mutants],
)
def test_a_mutant_refutes_it(proof: Proof, mutant: Change, record_property: Record) -> None:
    found = proof.refuted_by(mutant)
    assert found is not None
    record_property("mutant", f"refuted in cycle {found.cycle:2}:  {mutant.name}")
