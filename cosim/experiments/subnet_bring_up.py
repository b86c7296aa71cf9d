"""Bringing a fabric up by Ironband's own Subnet Manager, on any engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cosim.analysis.observer import Audience, Observer
from cosim.engines.base import NO_TAPS, Taps
from cosim.experiments.perform import run_beside_model
from cosim.experiments.subnet_task import SubnetTask
from cosim.hosts.adapter_agents import AdapterAgents
from cosim.hosts.manager_host import ManagerHost
from cosim.scenario.limits import MAX_CYCLES
from cosim.stimulus.actors import Leader
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.trace.compare import Comparison
from sm.events import Event
from sm.subnet import End
from sm.subnet_manager import SubnetManager
from wire.node_info import NodeType
from wire.stimulus import Post
from wire.trace import Record

__all__ = ["SubnetBringUpResult", "bring_up_subnet"]


@dataclass(frozen=True)
class SubnetBringUpResult:
    """What came of it.

    Attributes:
        manager: the Subnet Manager, with all it knows.
        complete: whether it has made everything as it should be.
        posts: the packets that it posted.
        events: what it said of its work, and when.
        cycles: length of the run.
        records: events of the trace.
        comparison: with the golden model; None if the golden model is all there was.
    """

    manager: SubnetManager
    complete: bool
    posts: list[Post]
    events: list[tuple[int, Event]]
    cycles: int
    records: int
    comparison: Comparison | None


def bring_up_subnet(
    task: SubnetTask, work_dir: Path, observers: Sequence[Observer] = (), taps: Taps = NO_TAPS
) -> SubnetBringUpResult:
    """Let the Subnet Manager bring the fabric up, and go on until it has dealt with the failure, if there is one.

    RTL goes ahead; the same packets are posted in the golden model, and every event of both is compared.

    Args:
        task: what and how.
        work_dir: where engines may work.
        observers: follow the run.
        taps: look at its links.

    Raises:
        LidError, TableError: more LIDs than there are, or than a switch has room for.
        What the engines raise (cosim.engines.simulation.run).
    """
    count = _Count()
    audience = Audience([count, *observers], iter(()))
    agents = None
    if task.settings.congestion_control is not None:
        sl_to_vl = task.settings.qos_of(NodeType.CA).sl_to_vl
        agents = AdapterAgents(task.fabric, sl_to_vl, goes_on=lambda cycle: carrier.reach > cycle)
    host = ManagerHost(
        task.fabric,
        task.host,
        task.start,
        settings=task.settings,
        lids=task.lids,
        agent=None if agents is None else agents.agent(task.host),
        ended=lambda manager: manager.resting and not _has_failed_link(task, manager),
        tell=partial(audience.manage, task.host),
    )

    def spec(actor: Actor | None) -> RunSpec:
        return RunSpec(task.fabric, task.controls, (), MAX_CYCLES, actor)

    carrier = host.carrier
    actors: list[Leader] = [carrier] if agents is None else [carrier, agents.carrier]
    comparison, cycles = run_beside_model(task.engine, spec, work_dir, audience, actors, rtl=task.rtl, taps=taps)
    return SubnetBringUpResult(
        host.manager, host.complete, carrier.posts, host.events, cycles, count.records, comparison
    )


class _Count(Observer):
    """Counts the records of a run."""

    def __init__(self) -> None:
        self.records = 0

    def observe(self, record: Record) -> None:
        """Count one."""
        self.records += 1


def _has_failed_link(task: SubnetTask, manager: SubnetManager) -> bool:
    """Whether the Subnet Manager still takes the link that fails for one that is there."""
    if task.failure is None:
        return False
    fabric = task.fabric
    link = fabric.links[task.failure.link]
    end = End(fabric.identity(link.a).node_guid, fabric.port_number(link.a, link.a_port))
    return manager.subnet.link(end) is not None
