"""What management costs: a small fabric brought up, an SMP answered."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from bench.figures import Measured, Reading
from bench.settings import Settings
from cosim.engines import simulation
from cosim.experiments.subnet_bring_up import bring_up_subnet
from cosim.experiments.subnet_task import SubnetTask
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.run_spec import RunSpec
from wire.codes import LinkWidth
from wire.mad import MadMethod
from wire.mad_packet import smp_packet
from wire.parameters import AdapterParameters, SwitchParameters
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Post
from wire.trace import AGENT_PORT, Kind, port_source

__all__ = ["FABRIC", "MANAGEMENT_FIGURES", "management"]

MANAGEMENT_FIGURES = ("bringup_smps", "bringup_cycles", "smp_turnaround_cycles")

FABRIC = uniform_load(2, cycles=1).fabric
"""One switch, two hosts: what they are measured on."""

_POST = 500
_END = 5_000
"""Cycles of a lone SMP, when links are up, and by which it has long been answered."""


def management(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """Those of `MANAGEMENT_FIGURES` that are asked for."""
    found = Measured()
    if {"bringup_smps", "bringup_cycles"} & set(asked):
        _bring_up(settings, work_dir, found)
    if "smp_turnaround_cycles" in asked:
        found.readings["smp_turnaround_cycles"] = Reading.once(_turnaround(settings, work_dir))
    return found


def _bring_up(settings: Settings, work_dir: Path, found: Measured) -> None:
    host = next(name for name, node in FABRIC.nodes.items() if isinstance(node, AdapterParameters))
    task = SubnetTask(FABRIC, [LinkWidth.X4] * len(FABRIC.links), host, settings.sim)
    result = bring_up_subnet(task, work_dir)
    found.readings["bringup_smps"] = Reading.once(result.manager.mads.sent.total())
    found.readings["bringup_cycles"] = Reading.once(result.cycles - task.start)
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
