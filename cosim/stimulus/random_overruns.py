"""Receive buffers that run over at random: a sender believes in more room than there is, again and again."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf
from random import Random
from typing import Final

from cosim.stimulus.bus_bring_up import write_port
from cosim.stimulus.random_settings import due, random_times, switch_ports
from cosim.stimulus.row_errors import forged_flow_control, in_idle_data
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import LNH, VL15, max_pkt_len, mtu_code
from wire.crc import vcrc
from wire.headers import LRH
from wire.registers import PortRegister
from wire.stimulus import Control, Operation, injection_target
from wire.symbols import Row, frame_data_packet

__all__ = ["has_bursts_anywhere", "has_overrun_bursts", "random_overrun_bursts", "random_overruns"]

_SHARE: Final = 0.5
"""Of the runs, those with overruns of this kind."""

_GAP: Final = (5_000, 30_000)
_PERIODS: Final = (300, 800)
_CYCLES: Final = (2_000, 8_000)
_USUAL_PERIOD_BITS: Final = 14
_LEAST_USUAL_PERIOD: Final = 1_000
_FORGED_IN_A_PERIOD: Final = 4
_MOST_OVERRUN_ERRORS: Final = 5

_BURSTS_SHARE: Final = 0.02
"""Of the runs, those with bursts of packets for which there is no room."""

_ANYWHERE_SHARE: Final = 0.01
"""Likewise, at adapters too and on VL15."""

_BURSTS_GAP: Final = (500, 4_000)
_FILL_CYCLES: Final = (2_000, 5_000)
"""From when hosts take nothing to when switches' buffers are full."""

_STALL_CYCLES: Final = 100
_BURSTS: Final = (4, 12)
_BURST_PERIOD_ROWS: Final = (8, 15)
_BURST_PERIODS: Final = (30, 50)
"""A count of 4 bits comes to its end in two thirds of them."""

_PACKET_ROWS: Final = 5
"""With idle ones: what else is given in a cycle of a burst comes late."""

_LOOK_SHARE: Final = 0.12
"""Of the packets, those before which somebody looks at what is counted."""

_LATE_OVERRUN_ERRORS: Final = (2, 15)


def random_overruns(topology: Topology, random: Random, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """In some runs hosts that take nothing for long, while credits are forged that a port announces: of one of their
    adapters, or of a switch, whose buffers are full then.

    OVERRUN_ERRORS, the number of periods with overruns after which these count as excessive, changes meanwhile.
    """
    if random.random() >= _SHARE:
        return
    ports = topology.linked_ports()
    later: list[Control] = []
    until = dict.fromkeys(ports, start)
    for cycle in random_times(random, _GAP, start, end):
        yield from due(later, cycle)
        port = random.choice(ports)
        if cycle <= until[port]:
            continue
        count["overrun"] += 1
        period, until[port] = random.randint(*_PERIODS), cycle + random.randint(*_CYCLES)
        for control in _overrun(topology, random, port, cycle, until[port], period):
            heapq.heappush(later, control)
    yield from due(later, inf)


def _overrun(topology: Topology, random: Random, port: Port, start: int, end: int, period: int) -> Iterator[Control]:
    """One port's, from a cycle until another; it announces credits once in a period."""
    link = topology.link_at(port)
    assert link is not None
    yield write_port(topology, start, port, PortRegister.FCP_PERIOD, period)
    hosts = [port.node] if port.node in topology.lids else [*topology.lids]
    for cycle in range(start, end, period):
        yield from _stalls(topology, hosts, cycle)
        yield write_port(topology, cycle, port, PortRegister.OVERRUN_ERRORS, random.randint(0, _MOST_OVERRUN_ERRORS))
        for _ in range(_FORGED_IN_A_PERIOD):
            now = cycle + random.randrange(period)
            yield Control(now, Operation.INJECT, injection_target(*link), forged_flow_control(random).args())
    for host in hosts:
        yield Control(end, Operation.RECV_STALL, topology.index[host])
    yield _usual_period(topology, random, port, end)


def _usual_period(topology: Topology, random: Random, port: Port, cycle: int) -> Control:
    usual = _LEAST_USUAL_PERIOD + random.getrandbits(_USUAL_PERIOD_BITS)
    return write_port(topology, cycle, port, PortRegister.FCP_PERIOD, usual)


def _stalls(topology: Topology, hosts: Iterable[str], cycle: int) -> Iterator[Control]:
    """Given again and again: other stalls of these hosts end meanwhile."""
    for host in hosts:
        every_vl = (1 << topology.fabric.nodes[host].vls) - 1
        yield Control(cycle, Operation.RECV_STALL, topology.index[host], (every_vl, 0, 0, 0))


def has_overrun_bursts(seed: int) -> bool:
    """Whether there are overruns in one flow control period after the other, where links have no other errors."""
    return Random(f"{seed}/packets without room").random() < _BURSTS_SHARE


def has_bursts_anywhere(seed: int) -> bool:
    """Whether there are such overruns at adapters too, and on VL15."""
    return Random(f"{seed}/bursts at adapters").random() < _ANYWHERE_SHARE


def random_overrun_bursts(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str], *, anywhere: bool = False
) -> Iterator[Control]:
    """Hosts take nothing until the buffers of adapters and switches are full; then one port after the other, of
    switches or of any node, gets packets without room, in one short flow control period after the other."""
    ports, free = topology.linked_ports() if anywhere else switch_ports(topology), start
    for cycle in random_times(random, _BURSTS_GAP, start, end) if ports else ():
        if cycle < free:
            continue
        free = cycle + random.randint(*_FILL_CYCLES)
        for now in range(cycle, free, _STALL_CYCLES):
            yield from _stalls(topology, topology.lids, now)
        for _ in range(random.randint(*_BURSTS)):
            count["overrun"] += 1
            burst = list(_burst(topology, random, random.choice(ports), free, anywhere=anywhere))
            yield from burst
            free = burst[-1].cycle + 1
        yield from (Control(free, Operation.RECV_STALL, topology.index[host]) for host in topology.lids)


def _burst(topology: Topology, random: Random, port: Port, start: int, *, anywhere: bool) -> Iterator[Control]:
    """At one port; OVERRUN_ERRORS counts none or each, and then as many as have been long before.

    What is counted is read, and then 0: it has few bits.
    """
    link, pitch = topology.link_at(port), topology.pace(port)
    assert link is not None
    toward, period = injection_target(*link) ^ 1, random.randint(*_BURST_PERIOD_ROWS)
    yield write_port(topology, start, port, PortRegister.FCP_PERIOD, period * pitch)
    yield write_port(topology, start, port, PortRegister.OVERRUN_ERRORS, random.randint(0, 1))
    packets = period * random.randint(*_BURST_PERIODS) // _PACKET_ROWS
    vls = range(topology.vls(port))
    vl, cycle = random.choice((*vls, VL15) if anywhere else vls), -(-start // pitch) * pitch
    dlids = _dlids(topology, port)
    if vl == VL15:
        # There are no credits: one output has them all, and is slower than they come.
        dlids = [random.choice(dlids)]
    for number in range(packets):
        if number == packets * 2 // 3:
            errors = random.randint(*_LATE_OVERRUN_ERRORS)
            yield write_port(topology, cycle, port, PortRegister.OVERRUN_ERRORS, errors)
        if random.random() < _LOOK_SHARE:
            yield from _stalls(topology, topology.lids, cycle)
            address = registers.port_address(port.number, registers.Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS)
            yield Control(cycle, Operation.BUS_READ, topology.index[port.node], (address, 0, 0, 0))
            yield write_port(topology, cycle, port, registers.Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS, 0)
        for row, injection in enumerate(in_idle_data(_short_for_long(topology, random, port, vl, dlids))):
            yield Control(cycle + row * pitch, Operation.INJECT, toward, injection.args())
        cycle += _PACKET_ROWS * pitch
    yield _usual_period(topology, random, port, cycle)


def _dlids(topology: Topology, port: Port) -> list[int]:
    """LIDs by which a packet goes on from a port, to another or to the adapter's host; 0 if there are none."""
    if port.node in topology.lids:
        return list(topology.lids_of(port.node))
    return [lid for lid, output in topology.tables[port.node].items() if output not in (0, port.number)] or [0]


def _short_for_long(topology: Topology, random: Random, port: Port, vl: int, dlids: list[int]) -> list[Row]:
    """A packet of three rows, for one of these LIDs, which says to be as long as there are any."""
    dlid = random.choice(dlids)
    length = max_pkt_len(mtu_code(topology.fabric.nodes[port.node].mtu))
    body = LRH.pack(vl=vl, sl=random.getrandbits(4), lnh=LNH.IBA_LOCAL, dlid=dlid, pkt_len=length)
    return frame_data_packet(body + vcrc(body))
