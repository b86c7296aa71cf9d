"""Whole subnets: how long a large one takes to come up, and a fat tree in RTL to be built."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from bench.figures import Reading
from bench.management import Management
from bench.wide import environment
from cosim.engines.compiled_design import build_design
from cosim.experiments.subnet_bring_up import SubnetBringUp, bring_up_subnet
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import find_topology, read_topology
from verilog.design import fabric_design
from wire.codes import LinkWidth
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, NodeParameters, SwitchParameters

__all__ = ["SUBNET_FIGURES", "subnets"]

SUBNET_FIGURES = ("up_216_s", "build_tree_s")

_PORTS = 36
_LEAVES = 12
_SPINES = 6
_HOSTS = 18
"""Of each leaf."""
_PARALLEL = 3
"""Links from each leaf to each spine."""


def subnets(asked: Collection[str], work_dir: Path) -> Management:
    """Those of `SUBNET_FIGURES` that are asked for.

    `up_216_s`: a fat tree of 18 switches of 36 ports and 216 hosts, brought up by the Subnet Manager on the golden
    model. `build_tree_s`: the topology `fat_tree`, six switches and eight hosts in RTL, from Amaranth to executable, in
    an empty folder and without a compiler cache.
    """
    found = Management()
    if "up_216_s" in asked:
        fabric = _large_tree()
        up = SubnetBringUp(fabric, [LinkWidth.X4] * len(fabric.links), _hosts()[0])
        started = time.perf_counter()
        result = bring_up_subnet(up, work_dir)
        found.readings["up_216_s"] = Reading.once(time.perf_counter() - started)
        if not result.complete:
            found.faults.append("up_216: the fabric did not come up")
    if "build_tree_s" in asked:
        fabric = fabric_of(read_topology(find_topology("fat_tree"))).fabric
        with (
            tempfile.TemporaryDirectory(dir=work_dir) as empty,
            environment({"IRONBAND_SIM_BUILD": empty, "CCACHE_DISABLE": "1"}),
        ):
            started = time.perf_counter()
            build_design("verilator", fabric_design(fabric))
            found.readings["build_tree_s"] = Reading.once(time.perf_counter() - started)
    return found


def _hosts() -> list[str]:
    return [f"H{number}" for number in range(_LEAVES * _HOSTS)]


def _large_tree() -> FabricParameters:
    """Leaves with hosts at their first ports, spines above them."""
    leaves, spines = (
        [f"{kind}{number}" for number in range(count)] for kind, count in (("L", _LEAVES), ("S", _SPINES))
    )
    hosts = _hosts()
    nodes: dict[str, NodeParameters] = {name: SwitchParameters(ports=_PORTS) for name in (*leaves, *spines)}
    nodes |= {name: AdapterParameters() for name in hosts}
    links = [LinkParameters(host, 1, leaves[i // _HOSTS], 1 + i % _HOSTS) for i, host in enumerate(hosts)]
    links += [
        LinkParameters(leaf, 1 + _HOSTS + _PARALLEL * above + cable, spine, 1 + _PARALLEL * below + cable)
        for below, leaf in enumerate(leaves)
        for above, spine in enumerate(spines)
        for cable in range(_PARALLEL)
    ]
    return FabricParameters(nodes, tuple(links))
