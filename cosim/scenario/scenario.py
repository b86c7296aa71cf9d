"""Scenarios: what a user writes in a TOML file to say which fabric runs which traffic.

docs/scenario.md describes every table and key.
"""

from __future__ import annotations

import re
from functools import cache, cached_property, partial
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from cosim.scenario.congestion import Congestion
from cosim.scenario.limits import MAX_CYCLES, SDR_CYCLE_NS
from cosim.scenario.message_flow import MessageFlow
from cosim.scenario.pattern import check_pattern, partners
from cosim.scenario.tables import (
    ANY_HOST,
    AnyFlow,
    Arbitration,
    Drawing,
    Flow,
    Group,
    Host,
    InjectedError,
    Label,
    Link,
    Partition,
    PortSettings,
    Recording,
    Stall,
    Switch,
    Table,
)
from cosim.topology.topology import Topology, forwarding_tables, named, parse_end
from sm.partitions import DEFAULT_PARTITION, FULL_MEMBER
from wire.codes import SERVICE_LEVELS
from wire.parameters import (
    FabricParameters,
    LinkParameters,
    NodeIdentity,
    NodeParameters,
    adapter_port,
    adapter_port_name,
    node_text,
    vl_arbitration_entries,
)
from wire.port_tables import P_KEY_TABLE
from wire.vl_arbitration import VlArbitration

__all__ = ["FLOW_KINDS", "Scenario"]

FLOW_KINDS = ("a flow of packets", "a flow of messages")
"""What pydantic puts into the places of errors; no key of a scenario is like them."""


def _kind_of(flow: Any) -> str:
    has_transport = "transport" in flow if isinstance(flow, dict) else isinstance(flow, MessageFlow)
    return FLOW_KINDS[has_transport]


_SomeFlow = Annotated[
    Annotated[Flow, Tag(FLOW_KINDS[0])] | Annotated[MessageFlow, Tag(FLOW_KINDS[1])], Discriminator(_kind_of)
]

_NODE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")


class Scenario(Table):
    """A whole scenario. Cycles in it count from the one in which traffic may start."""

    name: str = "scenario"
    title: Label = ""
    symbol_time_ns: float = Field(default=SDR_CYCLE_NS, gt=0, le=1000)
    cycles: int = Field(gt=0, lt=MAX_CYCLES)
    seed: int = Field(default=0, ge=0, lt=1 << 64)
    sl_to_vl: tuple[int, ...] = tuple(range(SERVICE_LEVELS))
    """VL of each of the 16 SLs, modulo the data VLs of the link it leaves by."""
    vl_arbitration: Arbitration | None = None
    congestion: Congestion | None = None
    switches: dict[str, Switch] = Field(default_factory=dict)
    hosts: dict[str, Host] = Field(default_factory=dict)
    links: tuple[Link, ...] = ()
    flows: tuple[_SomeFlow, ...] = ()
    stalls: tuple[Stall, ...] = ()
    errors: tuple[InjectedError, ...] = ()
    ports: tuple[PortSettings, ...] = ()
    partitions: dict[Label, Partition] = Field(default_factory=dict)
    groups: dict[Label, Group] = Field(default_factory=dict)
    record: Recording = Field(default_factory=Recording)
    picture: Drawing = Field(default_factory=Drawing)
    identities: dict[str, NodeIdentity] = Field(default_factory=dict)
    """GUIDs and descriptions of nodes by name, where a topology file gives them; no TOML file does."""
    notes: tuple[str, ...] = ()
    """What somebody should know of the topology file; no TOML file has any."""

    @field_validator("sl_to_vl")
    @classmethod
    def _sixteen(cls, table: tuple[int, ...]) -> tuple[int, ...]:
        if len(table) != SERVICE_LEVELS or not all(0 <= vl <= 14 for vl in table):
            raise ValueError("expected 16 VLs, each 0..14")
        return table

    @field_validator("switches", "hosts")
    @classmethod
    def _node_tables(cls, tables: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        for name, table in tables.items():
            if not _NODE_NAME.fullmatch(name):
                raise ValueError(f"name {name!r}: expected a letter, then up to 30 letters, digits or _")
            try:
                table.parameters  # noqa: B018 - made to be checked
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            if info.field_name == "hosts" and name in info.data.get("switches", {}):
                raise ValueError(f"{name}: is a switch too, expected a name of its own")
        return tables

    @model_validator(mode="after")
    def _whole(self) -> Scenario:
        if not self.hosts:
            raise ValueError("hosts: none given, expected at least one")
        _check_references(self)
        if self.arbitration is not None:
            try:
                self.arbitration.check_room(vl_arbitration_entries(node.vls) for node in self.nodes.values())
            except ValueError as error:
                raise ValueError(f"vl_arbitration: {error}") from None
        try:
            topology = self.topology
        except ValueError as error:
            raise ValueError(f"links: {error}") from None
        _check_traffic(self, topology)
        return self

    @property
    def nodes(self) -> dict[str, NodeParameters]:
        """Switches, then hosts, each in the order of the file; a node's index is its place."""
        switches = {name: table.parameters for name, table in self.switches.items()}
        return switches | {name: table.parameters for name, table in self.adapters.items()}

    @cached_property
    def adapters(self) -> dict[str, Host]:
        """The hosts' tables by node of the fabric: of a host with several ports, each is one."""
        return {
            node: table
            for name, table in self.hosts.items()
            for node in ([name] if table.ports == 1 else [adapter_port_name(name, 1 + i) for i in range(table.ports)])
        }

    @property
    def cycle_ns(self) -> int:
        """Nanoseconds of a cycle as adapters count them, whole ones."""
        return max(1, round(self.symbol_time_ns))

    @property
    def fabric(self) -> FabricParameters:
        """What the engines build."""
        links = []
        for link in self.links:
            (a, a_port), (b, b_port) = (self.port_of(end) for end in link.ends)
            links.append(LinkParameters(a, a_port, b, b_port, link.flight(self.symbol_time_ns)))
        return FabricParameters(self.nodes, tuple(links), self.identities)

    @cached_property
    def lids(self) -> dict[str, int]:
        """LID of each host's port that has a link: 1, 2, ... in the order of the file."""
        linked = {self.port_of(end)[0] for link in self.links for end in link.ends}
        return {name: lid for lid, name in enumerate((one for one in self.adapters if one in linked), 1)}

    @property
    def topology(self) -> Topology:
        """The fabric with its LIDs, widths and minimum-hop tables."""
        fabric, lids = self.fabric, self.lids
        widths = tuple(link.width_code for link in self.links)
        tables = forwarding_tables(fabric, lids)
        groups = self.multicast_groups
        return Topology(fabric, lids, tables, widths, self.sl_to_vl, self.arbitration, self.p_keys, groups)

    @property
    def multicast_groups(self) -> dict[int, tuple[str, ...]]:
        """The hosts in each multicast group, by its LID."""
        return {table.mlid: tuple(map(self.host_of, table.members)) for table in self.groups.values()}

    @property
    def arbitration(self) -> VlArbitration | None:
        """What every port with more than one data VL is to hold."""
        return None if self.vl_arbitration is None else self.vl_arbitration.lists

    @property
    def packet_flows(self) -> tuple[Flow, ...]:
        """The flows of packets."""
        return tuple(flow for flow in self.flows if isinstance(flow, Flow))

    @property
    def message_flows(self) -> tuple[MessageFlow, ...]:
        """The flows of messages, which a transport carries."""
        return tuple(flow for flow in self.flows if isinstance(flow, MessageFlow))

    @cached_property
    def memberships(self) -> dict[int, dict[str, bool]]:
        """Of each partition, by P_Key without the bit of full members: its hosts, and whether each is a full member.

        All are full members of the default partition, unless a table says who is in it. Without tables there is none.
        """
        if not self.partitions:
            return {}
        memberships = {DEFAULT_PARTITION: dict.fromkeys(self.adapters, True)}
        for table in self.partitions.values():
            full = {self.host_of(end): True for end in table.full}
            limited = {self.host_of(end): False for end in table.limited}
            memberships[table.key] = full | limited
        return memberships

    @property
    def p_keys(self) -> dict[str, tuple[int, ...]]:
        """P_Keys of each host, where there are partitions: that of the default partition first."""
        if not self.partitions:
            return {}
        return {
            host: tuple(
                base | FULL_MEMBER * members[host] for base, members in self.memberships.items() if host in members
            )
            for host in self.adapters
        }

    def p_key_of(self, flow: Flow, source: str) -> int:
        """P_Key of a flow's packets from a host: as its membership has it; that of a full member if it has none."""
        base = DEFAULT_PARTITION if flow.partition is None else self.partitions[flow.partition].key
        is_full = self.memberships.get(base, {}).get(source, True)
        return base | FULL_MEMBER * is_full

    def port_of(self, end: str) -> tuple[str, int]:
        """Node and port that an end such as `S[2]` or `A` (a host's first port) names.

        Raises:
            ValueError: not written so, no such node or port of a host, or a switch without a port.
        """
        name, port = parse_end(end)
        if name not in self.switches and name not in self.hosts:
            raise ValueError(f"{end!r}: no node {name!r}; there are {', '.join([*self.switches, *self.hosts])}")
        if name in self.switches:
            if port is None:
                raise ValueError(f"{end!r}: {name} is a switch, expected a port as in {name}[1]")
            return name, port
        ports = self.hosts[name].ports
        if port is not None and not 1 <= port <= ports:
            raise ValueError(f"{end!r}: {name} has {'one port' if ports == 1 else f'ports 1..{ports}'}")
        return named(self.adapters, name, port)[0], 1

    def host_of(self, end: str) -> str:
        """The node of the fabric that a host such as `A`, or a port of one such as `A[2]`, is.

        Raises:
            ValueError: not written so, no such host, or one without such a port.
        """
        if end.partition("[")[0] not in self.hosts:
            raise ValueError(f"no host {end!r}; there are {', '.join(self.hosts) or 'none'}")
        return self.port_of(end)[0]

    def sources_of(self, flow: AnyFlow) -> tuple[str, ...]:
        """The hosts that send a flow's packets; of those with several ports, these."""
        if flow.source != ANY_HOST:
            return (self.host_of(flow.source),)
        if isinstance(flow, Flow) and flow.pattern == "transpose":
            # Those on the diagonal are their own partners.
            hosts = list(self.lids)
            own = enumerate(partners(flow.pattern, len(hosts), ""))
            return tuple(hosts[place] for place, partner in own if partner != place)
        if flow.destination in self.groups:
            return tuple(map(self.host_of, self.groups[flow.destination].members))
        destination = "" if flow.destination == ANY_HOST else self.host_of(flow.destination)
        return tuple(host for host in self.lids if host != destination)

    def destinations_of(self, flow: AnyFlow, source: str) -> tuple[str, ...]:
        """The hosts to which `source` may send a flow's packets; a pattern says to which of them and when.

        What it sends to a group all of these get.
        """
        if flow.destination in self.groups:
            members = map(self.host_of, self.groups[flow.destination].members)
            return tuple(host for host in members if host != source)
        if flow.destination != ANY_HOST:
            return (self.host_of(flow.destination),)
        return tuple(host for host in self.lids if host != source)


def _check_references(scenario: Scenario) -> None:
    """Every node and port that is named exists, and every host has a link."""
    for index, link in enumerate(scenario.links):
        for end in link.ends:
            _at(f"links[{index}].ends", scenario.port_of, end)
    linked = {scenario.port_of(end) for link in scenario.links for end in link.ends}

    def linked_port(end: str) -> None:
        if scenario.port_of(end) not in linked:
            raise ValueError(f"{end!r}: has no link")

    _check_groups(scenario)
    connected = {adapter_port(node)[0] for node, _port in linked}
    for name in scenario.hosts:
        if name not in connected:
            raise ValueError(f"links: adapter {name} has no link: expected one")
    for index, flow in enumerate(scenario.flows):
        for key, name in (("from", flow.source), ("to", flow.destination)):
            if key == "to" and name in scenario.groups:
                _check_to_group(scenario, index, flow)
            elif name != ANY_HOST:
                _at(f"flows[{index}].{key}", scenario.host_of, name)
            elif len(scenario.lids) == 1:
                raise ValueError(f"flows[{index}].{key}: {name!r}: there is only one host, expected two or more")
        if isinstance(flow, Flow):
            if flow.hot is not None:
                _at(f"flows[{index}].hot", scenario.host_of, flow.hot)
            _at(f"flows[{index}].pattern", partial(check_pattern, hosts=len(scenario.lids)), flow.pattern)
        elsewhere = (ANY_HOST, *scenario.groups)
        named_hosts = [scenario.host_of(end) for end in (flow.source, flow.destination) if end not in elsewhere]
        if len(named_hosts) == 2 and named_hosts[0] == named_hosts[1]:
            raise ValueError(f"flows[{index}].to: {flow.destination!r} is the source, expected another host")
    for index, stall in enumerate(scenario.stalls):
        _at(f"stalls[{index}].host", scenario.host_of, stall.host)
        vls = scenario.adapters[scenario.host_of(stall.host)].vls
        for vl in stall.vls or ():
            if vl not in (*range(vls), 15):
                raise ValueError(f"stalls[{index}].vls: {vl}: expected 0..{vls - 1} or 15")
    for index, error in enumerate(scenario.errors):
        _at(f"errors[{index}].from", linked_port, error.source)
    _check_partitions(scenario)
    for index, port in enumerate(scenario.ports):
        if port.at != "*":
            _at(f"ports[{index}].at", linked_port, port.at)
    for name in (scenario.congestion and scenario.congestion.switches) or ():
        if name not in scenario.switches:
            raise ValueError(f"congestion.switches: no switch {name!r}; there are {', '.join(scenario.switches)}")
    for name in scenario.record.nodes or ():
        if name not in scenario.switches and name not in scenario.hosts:
            raise ValueError(f"record.nodes: no node {name!r}")
    for key, ends in (("ports", scenario.picture.ports), ("credits", scenario.picture.credits)):
        for index, end in enumerate(ends or ()):
            _at(f"picture.{key}[{index}]", linked_port, end)


def _check_groups(scenario: Scenario) -> None:
    """Groups are called as no node is, have LIDs that differ, and two members or more, each once."""
    names: dict[int, str] = {}
    for name, table in scenario.groups.items():
        if name == ANY_HOST or name in scenario.hosts or name in scenario.switches:
            raise ValueError(f"groups.{name}: is a node too, expected a name of its own")
        other = names.setdefault(table.mlid, name)
        if other != name:
            raise ValueError(f"groups.{name}.mlid: 0x{table.mlid:x}: is that of {other}, expected another one")
        for index, end in enumerate(table.members):
            _at(f"groups.{name}.members[{index}]", scenario.host_of, end)
        hosts = set(map(scenario.host_of, table.members))
        if len(hosts) < max(2, len(table.members)):
            raise ValueError(f"groups.{name}.members: {', '.join(table.members)}: expected two or more, each once")


def _check_to_group(scenario: Scenario, index: int, flow: AnyFlow) -> None:
    """Datagrams go to a group, from one of its members."""
    if isinstance(flow, MessageFlow) or (isinstance(flow, Flow) and flow.operation != "send"):
        raise ValueError(f"flows[{index}].to: {flow.destination!r} is a group: expected a flow of UD packets")
    members = map(scenario.host_of, scenario.groups[flow.destination].members)
    if flow.source != ANY_HOST and scenario.host_of(flow.source) not in members:
        raise ValueError(f"flows[{index}].from: {flow.source!r} is no member of {flow.destination}, expected one")


def _check_partitions(scenario: Scenario) -> None:
    """P_Keys differ, a host is in a partition once, and has room for its P_Keys; flows know whose P_Key they have."""
    names: dict[int, str] = {}
    for name, table in scenario.partitions.items():
        other = names.setdefault(table.key, name)
        if other != name:
            raise ValueError(f"partitions.{name}.key: 0x{table.key:x}: is that of {other}, expected another one")
        met: set[str] = set()
        for key, ends in (("full", table.full), ("limited", table.limited)):
            for index, end in enumerate(ends):
                place = f"partitions.{name}.{key}[{index}]"
                _at(place, scenario.host_of, end)
                host = scenario.host_of(end)
                if host in met:
                    raise ValueError(f"{place}: {end!r}: is a member already, expected each host once")
                met.add(host)
    for host, p_keys in scenario.p_keys.items():
        if len(p_keys) > P_KEY_TABLE.count:
            given = f"{node_text(host)} is in {len(p_keys)} of them"
            raise ValueError(f"partitions: {given}, expected at most {P_KEY_TABLE.count}, the size of its P_Key table")
    for index, flow in enumerate(scenario.flows):
        if isinstance(flow, MessageFlow):
            if scenario.partitions:
                given = f"flows[{index}].transport: {flow.transport!r}"
                raise ValueError(f"{given}: expected none beside partitions, which are for flows of packets")
        elif flow.partition is not None and flow.partition not in scenario.partitions:
            there = ", ".join(scenario.partitions) or "none"
            raise ValueError(f"flows[{index}].partition: no partition {flow.partition!r}; there are {there}")


def _check_traffic(scenario: Scenario, topology: Topology) -> None:
    """Every flow's packets fit and have a path."""

    @cache
    def mtu(source: str, destination: str) -> int | None:
        path = topology.path(source, destination)
        return None if path is None else min(topology.mtu(hop) for hop in path)

    for index, flow in enumerate(scenario.flows):
        for source in scenario.sources_of(flow):
            for destination in scenario.destinations_of(flow, source):
                most = mtu(source, destination)
                if most is None:
                    raise ValueError(f"flows[{index}]: no way from {node_text(source)} to {node_text(destination)}")
                key, size = _largest(flow)
                if size > most:
                    raise ValueError(f"flows[{index}].{key}: {size}: expected at most the path's MTU, {most} bytes")
    for name, switch in scenario.switches.items():
        lids = len(scenario.lids) + len(scenario.switches)
        if lids >= switch.lft_size:
            raise ValueError(f"switches.{name}.lft_size: {switch.lft_size}: expected more than the {lids} LIDs")


def _largest(flow: Flow | MessageFlow) -> tuple[str, int]:
    """The key that says how large packets of a flow are, and how large."""
    if isinstance(flow, Flow):
        return "size", flow.sizes[1]
    return ("message_bytes", flow.size) if flow.transport == "ud" else ("path_mtu", flow.path_mtu or 0)


def _at(place: str, check: Any, value: str) -> None:
    try:
        check(value)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
