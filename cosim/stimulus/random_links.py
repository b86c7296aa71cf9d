"""What happens at random to links as a whole, and to the states of their ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Final

from cosim.stimulus.bus_bring_up import initial_exchange, node_writes, write_port, write_states
from cosim.stimulus.random_link_settings import link_ends, with_link_settings
from cosim.stimulus.random_settings import random_gap, random_times, switch_ports
from cosim.stimulus.row_errors import link_error, random_row_error
from cosim.topology.topology import Port, Topology
from wire.codes import LINK_WIDTHS, LinkWidth, PortPhysicalState, PortState, max_pkt_len, mtu_code
from wire.parameters import AdapterParameters, reset_cycles
from wire.registers import PortRegister, port_address
from wire.stimulus import Control, Operation, injection_target

__all__ = [
    "RESET_SHARE",
    "are_many_outages",
    "has_many_changes",
    "random_changes",
    "random_outages",
    "random_port_downs",
    "random_restarts",
    "sweeps",
]

_OUTAGE_GAP: Final = (5_000, 30_000)
_MOST_MANY_GAP: Final = 2_000
"""Cycles from one outage to the next, at most, where they are many."""

RESET_SHARE: Final = 0.3
"""Of the outages, those in which a node is reset."""

_WIDTH_SHARE: Final = 0.25
"""Of the outages of links, those after which the link has its other width for a while."""

_OTHER_WIDTH_CYCLES: Final = (1_000, 12_000)
_ROW_CYCLES_1X: Final = 4
_HASTY_SHARE: Final = 0.5
"""Of the links of adapters that come back 1X, those whose adapter is in a hurry."""

_MOST_HASTY_TIMES: Final = 20
_MOST_HASTY_CYCLES: Final = (4, 12, 24)
"""From one time to the next; all of them are fewer than a link keeps its other width."""

_AFTER_RESET: Final = 100
_RESET_AGAIN_SHARE: Final = 0.3
_SOON: Final = 20
_BEHIND_BEGIN: Final = (0, 0, 32)
"""Cycles, at most, from the begin of a node's life, in which it takes what its host has waiting, to another reset."""

_LINK_DOWN_CYCLES: Final = (1, 3_000)
_LOOSE_SHARE: Final = 0.5
"""Of the other outages, those of a plug that is loose."""

_LOOSE_TIMES: Final = (1, 40)
_MOST_DOWN_CYCLES: Final = (1, 4, 20)
_MOST_UP_CYCLES: Final = (10, 60, 300)

_PORT_DOWN_GAP: Final = (3_000, 60_000)
_UNHEARD_SHARE: Final = 0.5
"""Of the ports set Down, those whose neighbour does not hear of it for a while."""

_UNHEARD_CYCLES: Final = (20, 400)
_LINK_PACKET_CYCLES: Final = 4
"""From one loss to the next: about as long as a flow control packet is on a link."""

_RESTART_GAP: Final = (4_000, 40_000)
_STATE_WRITES: Final = (2, 24)
_MOST_WRITE_CYCLES: Final = (1, 2, 8, 40)
_NEXT_STATES: Final = (*[PortState.ARMED] * 4, *[PortState.ACTIVE] * 4, PortState.DOWN)
_CHANGES_SHARE: Final = 0.02
"""Of the runs, those in which a switch's port changes its state more than a thousand times in a row."""

_CHANGES_GAP: Final = (3_000, 12_000)
_CHANGES_CYCLES: Final = (2_500, 4_000)
_CHANGE_STEPS: Final = (2, 3)
_SWEEP_CYCLES: Final = (1_024, 4_096)
_LEFT_ARMED_SHARE: Final = 0.25
_USUAL: Final[tuple[tuple[PortRegister, int], ...]] = (
    (PortRegister.LINK_WIDTH_ENABLED, LINK_WIDTHS),
    (PortRegister.LINK_DOWN_DEFAULT, PortPhysicalState.POLLING),
    (PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING),
)
_USUAL_SHARE: Final = 0.3
"""Of the sweeps, those with these settings, by which each link starts anew."""

_COMES_UP: Final = 16
"""Cycles, with room to spare, from there to Initialize."""


def are_many_outages(random: Random) -> bool:
    """Whether `random_outages` draws them one soon after the other from this."""
    return random_gap(random, _OUTAGE_GAP)[1] <= _MOST_MANY_GAP


def has_many_changes(seed: int) -> bool:
    """Whether a switch has very many changes of its ports' states to count, where links have errors."""
    return Random(f"{seed}/many changes").random() < _CHANGES_SHARE


def random_outages(
    topology: Topology,
    random: Random,
    start: int,
    end: int,
    count: Counter[str],
    reset_share: float,
    haste: Random,
    settings: Random,
) -> Iterator[Control]:
    """One after the other: links that are down for a while, and nodes that are reset.

    HASTE draws which adapters are in a hurry, and how; SETTINGS, what the ports of links are told.
    """
    until = start
    for cycle in random_times(random, random_gap(random, _OUTAGE_GAP), start, end):
        if cycle < until:
            continue
        link = random.randrange(len(topology.fabric.links))
        if random.random() < reset_share:
            count["reset"] += 1
            controls = _reset(topology, random, random.choice(list(topology.fabric.nodes)), cycle)
            until = controls[-1].cycle + 1
            yield from controls
            continue
        if random.random() < _WIDTH_SHARE:
            count["width"] += 1
            controls = _other_width(topology, random, haste, link, cycle)
        elif random.random() < _LOOSE_SHARE:
            controls = _loose_plug(random, link, cycle, count)
        else:
            count["link_down"] += 1
            last = cycle + random.randint(*_LINK_DOWN_CYCLES)
            controls = [Control(cycle, Operation.LINK_DOWN, link), Control(last, Operation.LINK_UP, link)]
        controls = with_link_settings(topology, settings, link, controls, until, count)
        until = controls[-1].cycle + 1
        yield from controls


def _loose_plug(random: Random, link: int, cycle: int, count: Counter[str]) -> list[Control]:
    """A link is lost and found again several times, each for some cycles; what is on it before may be damaged."""
    most_up, most_down = random.choice(_MOST_UP_CYCLES), random.choice(_MOST_DOWN_CYCLES)
    controls = []
    for _ in range(random.randint(*_LOOSE_TIMES)):
        count["link_down"] += 1
        damaged, down = random_row_error(random, count), cycle + random.randint(1, most_up)
        cycle = down + random.randint(1, most_down)
        controls += [
            Control(down - 1, Operation.INJECT, injection_target(link, random.randrange(2)), damaged.args()),
            Control(down, Operation.LINK_DOWN, link),
            Control(cycle, Operation.LINK_UP, link),
        ]
    return controls


def _other_width(topology: Topology, random: Random, haste: Random, link: int, cycle: int) -> list[Control]:
    """A link goes down, comes back with its other width, and after a while likewise with its own.

    WIDTH is written while both ports are Down, and they stay so for longer than any packet takes: what arrives then for
    one of them, and would be sent at another pace than it was to be, is swallowed (docs/pipeline.md, section 2).
    """
    longest = max(max_pkt_len(mtu_code(node.mtu)) for node in topology.fabric.nodes.values())
    pause = _ROW_CYCLES_1X * (longest + 1)
    ends = link_ends(topology, link)
    own = LinkWidth.X4 if topology.pace(ends[0]) == 1 else LinkWidth.X1
    other = LinkWidth.X1 if own == LinkWidth.X4 else LinkWidth.X4

    def change(cycle: int, width: LinkWidth) -> list[Control]:
        downs = [
            write_port(topology, now, port, PortRegister.STATE, PortState.DOWN)
            for now, port in enumerate(ends, cycle + 1)
        ]
        random.shuffle(ends)
        widths = [
            write_port(topology, now, port, PortRegister.WIDTH, width)
            for now, port in enumerate(ends, downs[-1].cycle + 1)
        ]
        up = Control(widths[-1].cycle + pause, Operation.LINK_UP, link)
        return [Control(cycle, Operation.LINK_DOWN, link), *downs, *widths, up]

    there = change(cycle, other)
    back = change(there[-1].cycle + random.randint(*_OTHER_WIDTH_CYCLES), own)
    adapters = [end for end in ends if isinstance(topology.fabric.nodes[end.node], AdapterParameters)]
    if other == LinkWidth.X1 and len(adapters) == 1 and haste.random() < _HASTY_SHARE:
        there += _in_haste(topology, haste, adapters[0], there[-1].cycle)
    return there + back


def _in_haste(topology: Topology, random: Random, port: Port, cycle: int) -> list[Control]:
    """An adapter's port at a 1X link is set Down again and again, and learns each time that it is 4X or 1X; 1X at last.

    Flow control packets and SMPs of its host cross meanwhile: some of their rows are on no wires. The other end, which
    is a switch's, knows all the time that it is 1X, so that no packet leaves the switch before enough of it is there.
    """
    most = random.choice(_MOST_HASTY_CYCLES)
    controls = []
    for _ in range(random.randint(1, _MOST_HASTY_TIMES)):
        for width in (LinkWidth.X4, LinkWidth.X1):
            cycle += random.randint(2, most)
            controls += [
                write_port(topology, cycle, port, PortRegister.STATE, PortState.DOWN),
                write_port(topology, cycle + 1, port, PortRegister.WIDTH, width),
            ]
    return controls


def _reset(topology: Topology, random: Random, node: str, cycle: int) -> list[Control]:
    """RESET of a node, at times given again meanwhile or just behind it; then it is set up again. Sweeps do the rest.

    Its 1X links wait for their widths. The bus is asked when the reset is just not over yet, and when it just is.
    """
    ports = [port for port in topology.linked_ports() if port.node == node and topology.pace(port) != 1]
    links = [link[0] for link in map(topology.link_at, ports) if link is not None]
    controls = [Control(now, Operation.LINK_DOWN, link) for now, link in enumerate(links, cycle)]
    cycle += len(links)
    index, lasts = topology.index[node], reset_cycles(topology.fabric.nodes[node])
    controls.append(Control(cycle, Operation.RESET, index))
    if random.random() < _RESET_AGAIN_SHARE:
        behind = lasts + random.randint(0, random.choice(_BEHIND_BEGIN))
        cycle += random.choice((random.randint(1, _SOON), random.randint(1, lasts), behind))
        controls.append(Control(cycle, Operation.RESET, index))
    state = port_address(1, PortRegister.STATE), 0, 0, 0
    controls += [Control(now, Operation.BUS_READ, index, state) for now in (cycle + lasts, cycle + lasts + 1)]
    writes = node_writes(topology, node, cycle + lasts + _AFTER_RESET)
    controls += writes
    return controls + [Control(now, Operation.LINK_UP, link) for now, link in enumerate(links, writes[-1].cycle + 1)]


def random_port_downs(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Ports set Down, each by itself.

    The initial flow control packets of some get lost for a while. The neighbour, still Active, sends them data, which
    finds a port in Initialize.
    """
    ports, lost = topology.linked_ports(), link_error("lost_flow_control").args()
    until = start
    for cycle in random_times(random, random_gap(random, _PORT_DOWN_GAP), start, end):
        if cycle < until:
            continue
        count["port_down"] += 1
        port = random.choice(ports)
        yield write_port(topology, cycle, port, PortRegister.STATE, PortState.DOWN)
        direction = topology.link_at(port)
        assert direction is not None
        if random.random() < _UNHEARD_SHARE:
            until = min(cycle + random.randint(*_UNHEARD_CYCLES), end)
            for now in range(cycle + 1, until, _LINK_PACKET_CYCLES):
                count["lost_flow_control"] += 1
                yield Control(now, Operation.INJECT, injection_target(*direction), lost)


def random_restarts(topology: Topology, random: Random, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """A port is set Down, and whoever did it is in a hurry to have the link Active again: both ends are told so."""
    ports = topology.linked_ports()
    until = start
    for cycle in random_times(random, random_gap(random, _RESTART_GAP), start, end):
        if cycle < until:
            continue
        port, state, most = random.choice(ports), PortState.DOWN, random.choice(_MOST_WRITE_CYCLES)
        ends = [port, topology.far_end(port) or port]
        count["port_down"] += 1
        until = cycle
        for _ in range(random.randint(*_STATE_WRITES)):
            yield write_port(topology, until, port, PortRegister.STATE, state)
            until += random.randint(1, most)
            port, state = random.choice(ends), random.choice(_NEXT_STATES)


def random_changes(topology: Topology, random: Random, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """A switch's port is set Down as soon as it is in Initialize, again and again: each time that is to be told."""
    ports, until = switch_ports(topology), start
    for cycle in random_times(random, _CHANGES_GAP, start, end) if ports else ():
        if cycle < until:
            continue
        count["port_down"] += 1
        port, until = random.choice(ports), min(cycle + random.randint(*_CHANGES_CYCLES), end)
        while cycle < until:
            yield write_port(topology, cycle, port, PortRegister.STATE, PortState.DOWN)
            cycle += random.choice(_CHANGE_STEPS)


def sweeps(topology: Topology, random: Random, start: int, end: int) -> Iterator[Control]:
    """Arm and activate every link again and again; a port that is Active ignores both.

    Of some links only one end is activated: the first data packet of that does it at the other. In some sweeps what
    keeps links down or narrow, or will, is made right first, ports asleep are woken, and all links start anew.
    """
    ports = topology.linked_ports()
    exchange = max(initial_exchange(topology, port) for port in ports)
    most_writes = len(_USUAL) + 2
    period = max(random.choice(_SWEEP_CYCLES), exchange + _COMES_UP) + most_writes * len(ports)
    for first in range(start + period, end, period):
        settings = _USUAL if random.random() < _USUAL_SHARE else ()
        for cycle, (setting, port) in enumerate(product(settings, ports), first):
            yield write_port(topology, cycle, port, *setting)
        cycle = first + len(settings) * len(ports) + _COMES_UP
        yield from write_states(topology, cycle, PortState.ARMED)
        left = {far for port in ports if (far := topology.far_end(port)) and random.random() < _LEFT_ARMED_SHARE}
        activated = write_states(topology, cycle + len(ports) + exchange, PortState.ACTIVE)
        for port, control in zip(ports, activated, strict=True):
            if port not in left:
                yield control
