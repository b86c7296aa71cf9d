"""The stimulus: all that acts on a fabric from outside, the same for every engine.

Control operations act on registers, links and hosts, at most one in a cycle. Packets are posted at
adapters, one list for each adapter and slot. docs/pipeline.md says what each does in which cycle.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NamedTuple

from .framing import FramedPacket

__all__ = [
    "ROW_MAX",
    "Control",
    "Delivery",
    "Injection",
    "KeyViolation",
    "Operation",
    "Play",
    "Post",
    "Taking",
    "Trigger",
    "WrongKey",
    "injected_link",
    "injection_target",
]

_WORD_BYTES = 4
ROW_MAX = 0xFFF
"""`last` row of an injection that acts to the packet's end."""


class Operation(IntEnum):
    """Control operations; `target` is a node's index, or a link's (for INJECT: see `injection_target`)."""

    BUS_WRITE = 1  # args: address, data
    BUS_READ = 2  # args: address
    INJECT = 3  # args: Injection.args()
    LINK_DOWN = 4
    LINK_UP = 5
    RECV_STALL = 6  # args: mask of stalled slots (bit s is slot s)
    HOST_SM = 7  # args: 1 if the adapter's host has a Subnet Manager, else 0
    RESET = 8  # a node
    KEY_VIOLATION = 9  # args: WrongKey.args(), which an adapter's host has found


class KeyViolation(IntFlag):
    """Keys that are wrong in a packet, as the transport of an adapter's host finds them."""

    P_KEY = 1
    Q_KEY = 2


@dataclass(frozen=True, slots=True)
class WrongKey:
    """A packet in which the transport of an adapter's host has found a wrong key; a QP that it does not name is 0."""

    found: KeyViolation
    key: int = 0
    slid: int = 0
    dlid: int = 0
    sl: int = 0
    source_qp: int = 0
    dest_qp: int = 0

    def args(self) -> tuple[int, int, int, int]:
        """As a control operation's arguments."""
        return self.found | self.sl << 4 | self.source_qp << 8, self.slid << 16 | self.dlid, self.key, self.dest_qp

    @classmethod
    def of(cls, args: tuple[int, int, int, int]) -> "WrongKey":
        """From a control operation's arguments."""
        head, lids, key, dest_qp = args
        found = KeyViolation(head & (KeyViolation.P_KEY | KeyViolation.Q_KEY))
        return cls(found, key, lids >> 16, lids & 0xFFFF, head >> 4 & 15, head >> 8, dest_qp)


class Control(NamedTuple):
    """One control operation: given in `cycle`."""

    cycle: int
    operation: int
    target: int
    args: tuple[int, int, int, int] = (0, 0, 0, 0)


class Post(NamedTuple):
    """A packet for an adapter to send: from `cycle` on, on `slot` of node index `node`."""

    cycle: int
    node: int
    slot: int
    data: bytes
    """LRH..ICRC, whole 32-bit words."""

    @classmethod
    def of_words(cls, cycle: int, node: int, slot: int, words: Sequence[int]) -> "Post":
        """A packet given as 32-bit words, first byte highest."""
        return cls(cycle, node, slot, struct.pack(f">{len(words)}I", *words))

    @property
    def words(self) -> tuple[int, ...]:
        """The packet's 32-bit words, first byte highest."""
        return struct.unpack(f">{len(self.data) // _WORD_BYTES}I", self.data)


class Play(NamedTuple):
    """A packet put on a direction (0 from a to b, 1 back) of the link with this index, in place of its sender's."""

    link: int
    direction: int
    packet: FramedPacket

    @property
    def cycle(self) -> int:
        """Of its first row."""
        return self.packet.cycle


class Trigger(IntEnum):
    """What an armed injection waits for."""

    DATA = 0
    LINK = 1
    IDLE = 2


@dataclass(frozen=True, slots=True)
class Injection:
    """An error to inject: row := (row AND keep) XOR flip.

    `keep` and `flip` are 36-bit: K bits (lane 0 highest) above 32 data bits (lane 0 highest).
    """

    trigger: Trigger
    first: int = 0
    last: int = ROW_MAX
    at_end: bool = False
    keep: int = (1 << 36) - 1
    flip: int = 0

    def args(self) -> tuple[int, int, int, int]:
        """As a control operation's arguments."""
        head = self.trigger | self.at_end << 2 | self.first << 4 | self.last << 16
        mask = 0xFFFF_FFFF
        return head, self.keep & mask, self.flip & mask, self.keep >> 32 | self.flip >> 32 << 4

    @classmethod
    def of(cls, args: tuple[int, int, int, int]) -> "Injection":
        """From a control operation's arguments."""
        head, keep, flip, k = args
        return cls(
            trigger=Trigger(head & 3),
            at_end=bool(head >> 2 & 1),
            first=head >> 4 & ROW_MAX,
            last=head >> 16 & ROW_MAX,
            keep=(k & 15) << 32 | keep,
            flip=(k >> 4 & 15) << 32 | flip,
        )


def injection_target(link: int, direction: int) -> int:
    """Target of an INJECT on a direction (0 from a to b, 1 back) of the link with this index."""
    return link << 1 | direction


def injected_link(target: int) -> tuple[int, int]:
    """Link index and direction of the target of an INJECT."""
    return target >> 1, target & 1


class Delivery(NamedTuple):
    """A packet that an adapter gave to its host."""

    cycle: int
    """Of its last word, as the DELIVER record's stamp."""
    node: int
    slot: int
    data: bytes
    """LRH..ICRC."""


class Taking(NamedTuple):
    """An adapter has begun to take a packet that its host had posted: there is room for another one."""

    cycle: int
    """As the SEND record's stamp."""
    node: int
    slot: int
