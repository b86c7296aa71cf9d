"""What a Subnet Manager reports of its work, each as a record and, by `str`, as a line for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from sm.credit_loops import Channel
from sm.subnet import End, Link, Node
from wire.codes import PortState
from wire.mad import MadMethod
from wire.meaning import label
from wire.sma import SmaAttribute, SMState

__all__ = [
    "QUIET_EVENTS",
    "CongestionControlSet",
    "CongestionControlUnavailable",
    "CreditLoopFound",
    "DuplicateGuid",
    "Event",
    "HandedOver",
    "LinkFlapping",
    "LinkFound",
    "LinkLost",
    "MulticastTablesWritten",
    "NodeFound",
    "NodeLeftOut",
    "NodeLost",
    "NotEnforced",
    "PKeysLeftOut",
    "PKeysWritten",
    "PortStateSet",
    "PortStuck",
    "RoutingRemark",
    "SetRefused",
    "StateEntered",
    "SweepEnded",
    "SweepStarted",
    "TablesWritten",
    "Tell",
    "TrapReceived",
    "Unsettled",
    "event_text",
]


@dataclass(frozen=True)
class Event:
    """Something that a Subnet Manager did or noticed."""


@dataclass(frozen=True)
class SweepStarted(Event):
    """A look at the subnet begins: heavy, the whole of it, or light, whether anything has changed."""

    heavy: bool
    cause: str

    def __str__(self) -> str:
        return f"{'heavy' if self.heavy else 'light'} sweep: {self.cause}"


@dataclass(frozen=True)
class SweepEnded(Event):
    """A look at the subnet is over."""

    heavy: bool
    cycles: int
    """It took."""
    smps: Counter[tuple[MadMethod, SmaAttribute]]
    """SMPs sent, those sent again included, by method and attribute."""
    complete: bool
    """Whether all is as it should be; for a light sweep, whether nothing has changed."""

    def __str__(self) -> str:
        kind = "heavy" if self.heavy else "light"
        unfinished = ", to be continued" if self.heavy else ", something has changed"
        ending = "" if self.complete else unfinished
        return f"{kind} sweep took {self.smps.total()} SMPs and {self.cycles} cycles{ending}"


@dataclass(frozen=True)
class NodeFound(Event):
    """A node that was not there before."""

    node: Node

    def __str__(self) -> str:
        return f"found {_node(self.node)}, {self.node.ports} {'port' if self.node.ports == 1 else 'ports'}"


@dataclass(frozen=True)
class NodeLost(Event):
    """A node that is gone, or can no longer be reached."""

    node: Node

    def __str__(self) -> str:
        return f"lost {_node(self.node)}"


@dataclass(frozen=True)
class LinkFound(Event):
    """A link that was not there before."""

    link: Link

    def __str__(self) -> str:
        return f"link {self.link.a} to {self.link.b}"


@dataclass(frozen=True)
class LinkLost(Event):
    """A link that is gone; `back` if it has come back before anybody saw it gone."""

    link: Link
    back: bool = False

    def __str__(self) -> str:
        return f"link {self.link.a} to {self.link.b} was lost{' and is back' if self.back else ''}"


@dataclass(frozen=True)
class LinkFlapping(Event):
    """A link that comes and goes."""

    link: Link
    losses: int
    """Within the flap period."""

    def __str__(self) -> str:
        return f"link {self.link.a} to {self.link.b} flaps: lost {self.losses} times"


@dataclass(frozen=True)
class NodeLeftOut(Event):
    """A port whose link is up, though the node behind it does not answer, or not so that it could be managed."""

    end: End
    reason: str

    def __str__(self) -> str:
        return f"the node behind {self.end} is left out: {self.reason}"


@dataclass(frozen=True)
class DuplicateGuid(Event):
    """Another node with the GUID of one that is known. It is left out."""

    guid: int
    """NodeGUID or PortGUID."""
    end: End
    """The port behind which the other one is."""

    def __str__(self) -> str:
        return f"duplicate GUID 0x{self.guid:016x}: the node behind {self.end} is left out"


@dataclass(frozen=True)
class Unsettled(Event):
    """Something changed, or did not answer, while it was looked at or written."""

    what: str

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class TablesWritten(Event):
    """Blocks of a switch's linear forwarding table were written."""

    guid: int
    blocks: tuple[int, ...]

    def __str__(self) -> str:
        return f"switch 0x{self.guid:016x}: wrote LFT blocks {', '.join(map(str, self.blocks))}"


@dataclass(frozen=True)
class MulticastTablesWritten(Event):
    """Masks of a switch's multicast forwarding table were written."""

    guid: int
    mlids: tuple[int, ...]
    """Whose masks are others now."""

    def __str__(self) -> str:
        mlids = ", ".join(f"0x{mlid:04x}" for mlid in self.mlids)
        return f"switch 0x{self.guid:016x}: wrote MFT entries {mlids}"


@dataclass(frozen=True)
class PKeysWritten(Event):
    """A port's P_Key table was written."""

    end: End
    p_keys: tuple[int, ...]

    def __str__(self) -> str:
        return f"port {self.end}: wrote P_Keys {', '.join(f'0x{key:04x}' for key in self.p_keys)}"


@dataclass(frozen=True)
class PKeysLeftOut(Event):
    """An end port that has no room for all of its P_Keys, and so goes without the last of them."""

    end: End
    p_keys: tuple[int, ...]
    room: int

    def __str__(self) -> str:
        keys = ", ".join(f"0x{key:04x}" for key in self.p_keys)
        return f"port {self.end} goes without P_Keys {keys}: its table has room for {self.room}"


@dataclass(frozen=True)
class NotEnforced(Event):
    """A switch port that has no room for the P_Keys of the end port behind it, and so does not check them."""

    end: End
    p_keys: int
    room: int

    def __str__(self) -> str:
        return f"port {self.end} checks no P_Keys: it has room for {self.room} of {self.p_keys}"


@dataclass(frozen=True)
class CongestionControlSet(Event):
    """Switches and ports of adapters were told how to do congestion control."""

    switches: int
    ports: int
    """Of channel adapters."""

    def __str__(self) -> str:
        return (
            f"sets congestion control of {self.switches} {'switch' if self.switches == 1 else 'switches'} "
            f"and {self.ports} {'port' if self.ports == 1 else 'ports'} of adapters"
        )


@dataclass(frozen=True)
class CongestionControlUnavailable(Event):
    """A port whose congestion control cannot be set, and is not tried to be again."""

    end: End
    reason: str

    def __str__(self) -> str:
        return f"leaves port {self.end} without congestion control: {self.reason}"


@dataclass(frozen=True)
class ClientsToldToReregister(Event):
    """Clients were told to register again: for groups, services, notices."""

    ports: int

    def __str__(self) -> str:
        return f"tells the clients of {self.ports} {'port' if self.ports == 1 else 'ports'} to register again"


@dataclass(frozen=True)
class CreditLoopFound(Event):
    """The forwarding tables have links that may wait for each other's credits in a circle."""

    channels: tuple[Channel, ...]
    """The ports that send into them, and the VLs."""

    def __str__(self) -> str:
        return f"credit loop: {' -> '.join(map(str, self.channels))}"


@dataclass(frozen=True)
class RoutingRemark(Event):
    """What somebody should know of how paths were found."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class PortStateSet(Event):
    """A port was brought to Armed or Active."""

    end: End
    state: PortState

    def __str__(self) -> str:
        return f"port {self.end} is {label(self.state)}"


@dataclass(frozen=True)
class PortStuck(Event):
    """A port of a link that does not become Active."""

    end: End
    state: PortState

    def __str__(self) -> str:
        return f"port {self.end} stays {label(self.state)}"


@dataclass(frozen=True)
class SetRefused(Event):
    """A node refused some of what was set; the rest holds."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TrapReceived(Event):
    """A trap."""

    number: int
    lid: int
    """Of the port that issued it."""

    def __str__(self) -> str:
        return f"trap {self.number} from LID {self.lid}"


@dataclass(frozen=True)
class StateEntered(Event):
    """The Subnet Manager is the master from now on, or stands by, or looks who is."""

    state: SMState

    def __str__(self) -> str:
        return f"enters {label(self.state)}"


@dataclass(frozen=True)
class HandedOver(Event):
    """The subnet is another Subnet Manager's, which comes before this one."""

    guid: int
    """Of the port that it is at."""

    def __str__(self) -> str:
        return f"hands over to the Subnet Manager at port 0x{self.guid:016x}"


Tell: TypeAlias = Callable[[Event], None]
"""Whom to notify."""

QUIET_EVENTS: Final = (LinkFound, PKeysWritten, PortStateSet)
"""Events that are too many to be reported one by one."""


def event_text(event: Event, names: Mapping[int, str]) -> str:
    """An event in words; nodes by their names, which `names` has by GUID, but where they are found and lost."""
    text = str(event)
    if isinstance(event, NodeFound | NodeLost):
        return text

    def name(match: re.Match[str]) -> str:
        return names.get(int(match[1], 16), match[0])

    return re.sub(r"0x([0-9a-f]{16})", name, text)


def _node(node: Node) -> str:
    described = f' "{node.description}"' if node.description else ""
    return f"{label(node.type)} 0x{node.guid:016x}{described}"
