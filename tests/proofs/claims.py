"""All that is proven."""

from typing import Final

from tests.proofs.crossing.matching import MATCHING_PROOFS
from tests.proofs.rotation import ROTATION_PROOFS

__all__ = ["PROOFS"]

PROOFS: Final = (*ROTATION_PROOFS, *MATCHING_PROOFS)
