"""The trace: what every engine emits and the comparison compares.

A record is (cycle, source, kind, five 32-bit words). On file it is 36 bytes, little-endian: cycle
(64 bits), source (32), kind (32), words a..e. docs/pipeline.md says with which cycle each kind is
stamped. Records are ordered by cycle, then source, then kind.
"""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

__all__ = [
    "AGENT_PORT",
    "LINK_SOURCE",
    "RECORD",
    "WORDS",
    "WORD_BITS",
    "Delimiter",
    "Discard",
    "Kind",
    "LinkResult",
    "Record",
    "Verdict",
    "link_of_source",
    "link_source",
    "port_of_source",
    "port_source",
    "words_of_payload",
]

RECORD = Struct("<QII5I")
_WORDS = Struct("<5I")
WORDS = 5
WORD_BITS = 32
LINK_SOURCE = 1 << 31
"""Set in the source of a link's direction, clear in that of a port."""

AGENT_PORT = 0
"""In the source of a record, behind which a node's agent is."""


class Kind(IntEnum):
    """Kinds of records; `wire.trace_layout` says when there is one, and what its words hold."""

    RX_DATA = 1
    RX_FCP = 2
    STATE = 3
    SCRAP = 4
    TX_DATA = 5
    TX_FCP = 6
    TX_DISCARD = 7
    SEND = 8
    DELIVER = 9
    INJECT = 10
    BUS_READ = 11
    ROW = 12
    ROWS = 13


class Verdict(IntEnum):
    """What became of a received packet (docs/pipeline.md, 3.2 and 3.3)."""

    GOOD = 0
    PHYSICAL = 1
    REMOTE = 2
    NOT_ACTIVE = 3
    LVER = 4
    LENGTH = 5
    DLID = 6
    VL = 7
    VL15_HEADER = 8
    NO_ROUTE = 9
    LOOP = 10
    VL_MAP = 11
    VL15_DROPPED = 12
    OVERRUN = 13
    RCV_CONSTRAINT = 14
    XMIT_CONSTRAINT = 15


class Delimiter(IntEnum):
    """What ended a received packet."""

    CUT = 0
    EGP = 1
    EBP = 2


class LinkResult(IntEnum):
    """What became of a received link packet (docs/pipeline.md, 6.1)."""

    GOOD = 0
    MALFORMED = 1
    LPCRC = 2
    OP = 3
    VL = 4
    IGNORED = 5
    """VL not operational, and the port neither Armed nor Active."""


class Discard(IntEnum):
    """Why a packet was swallowed, in part or whole (docs/pipeline.md, 8.1 and 8.2)."""

    INACTIVE = 0
    NEIGHBOR_MTU = 1
    LIFE_TIME = 2
    HOQ_LIFE = 3
    STALLED = 4
    CONSTRAINT = 5


class Record(NamedTuple):
    """One line of the trace."""

    cycle: int
    source: int
    kind: int
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0
    e: int = 0


def words_of_payload(payload: int) -> tuple[int, ...]:
    """Words a..e of a record, of which hardware makes one number, a lowest."""
    return _WORDS.unpack(payload.to_bytes(_WORDS.size, "little"))


def port_source(node: int, port: int) -> int:
    """Source number of a port (0: the node itself) of the node with this index."""
    if not (0 <= node < 1 << 16 and 0 <= port < 1 << 8):
        raise ValueError(f"node {node}, port {port}: expected node 0..65535, port 0..255")
    return node << 8 | port


def port_of_source(source: int) -> tuple[int, int]:
    """Node index and port of the source number of a port."""
    return source >> 8, source & 0xFF


def link_source(link: int, direction: int) -> int:
    """Source number of a direction (0 from a to b, 1 back) of the link with this index."""
    return LINK_SOURCE | link << 1 | direction


def link_of_source(source: int) -> tuple[int, int]:
    """Link index and direction of the source number of a link's direction."""
    return (source ^ LINK_SOURCE) >> 1, source & 1
