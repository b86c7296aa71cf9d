"""Which mutants are drawn, how they are divided into builds, and which checks each is put through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from cosim.engines.base import MODEL
from cosim.experiments.check_experiment import CheckOptions

__all__ = ["MutationTask"]

_PORTS: Final = 3
_VLS: Final = 2
_FABRIC_SEED: Final = 9
"""Whose switch cuts through, has a queue for each output, and two readers."""

_BUILD: Final = 250
"""Mutants in one simulation: more take longer to compile than they save."""

_PERIOD: Final = 8
"""Of so many checks one is without errors, ..."""

_ERROR_FREE: Final = 4
_TIMES: Final = 8
"""... and the last so many times as long: counts of blocks reach their upper bits, agents take hundreds of MADs."""

_LOADS: Final = (0.7, 1.0)
"""In turn. With all that links can carry, heads of several VLs and inputs wait for an output."""

_SEEDS: Final = 4
"""What its number is multiplied by, for a seed with many MADs."""


@dataclass(frozen=True)
class MutationTask:
    """What is drawn, and what each mutant is put through.

    Attributes:
        node: which kind is broken, in a fabric of a switch with three ports and an adapter at each.
        count: mutants.
        seed: they are drawn from this.
        checks: that a mutant is run through until one finds it, each with a seed of its own.
        cycles: of a check; every eighth is eight times as long.
    """

    node: Literal["switch", "adapter"] = "switch"
    count: int = 1_000
    seed: int = 1
    checks: int = 16
    cycles: int = 20_000

    def options(self, number: int) -> CheckOptions:
        """Of check 1, 2, ..., of the same fabric."""
        is_long, errors = number % _PERIOD == 0, number % _PERIOD != _ERROR_FREE
        cycles, seed = (self.cycles * _TIMES, number * _SEEDS) if is_long else (self.cycles, number)
        load = _LOADS[(number // _PERIOD + number) % len(_LOADS)]
        return CheckOptions(
            _PORTS, _VLS, cycles=cycles, seed=seed, errors=errors, load=load, sim=MODEL, fabric_seed=_FABRIC_SEED
        )

    @property
    def builds(self) -> list[range]:
        """Numbers of the mutants, from 1, that are in one simulation each."""
        return [range(first, min(first + _BUILD, self.count + 1)) for first in range(1, self.count + 1, _BUILD)]
