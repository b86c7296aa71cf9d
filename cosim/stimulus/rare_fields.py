"""What MADs and their agents have seldom: whole GRHs, leases with a high bit, MTUs that there are not, LIDs that
adapters should not have."""

from __future__ import annotations

from random import Random
from typing import Final

from wire.codes import LID_MULTICAST_MIN, mtu_code
from wire.headers import GRH
from wire.port_info import PORT_INFO

__all__ = [
    "LEASED_PORT_0_SHARE",
    "RARE_PORT_0_SHARE",
    "has_long_leases",
    "has_other_lids",
    "has_rare_fields",
    "leased_m_key",
    "leased_second",
    "other_lid",
    "rare_grh",
    "rare_lease_second",
    "with_long_lease",
    "with_other_bit",
    "with_rare_fields",
]

_SHARE: Final = 0.02
"""Of the runs, those with such fields, where there are MADs."""

RARE_PORT_0_SHARE: Final = 0.2
"""Of modifiers of PortInfo at a switch, those of the port that manages it: it has to get M_Keys too."""

_OF_GRH: Final = ("t_class", "flow_label", "sgid", "dgid")
_M_KEY: Final = 0x5A3C_F069_8712_B4DE
_M_KEYS: Final = (0, _M_KEY, _M_KEY, _M_KEY)
"""Few enough that no agent has one that nobody remembers: it would refuse all Sets for good."""

_NO_MTU_SHARE: Final = 0.15
_MOST_SECONDS: Final = (20, 200, 2_000)
_HIGH_BITS: Final = (*range(11, 32), *[20, 21, 22] * 14)
_LOW_ALONE_SHARE: Final = 0.2
"""Of the seconds of leases, those without a high bit, whose leases run out."""

_LEASES_SHARE: Final = 0.02
"""Of the runs, those with leases of a few seconds but for a bit, where there are MADs."""

LEASED_PORT_0_SHARE: Final = 0.8
"""Of modifiers of PortInfo at a switch, those of the port that manages it, which has the lease."""

_LEASED_SECONDS: Final = (50, 300)
"""Of so many cycles that two or three of them are over when the next SMP comes."""

_FEW_SECONDS: Final = (2, 3)
_PERIOD_BITS: Final = range(4, PORT_INFO["m_key_lease_period"].width)
_OTHER_LIDS_SHARE: Final = 0.02
"""Of the runs, those with other LIDs of adapters, where there are MADs."""

_USUAL_SHARE: Final = 0.3

_WRONG_KEY_SHARE: Final = 0.5
_PROTECTS: Final = (1, 2, 3, 3)
"""A wrong key shows whether they have become 0."""


def has_rare_fields(seed: int) -> bool:
    """Whether MADs, and what agents count, have fields that are rare elsewhere."""
    return Random(f"{seed}/rare fields").random() < _SHARE


def rare_grh(random: Random) -> dict[str, int]:
    """Fields of a GRH that an answer has from its request, or for which it has others."""
    return {name: random.getrandbits(GRH[name].width) for name in _OF_GRH}


def rare_lease_second(random: Random) -> int:
    """Of a few cycles, but for a bit that is far above them."""
    second = random.randint(2, random.choice(_MOST_SECONDS))
    return second if random.random() < _LOW_ALONE_SHARE else second | 1 << random.choice(_HIGH_BITS)


def with_rare_fields(random: Random, port_info: bytes, most_mtu: int) -> bytes:
    """A PortInfo with an M_Key that somebody remembers, and at times the first MTUs that a node of this one has not."""
    data = PORT_INFO["m_key"].write(port_info, random.choice(_M_KEYS))
    if random.random() >= _NO_MTU_SHARE:
        return data
    return PORT_INFO["neighbor_mtu"].write(data, random.choice((0, mtu_code(most_mtu) + 1)))


def has_other_lids(seed: int) -> bool:
    """Whether adapters have LIDs for some time by which nobody knows them but their hosts, which ask agents by them."""
    return Random(f"{seed}/LIDs beyond tables").random() < _OTHER_LIDS_SHARE


def other_lid(random: Random, lid: int, lmc: int) -> tuple[int, int]:
    """A LID and LMC for an adapter that usually has these: the same, any others, or a LID that differs in a bit."""
    if (kind := random.random()) < _USUAL_SHARE:
        return lid, lmc
    differs_in_a_bit = kind < (1 + _USUAL_SHARE) / 2
    other = with_other_bit(random, lid) if differs_in_a_bit else random.randrange(1, LID_MULTICAST_MIN)
    return other, random.choice((lmc, random.randint(0, PORT_INFO["lmc"].max)))


def with_other_bit(random: Random, lid: int) -> int:
    """A unicast LID that differs in a bit, or where there is none, in several."""
    return min(max(lid ^ 1 << random.randrange(PORT_INFO["lid"].width), 1), LID_MULTICAST_MIN - 1)


def has_long_leases(seed: int) -> bool:
    """Whether M_Keys have leases that outlast most of what comes, by one bit of their period."""
    return Random(f"{seed}/high bit of a lease").random() < _LEASES_SHARE


def leased_m_key(random: Random) -> int:
    """Of an SMP there: right, or wrong."""
    return _M_KEY ^ (random.getrandbits(64) if random.random() < _WRONG_KEY_SHARE else 0)


def leased_second(random: Random) -> int:
    """Of such leases."""
    return random.randint(*_LEASED_SECONDS)


def with_long_lease(random: Random, port_info: bytes) -> bytes:
    """A PortInfo with the M_Key, protected, and a lease of that kind."""
    values = {
        "m_key": _M_KEY,
        "m_key_protect_bits": random.choice(_PROTECTS),
        "m_key_lease_period": random.randint(*_FEW_SECONDS) | 1 << random.choice(_PERIOD_BITS),
    }
    for name, value in values.items():
        port_info = PORT_INFO[name].write(port_info, value)
    return port_info
