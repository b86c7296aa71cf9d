"""Which mutants are drawn, how they are divided into builds, and which checks each is put through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from cosim.engines.base import MODEL
from cosim.experiments import mutation_aims
from cosim.experiments.check_experiment import CheckOptions

__all__ = ["MutationTask"]

_PORTS: Final = 3
_VLS: Final = 2
_FABRIC_SEED: Final = 9
"""Whose switch cuts through, has a queue for each output, and two readers."""

_BUILD: Final = 250
"""Mutants in one simulation: more take longer to compile than they save."""

_FIRST_ERROR_FREE: Final = (3, 11)
_LOADS: Final = (0.7, 1.0)
"""In turn. With all that links can carry, heads of several VLs and inputs wait for an output."""

_LIKE: Final = {
    "port": "port_1",
    "received": "input_1.store",
    "received_mad": "input_1",
    "posted": "input_2.store",
    "posted_mad": "input_2",
    "own_lid": "input_2",
    "host_send": "input_2",
    "host_receive": "output_1",
}
"""What of a switch the parts of an adapter are like: what asks most of those asks most of these."""


@dataclass(frozen=True)
class MutationTask:
    """What is drawn, and what each mutant is put through.

    Attributes:
        node: which kind is broken, in a fabric of a switch with three ports and an adapter at each.
        count: mutants.
        seed: they are drawn from this.
        checks: that a mutant is run through until one finds it, each with a seed of its own.
        cycles: of a check; of most five times as many, of some 15 or 25 times.
    """

    node: Literal["switch", "adapter"] = "switch"
    count: int = 1_000
    seed: int = 1
    checks: int = mutation_aims.COUNT
    cycles: int = 20_000

    def options(self, number: int) -> CheckOptions:
        """Of check 1, 2, ..., of the same fabric."""
        cycles, load = self.cycles, _LOADS[number // 2 % len(_LOADS)]
        if (aim := mutation_aims.aim_of(number)) is not None:
            cycles, load = cycles * aim.times, load if aim.load is None else aim.load
        return CheckOptions(
            _PORTS,
            _VLS,
            cycles=cycles,
            seed=mutation_aims.seed_of(number),
            errors=number not in _FIRST_ERROR_FREE,
            load=load,
            sim=MODEL,
            fabric_seed=_FABRIC_SEED,
        )

    def checks_of(self, component: str) -> list[int]:
        """Numbers of those that a mutant of this component of the node goes through; all, if it is of none."""
        if component and self.node == "adapter":
            first, dot, rest = component.partition(".")
            component = f"{mutation_aims.ADAPTER}.{_LIKE.get(first, first)}{dot}{rest}"
        aims = {number: mutation_aims.aim_of(number) for number in range(1, self.checks + 1)}
        return [
            number
            for number, aim in aims.items()
            if aim is None or not component or any(part in component for part in aim.of)
        ]

    @property
    def builds(self) -> list[range]:
        """Numbers of the mutants, from 1, that are in one simulation each."""
        return [range(first, min(first + _BUILD, self.count + 1)) for first in range(1, self.count + 1, _BUILD)]
