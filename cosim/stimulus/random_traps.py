"""Wrong keys at random: hosts find some, and agents know, at times, whom to tell of them by traps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Final

from cosim.stimulus.agents import agent_lid, switches_behind
from cosim.stimulus.packet import Packet, slot_of_vl
from cosim.stimulus.random_settings import random_gap, random_times
from cosim.topology.topology import Port, Topology
from wire.codes import LID_MULTICAST_MIN, VL15, mtu_code
from wire.layout import Record
from wire.mad import MadMethod
from wire.mad_packet import smp_packet
from wire.notice import TrapNumber
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Control, KeyViolation, Operation, WrongKey

__all__ = [
    "has_trap_sweeps",
    "has_traps",
    "random_subnet_managers",
    "random_trap_requests",
    "random_trap_sweeps",
    "random_wrong_keys",
]

_SHARE: Final = 0.5
"""Of the runs, those with traps."""

_FOUND_GAP: Final = (50, 3_000)
_MANAGER_GAP: Final = (300, 6_000)
_REQUEST_GAP: Final = (300, 3_000)
_SET_SHARE: Final = 0.4
"""Of the SMPs, those that say whom to tell; the others repress a trap, if it is the one that is pending."""

_WITHOUT_LID_SHARE: Final = 0.2
"""Of those that say whom to tell, those without a LID for who is to tell it, which are refused this."""

_OTHER_METHOD_SHARE: Final = 0.3
"""Of the others, those of another method, which repress nothing."""

_OWN_LID_SHARE: Final = 0.6
_MOST_SUBNET_TIMEOUT: Final = 2
_ANY_TIMEOUT_SHARE: Final = 0.2
"""Of these runs, those in which it may be any: most of these never end."""

_MOST_EVENTS: Final = 8
_KEYS: Final = (KeyViolation.P_KEY, KeyViolation.Q_KEY, KeyViolation.P_KEY | KeyViolation.Q_KEY)
_OF_SWITCH: Final = (TrapNumber.LINK_STATE_CHANGE, TrapNumber.BAD_P_KEY_AT_SWITCH)
_OF_ADAPTER: Final = (TrapNumber.BAD_P_KEY, TrapNumber.BAD_Q_KEY, TrapNumber.LOCAL_CHANGES)
_SWEEPS_SHARE: Final = 0.02
"""Of the runs, those in which traps are repressed under all TransactionIDs that they may have, if there are traps."""

_SWEPT_EVENTS: Final = (64, 24, 8)
"""So many in a sweep: the first of these in the first one, which begins before there are more."""

_FIRST_SWEEP: Final = 1_000
"""Cycles from the beginning, in which the agents know whom to tell."""

_SWEEP_GAP: Final = (50, 80)
"""From one trap's TransactionID to the next one's: an event that comes less often than all turns is met."""

_TWICE_SHARE: Final = 0.1
_SWITCH_SWEEPS_SHARE: Final = 0.7
_M_KEY: Final = 0x3C69_A50F_1E78_D2B4
_WRONG_M_KEY_SHARE: Final = 0.2
"""Of the requests besides, where traps are swept: an event of the trap of M_Keys."""

_SWITCH_PATH: Final = (1,)
_OWN_PATH: Final = ()


def has_traps(seed: int) -> bool:
    """Whether agents know whom to tell, and keys are wrong."""
    return Random(f"{seed}/with traps").random() < _SHARE


def has_trap_sweeps(seed: int) -> bool:
    """Whether the traps' TransactionIDs are tried one after the other, and agents have an M_Key."""
    return Random(f"{seed}/trap sweeps").random() < _SWEEPS_SHARE and has_traps(seed)


def random_wrong_keys(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """In some runs, what hosts find: packets with anything in them."""
    random = Random(f"{seed}/wrong keys")
    hosts = list(topology.lids)
    for cycle in random_times(random, _FOUND_GAP, start, end) if has_traps(seed) else ():
        bits = (random.getrandbits(width) for width in (32, 16, 16, 4, 24, 24))
        wrong = WrongKey(random.choice(_KEYS), *bits)
        yield Control(cycle, Operation.KEY_VIOLATION, topology.index[random.choice(hosts)], wrong.args())


def random_subnet_managers(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """In the same runs, hosts get a Subnet Manager and lose it: a change of capabilities that a trap tells of."""
    random = Random(f"{seed}/subnet managers")
    hosts = list(topology.lids)
    for cycle in random_times(random, _MANAGER_GAP, start, end) if has_traps(seed) else ():
        has_one = int(random.random() < 0.5)
        yield Control(cycle, Operation.HOST_SM, topology.index[random.choice(hosts)], (has_one, 0, 0, 0))


def random_trap_requests(topology: Topology, seed: int, start: int, end: int) -> Iterator[Packet]:
    """In the same runs, SMPs of hosts to their own adapters and to the switches behind them, by cycle.

    The Subnet Manager is at the first host.
    """
    if not has_traps(seed):
        return
    random, without_lid = Random(f"{seed}/trap requests"), Random(f"{seed}/without LIDs")
    methods = Random(f"{seed}/methods")
    m_keys = Random(f"{seed}/M_Keys of trap requests") if has_trap_sweeps(seed) else None
    any_timeout = Random(f"{seed}/any SubnetTimeOut").random() < _ANY_TIMEOUT_SHARE and m_keys is None
    hosts = list(topology.lids)
    behind = switches_behind(topology)
    managers = {switch: host for host, switch in reversed(behind.items())}
    first = [*((start, host, True) for host in managers.values()), *((start, host, False) for host in hosts)]
    gap = random_gap(Random(f"{seed}/gap of trap requests"), _REQUEST_GAP)
    later = (
        (cycle, host, random.random() < 0.5 and host in behind)
        for cycle, host in ((cycle, random.choice(hosts)) for cycle in random_times(random, gap, start, end))
    )
    for number, (cycle, host, is_of_switch) in enumerate((*first, *later)):
        node, path = (behind[host], _SWITCH_PATH) if is_of_switch else (host, _OWN_PATH)
        if number < len(first) or random.random() < _SET_SHARE:
            info = _port_info(topology, random, node)
            if any_timeout:
                info = info.replace(subnet_timeout=methods.getrandbits(PORT_INFO["subnet_timeout"].width))
            if without_lid.random() < _WITHOUT_LID_SHARE:
                info = info.replace(lid=0)
            if m_keys:
                info = info.replace(m_key=_M_KEY, m_key_protect_bits=m_keys.getrandbits(2))
            smp = smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info.pack(), transaction_id=number, path=path)
        else:
            other = methods.random() < _OTHER_METHOD_SHARE
            method = methods.choice((MadMethod.GET, MadMethod.SET)) if other else MadMethod.TRAP_REPRESS
            smp = _repress(random, method, _OF_SWITCH if is_of_switch else _OF_ADAPTER, path)
        if m_keys:
            wrong = 0 if number < len(first) or m_keys.random() >= _WRONG_M_KEY_SHARE else m_keys.getrandbits(64)
            smp = smp.replace(m_key=_M_KEY ^ wrong)
        yield _packet(topology, number, cycle, host, smp)


def random_trap_sweeps(topology: Topology, seed: int, start: int, end: int) -> Iterator[Packet]:
    """In some of these runs TrapRepress of an agent's traps under one TransactionID after the other, by cycle: that
    under which a trap is pending is among them, if its events are not too many."""
    behind = switches_behind(topology)
    if not has_trap_sweeps(seed) or not behind:
        return
    random = Random(f"{seed}/TransactionIDs")
    times = random_times(random, _SWEEP_GAP, start + _FIRST_SWEEP, end)
    for number, (cycle, swept) in enumerate(zip(times, _swept(topology, random, list(behind)), strict=False)):
        host, path, transaction_id = swept
        smp = smp_request(
            MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE, transaction_id=transaction_id, m_key=_M_KEY, path=path
        )
        yield _packet(topology, number, cycle, host, smp)


def _swept(topology: Topology, random: Random, behind: Sequence[str]) -> Iterator[tuple[str, Sequence[int], int]]:
    """Hosts, paths to agents, and TransactionIDs, without end; those of a switch first. BEHIND: hosts at switches."""
    is_of_switch, most = True, _SWEPT_EVENTS[0]
    while True:
        host = random.choice(behind if is_of_switch else list(topology.lids))
        traps, path = (_OF_SWITCH, _SWITCH_PATH) if is_of_switch else (_OF_ADAPTER, _OWN_PATH)
        for events, trap in product(range(1, most + 1), (*traps, TrapNumber.BAD_M_KEY)):
            yield from [(host, path, trap << 32 | events)] * (2 if random.random() < _TWICE_SHARE else 1)
        is_of_switch, most = random.random() < _SWITCH_SWEEPS_SHARE, random.choice(_SWEPT_EVENTS)


def _packet(topology: Topology, number: int, cycle: int, host: str, smp: Record) -> Packet:
    slot = slot_of_vl(VL15, topology.fabric.nodes[host].vls)
    return Packet(0, number, cycle, host, None, slot, VL15, smp_packet(smp).data)


def _port_info(topology: Topology, random: Random, node: str) -> Record:
    """Of the port that manages a node: what lets it send traps, and leaves the link as it is."""
    common = {
        "master_sm_lid": next(iter(topology.lids.values())),
        "master_sm_sl": random.randrange(16),
        "subnet_timeout": random.randint(0, _MOST_SUBNET_TIMEOUT),
    }
    if node not in topology.lids:
        # It is asked by directed routes, and answers them whatever its LID is.
        is_own = random.random() < _OWN_LID_SHARE
        lid = agent_lid(topology, node) if is_own else random.randrange(1, LID_MULTICAST_MIN)
        return PORT_INFO.record(lid=lid, **common)
    return PORT_INFO.record(
        lid=topology.lids[node],
        lmc=topology.lmcs.get(node, 0),
        neighbor_mtu=mtu_code(topology.mtu(Port(node, 1))),
        vl_high_limit=random.getrandbits(8),
        local_phy_errors=random.choice((0, 1, 15)),
        overrun_errors=random.choice((0, 1, 2)),
        p_key_violations=random.getrandbits(1),
        q_key_violations=random.getrandbits(1),
        **common,
    )


def _repress(random: Random, method: MadMethod, traps: Sequence[TrapNumber], path: Sequence[int]) -> Record:
    """TrapRepress, or a request of another method, of one of the first events of a trap."""
    transaction_id = random.choice(traps) << 32 | random.randint(1, _MOST_EVENTS)
    return smp_request(method, SmaAttribute.NOTICE, transaction_id=transaction_id, path=path)
