"""MADs asked and answered: the one interface between the Subnet Manager and whatever carries its datagrams.

It does no input or output. A back end hands in what arrives (`received`) and asks for what is to be sent and when it
wants to be asked again (`poll`, `wake`). Time is an integer count of cycles, and only the back end says what it is.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

from sm.tasks import Future
from wire.codes import LID_PERMISSIVE, QP_SMI
from wire.congestion_control import CC_MAD
from wire.layout import Record
from wire.mad import MAD_BYTES, MAD_HEADER, RESPONSE_BIT, MadMethod, MadStatus, MgmtClass, mad_data, status_text
from wire.mad_text import attribute_of
from wire.sa import SA_MAD
from wire.sma import SmaAttribute
from wire.smp import initial_path, is_directed, smp_request, smp_response, unpack_smp

__all__ = ["MadAddress", "MadClient", "NoAnswerError", "OutgoingMad", "RefusedError", "SmpError"]

_CLASSES: Final = (MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE)


class SmpError(Exception):
    """An SMP that did not bring what was asked for; the text is one line."""


class NoAnswerError(SmpError):
    """An SMP that was sent as often as allowed and never answered."""


class RefusedError(SmpError):
    """An SMP answered with a status other than OK.

    Attributes:
        data: the attribute in the answer, 64 bytes.
    """

    def __init__(self, text: str, data: bytes) -> None:
        super().__init__(text)
        self.data = data


class MadAddress(NamedTuple):
    """The other end of a MAD, and how it travels between it and the back end's port."""

    lid: int
    own_lid: int
    """Of the back end's port, which may have several."""
    qpn: int = QP_SMI
    sl: int = 0


_DIRECTED: Final = MadAddress(LID_PERMISSIVE, LID_PERMISSIVE)
"""Of directed routes, which the port's SMI forwards."""


class OutgoingMad(NamedTuple):
    """A MAD for the back end's port to send, the LIDs of its packet, the queue pair it is for and its SL.

    SMPs are between QP0s, MADs of other classes leave by QP1. Permissive LIDs go with directed routes, which the
    port's SMI forwards (IBTA vol 1, 14.2.2): HopPointer is still 0, and with HopCount 0 the MAD stays in the node; of
    the answer to a directed request it is as that came.
    """

    mad: bytes
    slid: int
    dlid: int
    qpn: int = QP_SMI
    sl: int = 0


@dataclass(slots=True)
class _Request:
    """A MAD that waits to be sent, or for its answer."""

    mad: Record
    to: MadAddress
    tries: int
    answer: Future[bytes]
    deadline: int = 0

    def __str__(self) -> str:
        mad = self.mad
        attribute = attribute_of(mad)
        name = f"attribute {mad.attribute_id:#x}"
        if attribute is not None:
            name = f"{attribute.name}, modifier {mad.attribute_modifier:#x}"
        what = f"{MadMethod(mad.method).name.capitalize()}({name})"
        if not is_directed(mad):
            return f"{what} to LID {self.to.lid}"
        return f"{what} by way of ports {','.join(map(str, initial_path(mad))) or 'none'}"


class MadClient:
    """Directed-route SMPs, and MADs of subnet administration and congestion control, with a window, timeouts and
    retries."""

    def __init__(self, *, window: int = 4, timeout: int = 1 << 16, retries: int = 3) -> None:
        """Keeps up to `window` SMPs outstanding, sends one again if it is not answered in `timeout` cycles.

        Raises:
            ValueError: a window or timeout below 1, or retries below 0.
        """
        if window < 1 or timeout < 1 or retries < 0:
            raise ValueError(
                f"window {window}, timeout {timeout}, retries {retries}: expected at least 1, 1 cycle and 0"
            )
        self.window = window
        """So many SMPs may be outstanding."""
        self.now = 0
        """The cycle of the latest call of the back end."""
        self.sent: Counter[tuple[MadMethod, SmaAttribute]] = Counter()
        """SMPs given to the back end, by method and attribute; those sent again count again."""
        self.retried = 0
        """How many of them were sent again."""
        self.on_trap: Callable[[Record], None] = lambda trap: None
        """Gets each SMP that is a Trap."""
        self.on_request: Callable[[Record, MadAddress], None] = lambda smp, source: None
        """Gets each SMP that asks this Subnet Manager for something."""
        self.on_administration: Callable[[bytes, MadAddress], None] = lambda mad, source: None
        """Gets each MAD of subnet administration that is not the answer to one sent."""
        self.on_congestion_trap: Callable[[Record, MadAddress], None] = lambda trap, source: None
        """Gets each Trap of a congestion control agent."""
        self.activity = 0
        """MADs given to the back end."""
        self._timeout = timeout
        self._retries = retries
        self._transaction_ids = count(1)
        self._waiting: deque[_Request] = deque()
        self._outstanding: dict[int, _Request] = {}
        self._outbox: list[OutgoingMad] = []
        self._timers: list[tuple[int, int, Future[bool]]] = []
        self._timer_numbers = count()

    # What the back end calls.

    def received(self, mad: bytes, now: int, source: MadAddress = _DIRECTED) -> None:
        """Takes the MAD of a packet that came in for QP0, after the port's SMI, or for QP1, and where it came from.

        What nobody waits for is ignored.
        """
        self.now = now
        if len(mad) != MAD_BYTES:
            return
        mgmt_class = MAD_HEADER["mgmt_class"].read(mad)
        if mgmt_class == MgmtClass.SUBN_ADM:
            if MAD_HEADER["method"].read(mad) == MadMethod.REPORT_RESP:
                self._answered(SA_MAD.unpack(mad))
            else:
                self.on_administration(mad, source)
        elif mgmt_class == MgmtClass.CONGESTION_CONTROL:
            method = MAD_HEADER["method"].read(mad)
            if method == MadMethod.TRAP:
                self.on_congestion_trap(CC_MAD.unpack(mad), source)
            elif method & RESPONSE_BIT:
                self._answered(CC_MAD.unpack(mad))
        elif mgmt_class in _CLASSES:
            smp = unpack_smp(mad)
            if smp.method == MadMethod.TRAP:
                self.on_trap(smp)
            elif smp.method & RESPONSE_BIT:
                self._answered(smp)
            else:
                self.on_request(smp, source)

    def unanswered(self, mad: bytes, now: int) -> None:
        """Gives an SMP up, for a back end that has tried as often as it is worth, whose MAD this is."""
        self.now = now
        request = self._outstanding.pop(MAD_HEADER["transaction_id"].read(mad), None)
        if request is not None:
            request.answer.fail(NoAnswerError(f"{request}: no answer"))

    def poll(self, now: int) -> list[OutgoingMad]:
        """Lets time pass to cycle `now`, and gives what is to be sent in it."""
        self.now = now
        for transaction_id, request in list(self._outstanding.items()):
            if request.answer.abandoned:
                del self._outstanding[transaction_id]
            elif request.deadline <= now:
                self._timed_out(transaction_id, request)
        while self._timers and (self._timers[0][0] <= now or self._timers[0][2].done):
            heapq.heappop(self._timers)[2].resolve(False)
        while self._waiting and len(self._outstanding) < self.window:
            request = self._waiting.popleft()
            if not request.answer.abandoned:
                self._outstanding[request.mad.transaction_id] = request
                self._send(request)
        outbox, self._outbox = self._outbox, []
        return outbox

    @property
    def wake(self) -> int | None:
        """The cycle in which `poll` is due if nothing arrives before; None if there is nothing to wait for."""
        if self._outbox or (self._waiting and len(self._outstanding) < self.window):
            return self.now
        due = [request.deadline for request in self._outstanding.values()]
        due += [when for when, _number, timer in self._timers if not timer.done]
        return min(due, default=None)

    # What the Subnet Manager calls.

    async def get(
        self, path: Sequence[int], attribute: SmaAttribute, modifier: int = 0, *, retries: int | None = None
    ) -> bytes:
        """The 64 bytes of an attribute of the node that `path` leads to, the ports to leave each node by.

        Raises:
            NoAnswerError: it never answered.
            RefusedError: it answered with another status than OK.
        """
        return await self._ask(MadMethod.GET, path, attribute, modifier, b"", retries)

    async def set(self, path: Sequence[int], attribute: SmaAttribute, data: bytes, modifier: int = 0) -> bytes:
        """Sets an attribute; the result is what it is then, 64 bytes.

        Raises:
            NoAnswerError: the node never answered.
            RefusedError: it answered with another status than OK.
        """
        return await self._ask(MadMethod.SET, path, attribute, modifier, data, None)

    def repress(self, trap: Record, slid: int, dlid: int) -> None:
        """Sends TrapRepress, which ends the repetition of a trap and is not answered (IBTA vol 1, 13.4.9)."""
        smp = smp_request(
            MadMethod.TRAP_REPRESS,
            trap.attribute_id,
            trap.attribute_modifier,
            mad_data(trap),
            transaction_id=trap.transaction_id,
        )
        self.sent[MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE] += 1
        self.send(smp.pack(), MadAddress(dlid, slid))

    def respond(self, request: Record, source: MadAddress, data: bytes, status: int = MadStatus.OK) -> None:
        """Answers an SMP that came from there."""
        self.send(smp_response(request, data, status).pack(), source)

    def send(self, mad: bytes, to: MadAddress) -> None:
        """Sends a MAD that is not answered, or whose answer others look for."""
        self.activity += 1
        self._outbox.append(OutgoingMad(mad, to.own_lid, to.lid, to.qpn, to.sl))

    async def ask(self, mad: Record, to: MadAddress, *, retries: int | None = None) -> bytes:
        """Sends a request, whose TransactionID it chooses; the data of the answer.

        Raises:
            NoAnswerError: it never answered.
            RefusedError: it answered with another status than OK.
        """
        mad = mad.replace(transaction_id=next(self._transaction_ids))
        request = _Request(mad, to, 1 + (self._retries if retries is None else retries), Future())
        self._waiting.append(request)
        return await request.answer

    def timer(self, cycles: int) -> Future[bool]:
        """Resolves to False after this many cycles, unless somebody resolves it to True before."""
        timer: Future[bool] = Future()
        heapq.heappush(self._timers, (self.now + cycles, next(self._timer_numbers), timer))
        return timer

    async def _ask(
        self,
        method: MadMethod,
        path: Sequence[int],
        attribute: SmaAttribute,
        modifier: int,
        data: bytes,
        retries: int | None,
    ) -> bytes:
        smp = smp_request(method, attribute, modifier, data, transaction_id=0, path=tuple(path))
        return await self.ask(smp, _DIRECTED, retries=retries)

    def _send(self, request: _Request) -> None:
        request.tries -= 1
        request.deadline = self.now + self._timeout
        if request.mad.mgmt_class in _CLASSES:
            self.sent[MadMethod(request.mad.method), SmaAttribute(request.mad.attribute_id)] += 1
        self.send(request.mad.pack(), request.to)

    def _timed_out(self, transaction_id: int, request: _Request) -> None:
        if request.tries:
            self.retried += request.mad.mgmt_class in _CLASSES
            self._send(request)
        else:
            del self._outstanding[transaction_id]
            request.answer.fail(NoAnswerError(f"{request}: no answer"))

    def _answered(self, mad: Record) -> None:
        request = self._outstanding.get(mad.transaction_id)
        if request is None or any(
            mad[name] != request.mad.get(name) for name in ("mgmt_class", "attribute_id", "attribute_modifier")
        ):
            return
        if mad.status & MadStatus.BUSY:
            # The answer says to ask again later, which is what the timeout does.
            return
        del self._outstanding[mad.transaction_id]
        data = mad_data(mad)
        if mad.status:
            request.answer.fail(RefusedError(f"{request}: {status_text(mad.status)}", data))
        else:
            request.answer.resolve(data)
