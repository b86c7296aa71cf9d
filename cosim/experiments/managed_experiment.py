"""Scenarios brought up by Subnet Managers: one at the first host of each connected part of the fabric."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from cosim.engines import simulation
from cosim.experiments.experiment import Experiment, ManagerListener, chosen_settings, experiment_from
from cosim.hosts.manager_host import ACTIVATION_WAIT, ManagerHost, first_controls, manager_start
from cosim.scenario.find_scenario import ScenarioError
from cosim.scenario.limits import MAX_CYCLES
from cosim.scenario.scenario import Scenario
from cosim.stimulus.actors import ActorGroup
from cosim.stimulus.bus_bring_up import WRITE_SHOWS, BringUp, group_writes, settings_writes
from cosim.stimulus.run_spec import RunSpec
from cosim.topology.topology import Topology, hops_to, neighbours
from sm.events import NodeLeftOut, PortStuck, SetRefused, Unsettled, event_text
from sm.partitions import DEFAULT_PARTITION, DEFAULT_PARTITION_NAME, EndPorts, Membership, Partitions
from sm.qos_options import QosOptions
from sm.settings import SubnetSettings
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.parameters import AdapterParameters, FabricParameters, SwitchParameters, adapter_port, node_text
from wire.stimulus import Post

__all__ = ["ManagedBringUp", "managed_bring_up", "managed_experiment", "manager_hosts"]

_OBSTACLES: Final = (NodeLeftOut, PortStuck, SetRefused, Unsettled)
"""What a Subnet Manager reports where something is not as it should be."""


@dataclass(frozen=True)
class ManagedBringUp:
    """What Subnet Managers made of a fabric in the golden model: the same as in every run.

    Attributes:
        topology: the fabric as they configured it, groups included.
        up: what is given over the test bus before they begin and when they are done.
        posts: the packets that they posted, by cycle.
        hosts: where they run.
        begin: the cycle in which they begin.
        settings: what they were to make of it.
    """

    topology: Topology
    up: BringUp
    posts: tuple[Post, ...]
    hosts: tuple[str, ...]
    begin: int
    settings: SubnetSettings


def managed_bring_up(scenario: Scenario, wanted: Topology | None = None) -> ManagedBringUp:
    """Let Subnet Managers bring the fabric of a scenario up, in the golden model.

    Registers that the scenario sets and that no SMP can, and multicast groups, are written over the test bus when they
    are done. What is `wanted`, but for LIDs and tables, is the scenario's unless something else is.

    Raises:
        ScenarioError: they do not succeed.
    """
    wanted = scenario.topology if wanted is None else wanted
    fabric, widths = wanted.fabric, wanted.widths
    hosts = manager_hosts(fabric)
    settings = SubnetSettings(
        activation_wait=ACTIVATION_WAIT,
        qos=QosOptions(sl_to_vl=wanted.sl_to_vl, vl_arbitration=wanted.vl_arbitration),
        partitions=_partitions(scenario, fabric),
    )
    begin = manager_start(widths)
    first = first_controls(fabric, widths, hosts)
    made = [
        ManagerHost(fabric, host, begin, settings=settings, ended=lambda manager: manager.resting) for host in hosts
    ]
    actor = ActorGroup([host.carrier for host in made])
    with simulation.run("model", RunSpec(fabric, first, (), MAX_CYCLES, actor), Path()) as run:
        deque(run, maxlen=0)
    names = {fabric.identity(name).node_guid: adapter_port(name)[0] for name in fabric.nodes}
    for name, host in zip(hosts, made, strict=True):
        if not host.complete:
            reason = _obstacle([host], names) or f"it is not done after {MAX_CYCLES} cycles"
            raise ScenarioError(
                f"the Subnet Manager at {node_text(name)} does not bring its part of the fabric up: {reason}"
            )
    topology = replace(wanted, lids=_lids(fabric, made, names), tables=_tables(fabric, made))
    last = settings_writes(topology, chosen_settings(scenario, topology), run.cycles_done)
    last += group_writes(topology, run.cycles_done + len(last))
    up = BringUp((*first, *last), run.cycles_done + len(last) + WRITE_SHOWS + 1)
    posts = sorted(post for host in made for post in host.carrier.posts)
    return ManagedBringUp(topology, up, tuple(posts), tuple(hosts), begin, settings)


def managed_experiment(scenario: Scenario) -> Experiment:
    """The experiment of a scenario, brought up by Subnet Managers in place of register writes.

    They do it in the golden model first, which tells when they are done, and once more in each run.

    Raises:
        ScenarioError: they do not succeed.
    """
    made = managed_bring_up(scenario)

    def managers(listener: ManagerListener) -> list[ManagerHost]:
        return [
            ManagerHost(scenario.fabric, host, made.begin, settings=made.settings, tell=partial(listener, host))
            for host in made.hosts
        ]

    return replace(experiment_from(scenario, made.topology, made.up), managers=managers)


def manager_hosts(fabric: FabricParameters) -> list[str]:
    """The first host of each connected part of a fabric, which has links; hosts relay nothing."""
    near = neighbours(fabric)
    met: set[str] = set()
    hosts = []
    for name, node in fabric.nodes.items():
        if isinstance(node, AdapterParameters) and near[name] and name not in met:
            hosts.append(name)
            met |= hops_to(name, fabric, near).keys()
    return hosts


def _partitions(scenario: Scenario, fabric: FabricParameters) -> Partitions | None:
    """Who is in which partition; None if a scenario has none. Switches are all in the default partition."""
    if not scenario.partitions:
        return None
    said = [Membership(DEFAULT_PARTITION, EndPorts.ALL_SWITCHES, is_full=True)]
    for partition, members in scenario.memberships.items():
        said += [Membership(partition, fabric.identity(host).port_guid, is_full) for host, is_full in members.items()]
    names = {table.key: name for name, table in scenario.partitions.items()}
    return Partitions(tuple(said), {DEFAULT_PARTITION: DEFAULT_PARTITION_NAME} | names)


def _obstacle(made: list[ManagerHost], names: Mapping[int, str]) -> str | None:
    """What kept Subnet Managers from making everything as it should be, nodes by their names; None if nothing did."""
    obstacles = [event for host in made for _cycle, event in host.events if isinstance(event, _OBSTACLES)]
    return event_text(obstacles[-1], names) if obstacles else None


def _lids(fabric: FabricParameters, made: list[ManagerHost], names: Mapping[int, str]) -> dict[str, int]:
    """LID of each host that has a link, in their order; `names` of the nodes, by GUID, are for the error.

    Raises:
        ScenarioError: a host has none.
    """
    given = {guid: lids.first for host in made for guid, lids in host.manager.lids.items()}
    lids = {}
    near = neighbours(fabric)
    for name, node in fabric.nodes.items():
        if isinstance(node, AdapterParameters) and near[name]:
            port = fabric.identity(name).port_guid
            if port not in given:
                reason = _obstacle(made, names)
                raise ScenarioError(f"no Subnet Manager reaches {node_text(name)}" + (f": {reason}" if reason else ""))
            lids[name] = given[port]
    return lids


def _tables(fabric: FabricParameters, made: list[ManagerHost]) -> dict[str, dict[int, int]]:
    """Output port of each LID, by switch. The LID of a switch itself leads to its port 0."""
    tables: dict[str, dict[int, int]] = {
        name: {} for name, node in fabric.nodes.items() if isinstance(node, SwitchParameters)
    }
    names = {fabric.identity(name).node_guid: name for name in tables}
    for host in made:
        routes = host.manager.routes
        for guid, table in routes.tables.items() if routes is not None else ():
            tables[names[guid]] = {lid: port for lid, port in enumerate(table) if port != LFT_NO_ROUTE}
    return tables
