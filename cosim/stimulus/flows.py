"""The packets of a scenario's flows: when each arrives and where it goes.

Everything is a lazily drawn function of the seed, so that the same traffic can be given to several engines.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from operator import attrgetter
from random import Random

from cosim.scenario.message_flow import MessageFlow
from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import ANY_HOST, AnyFlow, Flow
from cosim.stimulus.destinations import next_destination, partners_of
from cosim.stimulus.packet import Packet, RdmaWritePackets, UdPackets
from cosim.topology.topology import Port, Topology
from wire.parameters import node_text

__all__ = [
    "Arrivals",
    "MessageStream",
    "Stream",
    "message_streams",
    "pattern_seed",
    "scenario_packets",
    "scenario_streams",
]


@dataclass(frozen=True)
class Stream:
    """The packets of one flow from one host on one SL; to one destination they arrive in order.

    Attributes:
        flow: as in the scenario.
        source: the sending host.
        sl: service level.
        name: what a story calls it.
    """

    flow: Flow
    source: str
    sl: int
    name: str


def scenario_streams(scenario: Scenario) -> list[Stream]:
    """All streams; a packet's `flow` is its stream's place in this list."""
    streams = []
    for flow in scenario.packet_flows:
        for source in scenario.sources_of(flow):
            name = _name(flow, source)
            streams += [Stream(flow, source, sl, name if len(flow.sls) == 1 else f"{name} SL{sl}") for sl in flow.sls]
    return streams


@dataclass(frozen=True)
class MessageStream:
    """The messages of one flow from one host.

    Attributes:
        flow: as in the scenario.
        source: the host that posts them.
        destination: its peer.
        name: what a story calls it.
    """

    flow: MessageFlow
    source: str
    destination: str
    name: str

    def path_mtu(self, topology: Topology) -> int:
        """Bytes of the message that a packet holds: what the flow says, or what all links take, there and back."""
        return self.flow.path_mtu or min(topology.mtu(hop) for hop in self._hops(topology))

    def link_cycles(self, topology: Topology) -> int:
        """For how many cycles a message keeps the narrowest link of its path busy, headers and all."""
        return self.flow.rows(self.path_mtu(topology)) * max(topology.pace(hop) for hop in self._hops(topology))

    def _hops(self, topology: Topology) -> list[Port]:
        """The ports by which packets leave nodes on the way to the destination, and on the way back."""
        ends = self.source, self.destination
        return [hop for one, other in (ends, ends[::-1]) for hop in topology.path(one, other) or ()]


def message_streams(scenario: Scenario) -> list[MessageStream]:
    """All streams of messages, which are numbered after those of packets."""
    return [
        MessageStream(flow, source, scenario.host_of(flow.destination), _name(flow, source))
        for flow in scenario.message_flows
        for source in scenario.sources_of(flow)
    ]


def _name(flow: AnyFlow, source: str) -> str:
    """What a flow is called that comes from a host."""
    if flow.source != ANY_HOST:
        return flow.label
    return f"{flow.name} {source}" if flow.name else f"{node_text(source)}-{flow.destination}"


def scenario_packets(scenario: Scenario, topology: Topology, start: int, seed: int) -> Iterator[Packet]:
    """The packets of all flows, by cycle; `start` is the cycle from which traffic may start."""
    makers = []
    number = 0
    for index, flow in enumerate(scenario.packet_flows):
        chosen = partners_of(scenario, flow, pattern_seed(seed, index))
        for place, source in enumerate(scenario.sources_of(flow)):
            random = Random(f"{seed}/{index}/{place}")
            destinations = next_destination(scenario, flow, source, chosen.get(source), random)
            makers.append(_packets(scenario, topology, number, flow, source, destinations, start, random))
            number += len(flow.sls)
    return heapq.merge(*makers, key=attrgetter("cycle"))


def pattern_seed(seed: int, index: int) -> str:
    """The seed of what is drawn once of a flow of packets: its pattern. `index` is its place among these."""
    return f"{seed}/{index}/pattern"


class Arrivals:
    """The cycles at which a host has its packets, or messages, of a flow ready.

    With `random` arrivals the gaps between packets are whole cycles of a geometric distribution: in every idle
    cycle a packet is as likely to come as in any other, and none comes while one would still be on the link.

    With a `burst` above 1 they come from a Markov chain of two states, on and off: each packet is the last of its burst
    with probability 1 / burst, else the next follows without a gap; an idle time is at least one cycle, and so long on
    the mean that the load is the same. At a load so near 1 that this would be less than a cycle, bursts grow together.
    """

    def __init__(self, flow: AnyFlow, start: int, end: int, random: Random) -> None:
        self._rate = None if flow.rate is None else Fraction(flow.rate)
        self._regular = flow.arrivals == "regular"
        self._burst = flow.burst
        self._random = random
        self._next: int | Fraction = start + flow.start
        self._end = end
        self._left = flow.count

    def next(self) -> int | None:
        """The next packet's cycle; None if no more come."""
        if self._next >= self._end or self._left == 0:
            return None
        if self._left is not None:
            self._left -= 1
        return int(self._next)

    def sent(self, busy: int) -> None:
        """The packet keeps its link busy for so many cycles."""
        if self._rate is None:
            return
        if self._rate == 1:
            self._next += busy
        elif self._regular:
            self._next += busy / self._rate
        else:
            gap = busy / float(self._rate) - busy
            self._next += busy + (self._idle(gap) if self._burst == 1 else self._idle_after_burst(gap))

    def _idle_after_burst(self, gap: float) -> int:
        """Cycles of no packet, `gap` on the mean; none within a burst."""
        if self._random.random() >= 1 / self._burst:
            return 0
        idle = gap * self._burst
        return 1 + self._idle(idle - 1) if idle > 1 else int(self._random.random() < idle)

    def _idle(self, mean: float) -> int:
        """A geometric time: an exponential one rounded down."""
        return int(self._random.expovariate(math.log1p(1 / mean)))


def _packets(
    scenario: Scenario,
    topology: Topology,
    number: int,
    flow: Flow,
    source: str,
    destinations: Callable[[], str],
    start: int,
    random: Random,
) -> Iterator[Packet]:
    """The packets of a flow from one host; its streams are numbered from `number` on."""
    make = RdmaWritePackets(random, flow.count or 0) if flow.operation == "rdma_write" else UdPackets(random)
    pace = topology.pace(Port(source, 1))
    sls = flow.sls
    p_key = scenario.p_key_of(flow, source)
    group = scenario.groups.get(flow.destination)
    hosts = () if group is None else scenario.destinations_of(flow, source)
    sequences = [0] * len(sls)
    arrivals = Arrivals(flow, start, start + scenario.cycles, random)

    @cache
    def first_and_last_vl(destination: str, sl: int) -> tuple[int, int]:
        path = topology.path(source, destination)
        if path is None:
            raise ValueError(f"no way from {node_text(source)} to {node_text(destination)}")
        return topology.vl(path[0], sl), topology.vl(path[-1], sl)

    while (cycle := arrivals.next()) is not None:
        destination = destinations() if group is None else None
        place = 0 if len(sls) == 1 else random.randrange(len(sls))
        copies = tuple((host, first_and_last_vl(host, sls[place])[1]) for host in hosts)
        vl, final_vl = first_and_last_vl(destination or hosts[0], sls[place])
        data = make.data(
            slid=topology.lids[source],
            dlid=topology.lids[destination or ""] if group is None else group.mlid,
            sl=sls[place],
            vl=vl,
            flow=number + place,
            sequence=sequences[place],
            size=flow.size if isinstance(flow.size, int) else random.randint(*flow.size),
            p_key=p_key,
        )
        ends = source, destination, vl, final_vl
        packet = Packet(number + place, sequences[place], cycle, *ends, data, copies=copies)
        yield packet
        sequences[place] += 1
        arrivals.sent(packet.rows * pace)
