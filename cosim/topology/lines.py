"""The lines of topology files, one at a time: ibsim's language, which ibnetdiscover's output is a part of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from cosim.topology.place import Wrong
from wire.node_info import NodeType

__all__ = [
    "Alias",
    "Include",
    "Line",
    "LinkCommand",
    "Linked",
    "Module",
    "NodeHead",
    "PortLine",
    "Remark",
    "Setting",
    "number",
    "read_line",
]


@dataclass(frozen=True)
class NodeHead:
    """`Switch 8 "SW1" # "description" base port 0 lid 3 lmc 0`: a node, whose ports follow."""

    type: NodeType
    ports: int
    name: str
    description: str
    enhanced_port_0: bool
    lid: tuple[int, int] | None
    """LID and LMC, of a switch."""


@dataclass(frozen=True)
class Linked:
    """`"SW1"[3]`: a port by the name of its node or by an alias, in which case it has no number."""

    name: str
    port: int | None


@dataclass(frozen=True)
class PortLine:
    """`[1](100001) "SW1"[3] w=3 # lid 5 lmc 0 "description" lid 3 4xSDR`: a linked port of the node."""

    number: int
    guid: str | None
    far: Linked
    options: tuple[tuple[str, str], ...]
    lid: tuple[int, int] | None
    rate: tuple[str, str] | None
    """Width and speed."""


@dataclass(frozen=True)
class Alias:
    """`@[1] "name" w=3`: another name of a port of the node, by which another port's line links it."""

    number: int
    name: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Setting:
    """`caguid=0x1234`, `switchguid+0x10`: of what follows."""

    key: str
    sign: str
    value: str
    port_guid: str | None


@dataclass(frozen=True)
class Module:
    """`module="pod"`: what the names of nodes that follow begin with."""

    name: str


@dataclass(frozen=True)
class Include:
    """`include "pod.net"`: the lines of another file."""

    file: str


@dataclass(frozen=True)
class LinkCommand:
    """`do link "SW1"[1] "SW2"[1]`: a link, by a command of ibsim's console."""

    one: Linked
    other: Linked


@dataclass(frozen=True)
class Gap:
    """An empty line, or a heading of ibnetdiscover --grouping: no more ports of the node."""


@dataclass(frozen=True)
class Remark:
    """A line that nothing comes of, which somebody should know."""

    text: str


Line = NodeHead | PortLine | Alias | Setting | Module | Include | LinkCommand | Gap | Remark

_TYPES: Final = {"Switch": NodeType.SWITCH, "Ca": NodeType.CA, "Hca": NodeType.CA, "Rt": NodeType.ROUTER}

# Each \s* is within what may be missing, so that no run of spaces is gone through in more ways than one.
_OPTIONS = r"((?:\s*[A-Za-z]\w*\s*=\s*\w+)(?:\s+[A-Za-z]\w*\s*=\s*\w+)*)?\s*(?:#(.*))?"
_FAR = r'"([^"]*)"(?:\s*\[(\d{1,9})\])?'
_NODE = re.compile(r'(Switch|Ca|Hca|Rt)\s+(\d{1,9})\s*"([^"]*)"\s*(?:#(.*))?')
_PORT = re.compile(
    r"\[(\d{1,9})\](?:\[ext \d+\])?(?:\s*\((?:0x)?([0-9a-fA-F]+)\))?\s*"  # [1](100001): port number and GUID
    rf"{_FAR}(?:\[ext \d+\])?(?:\s*\((?:0x)?[0-9a-fA-F]+\))?{_OPTIONS}"  # "H1"[1](100001): the far one's
)
_ALIAS = re.compile(rf'@\s*\[(\d{{1,9}})\]\s*"([^"]*)"{_OPTIONS}')
_OPTION = re.compile(r"([A-Za-z]\w*)\s*=\s*(\w+)")
_SETTING = re.compile(r"([a-z]+)\s*([=+])\s*(\w+)\s*(?:\((?:0x)?([0-9a-fA-F]+)\))?\s*(?:#.*)?")
_MODULE = re.compile(r'module\s*=\s*"([^"]*)"\s*(?:#.*)?')
_INCLUDE = re.compile(r'include\s*"([^"\0]+)"\s*(?:#.*)?')
_COMMAND = re.compile(r"do\b\s*(.*)")
_LINK = re.compile(rf"link\s*{_FAR}\s*{_FAR}\s*(?:#.*)?", re.IGNORECASE)

_UNQUOTED_END = re.compile(r"(?:^|\s)(?:(?:enhanced|base) port 0|lid \d|lmc \d)")
_LIDS = re.compile(r"lid (\d{1,9}) lmc (\d{1,9})\b")
_RATE = re.compile(r".*\blid \d+ (?:(\d+)x|(\?\?))([\w.]+|\?\?\?)")

_GROUPING = re.compile(r"Chassis \d+.*|Non-Chassis Nodes|Hostname: .*")
"""What ibnetdiscover --grouping puts between records."""

_STRAYED = re.compile(r"ib(?:warn|panic|error|debug): |\S+\.c:\d+; |pdebug\b")
"""What programs print beside ibnetdiscover's output, and ibsim's switch for printing more."""

_OTHER_OUTPUT: Final = (
    (re.compile(r"(?:Switch|Ca|Router)\s+: 0x"), "is of a list of nodes, as ibnetdiscover -l prints"),
    (re.compile(r"(?:SW|CA|RT)\s+\d+\s+\d+ 0x"), "is of a report of ports, as ibnetdiscover -p prints"),
    (re.compile(r"[<>] "), "is a difference, as ibnetdiscover --diff prints"),
    (re.compile(r"(?:CA|Switch|Router): |.*\[  \] ==\("), "is of iblinkinfo"),
)
"""What is easily taken for a topology."""


def read_line(line: str) -> Line | None:
    """What a line says, without the spaces around it; None if it is a comment.

    Raises:
        Wrong: it is none of a topology file.
    """
    if not line or _GROUPING.fullmatch(line):
        return Gap()
    if line[0] == "#":
        return None
    if line[0] == "[":
        return _port_line(line)
    if match := _NODE.fullmatch(line):
        return _node_head(_TYPES[match[1]], int(match[2]), match[3], match[4] or "")
    if match := _SETTING.fullmatch(line):
        return _strayed(line) or Setting(match[1], match[2], match[3], match[4])
    if match := _ALIAS.fullmatch(line):
        return Alias(int(match[1]), match[2], _options(match[3]))
    if match := _MODULE.fullmatch(line):
        return Module(match[1])
    if match := _INCLUDE.fullmatch(line):
        return Include(match[1])
    if match := _COMMAND.fullmatch(line):
        return _command(match[1])
    if remark := _strayed(line):
        return remark
    for pattern, what in _OTHER_OUTPUT:
        if pattern.match(line):
            raise Wrong(f"{_short(line)} {what}: expected a topology, as ibnetdiscover alone prints")
    raise Wrong(_malformed(line))


def _malformed(line: str) -> str:
    forms = {"@": '@[PORT] "ALIAS"', "module": 'module="NAME"', "include": 'include "FILE"'}
    usual = 'Switch|Ca|Rt PORTS "NAME" or [PORT] "NAME"[PORT]'
    form = next((form for start, form in forms.items() if line.startswith(start)), usual)
    return f"malformed line {_short(line)}: expected {form}"


def _node_head(kind: NodeType, ports: int, name: str, comment: str) -> NodeHead:
    """A node, and what ibnetdiscover says of it: a description, quoted or not, and after it of a switch its port 0."""
    said = comment.strip()
    if said.startswith('"') and said.count('"') > 1:
        description, _quote, rest = said[1:].rpartition('"')
    else:
        end = match.start() if (match := _UNQUOTED_END.search(said)) else len(said)
        description, rest = said[:end].strip(), said[end:]
    return NodeHead(kind, ports, name, description, rest.lstrip().startswith("enhanced"), _lids(_LIDS.search(rest)))


def _port_line(line: str) -> PortLine:
    match = _PORT.fullmatch(line)
    if match is None:
        raise Wrong(f'malformed port line {_short(line)}: expected [PORT] "NAME"[PORT]')
    comment = match[6] or ""
    rate = _RATE.match(comment)
    return PortLine(
        int(match[1]),
        match[2],
        Linked(match[3], int(match[4]) if match[4] else None),
        _options(match[5]),
        _lids(_LIDS.match(comment.strip())),
        (rate[1] or rate[2], rate[3]) if rate else None,
    )


def _options(text: str | None) -> tuple[tuple[str, str], ...]:
    return tuple(_OPTION.findall(text or ""))


def _lids(match: re.Match[str] | None) -> tuple[int, int] | None:
    return (int(match[1]), int(match[2])) if match else None


def _command(text: str) -> LinkCommand | Remark:
    if match := _LINK.fullmatch(text):
        ends = [Linked(match[at], int(match[at + 1]) if match[at + 1] else None) for at in (1, 3)]
        return LinkCommand(*ends)
    return Remark(f"{_short(f'do {text}')} is not done: of ibsim's console there is only link")


def _strayed(line: str) -> Remark | None:
    return Remark(f"{_short(line)} is read over") if _STRAYED.match(line) else None


def number(what: str, text: str, most: int, least: int = 0) -> int:
    """A number as C writes it.

    Raises:
        Wrong: it is none, or out of range.
    """
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not least <= value <= most:
        raise Wrong(f"{what} {text}: expected a number of {least}..{most if most < 1 << 32 else hex(most)}")
    return value


def _short(line: str) -> str:
    """A line as a message shows it."""
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
