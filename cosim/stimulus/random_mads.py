"""MADs at random from every host to every agent: SMPs and performance management, right and mutated.

`random_mad` makes one, whatever it is for; the others are for `ironband check`.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from operator import attrgetter
from random import Random
from typing import Final, Literal, NamedTuple, get_args

from cosim.stimulus.agents import agent_lids, agent_routes, random_path
from cosim.stimulus.bus_bring_up import write
from cosim.stimulus.mad_mutation import mad_of, mutated
from cosim.stimulus.packet import Packet, slot_of_vl
from cosim.stimulus.random_groups import random_group
from cosim.stimulus.random_packets import random_p_key
from cosim.stimulus.random_settings import due, random_times
from cosim.stimulus.random_smps import Repair, SetSoFar, random_smp_content
from cosim.stimulus.rare_fields import (
    has_long_leases,
    has_other_lids,
    has_rare_fields,
    leased_second,
    other_lid,
    rare_grh,
    rare_lease_second,
    with_other_bit,
)
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import (
    LID_PERMISSIVE,
    P_KEY_DEFAULT,
    SERVICE_LEVELS,
    VL15,
    PortPhysicalState,
    is_multicast_lid,
    mtu_code,
    operational_vls,
)
from wire.headers import LRH
from wire.mad import MAD_HEADER, MadMethod
from wire.mad_packet import gmp_packet, is_of_management, smp_packet
from wire.parameters import SwitchParameters
from wire.pma import ALL_PORTS, PMA_DATA_BYTES, PORT_COUNTERS, PmaAttribute, perf_request
from wire.registers import NodeRegister, PortRegister
from wire.sma import SmaAttribute
from wire.smp import SMP_PATH, smp_request
from wire.stimulus import Control
from wire.time_limits import NO_LIMIT

__all__ = [
    "MAD_KINDS",
    "MadKind",
    "RandomMad",
    "has_mads",
    "has_many_mads",
    "mostly_about",
    "random_mad",
    "random_mad_controls",
    "random_mad_packets",
]

_SHARE: Final = 0.5
"""Of the runs, those with MADs."""

_MANY: Final = ((10, 250), (10, 250))
_GAPS: Final = (*_MANY, (100, 3_000))
"""In cycles: many that leave less data, or few among much."""

_MOSTLY_SHARE: Final = 0.3
"""Of the runs, those with SMPs that are mostly about one attribute."""

_SET_ATTRIBUTES: Final = (
    SmaAttribute.PORT_INFO,
    SmaAttribute.PORT_INFO,
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.SL_TO_VL_MAPPING_TABLE,
    SmaAttribute.VL_ARBITRATION_TABLE,
    SmaAttribute.P_KEY_TABLE,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
)
_SMP_SHARE: Final = 0.6
_DIRECTED_SHARE: Final = 0.7
_PARTLY_DIRECTED_SHARE: Final = 0.2
"""Of directed routes, those with a part by LID before or behind them."""

_ANSWER_SHARE: Final = 0.15
"""Of directed SMPs, answers of a host that nobody asked."""

_LOST_SHARE: Final = 0.1
"""Of directed SMPs, those that are somewhere on their route before they begin it, or back."""

_TO_SWITCH_SHARE: Final = 0.5
"""Of MADs, those for a switch, whatever else there is."""

_MOSTLY_TO_SWITCH_SHARE: Final = 0.9
"""Of SMPs in runs where these are mostly about one attribute."""

_MOST_HOPS: Final = 3
_TO_ITSELF_SHARE: Final = 0.05
"""Of GMPs, those of which the agent's answer is for its own LID."""

_TO_NOBODY_SHARE: Final = 0.05
"""Likewise for a LID that no forwarding table has."""

_TO_GROUPS_SHARE: Final = 0.05

_BY_OWN_LID_SHARE: Final = 0.6
"""Of the GMPs of hosts whose adapters have other LIDs for some time, those to these or nearly."""

_RIGHT_LID_SHARE: Final = 0.7
"""Of these, those to LIDs that the adapters do have."""

_MUTATED_SHARE: Final = 0.25
_GRH_SHARE: Final = 0.2
_WRONG_GRH_SHARE: Final = 0.2
"""Of GRHs, those of another version, or before something else than a BTH."""

_MODIFIED_SHARE: Final = 0.03
_REPAIR_CYCLES: Final = (600, 4_000)
_LEASE_SECONDS: Final = (1, 100, 1_000, registers.LEASE_SECOND_AT_RESET)
_MOST_LEASE_SECOND: Final = 2_000
"""Of others."""

_SWEEP_CYCLES: Final = 4_000
_LIMIT_ENDS_SHARE: Final = 0.1
"""Of the limits and checks of switches, those that a sweep ends."""

_PMA_CODES: Final = (*[*PmaAttribute] * 3, PmaAttribute.PORT_COUNTERS, 0x0002, 0x0013, 0x0017, 0xFF00)

_MAD_MAY_DIFFER: Final = frozenset((0, 2, 4, 5, *range(8, 16), *range(24, 32)))
"""Bytes of a Set's MAD that do not say what it does and where: versions, status, TransactionID and M_Key."""

_MISROUTING: Final = frozenset(
    (
        SmaAttribute.SWITCH_INFO,
        SmaAttribute.SL_TO_VL_MAPPING_TABLE,
        SmaAttribute.LINEAR_FORWARDING_TABLE,
        SmaAttribute.MULTICAST_FORWARDING_TABLE,
    )
)
"""Attributes by which packets come to hosts that should not get them, or on another VL."""

MadKind = Literal["right_mad", "mutated_mad", "unasked_answer", "lost_smp"]
"""A right request; any that was mutated; of the other directed SMPs, an answer that nobody asked for, and one that is
somewhere on its route before it begins it, or back.
"""

MAD_KINDS: Final[tuple[MadKind, ...]] = get_args(MadKind)


class RandomMad(NamedTuple):
    """A packet with a MAD.

    Attributes:
        vl: on which its host sends it.
        data: LRH to ICRC.
        repairs: of what it may make wrong in a switch's tables.
        kind: what is wrong with it.
    """

    vl: int
    data: bytes
    repairs: tuple[Repair, ...] = ()
    kind: MadKind = "right_mad"


def random_mad(
    topology: Topology,
    random: Random,
    host: str,
    number: int,
    so_far: Mapping[str, SetSoFar],
    own_lid: int | None = None,
) -> RandomMad:
    """A request of a host to some agent, right or mutated; `number` is its PSN and TransactionID.

    `so_far`: of every node, what those before have set there, to which it adds. `own_lid`: by which the host often asks
    its own agent, or nearly. Whatever comes of it, no packet but a MAD reaches a host that it is not for
    (docs/check.md).
    """
    is_smp = random.random() < _SMP_SHARE
    if is_smp:
        right = _smp(topology, random, host, number, so_far)
    else:
        right = _perf(topology, random, host, number, so_far[host].rare, own_lid)
    if random.random() >= _MUTATED_SHARE:
        return right
    data = mutated(random, right.data)
    return right._replace(data=data, kind="mutated_mad") if _is_safe(topology, host, right.data, data) else right


def _is_safe(topology: Topology, host: str, right: bytes, data: bytes) -> bool:
    """Whether a mutated packet is a MAD or reaches no host, and sends no others astray."""
    others = {lid for name in topology.lids if name != host for lid in topology.lids_of(name)}
    dlid = LRH["dlid"].read(data)
    if not is_of_management(data) and (dlid in others or is_multicast_lid(dlid)):
        return False
    was, mad = mad_of(right), mad_of(data)
    if len(mad) < MAD_HEADER.size_bytes or MAD_HEADER["method"].read(mad) != MadMethod.SET:
        return True
    differ = {place for place, (old, new) in enumerate(zip(was, mad, strict=False)) if old != new}
    is_elsewhere = LRH["dlid"].read(right) != dlid or not differ <= _MAD_MAY_DIFFER
    return not (is_elsewhere and MAD_HEADER["attribute_id"].read(mad) in _MISROUTING)


def _agent(topology: Topology, random: Random, share: float = _TO_SWITCH_SHARE) -> str:
    """A node: there are fewer switches than hosts, and they have more to tell."""
    nodes = list(agent_lids(topology))
    is_switch = random.random() < share
    return random.choice([node for node in nodes if not is_switch or node not in topology.lids])


def _smp(topology: Topology, random: Random, host: str, number: int, so_far: Mapping[str, SetSoFar]) -> RandomMad:
    """Over a directed route, by LID, or by both."""
    lids = agent_lids(topology)
    own = topology.lids[host]
    slid = dlid = dr_slid = dr_dlid = LID_PERMISSIVE
    to_switch = _TO_SWITCH_SHARE if so_far[host].mostly is None else _MOSTLY_TO_SWITCH_SHARE
    path, node = None, _agent(topology, random, to_switch)
    if random.random() >= _DIRECTED_SHARE:
        slid, dlid = own, lids[node]
    elif random.random() >= _PARTLY_DIRECTED_SHARE:
        path, node = random_path(topology, random, host, to_switch=random.random() < to_switch)
    elif random.random() < 0.5:
        # The switch at which the directed part ends sends it on.
        path, _ = random_path(topology, random, host, to_switch=True)
        dr_dlid = lids[node]
    else:
        # The directed part begins elsewhere.
        slid = dr_slid = own
        dlid = lids[node]
        path, node = random_path(topology, random, node)
    asked = random_smp_content(topology, random, node, so_far[node])
    smp = smp_request(
        asked.method,
        asked.attribute_id,
        asked.attribute_modifier,
        asked.data,
        transaction_id=number,
        m_key=so_far[node].m_key(random),
        path=path,
        dr_slid=dr_slid,
        dr_dlid=dr_dlid,
    )
    kind: MadKind = "right_mad"
    if path and random.random() < _ANSWER_SHARE:
        kind = "unasked_answer"
        # It goes back along the same ports, as its initial path would go there.
        back = int.from_bytes(SMP_PATH.pack([0, *reversed(path)]), "big")
        smp = smp.replace(method=MadMethod.GET_RESP, d=1, hop_pointer=len(path) + 1, return_path=back)
    elif path is not None and random.random() < _LOST_SHARE:
        kind = "lost_smp"
        hops = {name: random.randint(0, _MOST_HOPS) for name in ("hop_pointer", "hop_count")}
        smp = smp.replace(**hops, d=random.getrandbits(1))
    return RandomMad(VL15, smp_packet(smp, slid, dlid, number).data, asked.repairs, kind)


def _perf(
    topology: Topology, random: Random, host: str, number: int, rare: Random | None, own_lid: int | None
) -> RandomMad:
    """A Get or Set of any attribute of performance management, of any port."""
    lids = agent_lids(topology)
    node = _agent(topology, random)
    ports = topology.fabric.port_count(topology.fabric.nodes[node])
    select = random.choice((*range(1, ports + 1), ALL_PORTS, random.randint(0, ports + 1)))
    method = random.choice((MadMethod.GET, MadMethod.SET))
    data = random.choice((bytes, random.randbytes, lambda size: b"\xff" * size))(PMA_DATA_BYTES)
    data = PORT_COUNTERS["port_select"].write(data, select)
    chosen = PORT_COUNTERS["counter_select"]
    data = chosen.write(data, random.choice((chosen.max, random.getrandbits(chosen.width))))
    mad = perf_request(method, random.choice(_PMA_CODES), data, transaction_id=number)
    if random.random() < _MODIFIED_SHARE:
        mad = mad.replace(attribute_modifier=random.getrandbits(32))
    sl = random.randrange(SERVICE_LEVELS)
    vl = topology.vl(Port(host, 1), sl)
    grh = {"hop_lmt": random.getrandbits(8)} if random.random() < _GRH_SHARE else None
    if grh and random.random() < _WRONG_GRH_SHARE:
        grh[random.choice(("ip_ver", "nxt_hdr"))] = random.getrandbits(4)
    if grh and rare:
        grh |= rare_grh(rare)
    p_key = random.choice((P_KEY_DEFAULT, random_p_key(random)))
    source, target, other = lids[host], lids[node], random.random()
    if other < _TO_ITSELF_SHARE:
        source = lids[node]
    elif other < _TO_ITSELF_SHARE + _TO_NOBODY_SHARE:
        source = random.choice((_lft_size(topology), LID_PERMISSIVE))
    elif topology.groups and other > 1 - _TO_GROUPS_SHARE:
        target = random_group(topology, random, others=True)
    if own_lid is not None and random.random() < _BY_OWN_LID_SHARE:
        target = own_lid if random.random() < _RIGHT_LID_SHARE else with_other_bit(random, own_lid)
    return RandomMad(vl, gmp_packet(mad, source, target, vl=vl, sl=sl, p_key=p_key, psn=number, grh=grh).data)


def _lft_size(topology: Topology) -> int:
    """The first LID behind the forwarding table of a switch."""
    return next(node.lft_size for node in topology.fabric.nodes.values() if isinstance(node, SwitchParameters))


# For checks.


def has_mads(seed: int) -> bool:
    """Whether hosts send MADs, where there are errors."""
    return Random(f"{seed}/with MADs").random() < _SHARE


def has_many_mads(seed: int) -> bool:
    """Whether they send them all the time."""
    return has_mads(seed) and _gap(Random(f"{seed}/MADs")) in _MANY


def mostly_about(seed: int) -> SmaAttribute | None:
    """In some runs the attribute that most SMPs are about: of what an agent does with it there is much to see."""
    random = Random(f"{seed}/attribute")
    return random.choice(_SET_ATTRIBUTES) if random.random() < _MOSTLY_SHARE else None


def _gap(random: Random) -> tuple[int, int]:
    return random.choice(_GAPS)


class _Posted(NamedTuple):
    cycle: int
    host: str
    mad: RandomMad


def _posted(topology: Topology, seed: int, start: int, end: int) -> Iterator[_Posted]:
    """The MADs of a run."""
    random = Random(f"{seed}/MADs")
    hosts = list(topology.lids)
    gap = _gap(random)
    rare = Random(f"{seed}/fields of MADs") if has_rare_fields(seed) else None
    leased = Random(f"{seed}/leases of M_Keys") if has_long_leases(seed) else None
    so_far: defaultdict[str, SetSoFar] = defaultdict(
        partial(SetSoFar, mostly=mostly_about(seed), rare=rare, leased=leased)
    )
    has_others = has_other_lids(seed)
    for number, cycle in enumerate(random_times(random, gap, start, end) if has_mads(seed) else ()):
        host = random.choice(hosts)
        own_lid = _lid_now(topology, seed, host, start, cycle)[0] if has_others else None
        yield _Posted(cycle, host, random_mad(topology, random, host, number, so_far, own_lid))


def _lid_now(topology: Topology, seed: int, host: str, start: int, cycle: int) -> tuple[int, int]:
    """LID and LMC of an adapter as the last sweep left them: in some runs others than a switch sends to it."""
    usual = topology.lids[host], topology.lmcs.get(host, 0)
    if not has_other_lids(seed):
        return usual
    sweep = (cycle - start) // _SWEEP_CYCLES
    return other_lid(Random(f"{seed}/LID of {host} after sweep {sweep}"), *usual)


def random_mad_packets(
    topology: Topology, seed: int, start: int, end: int, given: Counter[str] | None = None
) -> Iterator[Packet]:
    """In some runs MADs of all hosts, by cycle, counted in `given` by kind."""
    count = Counter() if given is None else given
    for number, (cycle, host, mad) in enumerate(_posted(topology, seed, start, end)):
        count[mad.kind] += 1
        slot = slot_of_vl(mad.vl, topology.fabric.nodes[host].vls)
        yield Packet(0, number, cycle, host, None, slot, mad.vl, mad.data)


def random_mad_controls(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """In the same runs what gives agents LIDs, what ends leases soon, and what makes right what Sets make wrong."""
    if not has_mads(seed):
        return iter(())
    random = Random(f"{seed}/repairs")
    second: Callable[[], int] | None = None
    if has_long_leases(seed):
        second = partial(leased_second, Random(f"{seed}/seconds of long leases"))
    elif has_rare_fields(seed):
        second = partial(rare_lease_second, Random(f"{seed}/seconds of leases"))
    streams = _repairs(topology, random, seed, start, end), _sweeps(topology, random, seed, second, start, end)
    return heapq.merge(*streams, key=attrgetter("cycle"))


def _repairs(topology: Topology, random: Random, seed: int, start: int, end: int) -> Iterator[Control]:
    """Of tables, some time after each Set."""
    waiting: list[Control] = []
    for cycle, _, mad in _posted(topology, seed, start, end):
        yield from due(waiting, cycle)
        for repair in mad.repairs:
            heapq.heappush(waiting, write(cycle + random.randint(*_REPAIR_CYCLES), *repair))
    yield from due(waiting, inf)


def _sweeps(
    topology: Topology, random: Random, seed: int, second: Callable[[], int] | None, start: int, end: int
) -> Iterator[Control]:
    """Again and again LIDs, forwarding tables and what would keep a port or its packets out for good."""
    for first in range(start, end, _SWEEP_CYCLES):
        cycle = first
        for name, node in topology.fabric.nodes.items():
            index, is_switch = topology.index[name], isinstance(node, SwitchParameters)
            usual = random.choice((*_LEASE_SECONDS, random.randint(1, _MOST_LEASE_SECOND)))
            writes = [(registers.node_address(NodeRegister.LEASE_SECOND), second() if second else usual)]
            if is_switch:
                table = {**topology.tables[name], **agent_routes(topology, name)}
                writes += [(registers.lft_address(lid), port) for lid, port in table.items()]
                writes.append((registers.node_address(NodeRegister.LINEAR_FDB_TOP), max(table)))
                if random.random() < _LIMIT_ENDS_SHARE:
                    writes.append((registers.node_address(NodeRegister.LIFE_TIME), NO_LIMIT))
            elif name in topology.lids:
                own = zip(
                    (NodeRegister.LID, NodeRegister.LMC), _lid_now(topology, seed, name, start, first), strict=True
                )
                writes += [(registers.node_address(register), value) for register, value in own]
            for port in topology.linked_ports():
                if port.node == name:
                    settings = _settings(topology, random, port, is_switch=is_switch)
                    writes += [(registers.port_address(port.number, one), value) for one, value in settings.items()]
            for address, value in writes:
                yield write(cycle, index, address, value)
                cycle += 1


def _settings(topology: Topology, random: Random, port: Port, *, is_switch: bool) -> dict[PortRegister, int]:
    """Of a port, as bring-up leaves them; some of those that only switches have may stay."""
    settings = {
        PortRegister.PHYSICAL_STATE: int(PortPhysicalState.POLLING),
        PortRegister.OPERATIONAL_VLS: operational_vls(topology.vls(port)),
        PortRegister.NEIGHBOR_MTU: int(mtu_code(topology.mtu(port))),
    }
    limits = {PortRegister.HOQ_LIFE: NO_LIMIT, PortRegister.PARTITION: 0}
    return settings | {
        register: value for register, value in limits.items() if is_switch and random.random() < _LIMIT_ENDS_SHARE
    }
