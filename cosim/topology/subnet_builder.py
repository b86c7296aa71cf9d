"""A subnet built of the lines of a topology file, as ibsim builds it: names, GUIDs, aliases, links at both ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cosim.topology.lines import (
    Alias,
    Line,
    LinkCommand,
    Linked,
    Module,
    NodeHead,
    PortLine,
    Remark,
    Setting,
    number,
)
from cosim.topology.link_rates import PortRate, agreed_rate, stated_rate
from cosim.topology.place import Place, Wrong
from sm.subnet import MANAGEMENT_PORT, MAX_PORTS, End, EndPort, Node, Subnet
from wire.codes import LID_UNICAST_MAX
from wire.node_info import NODE_DESCRIPTION, NodeType

__all__ = ["SubnetBuilder"]

_FIRST_GUIDS: Final = {NodeType.CA: 0x100000, NodeType.SWITCH: 0x200000, NodeType.ROUTER: 0x300000}
"""GUIDs of the first nodes that have none in the file; for switches and adapters they are ibsim's."""

_GUID_MAX: Final = (1 << 64) - 1

_ID_MAX: Final = {"vendid": (1 << 24) - 1, "devid": (1 << 16) - 1, "sysimgguid": _GUID_MAX}
"""Settings of the next node, with the largest values that NodeInfo can hold."""

_RATE_MAX: Final = {"w": ("width", 31, 1), "s": ("speed", 7, 0), "e": ("extended speed", 15, 0)}
"""Settings of widths and speeds by their first letters: the word, the largest and the least value."""

_GUID_KEYS: Final = {
    "switchguid": NodeType.SWITCH,
    "switchguids": NodeType.SWITCH,
    "caguid": NodeType.CA,
    "caguids": NodeType.CA,
    "hcaguid": NodeType.CA,
    "hcaguids": NodeType.CA,
    "rtguid": NodeType.ROUTER,
    "rtguids": NodeType.ROUTER,
}


class _Plug(NamedTuple):
    """A port that a line links."""

    place: Place
    far: Linked
    rate: PortRate


@dataclass
class SubnetBuilder:
    """Takes lines, then links the ports.

    Attributes:
        subnet: what comes of it.
        names: by node GUID, what a node is called in the file.
        places: by node GUID, where it begins.
        remarks: lines that nothing came of, or not what they say.
    """

    subnet: Subnet = field(default_factory=Subnet)
    names: dict[int, str] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    _guids: dict[str, int] = field(default_factory=dict)
    """Of nodes, by their names."""
    _plugs: dict[End, _Plug] = field(default_factory=dict)
    _aliases: dict[str, tuple[End, Place]] = field(default_factory=dict)
    _rates: dict[End, PortRate] = field(default_factory=dict)
    """Of ports with an alias."""
    _usual_rates: dict[int, PortRate] = field(default_factory=dict)
    """Of ports of which nothing else is said, by node GUID."""
    _node: Node | None = None
    """The one whose ports are being read."""
    _module: str = ""
    _bases: dict[NodeType, int] = field(default_factory=lambda: dict(_FIRST_GUIDS))
    """What settings such as `switchguid+` add to."""
    _next_guids: dict[NodeType, int] = field(default_factory=lambda: dict(_FIRST_GUIDS))
    _switch_port_guid: int | None = None
    """Given for the next switch."""
    _ids: dict[str, int] = field(default_factory=dict)
    """By the keys of _ID_MAX, of the next node."""
    _rate: PortRate = field(default_factory=PortRate)
    """Of ports of the nodes that follow."""
    _place: Place = field(default_factory=lambda: Place("", 0))
    """What is being read."""

    def take(self, place: Place, line: Line) -> None:
        """Takes the next line.

        Raises:
            Wrong: it does not go with those before.
        """
        self._place = place
        if not isinstance(line, PortLine | Alias | Remark):
            self._node = None
        match line:
            case NodeHead():
                self._take_node(line)
            case PortLine():
                self._take_port(line)
            case Alias():
                self._take_alias(line)
            case Setting():
                self._take_setting(line)
            case Module():
                self._module = _checked("module", line.name) if line.name else ""
            case LinkCommand():
                self._take_link(line)
            case Remark():
                self.remarks.append(f"{place}: {line.text}")

    def link(self) -> None:
        """Links the ports, when all nodes are known.

        Raises:
            TopologyError: a link without another end, or ports that cannot be linked, or GUIDs that are used twice.
        """
        try:
            for end, plug in self._plugs.items():
                self._place = plug.place
                far = self._far_end(end, plug.far)
                if self.subnet.link(end) is None:
                    self._connect(end, far)
            self._check_end_ports()
        except Wrong as wrong:
            raise self._place.error(wrong) from None

    def _connect(self, end: End, far: End) -> None:
        try:
            width, speed = agreed_rate(self._rate_at(end), self._rate_at(far))
        except Wrong as wrong:
            raise Wrong(f"the ends {self._called(end)} and {self._called(far)} {wrong}") from None
        self.subnet.connect(end, far, width, speed)

    def _far_end(self, end: End, linked: Linked) -> End:
        """Where a link leads, if the line there leads back, or an alias has no line of its own."""
        here = self._called(end)
        far = self._found(linked, f"{here} is linked to")
        there = self._called(far)
        if far == end:
            raise Wrong(f"{here} is linked to itself, expected another port")
        back = self._plugs.get(far)
        if back is None and "@" in linked.name:
            first = self.subnet.peer(far)
            if first in (None, end):
                return far
            used = self._plugs[first].place.seen_from(self._place)
            raise Wrong(f"port {there} is used twice: {here} leads to it, but so does {self._called(first)} of {used}")
        if back is None:
            raise Wrong(f"{here} is a link to nowhere: {there} has no line that leads back")
        if self._leads_to(back.far) != end:
            raise Wrong(
                f"port {there} is used twice: {here} leads to it, but {back.place.seen_from(self._place)} links it to "
                f'"{back.far.name}"[{1 if back.far.port is None else back.far.port}]'
            )
        return far

    def _leads_to(self, linked: Linked) -> End | None:
        """The port of that name, if there is one."""
        if "@" in linked.name:
            return self._aliases[linked.name][0] if linked.name in self._aliases else None
        guid = self._guids.get(linked.name)
        return None if guid is None else End(guid, 1 if linked.port is None else linked.port)

    def _found(self, linked: Linked, who: str) -> End:
        """The port of that name; WHO begins what is said if there is none."""
        end = self._leads_to(linked)
        if end is None:
            what = "unknown alias" if "@" in linked.name else "unknown node"
            raise Wrong(f'{who} {what} "{linked.name}"')
        if "@" in linked.name and linked.port not in (None, end.port):
            raise Wrong(f'{who} "{linked.name}"[{linked.port}]: expected {end.port}, or none at an alias')
        ports = self.subnet.nodes[end.guid].ports
        if not 1 <= end.port <= ports:
            raise Wrong(f"{who} {self._called(end)}: expected a port of 1..{ports}")
        return end

    def _rate_at(self, end: End) -> PortRate:
        if plug := self._plugs.get(end):
            return plug.rate
        return self._rates.get(end, self._usual_rates[end.guid])

    def _called(self, end: End) -> str:
        return f'"{self.names[end.guid]}"[{end.port}]'

    def _full_name(self, name: str) -> str:
        """A name of a node or an alias as other modules write it."""
        if name.startswith("@"):
            return self._module + name
        return f"{self._module}#{name}" if self._module and "@" not in name and "#" not in name else name

    def _take_node(self, line: NodeHead) -> None:
        name = self._full_name(_checked("node", line.name))
        description = line.description or name
        if len(description.encode()) > NODE_DESCRIPTION.size_bytes:
            raise Wrong(f'node description "{description}": expected at most {NODE_DESCRIPTION.size_bytes} bytes')
        if "\0" in description:
            raise Wrong(f"node description {description!r}: expected one without NUL, which ends it")
        if name in self._guids:
            first = self.places[self._guids[name]].seen_from(self._place)
            raise Wrong(f'name "{name}" is used twice: {first} has it already')
        if not 1 <= line.ports <= MAX_PORTS:
            raise Wrong(f'"{name}" has {line.ports} ports: expected 1..{MAX_PORTS}')
        guid = self._next_guids[line.type]
        if guid in self.subnet.nodes:
            first = self.places[guid].seen_from(self._place)
            raise Wrong(f'GUID 0x{guid:x} of "{name}" is used twice: {first} has it already')
        if guid + line.ports > _GUID_MAX:
            raise Wrong(f'GUID 0x{guid:x} of "{name}": expected room for its ports\' GUIDs below 0x{_GUID_MAX:x}')
        if line.type is NodeType.SWITCH:
            port = EndPort(guid if self._switch_port_guid is None else self._switch_port_guid)
            _set_lid(port, line.lid)
            end_ports = {MANAGEMENT_PORT: port}
        else:
            end_ports = {number: EndPort(guid + number) for number in range(1, line.ports + 1)}
        ids = self._ids
        self._node = Node(
            guid,
            line.type,
            line.ports,
            end_ports,
            description,
            line.enhanced_port_0,
            ids.get("vendid", 0),
            ids.get("devid", 0),
            ids.get("sysimgguid", guid),
        )
        self.subnet.add(self._node)
        self._guids[name] = guid
        self.names[guid] = name
        self.places[guid] = self._place
        self._usual_rates[guid] = self._rate
        self._next_guids[line.type] = guid + (1 if self._node.is_switch else line.ports + 1)
        self._switch_port_guid = None
        # As in ibsim, devid holds for all nodes that follow, the others for one.
        self._ids = {key: value for key, value in ids.items() if key == "devid"}

    def _take_port(self, line: PortLine) -> None:
        end = self._own_port(line.number)
        node = self.subnet.nodes[end.guid]
        if not node.is_switch:
            port = node.end_ports[line.number]
            if line.guid:
                port.guid = number("port GUID", f"0x{line.guid}", _GUID_MAX)
            _set_lid(port, line.lid)
        rate = self._with_options(line.options)
        if line.rate:
            if "?" in "".join(line.rate):
                self.remarks.append(f"{self._place}: link {'x'.join(line.rate)} has the usual for what is not known")
            rate = stated_rate(*line.rate, rate)
        self._plug(end, Linked(self._full_name(line.far.name), line.far.port), rate)

    def _take_alias(self, line: Alias) -> None:
        end = self._own_port(line.number)
        alias = self._full_name(f"@{_checked('alias', line.name)}")
        if alias in self._aliases:
            first = self._aliases[alias][1].seen_from(self._place)
            raise Wrong(f'alias "{alias}" is used twice: {first} has it already')
        self._aliases[alias] = end, self._place
        self._rates[end] = self._with_options(line.options)

    def _take_link(self, line: LinkCommand) -> None:
        ends = []
        for linked in (line.one, line.other):
            if linked.port is None and "@" not in linked.name:
                raise Wrong(f'link "{linked.name}": expected a port')
            full = Linked(self._full_name(linked.name), linked.port)
            ends.append(self._found(full, "link of"))
        for end, far in (ends, ends[::-1]):
            self._plug(end, Linked(self.names[far.guid], far.port), self._rate_at(end))

    def _own_port(self, number: int) -> End:
        """A port of the node that is being read."""
        node = self._node
        if node is None:
            raise Wrong("a port's line belongs to no node: expected it right after a node's line")
        if not 1 <= number <= node.ports:
            raise Wrong(f'port {number} of "{self.names[node.guid]}" is out of range: expected 1..{node.ports}')
        return End(node.guid, number)

    def _plug(self, end: End, far: Linked, rate: PortRate) -> None:
        if end in self._plugs:
            first = self._plugs[end].place.seen_from(self._place)
            raise Wrong(f"port {self._called(end)} is used twice: {first} has it already")
        self._plugs[end] = _Plug(self._place, far, rate)

    def _with_options(self, options: tuple[tuple[str, str], ...]) -> PortRate:
        """Widths and speeds of a port: the file's own, unless its line says others."""
        rate = self._rate
        for option, value in options:
            if option not in _RATE_MAX:
                raise Wrong(f"port option {option!r}: expected w, s or e")
            rate = _with(rate, option, value)
        return rate

    def _take_setting(self, line: Setting) -> None:
        key, sign = line.key, line.sign
        if kind := _GUID_KEYS.get(key):
            value = number(key, line.value, _GUID_MAX)
            if sign == "=":
                self._bases[kind] = value
                self._next_guids[kind] = value
            else:
                self._next_guids[kind] = self._bases[kind] + value
            if kind is NodeType.SWITCH and line.port_guid:
                self._switch_port_guid = number("port GUID", f"0x{line.port_guid}", _GUID_MAX)
        elif sign == "=" and key in _ID_MAX:
            self._ids[key] = number(key, line.value, _ID_MAX[key])
        elif sign == "=" and key in ("width", "speed", "extspeed"):
            self._rate = _with(self._rate, key, line.value)
        else:
            raise Wrong(f"{key}{sign}: unknown setting")

    def _check_end_ports(self) -> None:
        """No two ports that take part have one GUID, and there is a LID for each."""
        places: dict[int, Place] = {}
        for end, port in self.subnet.reachable_end_ports:
            plug = self._plugs.get(end)
            self._place = plug.place if plug else self.places[end.guid]
            if port.guid in places:
                first = places[port.guid].seen_from(self._place)
                raise Wrong(f"port GUID 0x{port.guid:x} is used twice: {first} has it already")
            places[port.guid] = self._place
            if len(places) > LID_UNICAST_MAX:
                raise Wrong(f"more than {LID_UNICAST_MAX} (0x{LID_UNICAST_MAX:X}) LIDs are needed")


def _with(rate: PortRate, key: str, text: str) -> PortRate:
    """A rate with another width, speed or extended speed, as the first letter of the key says."""
    what, most, least = _RATE_MAX[key[0]]
    return rate.having(key, number(what, text, most, least))


def _checked(what: str, name: str) -> str:
    """A name, which has none of the characters that join names of modules, nodes and aliases."""
    if not name or "#" in name or "@" in name:
        raise Wrong(f'{what} name "{name}": expected one without # and @')
    return name


def _set_lid(port: EndPort, lid: tuple[int, int] | None) -> None:
    if lid is None:
        return
    port.lid, port.lmc = lid
    if port.lid > LID_UNICAST_MAX:
        raise Wrong(f"lid {port.lid}: expected 0..{LID_UNICAST_MAX}")
    if port.lmc > 7:
        raise Wrong(f"lmc {port.lmc}: expected 0..7")
