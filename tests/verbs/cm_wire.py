"""Two communication managers and a wire between them that may lose, repeat and delay."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

from verbs.address import AddressVector
from verbs.cm import CommunicationManager
from verbs.cm_connection import CmEvent, CmEventType, Connection, ConnectionState
from verbs.cm_parameters import CmRoute, ConnectionPath, ConnectionReply, ConnectionRequest
from verbs.states import QpType
from wire.cm import CmMessage, cm_mad, cm_message
from wire.layout import Record

__all__ = [
    "DISCONNECTED",
    "ESTABLISHED",
    "EXIT",
    "REJECTED",
    "REPLY",
    "SECOND",
    "SERVICE",
    "UNREACHABLE",
    "CmWire",
    "End",
    "accepted",
    "asked_for",
    "established",
    "given",
    "ids",
]

SECOND = 250_000_000
REPLY, ESTABLISHED, REJECTED = CmEventType.REPLY, CmEventType.ESTABLISHED, CmEventType.REJECTED
UNREACHABLE, DISCONNECTED, EXIT = CmEventType.UNREACHABLE, CmEventType.DISCONNECTED, CmEventType.TIME_WAIT_EXIT
SERVICE = 0x0000_0000_0106_1D2F
LIDS = (1, 2)
LIFE_TIME = (4096 << 14) // 4
"""Cycles that a packet may be under way, as paths here say."""


class End:
    """One adapter's communication manager, and what its consumer has heard."""

    def __init__(self, number: int, **settings: int) -> None:
        self.cm = CommunicationManager(0x1000 + number, **settings)
        self.number = number
        self.heard: list[CmEvent] = []
        self.requests: list[Connection] = []
        self.connection: Connection | None = None

    @property
    def kinds(self) -> list[CmEventType]:
        return [event.kind for event in self.heard]

    def keep(self, connection: Connection) -> Connection:
        """Listens to a connection's events."""
        self.connection = connection
        connection.on_event = self.heard.append
        return connection

    def connect(self, **request: object) -> Connection:
        return self.keep(self.cm.connect(asked_for(self.number, **request)))

    def listen(self, then: Callable[[Connection], None] | None = None) -> None:
        def asked(connection: Connection) -> None:
            self.requests.append(self.keep(connection))
            if then is not None:
                then(connection)

        self.cm.listen(SERVICE, asked)


def asked_for(number: int, **request: object) -> ConnectionRequest:
    """A request of one end for the other."""
    near, far = LIDS[number], LIDS[1 - number]
    path = ConnectionPath(CmRoute(AddressVector(far)), near, 0xFE80 << 112 | near, 0xFE80 << 112 | far, 0xFFFF, 4)
    values = {"service_id": SERVICE, "path": path, "kind": QpType.RC, "qpn": 0x10 + number, **request}
    return ConnectionRequest(**values)  # type: ignore[arg-type]


def accepted(connection: Connection) -> None:
    connection.accept(ConnectionReply(0x20, private_data=b"welcome"))


class CmWire:
    """Carries messages in time.

    Attributes:
        log: each message that was sent: cycle, sender, which it is, and whether it was lost.
        lose: says of each message whether it is lost.
    """

    def __init__(self, *ends: End, delay: int = 100) -> None:
        self.ends = ends
        self.now = 0
        self.log: list[tuple[int, int, CmMessage, bool]] = []
        self.lose: Callable[[int, CmMessage], bool] = lambda sender, message: False
        self.copies: Callable[[], int] = lambda: 1
        self.delay: Callable[[], int] = lambda: delay
        self._flights: list[tuple[int, int, int, bytes]] = []
        self._numbers = count()

    @classmethod
    def careless(cls, random: Random, loss: float, *ends: End) -> CmWire:
        """One that loses, repeats, delays and so reorders."""
        wire = cls(*ends)
        wire.lose = lambda sender, message: random.random() < loss
        wire.copies = lambda: 1 + (random.random() < 0.3)
        wire.delay = lambda: random.choice((100, 10_000, random.randrange(1, LIFE_TIME)))
        return wire

    def run(self, until: Callable[[], bool] | None = None, limit: int = 1 << 60) -> None:
        """Lets time pass until nothing more can happen, or something is so."""
        while until is None or not until():
            for end in self.ends:
                for mad, route in end.cm.poll(self.now):
                    self._carry(end.number, mad, route)
            due = [end.cm.wake for end in self.ends] + [flight[0] for flight in self._flights[:1]]
            next_time = min((one for one in due if one is not None), default=None)
            if next_time is None or next_time > limit:
                return
            self.now = max(self.now, next_time)
            while self._flights and self._flights[0][0] <= self.now:
                _when, _number, receiver, mad = heapq.heappop(self._flights)
                back = CmRoute(AddressVector(LIDS[1 - receiver]))
                self.ends[receiver].cm.received(mad, back, self.now)

    def _carry(self, sender: int, mad: bytes, route: CmRoute) -> None:
        assert route.path.dlid == LIDS[1 - sender]
        found = cm_message(mad)
        assert found is not None
        for _copy in range(self.copies()):
            is_lost = self.lose(sender, found[0])
            self.log.append((self.now, sender, found[0], is_lost))
            if not is_lost:
                heapq.heappush(self._flights, (self.now + self.delay(), next(self._numbers), 1 - sender, mad))

    def sent(self) -> list[CmMessage]:
        """The messages in their order."""
        return [message for _now, _sender, message, _lost in self.log]


def established(wire: CmWire, active: End, passive: End) -> tuple[Connection, Connection]:
    passive.listen(accepted)
    one = active.connect()
    wire.run(lambda: active.kinds == [REPLY])
    one.confirm(b"ready")
    wire.run(lambda: passive.kinds == [ESTABLISHED])
    (other,) = passive.requests
    assert (one.state, other.state) == (ConnectionState.ESTABLISHED, ConnectionState.ESTABLISHED)
    return one, other


def given(end: End, message: CmMessage, now: int = 0, **fields: int) -> list[tuple[CmMessage, Record]]:
    """What an end answers to a message of its peer's."""
    end.cm.received(cm_mad(message, 1, **fields), CmRoute(AddressVector(2 - end.number)), now)
    answers = [cm_message(mad) for mad, _route in end.cm.poll(now)]
    return [answer for answer in answers if answer is not None]


def ids(connection: Connection, other: Connection) -> dict[str, int]:
    """Of a message to `connection`."""
    return {"local_comm_id": other.local_comm_id, "remote_comm_id": connection.local_comm_id}
