"""The mutants: every mechanism of the design, broken once, with the stimulus that shows it."""

from typing import Final

from tests.mutations.mutants_of_congestion import CONGESTION_MUTANTS
from tests.mutations.mutants_of_crossing import CROSSING_MUTANTS
from tests.mutations.mutants_of_links import LINK_MUTANTS
from tests.mutations.mutants_of_nodes import NODE_MUTANTS

__all__ = ["MUTANTS"]

MUTANTS: Final = (*LINK_MUTANTS, *CROSSING_MUTANTS, *CONGESTION_MUTANTS, *NODE_MUTANTS)
