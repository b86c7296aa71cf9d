"""Partitions as OpenSM's partitions.conf has them (`man opensm`, PARTITION CONFIGURATION).

What OpenSM takes is taken, and means what it means to OpenSM 3.3.23: words may be cut short, a membership that is no
such word is limited, `both` is full, unknown flags say nothing. partition_groups.py has what is about multicast groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sm.errors import ManagerError
from sm.options_file import c_number, cited
from sm.partition_groups import GroupFlags, broadcast_group, groups_of_mgid
from sm.partitions import (
    DEFAULT_PARTITION,
    DEFAULT_PARTITION_NAME,
    FULL_MEMBER,
    P_KEY_BASE,
    EndPorts,
    Membership,
    Partitions,
    in_opensm_order,
)
from wire.layout import Record

__all__ = ["PartitionsFileError", "parse_partitions"]

_NUMBER_MAX: Final = (1 << 64) - 1
_BYTE_ORDER_MARK: Final = "\ufeff"
"""What some editors begin a file with."""
_NOBODY: Final = "NONE"
_MEMBERSHIPS: Final = ("full", "both", "limited")
_LIMITED: Final = "limited"
_NAME_CHARACTERS: Final = 31
"""That OpenSM keeps."""
_BLANKS: Final = " \t\r\n"


class PartitionsFileError(ManagerError):
    """A file of partitions that is wrong; the text is one line: file, line number, reason."""


def parse_partitions(text: str, name: str, *, has_qos: bool = False) -> Partitions:
    """The partitions of a file, and the multicast groups that they have from the start.

    All end ports are limited members of the default partition, and the Subnet Manager's a full one, unless the file
    says something else of it. Without a definition all are full members, and there is its broadcast group. Without
    quality of service (`has_qos`) the SL that is said of a partition is 0, as OpenSM has it.

    Raises:
        PartitionsFileError: OpenSM would not take it or a group of it, or a number has more than 64 bits.
    """
    parser = _Parser(has_qos)
    for number, line in enumerate(text.removeprefix(_BYTE_ORDER_MARK).split("\n"), 1):
        try:
            parser.take(line.partition("#")[0])
        except ValueError as error:
            raise PartitionsFileError(f"{name}:{number}: {error}") from None
    return parser.partitions


class _Parser:
    """A file read line by line: definitions end with semicolons, and begin with a line that has a colon."""

    def __init__(self, has_qos: bool) -> None:
        self._has_qos = has_qos
        self._names = {DEFAULT_PARTITION: DEFAULT_PARTITION_NAME}
        self._said: list[Membership] = []
        self._has_definition = False
        self._partition: int | None = None
        """Of the definition in progress."""
        self._is_full = False
        self._is_first = False
        self._generated = 0
        self._flags = GroupFlags()
        """Of the definition in progress."""
        self._is_ipoib = False
        self._groups: dict[int, Record] = {}
        """By MGID; what is said first of a group counts."""
        self._service_levels: dict[int, int] = {}
        """By partition; what its last definition says, or leaves unsaid, counts."""

    @property
    def partitions(self) -> Partitions:
        """What was said so far."""
        if not self._has_definition:
            group = broadcast_group(DEFAULT_PARTITION | FULL_MEMBER, GroupFlags())
            return Partitions((Membership(DEFAULT_PARTITION, EndPorts.ALL, True),), groups=(group,))
        default = (
            Membership(DEFAULT_PARTITION, EndPorts.ALL, False),
            Membership(DEFAULT_PARTITION, EndPorts.SELF, True),
        )
        groups = tuple(self._groups.values())
        return Partitions((*default, *self._said), dict(self._names), groups, dict(self._service_levels))

    def take(self, line: str) -> None:
        """Takes a line without its comment.

        Raises:
            ValueError: it cannot be taken.
        """
        *ended, rest = line.split(";")
        for part in ended:
            self._take_part(part)
            self._partition = None
        self._take_part(rest)

    def _take_part(self, part: str) -> None:
        """Takes what is of one definition."""
        part = part.strip(_BLANKS)
        if not part:
            return
        if self._partition is None:
            head, colon, part = part.partition(":")
            if not colon:
                raise ValueError(f"{part or head}: expected [NAME][=PKEY][,FLAG...] and a colon")
            self._begin(head)
        self._said.extend(self._members(part))

    def _begin(self, head: str) -> None:
        """Begins a definition."""
        first, *flags = head.split(",")
        name, p_key = _pair(first)
        if p_key is None and name[:1].isdecimal():
            name, p_key = "", name
        self._is_full = self._is_first = self._is_ipoib = False
        self._flags = GroupFlags()
        for flag in flags:
            self._take_flag(*_pair(flag))
        wanted = 0 if p_key is None else _number(p_key, "P_Key") & P_KEY_BASE
        self._partition = wanted or self._named(name) or self._generate()
        self._names.setdefault(self._partition, name[:_NAME_CHARACTERS] or f"{self._partition:04x}")
        self._has_definition = True
        if not self._has_qos:
            self._flags.sl = 0
        self._service_levels[self._partition] = self._flags.sl
        if self._is_ipoib:
            self._make(broadcast_group(self._partition | FULL_MEMBER, self._flags))

    def _take_flag(self, flag: str, value: str | None) -> None:
        if self._flags.take(flag, value):
            return
        if flag == "indx0":
            self._is_first = True
        elif "ipoib".startswith(flag):
            self._is_ipoib = True
        elif "defmember".startswith(flag) and value is not None:
            meant = _cut_short(value, _MEMBERSHIPS)
            self._is_full = self._is_full if meant is None else meant != _LIMITED

    def _named(self, name: str) -> int | None:
        """The partition of a name, if there is one."""
        if not name:
            return None
        return next((key for key in in_opensm_order(self._names) if self._names[key] == name), None)

    def _generate(self) -> int:
        """The next P_Key that no partition has yet."""
        self._generated = next(
            (key for key in range(self._generated + 1, DEFAULT_PARTITION) if key not in self._names), DEFAULT_PARTITION
        )
        if self._generated == DEFAULT_PARTITION:
            raise ValueError(f"there are P_Keys for {DEFAULT_PARTITION} partitions, expected no more")
        return self._generated

    def _members(self, part: str) -> Iterator[Membership]:
        """The members that a list has, which ends where it comes to a multicast group; that is made."""
        assert self._partition is not None
        texts = part.split(",")
        for number, text in enumerate(texts, 1):
            who, membership = _pair(text)
            if who == "mgid":
                self._take_group(membership or "", texts[number:])
                return
            is_full = self._is_full if membership is None else _cut_short(membership, _MEMBERSHIPS) in ("full", "both")
            if who and not _NOBODY.startswith(who):
                if ":" in text:
                    raise ValueError(f"{text.strip(_BLANKS)}: expected a PortGUID, or a semicolon before a definition")
                yield Membership(self._partition, _who(who), is_full, self._is_first)

    def _take_group(self, mgid: str, texts: list[str]) -> None:
        """Makes the groups of an MGID, with these flags beside those of the partition."""
        assert self._partition is not None
        flags = replace(self._flags, t_class=0)
        for text in texts:
            flags.take(*_pair(text))
        p_key = self._partition | FULL_MEMBER
        for group in groups_of_mgid(mgid, p_key, self._flags, flags, self._groups):
            self._make(group)

    def _make(self, group: Record) -> None:
        self._groups.setdefault(group.mgid, group)


def _who(text: str) -> EndPorts | int:
    word = _cut_short(text, [who.value for who in EndPorts])
    if word is not None:
        return EndPorts(word)
    return _number(text, "PortGUID", least=1)


def _pair(text: str) -> tuple[str, str | None]:
    """Name and value of `NAME=VALUE`; no value without a sign."""
    name, sign, value = text.partition("=")
    return name.strip(_BLANKS), value.strip(_BLANKS) if sign else None


def _cut_short(text: str, words: tuple[str, ...] | list[str]) -> str | None:
    """The first word that begins so; nothing is the beginning of any."""
    return next((word for word in words if word.startswith(text)), None)


def _number(text: str, what: str, least: int = 0) -> int:
    value = c_number(text)
    if value is None:
        words = "" if what == "P_Key" else f", {', '.join(who.value for who in EndPorts)}"
        raise ValueError(f"{what} {text}: expected a number{words}")
    if not least <= value <= _NUMBER_MAX:
        raise ValueError(f"{what} {cited(text)}: expected 0x{least:x}..0x{_NUMBER_MAX:x}")
    return value
