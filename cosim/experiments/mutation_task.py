"""Which mutants are drawn, how they are divided into builds, and which checks each is put through."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

from cosim.engines.base import MODEL
from cosim.experiments.check_experiment import CheckOptions
from cosim.stimulus.injection import is_calm
from cosim.stimulus.random_addresses import has_own_addresses
from cosim.stimulus.random_congestion import has_congestion_control
from cosim.stimulus.random_groups import has_groups
from cosim.stimulus.random_mads import has_mads, has_many_mads, mostly_about
from cosim.stimulus.random_packets import has_mostly_multicast, has_shortest_packets
from cosim.stimulus.random_settings import (
    has_low_lists_alone,
    has_moving_p_keys,
    has_partitions,
    has_settled_arbitration,
    has_settled_limits,
)
from cosim.stimulus.random_traps import has_traps
from wire.sma import SmaAttribute

__all__ = ["MutationTask"]

_PORTS: Final = 3
_VLS: Final = 2
_FABRIC_SEED: Final = 9
"""Whose switch cuts through, has a queue for each output, and two readers."""

_BUILD: Final = 250
"""Mutants in one simulation: more take longer to compile than they save."""

_PERIOD: Final = 22
"""Of so many checks two are without errors, ..."""

_ERROR_FREE: Final = (3, 11)
_FOR_TABLES: Final = (2, 10)
_FOR_TRAPS: Final = (19,)
_FOR_AGENTS: Final = (4, 17, 20)
_FOR_SETS: Final = (12, 18)
_FOR_COUNTERS: Final = (5, 13)
_FOR_COPIES: Final = (6, 14)
_FOR_LINKS: Final = (7, 15)
_FOR_DATA: Final = (8,)
_FOR_MARKING: Final = (16, 21)
_FOR_LIMITS: Final = (9, 0)
_TIMES: Final = 5
"""... and nineteen ask most of one part, so many times as long: P_Keys are in each place of a table, agents take
hundreds of MADs, in one mostly what sets a port, counters have more to count than elsewhere, copies to groups fill
the links, what is sent in place of idle data comes whole, and where data fills the links counts of blocks reach their
upper bits, VLs stall until that is over, high lists reach their limits and packets are marked."""

_OF_AGENTS_ALONE: Final = (17, 18, 20)
_SLOW: Final[dict[int, tuple[str, ...]]] = {
    **dict.fromkeys(_OF_AGENTS_ALONE, ("agent",)),
    19: ("agent", "inspection"),
    21: ("vl_arbiter", "flow_control", "congestion"),
    0: ("head_of_queue",),
}
_TIMES_SLOW: Final = 25
"""Six of these are so many times as long, for what has little to do in the others, and for that alone: agents take
hundreds of cycles for a MAD, entries of VL arbitration last for hundreds of packets, and a stall for thousands of
cycles. By its number, what the names of components have in them that go through it."""

_IDLE_LOAD: Final = 0.05
"""What is put in place of idle data is not damaged by packets then."""

_LOADS: Final = (0.7, 1.0)
"""In turn. With all that links can carry, heads of several VLs and inputs wait for an output."""

_SEEDS: Final = 1_009
"""What the number of such a check is multiplied by, for the first seed that it may have."""


def _is_for_tables(seed: int) -> bool:
    """Nothing keeps packets from being judged by P_Key tables, copies too, and traps tell of them."""
    judged = has_moving_p_keys(seed) and has_groups(seed) and has_traps(seed)
    return is_calm(seed) and judged and not has_many_mads(seed)


def _is_for_traps(seed: int) -> bool:
    """There is much to tell of copies."""
    return _is_for_tables(seed) and has_mostly_multicast(seed)


def _is_for_agents(seed: int) -> bool:
    """Agents are asked for all that there is, and tell all."""
    return has_many_mads(seed) and has_congestion_control(seed) and has_traps(seed) and mostly_about(seed) is None


def _is_for_sets(seed: int) -> bool:
    """Agents are told mostly what ports are to do."""
    return has_many_mads(seed) and mostly_about(seed) is SmaAttribute.PORT_INFO


def _is_for_counters(seed: int) -> bool:
    """Packets are as many as there can be, and nodes that are reset have partitions again."""
    return not is_calm(seed) and has_shortest_packets(seed) and has_partitions(seed) and not has_many_mads(seed)


def _is_for_limits(seed: int) -> bool:
    """Many packets wait for long, and VLs stall."""
    return is_calm(seed) and has_settled_limits(seed) and has_shortest_packets(seed) and not has_mads(seed)


def _is_for_copies(seed: int) -> bool:
    """Nothing keeps packets to groups off the links."""
    copies = has_groups(seed) and has_mostly_multicast(seed) and has_own_addresses(seed)
    return is_calm(seed) and copies and not has_partitions(seed) and not has_many_mads(seed)


def _is_for_links(seed: int) -> bool:
    """Links have errors, and nothing but that is long."""
    return not is_calm(seed) and not has_many_mads(seed)


def _is_full(seed: int) -> bool:
    """Nothing keeps data off the links."""
    return is_calm(seed) and not has_mads(seed) and not has_moving_p_keys(seed)


def _is_for_data(seed: int) -> bool:
    """Of VLs that are in no high list, these are not asked."""
    return _is_full(seed) and has_low_lists_alone(seed)


def _is_for_marking(seed: int) -> bool:
    """Packets are marked, and high lists are asked too."""
    lists = has_settled_arbitration(seed) and not has_low_lists_alone(seed)
    return _is_full(seed) and has_congestion_control(seed) and lists


_FITS: Final = {
    place: fits
    for places, fits in (
        (_FOR_TABLES, _is_for_tables),
        (_FOR_TRAPS, _is_for_traps),
        (_FOR_AGENTS, _is_for_agents),
        (_FOR_SETS, _is_for_sets),
        (_FOR_COUNTERS, _is_for_counters),
        (_FOR_COPIES, _is_for_copies),
        (_FOR_LINKS, _is_for_links),
        (_FOR_DATA, _is_for_data),
        (_FOR_MARKING, _is_for_marking),
        (_FOR_LIMITS, _is_for_limits),
    )
    for place in places
}
_LOAD_OF: Final = {
    **dict.fromkeys((*_FOR_COPIES, *_FOR_DATA, *_FOR_MARKING, *_FOR_LIMITS), max(_LOADS)),
    **dict.fromkeys((*_FOR_LINKS, *_OF_AGENTS_ALONE), _IDLE_LOAD),
}


@dataclass(frozen=True)
class MutationTask:
    """What is drawn, and what each mutant is put through.

    Attributes:
        node: which kind is broken, in a fabric of a switch with three ports and an adapter at each.
        count: mutants.
        seed: they are drawn from this.
        checks: that a mutant is run through until one finds it, each with a seed of its own.
        cycles: of a check; of 22 thirteen are five times as long, six 25 times.
    """

    node: Literal["switch", "adapter"] = "switch"
    count: int = 1_000
    seed: int = 1
    checks: int = 22
    cycles: int = 20_000

    def options(self, number: int) -> CheckOptions:
        """Of check 1, 2, ..., of the same fabric."""
        place, cycles, seed = number % _PERIOD, self.cycles, number
        if (fits := _FITS.get(place)) is not None:
            times = _TIMES_SLOW if place in _SLOW else _TIMES
            seed, cycles = next(filter(fits, count(number * _SEEDS))), cycles * times
        load = _LOAD_OF.get(place, _LOADS[number // 2 % len(_LOADS)])
        return CheckOptions(
            _PORTS,
            _VLS,
            cycles=cycles,
            seed=seed,
            errors=place not in _ERROR_FREE,
            load=load,
            sim=MODEL,
            fabric_seed=_FABRIC_SEED,
        )

    def checks_of(self, component: str) -> list[int]:
        """Numbers of those that a mutant of this component of the node goes through."""
        return [
            one
            for one in range(1, self.checks + 1)
            if (slow := _SLOW.get(one % _PERIOD)) is None or any(part in component for part in slow)
        ]

    @property
    def builds(self) -> list[range]:
        """Numbers of the mutants, from 1, that are in one simulation each."""
        return [range(first, min(first + _BUILD, self.count + 1)) for first in range(1, self.count + 1, _BUILD)]
