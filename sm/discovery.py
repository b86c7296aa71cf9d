"""Directed-route discovery: every node that answers, its ports, and which ports are linked (IBTA vol 1, 14.4.2).

From the Subnet Manager's own port on, switch by switch, NodeInfo is asked for through every port that is up. It says
which node is behind the port, and by which of its ports the request came in: that is a link. A link to an already
known switch counts only once both its ends have said the same, since another switch may have the same GUID.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from sm.events import DuplicateGuid, LinkFound, NodeFound, NodeLeftOut, Tell, Unsettled
from sm.mad_client import SmpError
from sm.sma_client import Path, SmaClient
from sm.subnet import MANAGEMENT_PORT, MAX_PORTS, End, EndPort, Node, Speed, Subnet
from sm.tasks import gather
from wire.codes import LinkWidth, PortState
from wire.layout import Record
from wire.node_info import NodeType
from wire.smp import MAX_HOPS

__all__ = ["Findings", "discover"]


@dataclass
class Findings:
    """What one discovery found."""

    origin: End
    """The Subnet Manager's own port."""
    subnet: Subnet = field(default_factory=Subnet)
    paths: dict[End, Path] = field(default_factory=dict)
    """How to reach each port that may have a LID: port 0 of switches, ports of other nodes."""
    infos: dict[End, Record] = field(default_factory=dict)
    """NodeInfo as read through each of those ports."""
    ports: dict[End, Record] = field(default_factory=dict)
    """PortInfo of every port that was read."""
    switches: dict[int, Record] = field(default_factory=dict)
    """SwitchInfo by GUID."""
    silent: list[End] = field(default_factory=list)
    """Ports that are up, though no node answers behind them."""
    changed: list[int] = field(default_factory=list)
    """GUIDs of switches that had PortStateChange set, which is cleared now, and that may have sent a trap about it."""
    settled: bool = True
    """Whether nothing is known to have changed meanwhile."""

    def path(self, end: End) -> Path:
        """How to reach the node of a port so that it lets itself be managed: of adapters, by this very port."""
        is_switch = self.subnet.nodes[end.guid].is_switch
        return self.paths[End(end.guid, MANAGEMENT_PORT) if is_switch else end]

    def state(self, end: End) -> PortState:
        """The state of a port that was read."""
        return PortState(self.ports[end].port_state)


async def discover(
    sma: SmaClient, former: Subnet, tell: Tell, begun: Callable[[Record], None] = lambda info: None
) -> Findings:
    """Looks at the whole subnet; `begun` gets the NodeInfo of the own node, which comes first.

    Nodes and links that `former` does not have are reported; the descriptions that it has are not read again.
    PortStateChange of every switch is cleared before its ports are read, so that what changes later shows.

    Raises:
        SmpError: the node of the Subnet Manager itself does not answer.
    """
    info = await sma.node_info(())
    begun(info)
    look = _Look(sma, former, tell, Findings(End(info.node_guid, info.local_port_num)))
    await look.begin(info)
    while look.unexplored:
        await look.explore(look.unexplored.popleft())
    await look.settle()
    return look.findings


@dataclass(frozen=True)
class _Arrival:
    """A port through which a node was asked for NodeInfo, and what the node said."""

    near: End
    info: Record

    @property
    def far(self) -> End:
        """The port of that node by which the request came in."""
        return _arrived_by(self.info)


@dataclass(frozen=True)
class _Reading:
    """The attributes of a node as read through one of its ports."""

    description: str
    ports: dict[End, Record]
    switch_info: Record | None


class _Look:
    """One discovery in progress."""

    def __init__(self, sma: SmaClient, former: Subnet, tell: Tell, findings: Findings) -> None:
        self.findings = findings
        self.unexplored: deque[int] = deque()
        """GUIDs of nodes found whose ports were not looked through yet."""
        self._sma = sma
        self._former = former
        self._tell = tell
        self._infos: dict[int, Record] = {}
        """NodeInfo by GUID of every node that has been met."""
        self._holders: dict[int, End] = {}
        """By PortGUID: the end port that has it."""
        self._half_links: dict[End, End] = {}
        """Ports to known switches, and the port there, which has not said so itself yet."""
        self._suspects: list[_Arrival] = []
        """Nodes that seem to have the GUID of another."""

    async def begin(self, info: Record) -> None:
        """Adds the Subnet Manager's own node."""
        reading = await self._read((), info)
        self._claim(info)
        self._add((), info, reading)
        self.unexplored.append(info.node_guid)

    async def explore(self, guid: int) -> None:
        """Finds what is behind the ports of a node that are up and not yet in a link."""
        ends = [end for end in self._ends_to_explore(guid) if self._is_up(end) and not self.findings.subnet.link(end)]
        infos = await gather([self._ask(end) for end in ends])
        arrivals = [_Arrival(end, info) for end, info in zip(ends, infos, strict=True) if info is not None]
        new = [arrival for arrival in arrivals if self._is_new(arrival)]
        readings = await gather([self._read_behind(arrival) for arrival in new])
        for arrival, reading in zip(new, readings, strict=True):
            if reading is None:
                continue
            first = arrival.far.guid not in self.findings.subnet.nodes
            self._add(self._path_through(arrival.near), arrival.info, reading)
            self._link(arrival.near, arrival.far)
            if first and _is_switch(arrival.info):
                self.unexplored.append(arrival.far.guid)
        for near, far in list(self._half_links.items()):
            if self._half_links.get(far) == near and far in self.findings.ports:
                self._link(near, far)

    async def settle(self) -> None:
        """Finds out about what did not fit: another node of the same GUID, or a change meanwhile."""
        for arrival in self._suspects:
            first = self._holders.get(arrival.info.port_guid)
            if first is None:
                first = next(end for end in self._holders.values() if end.guid == arrival.far.guid)
            await self._tell_apart(arrival.near, arrival.far, first, arrival.info)
        for near, far in list(self._half_links.items()):
            if far.guid not in self.findings.subnet.nodes:
                # Its switch stopped answering while it was read.
                self._silent_in_part(near, "its node answered in part")
            elif self.findings.subnet.link(near) is None:
                await self._tell_apart(near, far, End(far.guid, MANAGEMENT_PORT), self._infos[far.guid])

    def _ends_to_explore(self, guid: int) -> list[End]:
        node = self.findings.subnet.nodes[guid]
        if not node.is_switch:
            return [self.findings.origin]
        return [End(guid, port) for port in range(1, node.ports + 1)]

    def _is_up(self, end: End) -> bool:
        return self.findings.state(end) != PortState.DOWN

    def _is_new(self, arrival: _Arrival) -> bool:
        """Whether the arrival is at a node, or a further port of an end node, to be read; else notes what it is."""
        known = self._infos.get(arrival.far.guid)
        holder = self._holders.get(arrival.info.port_guid)
        if arrival.far == arrival.near:
            self._leave_out(arrival.near, "the port is linked to itself")
        elif known is not None and _identity(known) != _identity(arrival.info):
            self._suspects.append(arrival)
        elif known is not None and _is_switch(known):
            self._half_links[arrival.near] = arrival.far
        elif holder is not None or arrival.far in self._holders.values():
            self._suspects.append(arrival)
        else:
            self._claim(arrival.info)
            return True
        return False

    def _claim(self, info: Record) -> None:
        self._infos.setdefault(info.node_guid, info)
        self._holders[info.port_guid] = End(info.node_guid, MANAGEMENT_PORT) if _is_switch(info) else _arrived_by(info)

    def _path_through(self, near: End) -> Path:
        return (*self.findings.path(near), near.port)

    async def _ask(self, near: End) -> Record | None:
        """NodeInfo of the node behind a port."""
        if len(self.findings.path(near)) == MAX_HOPS:
            self._leave_out(near, f"it is more than {MAX_HOPS} hops away")
            return None
        try:
            return await self._sma.node_info(self._path_through(near))
        except SmpError as error:
            self._silent(near, str(error))
            return None

    async def _read_behind(self, arrival: _Arrival) -> _Reading | None:
        info = arrival.info
        if (
            info.node_type not in NodeType.__members__.values()
            or not 1 <= info.local_port_num <= info.num_ports <= MAX_PORTS
        ):
            what = f"NodeType {info.node_type}, {info.num_ports} ports, LocalPortNum {info.local_port_num}"
            self._leave_out(arrival.near, f"its NodeInfo cannot be: {what}")
            return None
        try:
            return await self._read(self._path_through(arrival.near), arrival.info)
        except SmpError as error:
            self._silent_in_part(arrival.near, str(error))
            return None

    async def _read(self, path: Path, info: Record) -> _Reading:
        """Reads what there is to know of a node: all ports of switches, of others the one the path arrives by."""
        guid = info.node_guid
        known = self.findings.subnet.nodes.get(guid) or self._former.nodes.get(guid)
        description = known.description if known is not None else ""
        if not description:
            description = await self._sma.node_description(path)
        switch_info = None
        changed = False
        if _is_switch(info):
            switch_info = await self._sma.switch_info(path)
            changed = bool(switch_info.port_state_change)
            if changed:
                switch_info = await self._sma.set_switch_info(path, switch_info)
            numbers = list(range(info.num_ports + 1))
        else:
            numbers = [info.local_port_num]
        records = await gather([self._sma.port_info(path, number) for number in numbers])
        if changed and records[0].master_sm_lid:
            self.findings.changed.append(guid)
        ports = {End(guid, number): record for number, record in zip(numbers, records, strict=True)}
        return _Reading(description, ports, switch_info)

    def _add(self, path: Path, info: Record, reading: _Reading) -> None:
        """Takes a node, or a further port of it, into the findings."""
        findings = self.findings
        if info.node_guid not in findings.subnet.nodes:
            findings.subnet.add(
                Node(
                    info.node_guid,
                    NodeType(info.node_type),
                    info.num_ports,
                    {},
                    reading.description,
                    vendor_id=info.vendor_id,
                    device_id=info.device_id,
                    system_image_guid=info.system_image_guid,
                )
            )
            if info.node_guid not in self._former.nodes:
                self._tell(NodeFound(findings.subnet.nodes[info.node_guid]))
        node = findings.subnet.nodes[info.node_guid]
        if reading.switch_info is not None:
            node.enhanced_port_0 = bool(reading.switch_info.enhanced_port0)
            findings.switches[node.guid] = reading.switch_info
        findings.ports |= reading.ports
        end = self._holders[info.port_guid]
        findings.paths[end] = path
        findings.infos[end] = info
        own = findings.ports[end]
        node.end_ports[end.port] = EndPort(info.port_guid, own.lid, own.lmc)

    def _link(self, near: End, far: End) -> None:
        info = self.findings.ports[near]
        width, speed = LinkWidth(info.link_width_active), Speed(info.link_speed_active)
        link = self.findings.subnet.connect(near, far, width, speed)
        if self._former.link(near) != link:
            self._tell(LinkFound(link))
        self._half_links.pop(near, None)
        self._half_links.pop(far, None)

    async def _tell_apart(self, near: End, far: End, first: End, info: Record) -> None:
        """What is behind `near` says that it is `far`, which is known to be elsewhere or says otherwise."""
        if far in self.findings.ports and _is_switch(self._infos[far.guid]):
            behind = await self._behind_switch_port(far)
            if behind == near and not (self.findings.subnet.link(near) or self.findings.subnet.link(far)):
                self._link(near, far)
                return
        there = await self._arrival(self.findings.paths.get(first))
        here = await self._arrival(self._path_through(near))
        if there is not None and here == far and there.guid == first.guid:
            same_node = first.guid == far.guid
            self._tell(DuplicateGuid(far.guid if same_node else info.port_guid, near))
        else:
            self.findings.settled = False
            self._tell(Unsettled(f"what is behind {near} changed while it was looked at"))

    async def _behind_switch_port(self, end: End) -> End | None:
        """What a known switch has behind one of its ports now."""
        try:
            self.findings.ports[end] = await self._sma.port_info(self.findings.path(end), end.port)
        except SmpError:
            return None
        if not self._is_up(end):
            return None
        return await self._arrival(self._path_through(end))

    async def _arrival(self, path: Path | None) -> End | None:
        """The port that a path arrives by now."""
        if path is None:
            return None
        try:
            return _arrived_by(await self._sma.node_info(path))
        except SmpError:
            return None

    def _silent_in_part(self, near: End, reason: str) -> None:
        """A node that answers some and not the rest may have become unreachable just now."""
        self.findings.settled = False
        self._leave_out(near, reason)

    def _silent(self, near: End, reason: str) -> None:
        self.findings.silent.append(near)
        self._leave_out(near, reason)

    def _leave_out(self, near: End, reason: str) -> None:
        self._tell(NodeLeftOut(near, reason))


def _is_switch(info: Record) -> bool:
    return info.node_type == NodeType.SWITCH


def _arrived_by(info: Record) -> End:
    return End(info.node_guid, info.local_port_num)


def _identity(info: Record) -> tuple[int, ...]:
    """What NodeInfo says identically through every port of a node."""
    common = (info.node_type, info.num_ports, info.system_image_guid, info.vendor_id, info.device_id)
    return (*common, info.port_guid) if _is_switch(info) else common
