"""What management costs: a small fabric brought up, an SMP answered, the routes of a large subnet."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Reading
from bench.settings import Settings
from cosim.engines import simulation
from cosim.experiments.subnet_bring_up import SubnetBringUp, bring_up_subnet
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.run_spec import RunSpec
from sm.lids import assign_lids
from sm.routing.min_hop import min_hop
from sm.subnet import End, EndPort, Node, Subnet
from wire.codes import LinkWidth
from wire.mad import MadMethod
from wire.mad_packet import smp_packet
from wire.node_info import NodeType
from wire.parameters import AdapterParameters, SwitchParameters
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Post
from wire.trace import AGENT_PORT, Kind, port_source

__all__ = ["FABRIC", "MANAGEMENT_FIGURES", "SIMULATED_FIGURES", "Management", "management"]

SIMULATED_FIGURES = ("bringup_smps", "bringup_cycles", "smp_turnaround_cycles")
MANAGEMENT_FIGURES = (*SIMULATED_FIGURES, "routes_648_s")

FABRIC = uniform_load(2, cycles=1).fabric
"""One switch, two hosts: what `SIMULATED_FIGURES` are measured on."""

_POST = 500
_END = 5_000
"""Cycles of a lone SMP, when links are up, and by which it has long been answered."""

_LEAVES = 36
_SPINES = 18
_HOSTS = 18
"""Of each leaf."""


@dataclass
class Management:
    """What was measured, and what was wrong, in words."""

    readings: dict[str, Reading] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def management(settings: Settings, asked: Collection[str], work_dir: Path) -> Management:
    """Those of `MANAGEMENT_FIGURES` that are asked for."""
    found = Management()
    if {"bringup_smps", "bringup_cycles"} & set(asked):
        _bring_up(settings, work_dir, found)
    if "smp_turnaround_cycles" in asked:
        found.readings["smp_turnaround_cycles"] = Reading.once(_turnaround(settings, work_dir))
    if "routes_648_s" in asked:
        taken = sorted(_routes_seconds() for _repetition in range(settings.repetitions))
        found.readings["routes_648_s"] = Reading(taken[len(taken) // 2], taken[0], taken[-1])
    return found


def _bring_up(settings: Settings, work_dir: Path, found: Management) -> None:
    host = next(name for name, node in FABRIC.nodes.items() if isinstance(node, AdapterParameters))
    up = SubnetBringUp(FABRIC, [LinkWidth.X4] * len(FABRIC.links), host, settings.sim)
    result = bring_up_subnet(up, work_dir)
    found.readings["bringup_smps"] = Reading.once(result.manager.mads.sent.total())
    found.readings["bringup_cycles"] = Reading.once(result.cycles - up.start)
    if not result.complete:
        found.faults.append("bringup: the fabric did not come up")
    if result.comparison is not None and result.comparison.difference is not None:
        found.faults.append(f"bringup: engines differ in cycle {result.comparison.difference.cycle}")


def _turnaround(settings: Settings, work_dir: Path) -> int:
    """Cycles from DELIVER to SEND at the switch's agent, of the Get(NodeInfo) of a host."""
    nodes = list(FABRIC.nodes)
    host = next(name for name, node in FABRIC.nodes.items() if isinstance(node, AdapterParameters))
    switch = next(name for name, node in FABRIC.nodes.items() if isinstance(node, SwitchParameters))
    get = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=[1])
    posts = [Post(_POST, nodes.index(host), FABRIC.nodes[host].vls, smp_packet(get).data)]
    agent = port_source(nodes.index(switch), AGENT_PORT)
    with simulation.run(settings.sim, RunSpec(FABRIC, (), posts, _END), work_dir) as records:
        cycles = {record.kind: record.cycle for record in records if record.source == agent}
    return cycles[Kind.SEND] - cycles[Kind.DELIVER]


def _routes_seconds() -> float:
    """Seconds that min-hop routing of 648 hosts takes."""
    subnet = _fat_tree()
    lids = assign_lids(subnet)
    started = time.perf_counter()
    min_hop(subnet, lids)
    return time.perf_counter() - started


def _fat_tree() -> Subnet:
    """Leaves with hosts at their first ports and a link to each spine."""
    subnet = Subnet()
    switches = range(1, 1 + _LEAVES + _SPINES)
    for guid in switches:
        subnet.add(Node(guid, NodeType.SWITCH, _LEAVES, {0: EndPort(guid)}))
    guid = switches.stop
    for leaf in switches[:_LEAVES]:
        for port in range(1, 1 + _HOSTS):
            subnet.add(Node(guid, NodeType.CA, 1, {1: EndPort(guid)}))
            subnet.connect(End(leaf, port), End(guid, 1))
            guid += 1
        for number, spine in enumerate(switches[_LEAVES:], 1):
            subnet.connect(End(leaf, _HOSTS + number), End(spine, leaf))
    return subnet
