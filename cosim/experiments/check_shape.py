"""The nodes and links that `ironband check` builds: one switch, those of a topology, or some drawn at random."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Final

from cosim.scenario.scenario_file import scenario_of
from cosim.stimulus.random_packets import MOST_HOSTS
from cosim.topology.topology_file import TopologyError, find_topology

__all__ = ["RANDOM_FABRIC", "Shape", "one_switch", "random_shape", "shape_of_topology"]

RANDOM_FABRIC: Final = "random"
"""In place of a topology's name."""

_MOST_SWITCHES: Final = 4
_MOST_HOSTS: Final = 4
_TWO_PORTS_SHARE: Final = 0.25
"""Of the hosts, those with two ports."""

_UNPLUGGED_SHARE: Final = 0.3
"""Of the switches, those with a port more than they have links."""


@dataclass(frozen=True)
class Shape:
    """Ports of the switches, and of the hosts, by name, and the ends of the links."""

    switches: dict[str, int]
    hosts: dict[str, int]
    links: tuple[tuple[str, str], ...]


def one_switch(ports: int) -> Shape:
    """A switch with a host at each port."""
    numbers = range(1, ports + 1)
    links = tuple((f"S[{port}]", f"H{port}") for port in numbers)
    return Shape({"S": ports}, {f"H{port}": 1 for port in numbers}, links)


def shape_of_topology(name_or_path: str) -> Shape:
    """A topology's nodes and links.

    Raises:
        TopologyError: there is no such topology, it cannot be built, or it has no switch or not hosts enough.
    """
    file = find_topology(name_or_path).resolve()
    described = scenario_of({"cycles": 1, "topology": file.name}, name_or_path, "check", file.parent)
    if not described.switches:
        raise TopologyError(f"{name_or_path}: no switches, expected at least one")
    if not 2 <= len(described.lids) <= MOST_HOSTS:
        raise TopologyError(f"{name_or_path}: {len(described.lids)} linked ports of hosts, expected 2..{MOST_HOSTS}")
    return Shape(
        {name: table.ports for name, table in described.switches.items()},
        {name: table.ports for name, table in described.hosts.items()},
        tuple(link.ends for link in described.links),
    )


def random_shape(random: Random) -> Shape:
    """Up to four switches, all in reach of each other, and hosts behind them.

    Links run side by side, in circles, and from a switch back to itself.
    """
    switches = [f"S{number}" for number in range(1, random.randint(1, _MOST_SWITCHES) + 1)]
    cables = [(random.choice(switches[:number]), name) for number, name in enumerate(switches) if number]
    cables += [(random.choice(switches), random.choice(switches)) for _ in range(random.randint(0, len(switches)))]
    ports = [2 if random.random() < _TWO_PORTS_SHARE else 1 for _ in range(random.randint(2, _MOST_HOSTS))]
    hosts = {f"H{number}": count for number, count in enumerate(ports, 1)}
    cables += [(random.choice(switches), host) for host, count in hosts.items() for _ in range(count)]
    random.shuffle(cables)
    plugs = Counter(end for cable in cables for end in cable)
    sizes = {name: max(2, plugs[name] + (random.random() < _UNPLUGGED_SHARE)) for name in switches}
    numbers = {name: random.sample(range(1, count + 1), count) for name, count in (sizes | hosts).items()}
    links = tuple((f"{a}[{numbers[a].pop()}]", f"{b}[{numbers[b].pop()}]") for a, b in cables)
    return Shape(sizes, hosts, links)
