"""Whole subnets: how long routes and a bring-up of a large one take, and a fat tree in RTL to be built."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from bench.cold import cold_builds
from bench.fat_tree import HOST_GUID, fat_tree
from bench.figures import Measured, Reading
from bench.settings import Settings
from cosim.engines.compiled_design import build_design
from cosim.experiments.subnet_bring_up import bring_up_subnet
from cosim.experiments.subnet_task import SubnetTask
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import TopologyFile, find_topology, read_topology
from sm.lids import assign_lids
from sm.routing.min_hop import min_hop
from verilog.design import fabric_design

__all__ = ["build_tree", "routes", "up"]


def routes(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """`routes_648_s`: min-hop routes of a fat tree of 54 switches of 36 ports and 648 hosts."""
    subnet = fat_tree(leaves=36, spines=18, hosts=18)
    lids = assign_lids(subnet)
    seconds = []
    for _repetition in range(settings.short_repetitions):
        started = time.perf_counter()
        min_hop(subnet, lids)
        seconds.append(time.perf_counter() - started)
    return Measured({"routes_648_s": Reading.of(seconds)})


def up(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """`up_216_s`: 18 switches of 36 ports, 216 hosts, brought up by the Subnet Manager on the golden model."""
    subnet = fat_tree(leaves=12, spines=6, hosts=18, parallel=3)
    made = fabric_of(TopologyFile("fat tree", subnet, {guid: f"{guid:x}" for guid in subnet.nodes}, {}))
    task = SubnetTask(made.fabric, made.widths, made.names[HOST_GUID])
    started = time.perf_counter()
    result = bring_up_subnet(task, work_dir)
    found = Measured({"up_216_s": Reading.once(time.perf_counter() - started)})
    if not result.complete:
        found.faults.append("up_216: the fabric did not come up")
    return found


def build_tree(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """`build_tree_s`: six switches and eight hosts (the topology `fat_tree`), Amaranth to executable, cold."""
    fabric = fabric_of(read_topology(find_topology("fat_tree"))).fabric
    with cold_builds(work_dir):
        started = time.perf_counter()
        build_design("verilator", fabric_design(fabric))
        return Measured({"build_tree_s": Reading.once(time.perf_counter() - started)})
