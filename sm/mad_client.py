"""SMPs asked and answered: the one interface between the Subnet Manager and whatever carries its datagrams.

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
from wire.codes import LID_PERMISSIVE
from wire.layout import Record
from wire.mad import MAD_BYTES, MAD_HEADER, RESPONSE_BIT, MadMethod, MadStatus, MgmtClass, mad_data, status_text
from wire.sma import SMA_ATTRIBUTES, SmaAttribute
from wire.smp import smp_request, unpack_smp

__all__ = ["MadClient", "NoAnswerError", "OutgoingMad", "RefusedError", "SmpError"]

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


class OutgoingMad(NamedTuple):
    """A MAD for QP0 of the back end's port to send, and the LIDs of its packet.

    Permissive ones go with directed routes, which the port's SMI forwards (IBTA vol 1, 14.2.2): HopPointer
    is still 0, and with HopCount 0 the MAD stays in the node.
    """

    mad: bytes
    slid: int
    dlid: int


@dataclass(slots=True)
class _Request:
    """An SMP that waits to be sent, or for its answer."""

    smp: Record
    tries: int
    answer: Future[bytes]
    deadline: int = 0

    def __str__(self) -> str:
        attribute = SMA_ATTRIBUTES[self.smp.attribute_id].name
        path = self.smp.initial_path.to_bytes(64, "big")[1 : self.smp.hop_count + 1]
        return (
            f"{MadMethod(self.smp.method).name.capitalize()}({attribute}, modifier {self.smp.attribute_modifier:#x}) "
            f"by way of ports {','.join(map(str, path)) or 'none'}"
        )


class MadClient:
    """Directed-route SMPs with a window, timeouts and retries."""

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
        self._timeout = timeout
        self._retries = retries
        self._transaction_ids = count(1)
        self._waiting: deque[_Request] = deque()
        self._outstanding: dict[int, _Request] = {}
        self._outbox: list[OutgoingMad] = []
        self._timers: list[tuple[int, int, Future[bool]]] = []
        self._timer_numbers = count()

    # What the back end calls.

    def received(self, mad: bytes, now: int) -> None:
        """Takes the MAD of a packet that came in for QP0, after the port's SMI. What nobody waits for is ignored."""
        self.now = now
        if len(mad) != MAD_BYTES or MAD_HEADER["mgmt_class"].read(mad) not in _CLASSES:
            return
        smp = unpack_smp(mad)
        if smp.method == MadMethod.TRAP:
            self.on_trap(smp)
        elif smp.method & RESPONSE_BIT:
            self._answered(smp)

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
                self._outstanding[request.smp.transaction_id] = request
                self._send(request)
        outbox, self._outbox = self._outbox, []
        return outbox

    @property
    def wake(self) -> int | None:
        """The cycle in which `poll` is due if nothing arrives before; None if there is nothing to wait for."""
        if self._outbox or (self._waiting and len(self._outstanding) < self.window):
            return self.now
        due = [request.deadline for request in self._outstanding.values()]
        due += [when for when, _number, _timer in self._timers[:1]]
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
        self._outbox.append(OutgoingMad(smp.pack(), slid, dlid))

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
        smp = smp_request(
            method, attribute, modifier, data, transaction_id=next(self._transaction_ids), path=tuple(path)
        )
        request = _Request(smp, 1 + (self._retries if retries is None else retries), Future())
        self._waiting.append(request)
        return await request.answer

    def _send(self, request: _Request) -> None:
        request.tries -= 1
        request.deadline = self.now + self._timeout
        self.sent[MadMethod(request.smp.method), SmaAttribute(request.smp.attribute_id)] += 1
        self._outbox.append(OutgoingMad(request.smp.pack(), LID_PERMISSIVE, LID_PERMISSIVE))

    def _timed_out(self, transaction_id: int, request: _Request) -> None:
        if request.tries:
            self.retried += 1
            self._send(request)
        else:
            del self._outstanding[transaction_id]
            request.answer.fail(NoAnswerError(f"{request}: no answer"))

    def _answered(self, smp: Record) -> None:
        request = self._outstanding.get(smp.transaction_id)
        if request is None or any(
            smp[name] != request.smp.get(name) for name in ("mgmt_class", "attribute_id", "attribute_modifier")
        ):
            return
        if smp.status & MadStatus.BUSY:
            # The answer says to ask again later, which is what the timeout does.
            return
        del self._outstanding[smp.transaction_id]
        data = mad_data(smp)
        if smp.status:
            request.answer.fail(RefusedError(f"{request}: {status_text(smp.status)}", data))
        else:
            request.answer.resolve(data)
