"""Random packets for `ironband check`.

Everything is a lazily drawn function of a seed, so that the same traffic can be given to several engines.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from operator import attrgetter
from random import Random

from cosim.stimulus.agents import agent_lid, switches_behind
from cosim.stimulus.packet import IDENTITY, Packet, overhead_bytes, slot_of_vl, ud_packet
from cosim.stimulus.random_groups import random_group
from cosim.topology.topology import Port, Topology
from wire.codes import (
    LID_MULTICAST_MAX,
    LID_MULTICAST_MIN,
    LID_PERMISSIVE,
    LNH,
    MTU,
    P_KEY_DEFAULT,
    SERVICE_LEVELS,
    VL15,
    is_multicast_lid,
    max_pkt_len,
    mtu_code,
)
from wire.headers import GRH, LRH, RWH
from wire.opcodes import Opcode
from wire.packet import WORD_BYTES, build_raw
from wire.parameters import SwitchParameters

__all__ = [
    "MOST_HOSTS",
    "RandomTraffic",
    "has_bursts_to_agent",
    "has_mostly_multicast",
    "has_shortest_packets",
    "has_starved_copies",
    "has_steps",
    "random_p_key",
    "random_packets",
]

_ETHER_TYPE = 0x88B5  # for local experiments (IEEE 802)
_VL15_PAYLOAD = 256
_PKT_LEN_MAX = LRH["pkt_len"].max
_MOST_WORDS = max_pkt_len(MTU.MTU_4096)
"""What the packet interface of an adapter takes."""


@dataclass(frozen=True)
class _Target:
    """Where packets of a burst go.

    Attributes:
        slid: LRH.SLID.
        dlid: LRH.DLID.
        paths: to the hosts that should get them, or may, if any: the ports by which they leave each node.
        mtu: what their payloads may be, in bytes.
    """

    slid: int
    dlid: int
    paths: dict[str, list[Port]]
    mtu: int


@dataclass(frozen=True)
class _Forms:
    """What else is drawn of a host's packets.

    Attributes:
        random: draws it.
        grh_share: of packets, those with a GRH.
        longest_share: of those with an ICRC, those as long as any headers and a full payload may make them, or one
            word less or two.
        multicast_share: of bursts, those to groups, where there are some.
        shortest: all are as short as they can be.
        raw_share: of packets, those that are raw.
    """

    random: Random
    grh_share: float
    longest_share: float
    multicast_share: float
    shortest: bool
    raw_share: float


class _Flows:
    """A host's flows, one for each path through the fabric on which the order is kept: (DLID, SL or VL15)."""

    def __init__(self, first: int) -> None:
        """FIRST is the number of the first."""
        self._first = first
        self._numbers: dict[tuple[int, int | None], int] = {}
        self._sequences: Counter[int] = Counter()

    def next(self, dlid: int, sl: int | None) -> tuple[int, int]:
        """Flow and sequence of the next packet to a LID on an SL, or on VL15."""
        flow = self._first + self._numbers.setdefault((dlid, sl), len(self._numbers) % _FLOWS_OF_A_HOST)
        self._sequences[flow] += 1
        return flow, self._sequences[flow] - 1


@dataclass(frozen=True)
class RandomTraffic:
    """Settings of random traffic.

    Attributes:
        seed: all of it follows from this.
        start: the first cycle.
        end: no packet is posted at or after this cycle.
        load: mean fraction of its time that the busiest link is asked to carry.
        strays: also send packets that some port must refuse, and to groups such as not all of their ports take.
    """

    seed: int
    start: int
    end: int
    load: float
    strays: bool


_BURST: tuple[int, ...] = (1, 1, 1, 2, 3, 5, 8, 16)
_PHASE_CYCLES = (1_000, 8_000)
_PHASE_LOADS = (0.1, 0.5, 1.0, 1.0, 2.0)
"""Multiples of the load in the phases of a host, about 1 on the mean."""

_SHORT = 64
"""Payload bytes of most packets: much happens in few cycles."""

_SHORTEST_SHARE = 0.1
"""Of the runs, those in which all packets are as short as they can be, and many are raw."""

_RAW_SHARE_OF_SHORTEST = 0.5
_VL15_SHARE = 0.03
_SHORT_WORDS = (5, 7)
_SHORT_WORDS_WITH_GRH = (5, 14)
"""Of strays that are too short for what they say they are, LRH to what should be their ICRC."""

_JUST_SHORT_SHARE = 0.3
"""Of strays with a wrong PktLen, those that lack two words or three."""

_BEYOND_TABLES_SHARE = 0.3
"""Of strays to LIDs that are not there, those to the first behind a forwarding table."""

_STRAY_SHARES = (0.02, 0.02, 0.2)
"""Of a host's packets."""

_RAW_SHARE = 0.03
_MULTICAST_SHARES = (0.1, 0.2, 0.4)
"""Of the bursts, where there are groups: with many, copies of several wait for an output."""

_MOSTLY = 0.9
_MOSTLY_SHARE = 0.1
"""Of the runs, those in which this is their share."""

_TO_AGENT_SHARE = 0.02
"""Of the runs, those in which many bursts go to switches' agents, ..."""

_TO_AGENT_BURSTS_SHARE = 0.5
"""... which are this part of them."""

_STEPS_SHARE = 0.02
"""Of the runs, those in which hosts send in step, ..."""

_STEP_CYCLES = 500
"""... at multiples of this, ..."""

_BURST_OF_STEP = (1, 1, 1, 2)
"""... so little that they are done before the next, but for slow ones."""

_STARVED_COPIES_SHARE = 0.02
"""Of the runs, those in which copies lack credits that others have."""

_FLOWS_OF_A_HOST = 1 << 17

MOST_HOSTS = 126
"""What the flows' numbers have room for, of which a packet's source QP tells one."""

_GRH_SHARES = (0.05, 0.05, 0.05, 0.5)
_LONGEST_SHARES = (0.02, 0.02, 0.02, 0.25)
_DEFAULT_KEY_SHARE = 0.5
_FULL_KEYS = (0x8000, 0x8001, 0x8002, 0xA5C3, 0xFFE0, 0xFC1F, 0x83FF, P_KEY_DEFAULT, P_KEY_DEFAULT)
"""0x8000 is in no partition; others have most bits in common with the default one, which most packets have."""


def has_mostly_multicast(seed: int) -> bool:
    """Whether most packets are to groups, where there are some."""
    return Random(f"{seed}/mostly multicast").random() < _MOSTLY_SHARE


def has_shortest_packets(seed: int) -> bool:
    """Whether all packets are as short as they can be: as many as there can be in so many cycles."""
    return Random(f"{seed}/shortest packets").random() < _SHORTEST_SHARE


def has_bursts_to_agent(seed: int) -> bool:
    """Whether much of what hosts send is to the agents of the switches behind them, which drop it in a few cycles."""
    return Random(f"{seed}/bursts to agent").random() < _TO_AGENT_SHARE


def has_steps(seed: int) -> bool:
    """Whether all hosts begin to send in the same cycles, and the same to the same host."""
    return Random(f"{seed}/common steps").random() < _STEPS_SHARE


def has_starved_copies(seed: int) -> bool:
    """Whether packets to groups are as long as they can be, all others as short, and hosts stall so often that credits
    are too few for the former alone."""
    return Random(f"{seed}/long copies starving").random() < _STARVED_COPIES_SHARE


def random_packets(topology: Topology, traffic: RandomTraffic) -> Iterator[Packet]:
    """Random traffic between all hosts, and to groups, by cycle: random sizes, SLs, targets, bursts and pauses.

    A host's rate is scaled so that no host's link is asked for more than `load` on the mean, whatever the
    widths.
    """
    hosts = list(topology.lids)
    speed = {host: 1 / topology.pace(Port(host, 1)) for host in hosts}
    asked = {
        host: sum(speed[s] * speed[host] / (sum(speed.values()) - speed[s]) for s in hosts if s != host)
        for host in hosts
    }
    scale = min(1.0, *(speed[host] / asked[host] for host in hosts))
    sources = (_host_packets(topology, traffic, source, speed, traffic.load * scale) for source in range(len(hosts)))
    return heapq.merge(*sources, key=attrgetter("cycle"))


def random_p_key(random: Random) -> int:
    """One of few, so that packets and tables often have the same, members of both kinds."""
    return random.choice(_FULL_KEYS) & ~(random.getrandbits(1) << 15)


def _host_packets(
    topology: Topology, traffic: RandomTraffic, number: int, speed: dict[str, float], load: float
) -> Iterator[Packet]:
    hosts = list(topology.lids)
    source = hosts[number]
    random = Random(f"{traffic.seed}/packets/{source}")
    others = [host for host in hosts if host != source]
    weights = [speed[host] for host in others]
    pace = topology.pace(Port(source, 1))
    flows = _Flows(number * _FLOWS_OF_A_HOST)
    cycle = float(traffic.start)
    phase_end, phase_load = cycle, load
    stray_share = random.choice(_STRAY_SHARES)
    draws = Random(f"{traffic.seed}/forms/{source}")
    grh, longest, multicast = (draws.choice(shares) for shares in (_GRH_SHARES, _LONGEST_SHARES, _MULTICAST_SHARES))
    shortest, is_starved = has_shortest_packets(traffic.seed), has_starved_copies(traffic.seed)
    raw_share = _RAW_SHARE_OF_SHORTEST if shortest else _RAW_SHARE
    if is_starved:
        multicast = _MULTICAST_SHARES[0]
    forms = _Forms(draws, grh, longest, multicast, shortest=shortest, raw_share=raw_share)
    if has_mostly_multicast(traffic.seed):
        forms = replace(forms, multicast_share=_MOSTLY)
    to_agent = Random(f"{traffic.seed}/to agent/{source}")
    asked = switches_behind(topology) if traffic.strays and has_bursts_to_agent(traffic.seed) else {}
    in_step = has_steps(traffic.seed)
    while cycle < traffic.end:
        if cycle >= phase_end:
            phase_end = cycle + random.randint(*_PHASE_CYCLES)
            phase_load = load * random.choice(_PHASE_LOADS)
        destination, bursts = source, _BURST
        if in_step:
            random = Random(f"{traffic.seed}/step/{cycle}")
            destination, bursts = random.choice(hosts), _BURST_OF_STEP
        if destination == source:
            destination = random.choices(others, weights)[0]
        sl = random.randrange(SERVICE_LEVELS)
        management = random.random() < _VL15_SHARE
        target = _target(topology, random, source, destination)
        if topology.groups and not management and random.random() < forms.multicast_share:
            target = _group_target(topology, random, source, traffic.strays) or target
        forms_of_burst = forms
        if is_starved:
            forms_of_burst = replace(forms, longest_share=1, shortest=not is_multicast_lid(target.dlid))
        if source in asked and not management and to_agent.random() < _TO_AGENT_BURSTS_SHARE:
            target = replace(target, dlid=agent_lid(topology, asked[source]), paths={})
            forms_of_burst = replace(forms, shortest=True, raw_share=_RAW_SHARE_OF_SHORTEST)
        rows = 0
        for _ in range(random.choice(bursts)):
            packet = _random_packet(topology, random, forms_of_burst, source, target, sl, int(cycle), management, flows)
            # A raw packet has no ICRC that could be wrong.
            has_icrc = LRH["lnh"].read(packet.data) in (LNH.IBA_LOCAL, LNH.IBA_GLOBAL)
            if traffic.strays and has_icrc and random.random() < stray_share:
                packet = (_vl15_stray if management else _stray)(topology, random, forms.random, packet)
            yield packet
            rows += packet.rows
        cycle += rows * pace / phase_load * random.uniform(0.5, 1.5)
        if in_step:
            cycle = ceil(cycle / _STEP_CYCLES) * _STEP_CYCLES


def _target(topology: Topology, random: Random, source: str, destination: str) -> _Target:
    """A host, by one of its LIDs."""
    slid, dlid = (_lid_of(topology, random, host) for host in (source, destination))
    path = topology.path(source, destination, dlid)
    if path is None:
        raise ValueError(f"no way from {source} to {destination}")
    return _Target(slid, dlid, {destination: path}, min(map(topology.mtu, path)))


def _lid_of(topology: Topology, random: Random, host: str) -> int:
    """One of a host's LIDs."""
    lids = topology.lids_of(host)
    return random.choice(lids) if len(lids) > 1 else lids[0]


def _group_target(topology: Topology, random: Random, source: str, strays: bool) -> _Target | None:
    """A group: all its members take what is sent. None if the source has no way to any.

    With strays what is sent may be too long, and behind a single switch its members change: all hosts may get it.
    """
    mlid = random_group(topology, random, others=strays)
    is_any = strays and topology.has_one_hop
    members = topology.lids if is_any else topology.groups.get(mlid, ())
    paths = {}
    for host in members:
        path = topology.path(source, host) if is_any else topology.group_path(source, mlid, host)
        if host != source and path is not None:
            paths[host] = path
    if not paths and not strays:
        return None
    ports = [Port(source, 1)] if strays else [port for path in paths.values() for port in path]
    return _Target(_lid_of(topology, random, source), mlid, paths, min(map(topology.mtu, ports)))


def _random_packet(
    topology: Topology,
    random: Random,
    forms: _Forms,
    source: str,
    target: _Target,
    sl: int,
    cycle: int,
    management: bool,
    flows: _Flows,
) -> Packet:
    vl = VL15 if management else topology.vl(Port(source, 1), sl)
    copies = tuple((host, VL15 if management else topology.final_vl(path, sl)) for host, path in target.paths.items())
    flow, sequence = flows.next(target.dlid, None if management else sl)
    mtu = _VL15_PAYLOAD if management else target.mtu
    lids = {"slid": target.slid, "dlid": target.dlid}
    short = random.randint(0, _SHORT)
    size = random.choice((0, short, short, short, random.randint(0, mtu), mtu))
    if forms.shortest:
        size = 0
    if not management and random.random() < forms.raw_share:
        payload = (IDENTITY.pack(flow, sequence) + random.randbytes(mtu))[: 8 + size // 4 * 4]
        header = RWH.record({"ether_type": _ETHER_TYPE})
        data = build_raw(lrh={**lids, "vl": vl, "sl": sl}, header=header, payload=payload).data
    else:
        grh = not management and random.random() < forms.grh_share
        key = P_KEY_DEFAULT if management or random.random() < _DEFAULT_KEY_SHARE else random_p_key(random)
        if not (management or forms.shortest) and forms.random.random() < forms.longest_share:
            size = _longest_payload(mtu, grh) - forms.random.randrange(3 * WORD_BYTES)
        data = ud_packet(random, **lids, sl=sl, vl=vl, flow=flow, sequence=sequence, size=size, grh=grh, p_key=key)
    node_vls = topology.fabric.nodes[source].vls
    packet = Packet(flow, sequence, cycle, source, None, slot_of_vl(vl, node_vls), vl, data, copies=copies)
    return packet if is_multicast_lid(target.dlid) or not copies else packet.each[0]


def _longest_payload(mtu: int, grh: bool) -> int:
    """Bytes that a UD packet has room for in the length that is allowed for this MTU, more than the MTU."""
    others = overhead_bytes(Opcode.UD_SEND_ONLY) + (GRH.size_bytes if grh else 0)
    return max_pkt_len(mtu_code(mtu)) * WORD_BYTES - others


def _stray(topology: Topology, random: Random, forms: Random, packet: Packet) -> Packet:
    """The packet made into one that never arrives.

    No such LID, back to its sender, a wrong LVer, too long, a wrong PktLen, too short, a wrong ICRC.
    """
    data, length = packet.data, packet.pkt_len
    longest = max_pkt_len(mtu_code(topology.fabric.nodes[packet.source].mtu))
    match random.randrange(8):
        case 0:
            data = LRH["dlid"].write(data, 0)
        case 1:
            # Where there are groups, one of those LIDs may be somebody's.
            beyond = LID_MULTICAST_MIN if topology.groups else LID_PERMISSIVE
            lid = random.randrange(len(topology.lids) + 1, beyond)
            while any(lid in topology.lids_of(host) for host in topology.lids):
                lid = random.randrange(1, beyond)
            if forms.random() < _BEYOND_TABLES_SHARE:
                nodes = topology.fabric.nodes.values()
                lid = forms.choice([node.lft_size for node in nodes if isinstance(node, SwitchParameters)])
            data = LRH["dlid"].write(data, lid)
        case 2:
            data = LRH["dlid"].write(data, topology.lids[packet.source])
        case 3:
            data = LRH["lver"].write(data, LRH["lver"].read(data) ^ random.randrange(1, 16))
        case 4 if longest < _MOST_WORDS:
            more = range(longest + random.randint(1, 8) - length)
            data += b"".join(random.getrandbits(32).to_bytes(WORD_BYTES, "big") for _ in more)
            data = LRH["pkt_len"].write(data, len(data) // WORD_BYTES)
        case 4 | 5:
            lies = {0, 1, 2, 5, length - 1, length + 1, length + 40, longest, longest + 1, _PKT_LEN_MAX} - {length}
            lie = random.choice(sorted(lies))
            if forms.random() < _JUST_SHORT_SHARE:
                lie = length + forms.choice((2, 3))
            data = LRH["pkt_len"].write(data, lie)
        case 6:
            # It has no DETH, or not even a BTH or a GRH; whatever its last word is, it is no right ICRC.
            words = random.randint(*_SHORT_WORDS)
            if LRH["lnh"].read(data) == LNH.IBA_GLOBAL:
                words = forms.randint(*_SHORT_WORDS_WITH_GRH)
            data = LRH["pkt_len"].write(data[: WORD_BYTES * words], 0)
            data = LRH["pkt_len"].write(data, len(data) // WORD_BYTES)
            data = LRH["lnh"].write(data, forms.choice((LNH.IBA_LOCAL, LNH.IBA_GLOBAL)))
        case _:
            last = int.from_bytes(data[-WORD_BYTES:], "big") ^ 1 << random.randrange(32)
            data = data[:-WORD_BYTES] + last.to_bytes(WORD_BYTES, "big")
    return packet._replace(destination=None, data=data, copies=())


def _vl15_stray(topology: Topology, random: Random, forms: Random, packet: Packet) -> Packet:
    """The VL15 packet made into one that never arrives: to a multicast or the permissive LID, or with a GRH."""
    data = packet.data
    match random.randrange(3):
        case 0:
            lids = LID_MULTICAST_MIN, random.randint(LID_MULTICAST_MIN, LID_MULTICAST_MAX), LID_MULTICAST_MAX
            data = LRH["dlid"].write(data, forms.choice(lids))
        case 1:
            data = LRH["dlid"].write(data, LID_PERMISSIVE)
        case _:
            data = LRH["lnh"].write(data, LNH.IBA_GLOBAL)
    return packet._replace(destination=None, data=data)
