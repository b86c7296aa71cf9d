"""Traps of congestion control at random: switches know, at times, whom to tell of wrong CC_Keys, and hear of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from cosim.stimulus.agents import agent_lid, switches_behind
from cosim.stimulus.bus_bring_up import write
from cosim.stimulus.packet import Packet, slot_of_vl
from cosim.stimulus.random_congestion import has_congestion_control
from cosim.stimulus.random_settings import random_gap, random_times, switch_ports
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import LID_MULTICAST_MIN, P_KEY_DEFAULT, Q_KEY_GSI, QP_GSI, SERVICE_LEVELS, VL15
from wire.congestion_control import CC_CLASS_PORT_INFO, CONGESTION_KEY_INFO, CcAttribute, cc_request
from wire.layout import Record
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet, smp_packet
from wire.parameters import SwitchParameters
from wire.pma import perf_request
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Control

__all__ = ["has_cc_traps", "random_cc_trap_requests", "random_trap_destinations"]

_SHARE: Final = 0.5
"""Of the runs with congestion control, those with its traps."""

_DESTINATION_GAP: Final = (200, 6_000)
_REQUEST_GAP: Final = (300, 3_000)
_FIRST_REQUEST: Final = 700
_WORDS: Final = tuple(CC_CLASS_PORT_INFO[f"trap_{name}"].offset_bits // 32 for name in ("sl", "lid", "qp", "q_key"))
_SL_WORD, _LID_WORD = _WORDS[:2]
_SL_SHIFT, _LID_SHIFT = (-CC_CLASS_PORT_INFO[f"trap_{name}"].end_bits % 32 for name in ("sl", "lid"))
_NOBODY_SHARE: Final = 0.2
_BURST_SHARE: Final = 0.1
"""Of changes of who is told, those that come again every few cycles: at times one is in the very cycle of what else
happens."""

_BURST: Final = 1_500
_BURST_STEPS: Final = (2, 3, 7)
_KEY: Final = 0x0F1E_2D3C_4B5A_6978
_KEYS: Final = (_KEY, _KEY, _KEY, _KEY ^ 1, 0)
_OTHER_CLASS_SHARE: Final = 0.2
_OTHER_METHOD_SHARE: Final = 0.15
_OTHER_ATTRIBUTE_SHARE: Final = 0.05
_GRH_SHARE: Final = 0.2
_MOST_EVENTS: Final = 8
_SWITCH_PATH: Final = (1,)


def has_cc_traps(seed: int) -> bool:
    """Whether switches tell of wrong CC_Keys."""
    return has_congestion_control(seed) and Random(f"{seed}/with CC traps").random() < _SHARE


def random_trap_destinations(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """In some runs, who is told by which switch, where that changes, and for how long nobody is."""
    ports = switch_ports(topology)
    if not has_cc_traps(seed) or not ports:
        return
    random = Random(f"{seed}/trap destinations")
    hosts, levels = list(topology.lids.values()), _service_levels(topology)

    def word_written(word: int) -> int:
        if word == _SL_WORD:
            return random.choice(levels) << _SL_SHIFT | random.getrandbits(_SL_SHIFT)
        if word != _LID_WORD:
            return random.getrandbits(32)
        nobody, elsewhere = random.random() < _NOBODY_SHARE, random.random() < _NOBODY_SHARE
        lid = random.randrange(1, LID_MULTICAST_MIN) if elsewhere else random.choice(hosts)
        return (0 if nobody else lid) << _LID_SHIFT | random.getrandbits(16)

    for name in dict.fromkeys(port.node for port in ports):
        values = (0, random.choice(hosts) << _LID_SHIFT | P_KEY_DEFAULT, QP_GSI, Q_KEY_GSI)
        for word, value in zip(_WORDS, values, strict=True):
            yield from _write(topology, start, name, word, value)
    until = start
    for cycle in random_times(random, _DESTINATION_GAP, start, end):
        if cycle < until:
            continue
        switch = random.choice(ports).node
        if random.random() < _BURST_SHARE:
            until = cycle + _BURST
            for now in range(cycle, until, random.choice(_BURST_STEPS)):
                yield from _write(topology, now, switch, _LID_WORD, word_written(_LID_WORD))
        else:
            word = random.choice((_LID_WORD, *_WORDS))
            yield from _write(topology, cycle, switch, word, word_written(word))


def _write(topology: Topology, cycle: int, switch: str, word: int, value: int) -> Iterator[Control]:
    address = registers.congestion_address(CcAttribute.CLASS_PORT_INFO, word)
    yield write(cycle, topology.index[switch], address, value)


def random_cc_trap_requests(topology: Topology, seed: int, start: int, end: int) -> Iterator[Packet]:
    """In the same runs, requests of hosts to the switches behind them, by cycle.

    They set a CC_Key, have a wrong one, name who is to be told, and repress a trap, if it is the one that is pending. A
    switch that tells has a LID.
    """
    behind = switches_behind(topology)
    if not has_cc_traps(seed) or not behind:
        return
    random = Random(f"{seed}/CC trap requests")
    gap = random_gap(Random(f"{seed}/gap of CC trap requests"), _REQUEST_GAP)
    hosts, levels = {switch: host for host, switch in reversed(behind.items())}, _service_levels(topology)
    for number, (switch, host) in enumerate(hosts.items()):
        info = PORT_INFO.pack(lid=agent_lid(topology, switch), subnet_timeout=random.randrange(2))
        smp = smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info, transaction_id=number, path=_SWITCH_PATH)
        yield _of_vl15(topology, number, start, host, smp)
    for number, cycle in enumerate(random_times(random, gap, start + _FIRST_REQUEST, end), len(hosts)):
        host = random.choice(list(behind))
        if random.random() < _OTHER_CLASS_SHARE / 2:
            transaction_id = random.randint(1, _MOST_EVENTS)
            smp = smp_request(
                MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE, transaction_id=transaction_id, path=_SWITCH_PATH
            )
            yield _of_vl15(topology, number, cycle, host, smp)
            continue
        sl = random.choice(levels)
        vl = topology.vl(Port(host, 1), sl)
        grh = {"ip_ver": 6, "nxt_hdr": 0x1B, "hop_lmt": 1} if random.random() < _GRH_SHARE else None
        mad = _request(topology, levels, random, number)
        to = agent_lid(topology, behind[host])
        data = gmp_packet(mad, topology.lids[host], to, vl=vl, sl=sl, psn=number, grh=grh).data
        yield Packet(0, number, cycle, host, None, slot_of_vl(vl, topology.fabric.nodes[host].vls), vl, data)


def _service_levels(topology: Topology) -> list[int]:
    """Those on which all hosts hear what an agent sends."""
    vls = {node.vls for node in topology.fabric.nodes.values() if isinstance(node, SwitchParameters)}
    fewest = min(topology.vls(Port(host, 1)) for host in topology.lids)
    return [sl for sl in range(SERVICE_LEVELS) if all(sl % of_switch < fewest for of_switch in vls)]


def _of_vl15(topology: Topology, number: int, cycle: int, host: str, smp: Record) -> Packet:
    slot = slot_of_vl(VL15, topology.fabric.nodes[host].vls)
    return Packet(0, number, cycle, host, None, slot, VL15, smp_packet(smp).data)


def _request(topology: Topology, levels: Sequence[int], random: Random, number: int) -> Record:
    key = random.choice(_KEYS)
    match random.randrange(8):
        case 0:
            info = CONGESTION_KEY_INFO.pack(cc_key=_KEY, protect_bit=random.getrandbits(1))
            return cc_request(
                MadMethod.SET,
                CcAttribute.CONGESTION_KEY_INFO,
                info,
                transaction_id=number,
                cc_key=random.choice((0, key)),
            )
        case 1:
            told = CC_CLASS_PORT_INFO.pack(
                trap_sl=random.choice(levels),
                trap_lid=random.choice([0, *topology.lids.values()]),
                trap_p_key=random.getrandbits(16),
                trap_qp=random.getrandbits(24),
                trap_q_key=random.getrandbits(32),
            )
            return cc_request(MadMethod.SET, CcAttribute.CLASS_PORT_INFO, told, transaction_id=number, cc_key=key)
        case 2:
            method = random.choice((MadMethod.GET, MadMethod.SET))
            attribute = random.choice((CcAttribute.CLASS_PORT_INFO, CcAttribute.NOTICE))
            return cc_request(method, attribute, transaction_id=number, cc_key=key)
        case 3 | 4:
            attribute = random.choice(list(CcAttribute))
            modifier = random.choice((0, random.getrandbits(32)))
            wrong = random.getrandbits(64)
            return cc_request(MadMethod.SET, attribute, transaction_id=number, modifier=modifier, cc_key=wrong)
    method, attribute = MadMethod.TRAP_REPRESS, CcAttribute.NOTICE
    if random.random() < _OTHER_METHOD_SHARE:
        method = random.choice((MadMethod.GET, MadMethod.SET, MadMethod.TRAP, MadMethod.GET_RESP))
    if random.random() < _OTHER_ATTRIBUTE_SHARE:
        attribute = random.choice(list(CcAttribute))
    transaction_id = random.randint(1, _MOST_EVENTS)
    if random.random() < _OTHER_CLASS_SHARE:
        return perf_request(method, attribute, transaction_id=transaction_id)
    return cc_request(method, attribute, transaction_id=transaction_id, cc_key=key)
