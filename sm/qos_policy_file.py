"""A QoS policy from OpenSM's qos-policy.conf (QoS_management_in_OpenSM.txt, 2 to 6, of OpenSM's sources).

What OpenSM 3.3.23 takes means what it means to it: blanks in names say nothing, outside of quotes; names of groups and
levels are the same in capitals; of a comment the end of its line is a part. Two things it reads and does nothing with
are errors here, and so are numbers that it cuts short.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from sm.errors import ManagerError
from sm.options_file import cited, number
from sm.partitions import DEFAULT_PARTITION, P_KEY_BASE
from sm.qos_policy import MatchRule, PortGroup, QosLevel, QosPolicy, Ranges
from sm.subnet import MAX_PORTS
from wire.codes import MTU, SERVICE_LEVELS
from wire.node_info import NodeType
from wire.path_record import PATH_RECORD, RATES

__all__ = ["QosPolicyError", "parse_qos_policy"]

_Named = TypeVar("_Named")

_MOST: Final = (1 << 64) - 1
_TEXTS: Final = ("name", "use", "qos-level-name")
_STRINGS: Final = ("partition", "source", "destination")
_PORT_NAME: Final = "port-name"
_OF_TEXT: Final = {*_TEXTS, *_STRINGS, _PORT_NAME}
_RANGES: Final = ("port-guid", "pkey", "qos-class", "service-id", "path-bits")
_NUMBERS: Final[Mapping[str, tuple[int, int]]] = {
    "sl": (0, SERVICE_LEVELS - 1),
    "mtu-limit": (min(MTU), max(MTU)),
    "rate-limit": (min(RATES), max(RATES)),
    "packet-life": (0, PATH_RECORD["packet_life_time"].max),
}
_TYPES: Final = "node-type"
_ENTRIES: Final = {
    "port-group": ("name", "use", "port-guid", _PORT_NAME, "pkey", "partition", _TYPES),
    "qos-level": ("name", "use", "sl", "mtu-limit", "rate-limit", "packet-life", "path-bits", "pkey"),
    "qos-match-rule": ("use", "qos-class", "qos-level-name", "source", "destination", "service-id", "pkey"),
}
_SECTIONS: Final = ("qos-ulps", "port-groups", "qos-setup", "qos-levels", "qos-match-rules")
_DEFAULT: Final = "default"
_SERVICES: Final[Mapping[str, tuple[int, int, int]]] = {
    "sdp": (0x1_0000, 0, 0xFFFF),
    "rds": (0x106_0000, 0x48CA, 0x48CA),
    "iser": (0x106_0000, 0x0CBC, 0x0CBC),
}
"""Service ID of port 0, and the first and last port where none is said."""
_ULPS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_SERVICES, ("port-num",)),
    "srp": ("target-port-guid",),
    "ipoib": ("pkey",),
    "any": ("service-id", "pkey", "target-port-guid", "source-port-guid", "source-target-port-guid"),
}
"""What may be said of each to tell which of its paths are meant."""


def _either(words: Iterable[str]) -> str:
    """An expression for any of these words, and the longest of those that fit."""
    return "|".join(sorted(words, key=len, reverse=True))


_WORDS: Final = _either(start + word for word in (*_SECTIONS, *_ENTRIES) for start in ("", "end-"))
_PARTS: Final = "|".join(rf"(?i:{ulp})[ \t]*,[ \t]*(?:{_either(parts)})" for ulp, parts in _ULPS.items())
_TOKEN: Final = re.compile(
    rf"""(?P<end>(?:\#.*|[ \t]*)\n)
    |(?P<blank>[ \t]+)
    |(?P<key>{_either(key for keys in _ENTRIES.values() for key in keys)})[ \t]*:[ \t]*
    |(?P<ulp>(?i:default|ipoib|{_either(_SERVICES)}))[ \t]*:[ \t]*
    |(?P<part>{_PARTS})
    |(?P<word>{_WORDS})
    |(?P<type>(?i:all|ca|router|self|switch))
    |(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)
    |(?P<quoted>"[^"]*")
    |(?P<sign>[-:,*])
    |(?P<other>.)""",
    re.VERBOSE,
)
"""As OpenSM's lexer has them."""


class QosPolicyError(ManagerError):
    """A QoS policy that is wrong; the text is one line: file, line number, reason."""


def parse_qos_policy(text: str, name: str) -> QosPolicy:
    """The policy of a file.

    Raises:
        QosPolicyError: OpenSM would not take it, or takes it and does nothing with a part of it.
    """
    parser = _Parser(text)
    try:
        return parser.policy()
    except ValueError as error:
        raise QosPolicyError(f"{name}:{parser.line}: {error}") from None


class _Token(NamedTuple):
    """What kind it is, what it says, its line; a text is of kind `text`, and the end of the file `eof`."""

    kind: str
    text: str
    line: int


def _tokens(text: str) -> Iterator[_Token]:
    """The tokens of a file; what is text depends on the keys that its line has so far."""
    line = 1
    keys: set[str] = set()
    for match in _TOKEN.finditer(text):
        kind, said = str(match.lastgroup), match[0]
        if kind == "end":
            keys.clear()
        elif kind == "quoted":
            yield _Token("text", said[1:-1], line)
        elif (
            kind == "other"
            or "use" in keys
            or (keys & _OF_TEXT and (kind == "number" or said in ("-", ":", "*")))
            or (kind == "type" and _TYPES not in keys)
        ):
            yield _Token("text", said, line)
        elif kind != "blank":
            yield _Token(kind, "".join(match[kind].split()), line)
            keys.add(match[kind])
        line += said.count("\n")
    yield _Token("eof", "the end of the file", line)


@dataclass
class _Element:
    """The entries of a port-group, qos-level or qos-match-rule, by their keys."""

    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    strings: dict[str, list[str]] = field(default_factory=dict)
    ports: list[tuple[str, int]] = field(default_factory=list)
    ranges: dict[str, Ranges] = field(default_factory=dict)
    types: set[str] = field(default_factory=set)


class _Parser:
    """Reads sections, in whatever order; what rules name may come behind them."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._token = next(self._tokens)
        self._groups: dict[str, PortGroup] = {}
        self._levels: dict[str, QosLevel] = {}
        self._rules: list[tuple[int, _Element]] = []
        self._of_ulps: list[MatchRule] = []
        self._default: QosLevel | None = None
        """Of all ULPs that nothing is said of."""
        self.line = 1
        """Which an error is about."""

    def policy(self) -> QosPolicy:
        """All of it.

        Raises:
            ValueError: it is not right.
        """
        while self._token.kind != "eof":
            match self._take("word", *_SECTIONS, what="a section: " + ", ".join(_SECTIONS)):
                case "qos-ulps":
                    self._section("qos-ulps", self._ulp)
                case "port-groups":
                    self._section("port-groups", self._port_group)
                case "qos-levels":
                    self._section("qos-levels", self._qos_level, least=0)
                case "qos-match-rules":
                    self._section("qos-match-rules", self._match_rule, least=0)
                case _ if self._token.text != "end-qos-setup":
                    raise ValueError(
                        "qos-setup: OpenSM does nothing with it, expected qos_ options in the options file"
                    )
                case _:
                    self._take("word")
        rules = [self._rule(line, element) for line, element in self._rules]
        self.line = self._token.line
        default = self._levels.get(_DEFAULT, self._default)
        if default is None:
            raise ValueError("no default level, expected a qos-level of the name default, or default: SL in qos-ulps")
        return QosPolicy((*rules, *self._of_ulps), default)

    def _take(self, kind: str, *texts: str, what: str = "") -> str:
        """The next token, which is to be of a kind, and one of these texts if there are any."""
        token = self._token
        self.line = token.line
        if token.kind != kind or (texts and token.text not in texts):
            raise ValueError(f"{cited(token.text)}: expected {what or ', '.join(texts) or f'a {kind}'}")
        self._token = next(self._tokens, token)
        return token.text

    def _section(self, section: str, take: Callable[[], None], least: int = 1) -> None:
        taken = 0
        while taken < least or self._token.text != f"end-{section}":
            take()
            taken += 1
        self._take("word")

    def _element(self, element: str) -> _Element:
        self._take("word", element)
        found = _Element()
        keys = _ENTRIES[element]
        while self._token.text != f"end-{element}":
            key = self._take("key", *keys, what=f"end-{element}, or one of " + ", ".join(keys))
            if key in found.texts or key in found.numbers:
                raise ValueError(f"{key} twice in a {element}, expected once")
            if key == "path-bits":
                raise ValueError("path-bits: OpenSM does nothing with them, expected none")
            if key in _TEXTS:
                found.texts[key] = self._text(key)
            elif key in _NUMBERS:
                found.numbers[key] = self._number(key, *_NUMBERS[key])
            elif key in _STRINGS:
                found.strings.setdefault(key, []).extend(self._list(partial(self._text, key)))
            elif key == _PORT_NAME:
                found.ports.extend(map(_port_of_name, self._list(partial(self._text, key))))
            elif key in _RANGES:
                found.ranges[key] = found.ranges.get(key, ()) + self._ranges(key)
            else:
                found.types.update(self._list(lambda: self._take("type").upper()))
        self._take("word")
        return found

    def _list(self, take: Callable[[], _Named]) -> list[_Named]:
        """What commas stand between."""
        found = [take()]
        while self._token[:2] == ("sign", ","):
            self._take("sign")
            found.append(take())
        return found

    def _text(self, key: str) -> str:
        parts = [self._take("text", what=f"what {key} says")]
        while self._token.kind == "text":
            parts.append(self._take("text"))
        return "".join(parts).strip()

    def _number(self, what: str, low: int = 0, high: int = _MOST) -> int:
        try:
            return number(self._take("number", what="a number"), low, high)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None

    def _ranges(self, what: str) -> Ranges:
        """Ranges of numbers; P_Keys are without the bit of full members."""
        mask = P_KEY_BASE if what == "pkey" else _MOST

        def take() -> tuple[int, int]:
            first = last = self._number(what) & mask
            if self._token[:2] == ("sign", "-"):
                self._take("sign")
                last = self._number(what) & mask
            return min(first, last), max(first, last)

        return tuple(self._list(take))

    def _port_group(self) -> None:
        found = self._element("port-group")
        name = self._name(found, "port-group", "name").lower()
        types = {one.name: one for one in NodeType}
        group = PortGroup(
            found.ranges.get("port-guid", ()),
            tuple(found.ports),
            found.ranges.get("pkey", ()),
            tuple(found.strings.get("partition", ())),
            frozenset(types.values() if "ALL" in found.types else (types[one] for one in found.types & types.keys())),
            "SELF" in found.types,
        )
        self._groups.setdefault(name, group)

    def _qos_level(self) -> None:
        found = self._element("qos-level")
        name = self._name(found, "qos-level", "name").lower()
        if "sl" not in found.numbers:
            raise ValueError("qos-level: no sl, expected one")
        sl, mtu, rate, life = (found.numbers.get(key) for key in _NUMBERS)
        self._levels.setdefault(name, QosLevel(sl, mtu, rate, life, found.ranges.get("pkey", ())))

    def _match_rule(self) -> None:
        found = self._element("qos-match-rule")
        self._name(found, "qos-match-rule", "qos-level-name")
        self._rules.append((self.line, found))

    def _name(self, found: _Element, element: str, key: str) -> str:
        if key not in found.texts:
            raise ValueError(f"{element}: no {key}, expected one")
        return found.texts[key]

    def _rule(self, line: int, found: _Element) -> MatchRule:
        """A rule with what it names."""
        self.line = line

        def of_name(what: str, name: str, named: Mapping[str, _Named]) -> _Named:
            if name.lower() not in named:
                raise ValueError(f"qos-match-rule: {what} {name}: expected one of the file")
            return named[name.lower()]

        sources, destinations = (
            tuple(of_name("port-group", name, self._groups) for name in found.strings.get(key, ()))
            for key in ("source", "destination")
        )
        return MatchRule(
            of_name("qos-level", found.texts["qos-level-name"], self._levels),
            sources,
            destinations,
            *(found.ranges.get(key, ()) for key in ("qos-class", "service-id", "pkey")),
        )

    def _ulp(self) -> None:
        """A line of qos-ulps."""
        if self._token.kind == "ulp":
            ulp = self._take("ulp").lower()
            level = self._level_of_ulp()
            if ulp == _DEFAULT:
                self._default = level
            elif ulp == "ipoib":
                self._of_ulps.append(MatchRule(level, p_keys=((DEFAULT_PARTITION, DEFAULT_PARTITION),)))
            else:
                start, first, last = _SERVICES[ulp]
                self._of_ulps.append(MatchRule(level, service_ids=((start + first, start + last),)))
            return
        ulp, what = self._take("part", what="a ULP, or end-qos-ulps").split(",")
        ranges = self._ranges(what)
        if ulp.lower() in _SERVICES:
            if max(last for _first, last in ranges) > 0xFFFF:
                raise ValueError(f"{what}: expected ports 0..65535")
            start = _SERVICES[ulp.lower()][0]
            ranges = tuple((start + first, start + last) for first, last in ranges)
        self._take("sign", ":")
        level = self._level_of_ulp()
        group = (PortGroup(ranges),)
        self._of_ulps.append(
            MatchRule(
                level,
                group if what.startswith("source-") else (),
                group if what.endswith("target-port-guid") else (),
                service_ids=ranges if what in ("port-num", "service-id") else (),
                p_keys=ranges if what == "pkey" else (),
            )
        )

    def _level_of_ulp(self) -> QosLevel:
        return QosLevel(self._number("sl", *_NUMBERS["sl"]))


def _port_of_name(text: str) -> tuple[str, int]:
    """NodeDescription and port number of `NODE/P1`."""
    node, _slash, port = text.rpartition("/")
    if not node or port[:1] not in ("p", "P"):
        raise ValueError(f"port-name {text}: expected NODE/P and a port number")
    try:
        return node, number(port[1:], 1, MAX_PORTS)
    except ValueError as error:
        raise ValueError(f"port-name {text}: {error}") from None
