"""Topology files: ibsim's `.net` and ibnetdiscover's output, which is the same language with more in its comments.

A record is a node's line and a line for each of its linked ports:

    Switch  8 "SW1"                                         # "name" base port 0 lid 3 lmc 0
    [2]     "H1"[1](100001)                                 # "name" lid 5 4xSDR
    Ca      1 "H1"                                          # "name"
    [1](100001)     "SW1"[2]                                # lid 5 lmc 0 "name" lid 3 4xSDR

Everything from `#` on may be missing, as in hand-written files. A link stands at both its ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from sm.subnet import MANAGEMENT_PORT, MAX_PORTS, End, EndPort, Node, Subnet
from toolchain.errors import UserError
from toolchain.packaged import find_file, packaged_files
from wire.codes import LID_RESERVED, LID_UNICAST_MAX, LinkSpeed, LinkWidth
from wire.node_info import NODE_DESCRIPTION, NodeType

__all__ = ["TopologyError", "TopologyFile", "find_topology", "packaged_topologies", "parse_topology", "read_topology"]

_PACKAGED: Final = Path(__file__).with_name("packaged")

_TYPES: Final = {"Switch": NodeType.SWITCH, "Ca": NodeType.CA, "Hca": NodeType.CA, "Rt": NodeType.ROUTER}

_FIRST_GUIDS: Final = {NodeType.CA: 0x100000, NodeType.SWITCH: 0x200000, NodeType.ROUTER: 0x300000}
"""GUIDs of the first nodes that have none in the file; for switches and adapters they are ibsim's."""

_GUID_MAX: Final = (1 << 64) - 1

_ID_MAX: Final = {"vendid": (1 << 24) - 1, "devid": (1 << 16) - 1, "sysimgguid": _GUID_MAX}
"""Settings of the next node, with the largest values that NodeInfo can hold."""

_GUID_KEYS: Final = {
    "switchguid": NodeType.SWITCH,
    "switchguids": NodeType.SWITCH,
    "caguid": NodeType.CA,
    "caguids": NodeType.CA,
    "hcaguids": NodeType.CA,
    "rtguid": NodeType.ROUTER,
    "rtguids": NodeType.ROUTER,
}

_WIDTHS: Final = {
    "1": LinkWidth.X1,
    "2": LinkWidth.X1 | LinkWidth.X2,
    "4": LinkWidth.X1 | LinkWidth.X4,
    "8": LinkWidth.X1 | LinkWidth.X4 | LinkWidth.X8,
    "12": LinkWidth.X1 | LinkWidth.X4 | LinkWidth.X12,
}
"""Widths of a port, by the one that it runs at."""

_WIDTH_ORDER: Final = (LinkWidth.X12, LinkWidth.X8, LinkWidth.X4, LinkWidth.X2, LinkWidth.X1)
_ALL_SPEEDS: Final = LinkSpeed.SDR | LinkSpeed.DDR | LinkSpeed.QDR
_SPEEDS: Final = {
    "SDR": LinkSpeed.SDR,
    "DDR": LinkSpeed.SDR | LinkSpeed.DDR,
    # Faster links have other symbols, which Ironband does not have: they are taken at its fastest speed.
    **dict.fromkeys(("QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"), _ALL_SPEEDS),
}

_NODE = re.compile(r'(Switch|Ca|Hca|Rt)\s+(\d{1,9})\s*"([^"]*)"\s*(?:#(.*))?')
_NODE_COMMENT = re.compile(r'\s*(?:"(.*)"|([^"]*?))\s*((?:enhanced port 0|base port 0|lid \d|lmc \d).*)?')
_PORT = re.compile(
    r"\[(\d{1,9})\](?:\[ext \d+\])?\s*(?:\(([0-9a-fA-F]+)\))?"  # [1](100001): port number and GUID
    r'\s*"([^"]*)"\s*(?:\[(\d{1,9})\])?(?:\[ext \d+\])?\s*(?:\(([0-9a-fA-F]+)\))?'  # "H1"[1](100001): the far one's
    r"((?:\s+[a-z]\w*=\w+)*)\s*(?:#(.*))?"
)
_PORT_LIDS = re.compile(r"\s*lid (\d{1,9}) lmc (\d{1,9})\b")
_RATE = re.compile(r".*\blid \d+ (\d+)x(\w+)")
_OPTION = re.compile(r"([a-z]\w*)=(\w+)")
_SETTING = re.compile(r"([a-z]+)\s*([=+])\s*(\w+)\s*(?:\(([0-9a-fA-F]+)\))?\s*(?:#.*)?")
_GROUPING = re.compile(r"Chassis \d+.*|Non-Chassis Nodes|Hostname: .*")
"""What ibnetdiscover --grouping puts between records."""

_UNSUPPORTED = re.compile(r"(include|module|do)\b|(@)")


class TopologyError(UserError, ValueError):
    """A topology file that is wrong; the text is one line: file, line number, reason."""


@dataclass(frozen=True)
class TopologyFile:
    """A topology file's content."""

    file: str
    subnet: Subnet
    """The fabric. LIDs are those of the file, 0 where it gives none."""
    ids: dict[int, str]
    """By node GUID, what a node is called in the file: a name, or ibnetdiscover's `S-0000000000200000`."""
    lines: dict[int, int]
    """By node GUID, the line on which it begins."""


def packaged_topologies() -> dict[str, Path]:
    """Topology files that come with Ironband, by name."""
    return packaged_files(_PACKAGED, ".net")


def find_topology(name_or_path: str) -> Path:
    """The topology file at a path, or the packaged one of that name.

    Raises:
        TopologyError: there is neither.
    """
    return find_file("topology", name_or_path, packaged_topologies(), ".net", TopologyError)


def read_topology(path: str | Path) -> TopologyFile:
    """The topology in a file.

    Raises:
        TopologyError: it cannot be read, or it is not a topology.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TopologyError(f"{path}: byte {error.start} is not UTF-8, expected a topology file") from None
    return parse_topology(text, str(path))


def parse_topology(text: str, file: str) -> TopologyFile:
    """The topology of a text; `file` is what errors call it.

    A GUID that is not given comes from the order of the nodes, as in ibsim.

    Raises:
        TopologyError: it is not a topology.
    """
    parser = _Parser(file)
    for number, line in enumerate(text.split("\n"), 1):
        parser.take(number, line.strip())
    return parser.finish()


class _Rate(NamedTuple):
    """What a port can run at."""

    widths: LinkWidth = LinkWidth.X4
    speeds: LinkSpeed = LinkSpeed.SDR


class _PortLine(NamedTuple):
    """A line of a linked port."""

    line: int
    far_id: str
    far_port: int
    rate: _Rate


@dataclass
class _Parser:
    file: str
    _subnet: Subnet = field(default_factory=Subnet)
    _guid_of: dict[str, int] = field(default_factory=dict)
    _lines: dict[int, int] = field(default_factory=dict)
    _port_lines: dict[End, _PortLine] = field(default_factory=dict)
    _node: Node | None = None
    """The one whose ports are being read."""
    _bases: dict[NodeType, int] = field(default_factory=lambda: dict(_FIRST_GUIDS))
    """What settings such as `switchguid+` add to."""
    _next_guids: dict[NodeType, int] = field(default_factory=lambda: dict(_FIRST_GUIDS))
    _switch_port_guid: int | None = None
    """Given for the next switch."""
    _ids: dict[str, int] = field(default_factory=dict)
    """By the keys of _ID_MAX, of the next node."""
    _rate: _Rate = field(default_factory=_Rate)
    _line: int = 0

    def take(self, number: int, line: str) -> None:
        """Reads the next line."""
        self._line = number
        if line.startswith("#"):
            return
        if line.startswith("["):
            self._take_port(line)
            return
        self._node = None
        if match := _NODE.fullmatch(line):
            self._take_node(_TYPES[match[1]], int(match[2]), match[3], match[4] or "")
        elif match := _SETTING.fullmatch(line):
            self._take_setting(match[1], match[2], match[3], match[4])
        elif match := _UNSUPPORTED.match(line):
            self._fail(f"{match[0]!r} lines of ibsim are not supported")
        elif line and not _GROUPING.fullmatch(line):
            self._fail(f'malformed line {_short(line)}: expected Switch|Ca PORTS "NAME" or [PORT] "NAME"[PORT]')

    def finish(self) -> TopologyFile:
        """Links the ports, when all nodes are known."""
        if not self._subnet.nodes:
            raise TopologyError(f"{self.file}: no nodes, expected a topology of ibsim or ibnetdiscover")
        names = {guid: name for name, guid in self._guid_of.items()}
        for end, port in self._port_lines.items():
            self._line = port.line
            far = self._far_end(end, port, names)
            if self._subnet.link(end) is None:
                rate, far_rate = port.rate, self._port_lines[far].rate
                widths, speeds = rate.widths & far_rate.widths, rate.speeds & far_rate.speeds
                if not widths or not speeds:
                    what = "width" if not widths else "speed"
                    self._fail(
                        f'the ends "{names[end.guid]}"[{end.port}] and "{port.far_id}"[{far.port}] share no {what}'
                    )
                width = next(width for width in _WIDTH_ORDER if width in widths)
                self._subnet.connect(end, far, width, max(speed for speed in LinkSpeed if speed in speeds))
        self._check_end_ports()
        return TopologyFile(self.file, self._subnet, names, self._lines)

    def _far_end(self, end: End, port: _PortLine, names: dict[int, str]) -> End:
        """Where a link leads, if the line there leads back."""
        here, there = f'"{names[end.guid]}"[{end.port}]', f'"{port.far_id}"[{port.far_port}]'
        if port.far_id not in self._guid_of:
            self._fail(f'{here} is linked to unknown node "{port.far_id}"')
        node = self._subnet.nodes[self._guid_of[port.far_id]]
        if not 1 <= port.far_port <= node.ports:
            self._fail(f"{here} is linked to {there}: expected a port of 1..{node.ports}")
        far = End(node.guid, port.far_port)
        if far == end:
            self._fail(f"{here} is linked to itself, expected another port")
        back = self._port_lines.get(far)
        if back is None:
            self._fail(f"{here} is a link to nowhere: {there} has no line that leads back")
        if (self._guid_of.get(back.far_id), back.far_port) != end:
            self._fail(
                f"port {there} is used twice: {here} leads to it, "
                f'but line {back.line} links it to "{back.far_id}"[{back.far_port}]'
            )
        return far

    def _take_node(self, kind: NodeType, ports: int, name: str, comment: str) -> None:
        match = _NODE_COMMENT.fullmatch(comment)
        description, rest = (match[1] or match[2] or "", match[3] or "") if match else ("", "")
        if not name or "#" in name or "@" in name:
            self._fail(f'node name "{name}": expected one without # and @')
        if len((description or name).encode()) > NODE_DESCRIPTION.size_bytes:
            self._fail(
                f'node description "{description or name}": expected at most {NODE_DESCRIPTION.size_bytes} bytes'
            )
        if name in self._guid_of:
            first = self._lines[self._guid_of[name]]
            self._fail(f'name "{name}" is used twice: line {first} has it already')
        if not 1 <= ports <= MAX_PORTS:
            self._fail(f'"{name}" has {ports} ports: expected 1..{MAX_PORTS}')
        guid = self._next_guids[kind]
        if guid in self._subnet.nodes:
            self._fail(f'GUID 0x{guid:x} of "{name}" is used twice: line {self._lines[guid]} has it already')
        if guid + ports > _GUID_MAX:
            self._fail(f'GUID 0x{guid:x} of "{name}": expected room for its ports\' GUIDs below 0x{_GUID_MAX:x}')
        if kind is NodeType.SWITCH:
            port = EndPort(guid if self._switch_port_guid is None else self._switch_port_guid)
            if lids := re.search(r"lid (\d{1,9}) lmc (\d{1,9})", rest):
                self._set_lids(port, lids)
            end_ports = {MANAGEMENT_PORT: port}
        else:
            end_ports = {number: EndPort(guid + number) for number in range(1, ports + 1)}
        self._node = Node(
            guid,
            kind,
            ports,
            end_ports,
            description or name,
            rest.startswith("enhanced"),
            self._ids.get("vendid", 0),
            self._ids.get("devid", 0),
            self._ids.get("sysimgguid", guid),
        )
        self._subnet.add(self._node)
        self._guid_of[name] = guid
        self._lines[guid] = self._line
        self._next_guids[kind] = guid + (1 if kind is NodeType.SWITCH else ports + 1)
        self._switch_port_guid = None
        # As in ibsim, devid holds for all nodes that follow, the others for one.
        self._ids = {key: value for key, value in self._ids.items() if key == "devid"}

    def _take_port(self, line: str) -> None:
        node = self._node
        if node is None:
            self._fail(f"port line {_short(line)} belongs to no node: expected it right after a node's line")
        match = _PORT.fullmatch(line)
        if match is None:
            self._fail(f'malformed port line {_short(line)}: expected [PORT] "NAME"[PORT]')
        number, comment = int(match[1]), match[7] or ""
        name = next(reversed(self._guid_of))
        if not 1 <= number <= node.ports:
            self._fail(f'port {number} of "{name}" is out of range: expected 1..{node.ports}')
        end = End(node.guid, number)
        if end in self._port_lines:
            self._fail(f'port "{name}"[{number}] is used twice: line {self._port_lines[end].line} has it already')
        if not node.is_switch:
            port = node.end_ports[number]
            if match[2]:
                port.guid = self._number("port GUID", f"0x{match[2]}", _GUID_MAX)
            if lids := _PORT_LIDS.match(comment):
                self._set_lids(port, lids)
        self._port_lines[end] = _PortLine(self._line, match[3], int(match[4] or 1), self._rate_of(match[6], comment))

    def _rate_of(self, options: str, comment: str) -> _Rate:
        """Widths and speeds of a port: the file's own, unless its line says others."""
        rate = self._rate
        for option, value in _OPTION.findall(options):
            if option not in ("w", "s", "e"):
                self._fail(f"port option {option!r}: expected w, s or e")
            rate = self._with(rate, option, value)
        if match := _RATE.match(comment):
            if match[1] not in _WIDTHS or match[2] not in _SPEEDS:
                self._fail(
                    f"link {match[1]}x{match[2]}: expected a width of {', '.join(f'{width}x' for width in _WIDTHS)} "
                    f"and a speed of {', '.join(_SPEEDS)}"
                )
            return _Rate(_WIDTHS[match[1]], _SPEEDS[match[2]])
        return rate

    def _take_setting(self, key: str, sign: str, text: str, in_brackets: str | None) -> None:
        if kind := _GUID_KEYS.get(key):
            value = self._number(key, text, _GUID_MAX)
            if sign == "=":
                self._bases[kind] = value
                self._next_guids[kind] = value
            else:
                self._next_guids[kind] = self._bases[kind] + value
            if kind is NodeType.SWITCH and in_brackets:
                self._switch_port_guid = self._number("port GUID", f"0x{in_brackets}", _GUID_MAX)
        elif sign == "=" and key in _ID_MAX:
            self._ids[key] = self._number(key, text, _ID_MAX[key])
        elif sign == "=" and key in ("width", "speed", "extspeed"):
            self._rate = self._with(self._rate, key, text)
        else:
            self._fail(f"{key}{sign}: unknown setting")

    def _with(self, rate: _Rate, key: str, text: str) -> _Rate:
        """A rate with another width, speed or extended speed, as the first letter of the key says."""
        if key[0] == "w":
            return rate._replace(widths=LinkWidth(self._number("width", text, 31, least=1)))
        if key[0] == "s":
            # ibsim takes 0 for QDR.
            return rate._replace(speeds=LinkSpeed(self._number("speed", text, 7) or LinkSpeed.QDR))
        return rate._replace(speeds=_ALL_SPEEDS) if self._number("extended speed", text, 15) else rate

    def _set_lids(self, port: EndPort, match: re.Match[str]) -> None:
        port.lid, port.lmc = int(match[1]), int(match[2])
        if not LID_RESERVED <= port.lid <= LID_UNICAST_MAX:
            self._fail(f"lid {port.lid}: expected 0..{LID_UNICAST_MAX}")
        if port.lmc > 7:
            self._fail(f"lmc {port.lmc}: expected 0..7")

    def _check_end_ports(self) -> None:
        """No two ports that take part have one GUID, and there is a LID for each."""
        lines: dict[int, int] = {}
        for end, port in self._subnet.reachable_end_ports:
            stated = self._port_lines.get(end)
            self._line = stated.line if stated else self._lines[end.guid]
            if port.guid in lines:
                self._fail(f"port GUID 0x{port.guid:x} is used twice: line {lines[port.guid]} has it already")
            lines[port.guid] = self._line
        if len(lines) > LID_UNICAST_MAX:
            self._line = sorted(lines.values())[LID_UNICAST_MAX]
            self._fail(f"more than {LID_UNICAST_MAX} (0x{LID_UNICAST_MAX:X}) LIDs are needed")

    def _number(self, what: str, text: str, most: int, least: int = 0) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if not least <= value <= most:
            self._fail(f"{what} {text}: expected a number of {least}..{most if most < 1 << 32 else hex(most)}")
        return value

    def _fail(self, reason: str) -> NoReturn:
        raise TopologyError(f"{self.file}:{self._line}: {reason}")


def _short(line: str) -> str:
    """A line as a message shows it."""
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
