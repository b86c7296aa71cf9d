"""SMPs that no agent and no host sent, at random: a link's idle data becomes one, with all its CRCs right.

So an agent gets what no other agent passes on, a directed-route SMP of no hops that comes by a link above all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

from cosim.stimulus.random_settings import random_times
from cosim.stimulus.random_smps import M_KEYS
from cosim.stimulus.row_errors import in_idle_data
from wire.layout import Record
from wire.mad import MadMethod
from wire.mad_packet import smp_packet
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Control, Operation
from wire.symbols import frame_data_packet

__all__ = ["INVENTED_SMP", "invented_smp", "random_invented_smps"]

INVENTED_SMP: Final = "invented_smp"
"""As it is counted."""

_GAPS: Final = ((4_000, 40_000), (4_000, 40_000), (1_000, 6_000))
"""In cycles, of a direction: each takes the test bus and the injector for long, so most have few."""

_METHODS: Final = (MadMethod.GET, MadMethod.GET, MadMethod.GET, MadMethod.GET_RESP, MadMethod.TRAP_REPRESS)
"""None that sets anything: nobody would make it right again."""

_MOST_PORT: Final = 4
_HOPS: Final = (0, 0, 1, 2, 3)
_NO_HOPS_SHARE: Final = 0.2
"""Of them, those for whoever gets them: no host's adapter lets such a one out."""


def random_invented_smps(
    random: Random, direction: int, pitch: int, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """In one direction of a link whose rows are PITCH cycles apart. What is sent meanwhile damages it."""
    free = start
    for time in random_times(random, random.choice(_GAPS), start, end):
        cycle = -(-max(time, free) // pitch) * pitch
        count[INVENTED_SMP] += 1
        for injection in in_idle_data(frame_data_packet(smp_packet(invented_smp(random)).wire)):
            yield Control(cycle, Operation.INJECT, direction, injection.args())
            cycle += pitch
        free = cycle


def invented_smp(random: Random) -> Record:
    """A directed-route SMP anywhere on its way, or back."""
    smp = smp_request(
        random.choice(_METHODS),
        random.choice(list(SmaAttribute)),
        random.randint(0, 1),
        transaction_id=random.getrandbits(64),
        m_key=random.choice(M_KEYS),
        path=[random.randint(0, _MOST_PORT) for _ in range(max(_HOPS))],
    )
    hops = {name: random.choice(_HOPS) for name in ("hop_pointer", "hop_count")}
    if random.random() < _NO_HOPS_SHARE:
        hops = dict.fromkeys(hops, 0)
    return smp.replace(**hops, d=random.getrandbits(1))
