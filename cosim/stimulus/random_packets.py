"""Random packets for `ironband check`.

Everything is a lazily drawn function of a seed, so that the same traffic can be given to several engines.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from random import Random

from cosim.stimulus.packet import IDENTITY, Packet, slot_of_vl, ud_packet
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
from wire.headers import LRH, RWH
from wire.packet import WORD_BYTES, build_raw

__all__ = ["MOST_HOSTS", "RandomTraffic", "random_p_key", "random_packets"]

_ETHER_TYPE = 0x88B5  # for local experiments (IEEE 802)
_VL15_PAYLOAD = 256
_PKT_LEN_MAX = LRH["pkt_len"].max
_MOST_WORDS = max_pkt_len(MTU.MTU_4096)
"""What the packet interface of an adapter takes."""


@dataclass(frozen=True)
class _Target:
    """Where packets of a burst go.

    Attributes:
        dlid: LRH.DLID.
        hosts: that should get them, or may.
        mtu: what their payloads may be, in bytes.
    """

    dlid: int
    hosts: tuple[str, ...]
    mtu: int


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


_BURST = (1, 1, 1, 2, 3, 5, 8, 16)
_PHASE_CYCLES = (1_000, 8_000)
_PHASE_LOADS = (0.1, 0.5, 1.0, 1.0, 2.0)
"""Multiples of the load in the phases of a host, about 1 on the mean."""

_SHORT = 64
"""Payload bytes of most packets: much happens in few cycles."""

_VL15_SHARE = 0.03
_STRAY_SHARE = 0.02
_RAW_SHARE = 0.03
_MULTICAST_SHARE = 0.2
"""Of the bursts, where there are groups."""

_FLOW_OF_GROUPS = 127
"""In place of a destination's LID in the flow of packets to LIDs of no group; each group has one of the next."""

MOST_HOSTS = _FLOW_OF_GROUPS - 1
"""What the flows' numbers have room for."""

_GRH_SHARE = 0.05
_DEFAULT_KEY_SHARE = 0.5
_FULL_KEYS = (0x8000, 0x8001, 0x8002, 0xA5C3, P_KEY_DEFAULT)
"""0x8000 is in no partition."""


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
    sequences: dict[int, int] = {}
    cycle = float(traffic.start)
    phase_end, phase_load = cycle, load
    while cycle < traffic.end:
        if cycle >= phase_end:
            phase_end = cycle + random.randint(*_PHASE_CYCLES)
            phase_load = load * random.choice(_PHASE_LOADS)
        destination = random.choices(others, weights)[0]
        sl = random.randrange(SERVICE_LEVELS)
        management = random.random() < _VL15_SHARE
        target = _target(topology, source, destination)
        if topology.groups and not management and random.random() < _MULTICAST_SHARE:
            target = _group_target(topology, random, source, traffic.strays)
        rows = 0
        for _ in range(random.choice(_BURST)):
            packet = _random_packet(topology, random, source, target, sl, int(cycle), management, sequences)
            # A raw packet has no ICRC that could be wrong.
            plain = LRH["lnh"].read(packet.data) == LNH.IBA_LOCAL
            if traffic.strays and plain and random.random() < _STRAY_SHARE:
                packet = (_vl15_stray if management else _stray)(topology, random, packet)
            yield packet
            rows += packet.rows
        cycle += rows * pace / phase_load * random.uniform(0.5, 1.5)


def _target(topology: Topology, source: str, destination: str) -> _Target:
    path = topology.path(source, destination)
    if path is None:
        raise ValueError(f"no way from {source} to {destination}")
    return _Target(topology.lids[destination], (destination,), min(topology.mtu(port) for port in path))


def _group_target(topology: Topology, random: Random, source: str, strays: bool) -> _Target:
    """A group: all its members take what is sent. With strays its members change, and what is sent may be too long."""
    mlid = random_group(topology, random, others=strays)
    members = topology.lids if strays else topology.groups[mlid]
    hosts = tuple(host for host in members if host != source)
    mtu = topology.mtu(Port(source, 1)) if strays else min(_target(topology, source, host).mtu for host in hosts)
    return _Target(mlid, hosts, mtu)


def _random_packet(
    topology: Topology,
    random: Random,
    source: str,
    target: _Target,
    sl: int,
    cycle: int,
    management: bool,
    sequences: dict[int, int],
) -> Packet:
    vl = VL15 if management else topology.vl(Port(source, 1), sl)
    copies = tuple((host, VL15 if management else topology.final_vl(host, sl)) for host in target.hosts)
    is_group = is_multicast_lid(target.dlid)
    # One flow for each path through the fabric on which the order is kept: (source, destination, SL or VL15).
    to = _flow_of_group(topology, target.dlid) if is_group else target.dlid
    flow = (topology.lids[source] << 8 | to) << 5 | (16 if management else sl)
    sequence = sequences[flow] = sequences.get(flow, -1) + 1
    mtu = _VL15_PAYLOAD if management else target.mtu
    lids = {"slid": topology.lids[source], "dlid": target.dlid}
    short = random.randint(0, _SHORT)
    size = random.choice((0, short, short, short, random.randint(0, mtu), mtu))
    if not management and random.random() < _RAW_SHARE:
        payload = (IDENTITY.pack(flow, sequence) + random.randbytes(mtu))[: 8 + size // 4 * 4]
        header = RWH.record({"ether_type": _ETHER_TYPE})
        data = build_raw(lrh={**lids, "vl": vl, "sl": sl}, header=header, payload=payload).data
    else:
        grh = not management and random.random() < _GRH_SHARE
        key = P_KEY_DEFAULT if management or random.random() < _DEFAULT_KEY_SHARE else random_p_key(random)
        data = ud_packet(random, **lids, sl=sl, vl=vl, flow=flow, sequence=sequence, size=size, grh=grh, p_key=key)
    node_vls = topology.fabric.nodes[source].vls
    packet = Packet(flow, sequence, cycle, source, None, slot_of_vl(vl, node_vls), vl, data, copies=copies)
    return packet if is_group else packet.each[0]


def _flow_of_group(topology: Topology, mlid: int) -> int:
    """What stands for a group: each has a tree of its own, so that packets to one may overtake those to another."""
    groups = list(topology.groups)
    return _FLOW_OF_GROUPS + (1 + groups.index(mlid) if mlid in groups else 0)


def _stray(topology: Topology, random: Random, packet: Packet) -> Packet:
    """The packet made into one that never arrives.

    No such LID, back to its sender, a wrong LVer, too long, a wrong PktLen, a wrong ICRC.
    """
    data, length = packet.data, packet.pkt_len
    longest = max_pkt_len(mtu_code(topology.fabric.nodes[packet.source].mtu))
    match random.randrange(7):
        case 0:
            data = LRH["dlid"].write(data, 0)
        case 1:
            # Where there are groups, one of those LIDs may be somebody's.
            beyond = LID_MULTICAST_MIN if topology.groups else LID_PERMISSIVE
            data = LRH["dlid"].write(data, random.randrange(len(topology.lids) + 1, beyond))
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
            data = LRH["pkt_len"].write(data, random.choice(sorted(lies)))
        case _:
            last = int.from_bytes(data[-WORD_BYTES:], "big") ^ 1 << random.randrange(32)
            data = data[:-WORD_BYTES] + last.to_bytes(WORD_BYTES, "big")
    return packet._replace(destination=None, data=data, copies=())


def _vl15_stray(topology: Topology, random: Random, packet: Packet) -> Packet:
    """The VL15 packet made into one that never arrives: to a multicast or the permissive LID, or with a GRH."""
    data = packet.data
    match random.randrange(3):
        case 0:
            data = LRH["dlid"].write(data, random.randint(LID_MULTICAST_MIN, LID_MULTICAST_MAX))
        case 1:
            data = LRH["dlid"].write(data, LID_PERMISSIVE)
        case _:
            data = LRH["lnh"].write(data, LNH.IBA_GLOBAL)
    return packet._replace(destination=None, data=data)
