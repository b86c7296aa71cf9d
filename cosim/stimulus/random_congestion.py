"""Congestion control at random: settings and log by bus accesses, and requests from hosts to a switch's agent."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from cosim.stimulus.agents import agent_lid, switches_behind
from cosim.stimulus.bus_bring_up import write, write_port
from cosim.stimulus.packet import Packet, slot_of_vl
from cosim.stimulus.random_packets import has_starved_copies
from cosim.stimulus.random_settings import random_times, switch_ports
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import SERVICE_LEVELS
from wire.congestion_control import (
    CC_DATA_BYTES,
    CONGESTION_KEY_INFO,
    SWITCH_CONGESTION_SETTING,
    SWITCH_PORT_CONGESTION_ELEMENT,
    SWITCH_PORT_CONGESTION_SETTING,
    CcAttribute,
    SwitchControl,
    cc_request,
)
from wire.layout import Layout
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet
from wire.registers import NodeRegister, PortRegister
from wire.stimulus import Control, Operation

__all__ = [
    "has_congestion_control",
    "has_open_victims",
    "random_congestion",
    "random_congestion_requests",
    "random_leases",
]

_SHARE: Final = 0.5
"""Of the runs, those with congestion control."""

_GAP: Final = (20, 1_500)
_AGAIN: Final = (1, 1, 1, 200)
"""So often a word of a window is written, every other cycle: at times one is in the very cycle of what else happens."""

_REQUEST_GAP: Final = (400, 3_000)
_FIRST_REQUEST: Final = 500
"""Cycles from the beginning, in which the agent gets its LID."""

_THRESHOLDS: Final = (0, 1, 8, 12, 14, 15, 15, 15)
_PACKET_SIZES: Final = (0, 0, 0, 0, 2, 5)
_MARKING_RATES: Final = (0, 0, 0, 0, 1, 2, 7)
_WIDE_SHARE: Final = 0.2
"""Of these, those that are anything."""

_VICTIMS: Final = 16
"""The word of SwitchCongestionSetting with the first ports of Victim_Mask."""

_SOONEST: Final = {8: sum(SwitchControl), _VICTIMS: 0xFFFF_FFFF, 25: 15 << 28, 26: 0}
"""Words of SwitchCongestionSetting that let all be marked that may be."""

_OPEN_VICTIMS_SHARE: Final = 0.02
"""Of the runs, those in which Victim_Mask stays 0, ..."""

_OPEN_VICTIMS_GAP: Final = (4_000, 30_000)
"""... and what ports mark by seldom changes."""

_KEYS: Final = (0, 0, 1, 0xA5C3 << 48, 0xA5C3_0000_1234_5678)
_NEW_KEY_SHARE: Final = 0.3
_LAST_KEY_SHARE: Final = 0.6
"""Of CC_Keys of requests, those that were set last; of all, those with a bit that is wrong."""

_NEAR_KEY_SHARE: Final = 0.1
_LEASE_PERIODS: Final = (0, 1, 2, 0xFFFF)
_LEASE_SECONDS: Final = (1, 100, 1_000, registers.LEASE_SECOND_AT_RESET)
_MOST_LEASE_SECOND: Final = 2_000
"""Of others."""

_LEASES_SHARE: Final = 0.1
"""Of these runs, those with leases that end in cycles in which CongestionKeyInfo is written."""

_LEASES_GAP: Final = (3_000, 15_000)
_LEASES_CYCLES: Final = 2_000
_SHORT_LEASE: Final = (1, 100)
"""In cycles, as a second is one then."""

_CREDIT_STARVATION_SHARE: Final = 0.1
_ALL_CONTROLS_SHARE: Final = 0.8
_WRONG_SHARE: Final = 0.07
"""Of requests, those with a wrong ClassVersion; likewise with a wrong modifier, with a damaged packet."""

_KEY_BITS: Final = CONGESTION_KEY_INFO["cc_key"].width
_FIRST_KEY_WORD, _VIOLATIONS_WORD = (CONGESTION_KEY_INFO[name].offset_bits // 32 for name in ("cc_key", "violations"))
_LAST_KEY_WORD: Final = (CONGESTION_KEY_INFO["cc_key"].end_bits - 1) // 32
"""Of two."""

_WORDS: Final = CC_DATA_BYTES // 4
_SETTABLE: Final = (
    CcAttribute.SWITCH_CONGESTION_SETTING,
    CcAttribute.SWITCH_CONGESTION_SETTING,
    CcAttribute.SWITCH_PORT_CONGESTION_SETTING,
    CcAttribute.CONGESTION_KEY_INFO,
)
_ATTRIBUTES: Final = tuple(attribute for attribute in CcAttribute if attribute != CcAttribute.NOTICE)
_ASKED_FOR: Final = (*_ATTRIBUTES, CcAttribute.CONGESTION_LOG, CcAttribute.CONGESTION_LOG, *_SETTABLE, 0x19)
_LID_HEADERS: Final = 28
"""Bytes of a request's packet before its MAD."""


def has_congestion_control(seed: int) -> bool:
    """Whether it is set at all."""
    return Random(f"{seed}/with congestion control").random() < _SHARE


def has_open_victims(seed: int) -> bool:
    """Whether, if it is, what waited for credits is never marked: that shows when it did."""
    return Random(f"{seed}/open victims").random() < _OPEN_VICTIMS_SHARE


def _are_victims_open(seed: int) -> bool:
    return has_open_victims(seed) or has_starved_copies(seed)


def random_congestion(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """In some runs what is set for congestion control of switches, reads of that and of the log, and agents' LIDs."""
    ports = switch_ports(topology)
    if not has_congestion_control(seed) or not ports:
        return
    random, again = Random(f"{seed}/congestion"), Random(f"{seed}/congestion again")
    for name in dict.fromkeys(port.node for port in ports):
        yield from _begin(topology, start, name)
    if _are_victims_open(seed):
        yield from _open_victims(topology, seed, start, end)
        return
    until = start
    for cycle in random_times(random, _GAP, start, end):
        if cycle < until:
            continue
        port = random.choice(ports)
        node = topology.index[port.node]
        match random.randrange(12):
            case 0:
                yield from _begin(topology, cycle, port.node)
            case 1 | 2 | 3:
                yield write_port(topology, cycle, port, PortRegister.CONGESTION, _element(random))
            case 4 | 5 | 6 | 7:
                address, value = _window_write(topology, random, port.node)
                until = cycle + 2 * again.choice(_AGAIN)
                for now in range(cycle, until, 2):
                    yield write(now, node, address, value)
            case 8:
                value = random.choice((*_LEASE_SECONDS, random.randint(1, _MOST_LEASE_SECOND)))
                yield write(cycle, node, registers.node_address(NodeRegister.LEASE_SECOND), value)
            case _:
                address = _readable(random, port)
                yield Control(cycle, Operation.BUS_READ, node, (address, 0, 0, 0))


def _open_victims(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """Victim_Mask of all switches is 0, and now and then a port marks by other values: not where copies starve, as many
    of these mark so few packets that nothing would show."""
    random, ports = Random(f"{seed}/congestion of victims"), switch_ports(topology)
    victims = registers.congestion_address(CcAttribute.SWITCH_CONGESTION_SETTING, _VICTIMS)
    for name in dict.fromkeys(port.node for port in ports):
        yield write(start, topology.index[name], victims, 0)
    for cycle in () if has_starved_copies(seed) else random_times(random, _OPEN_VICTIMS_GAP, start, end):
        yield write_port(topology, cycle, random.choice(ports), PortRegister.CONGESTION, _element(random))


def random_leases(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """In some of these runs CC_Keys that no request has, each with a short lease for a while; violations are set to
    0 in every other cycle of it, at times in the one in which a lease ends."""
    random, ports = Random(f"{seed}/leases"), switch_ports(topology)
    if not has_congestion_control(seed) or not ports or random.random() >= _LEASES_SHARE:
        return
    until = start
    for cycle in random_times(random, _LEASES_GAP, start, end):
        if cycle < until:
            continue
        node, until = topology.index[random.choice(ports).node], cycle + _LEASES_CYCLES
        key, lease = random.getrandbits(_KEY_BITS), random.randint(*_SHORT_LEASE)
        yield write(cycle, node, registers.node_address(NodeRegister.LEASE_SECOND), 1)
        yield from _key_writes(cycle + 1, node, CONGESTION_KEY_INFO.pack(cc_key=key, lease_period=lease))
        cleared = registers.congestion_address(CcAttribute.CONGESTION_KEY_INFO, _VIOLATIONS_WORD)
        for now in range(cycle + _WORDS, until, 2):
            yield write(now, node, cleared, 0)
        yield from _key_writes(until, node, CONGESTION_KEY_INFO.pack())


def _key_writes(cycle: int, node: int, data: bytes) -> Iterator[Control]:
    """Of all words of CongestionKeyInfo before the one with its violations."""
    for now, word in enumerate(range(_FIRST_KEY_WORD, _VIOLATIONS_WORD), cycle):
        address = registers.congestion_address(CcAttribute.CONGESTION_KEY_INFO, word)
        yield write(now, node, address, int.from_bytes(data[4 * word : 4 * word + 4], "big"))


def _begin(topology: Topology, cycle: int, switch: str) -> Iterator[Control]:
    """Its agent gets a LID, and all is marked that may be."""
    node, lid = topology.index[switch], agent_lid(topology, switch)
    yield write(cycle, node, registers.lft_address(lid), 0)
    yield write(cycle, node, registers.node_address(NodeRegister.LINEAR_FDB_TOP), lid)
    for word, value in _SOONEST.items():
        address = registers.congestion_address(CcAttribute.SWITCH_CONGESTION_SETTING, word)
        yield write(cycle, node, address, value)


def _element(random: Random) -> int:
    """Of a port."""
    return SWITCH_PORT_CONGESTION_ELEMENT.to_int(
        valid=random.choice((0, 1, 1, 1)),
        control_type=int(random.random() < _CREDIT_STARVATION_SHARE),
        **_marking(random, SWITCH_PORT_CONGESTION_ELEMENT),
    )


def _marking(random: Random, layout: Layout) -> dict[str, int]:
    """When packets are marked: by values that mark some, but for a share of any."""
    usual = {"threshold": _THRESHOLDS, "packet_size": _PACKET_SIZES, "marking_rate": _MARKING_RATES}
    return {
        name: random.getrandbits(layout[name].width) if random.random() < _WIDE_SHARE else random.choice(values)
        for name, values in usual.items()
    }


def _setting(topology: Topology, random: Random, switch: str) -> bytes:
    """SwitchCongestionSetting."""
    ports = topology.fabric.port_count(topology.fabric.nodes[switch])
    everything = random.random() < _ALL_CONTROLS_SHARE
    return SWITCH_CONGESTION_SETTING.pack(
        control_map=sum(SwitchControl) if everything else random.getrandbits(5),
        victim_mask=random.choice((0, random.getrandbits(ports + 1), random.getrandbits(256))),
        credit_mask=random.getrandbits(256),
        **_marking(random, SWITCH_CONGESTION_SETTING),
        cs_threshold=random.getrandbits(4),
        cs_return_delay=random.getrandbits(16),
    )


def _key_info(random: Random) -> bytes:
    """CongestionKeyInfo."""
    return CONGESTION_KEY_INFO.pack(
        cc_key=random.getrandbits(_KEY_BITS) if random.random() < _NEW_KEY_SHARE else random.choice(_KEYS),
        protect_bit=random.getrandbits(1),
        lease_period=random.choice(_LEASE_PERIODS),
        violations=random.choice((0, 0, 1, 0xFFFF)),
    )


def _window_write(topology: Topology, random: Random, switch: str) -> tuple[int, int]:
    """(address, value), mostly of a word with a setting; any word may be written."""
    attribute, data = CcAttribute.SWITCH_CONGESTION_SETTING, _setting(topology, random, switch)
    names = ["control_map", "victim_mask", "threshold", "threshold", "marking_rate"]
    layout: Layout = SWITCH_CONGESTION_SETTING
    if random.random() < 0.3:
        attribute, data, layout = CcAttribute.CONGESTION_KEY_INFO, _key_info(random), CONGESTION_KEY_INFO
        names = ["cc_key", "protect_bit", "violations"]
    word = (layout[random.choice(names)].end_bits - 1) // 32
    if random.random() < 0.1:
        attribute, word = random.choice(_ATTRIBUTES), random.randrange(_WORDS)
        return registers.congestion_address(attribute, word), random.getrandbits(32)
    if layout is CONGESTION_KEY_INFO and word == _LAST_KEY_WORD:
        word -= random.getrandbits(1)
    value = int.from_bytes(data[4 * word : 4 * word + 4].ljust(4, b"\0"), "big")
    return registers.congestion_address(attribute, word), value


def _readable(random: Random, port: Port) -> int:
    """An address, half of them in the log."""
    if random.random() < 0.15:
        return registers.port_address(port.number, PortRegister.CONGESTION)
    if random.random() < 0.05:
        return registers.CONGESTION_PAGE << 16 | random.getrandbits(16)
    attribute = random.choice((*_ATTRIBUTES, *[CcAttribute.CONGESTION_LOG] * len(_ATTRIBUTES)))
    word = random.choice((random.randrange(14), random.randrange(_WORDS)))
    return registers.congestion_address(attribute, word)


# Requests.


def random_congestion_requests(topology: Topology, seed: int, start: int, end: int) -> Iterator[Packet]:
    """In the same runs requests of hosts to the agents of the switches behind them, right and wrong, by cycle.

    Where victims stay open there are none: they would set what marks.
    """
    behind = switches_behind(topology)
    if not has_congestion_control(seed) or _are_victims_open(seed) or not behind:
        return
    random = Random(f"{seed}/congestion requests")
    keys = dict.fromkeys(behind.values(), 0)
    for sequence, cycle in enumerate(random_times(random, _REQUEST_GAP, start + _FIRST_REQUEST, end)):
        host = random.choice(list(behind))
        vl, data = _request_packet(topology, random, behind[host], host, sequence, keys)
        slot = slot_of_vl(vl, topology.fabric.nodes[host].vls)
        yield Packet(0, sequence, cycle, host, None, slot, vl, data)


def _request_packet(
    topology: Topology, random: Random, switch: str, host: str, number: int, keys: dict[str, int]
) -> tuple[int, bytes]:
    """VL and bytes. The SL is one on which the host may be answered. KEYS: the CC_Key set last, by switch."""
    vls, of_host = topology.fabric.nodes[switch].vls, topology.vls(Port(host, 1))
    sl = random.choice([sl for sl in range(SERVICE_LEVELS) if sl % vls < of_host])
    vl = topology.vl(Port(host, 1), sl)
    grh = {"ip_ver": 6, "nxt_hdr": 0x1B, "hop_lmt": 1} if random.random() < 0.2 else None
    mad = _request(topology, random, switch, number, keys)
    data = gmp_packet(mad, topology.lids[host], agent_lid(topology, switch), vl=vl, sl=sl, psn=number, grh=grh).data
    if random.random() < _WRONG_SHARE:
        place = random.choice((random.randrange(_LID_HEADERS, len(data)), len(data) - 1))
        data = data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
    return vl, data


def _request(topology: Topology, random: Random, switch: str, number: int, keys: dict[str, int]) -> bytes:
    """The MAD of a Get or Set."""
    is_set = random.random() < 0.5
    attribute = random.choice(_SETTABLE if is_set and random.random() < 0.8 else _ASKED_FOR)
    data, key = b"", keys[switch] if random.random() < _LAST_KEY_SHARE else random.choice(_KEYS)
    if random.random() < _NEAR_KEY_SHARE:
        key ^= 1 << random.randrange(_KEY_BITS)
    if is_set:
        data = random.randbytes(CC_DATA_BYTES)
        if attribute == CcAttribute.SWITCH_CONGESTION_SETTING:
            data = _setting(topology, random, switch)
        elif attribute == CcAttribute.CONGESTION_KEY_INFO:
            data = _key_info(random)
            keys[switch] = CONGESTION_KEY_INFO["cc_key"].read(data)
        elif attribute == CcAttribute.SWITCH_PORT_CONGESTION_SETTING:
            data = SWITCH_PORT_CONGESTION_SETTING.pack({f"element{place}": _element(random) for place in range(32)})
    method = MadMethod.SET if is_set else MadMethod.GET
    mad = cc_request(method, attribute, data, transaction_id=number, cc_key=key)
    if random.random() < _WRONG_SHARE:
        mad = mad.replace(class_version=random.choice((0, 1, 3)))
    if random.random() < _WRONG_SHARE:
        mad = mad.replace(attribute_modifier=random.choice((1, 2, random.getrandbits(32))))
    return mad.pack()
