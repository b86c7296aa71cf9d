"""What UC and UD send: nothing is answered, and a request has ended with its last packet (IBTA vol 1, 9.8)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from verbs.arrived import Arrived
from verbs.completions import CompletionStatus
from verbs.frame import Outgoing
from verbs.memory import MemoryFaultError
from verbs.pair_state import PairState
from verbs.psn import psn_add
from verbs.regions import ProtectionError
from verbs.states import QpState
from verbs.work import SendRequest

__all__ = ["PacketOf", "UnacknowledgedSender"]

PacketOf = Callable[[PairState, SendRequest, int, int], tuple[Outgoing, bool]]
"""Packet of a request by index and PSN, and whether it is the last of the request."""


class UnacknowledgedSender:
    """Sends what was posted, in order."""

    def __init__(self, pair: PairState, packet_of: PacketOf) -> None:
        self._pair = pair
        self._packet_of = packet_of
        self._works: deque[SendRequest] = deque()
        self._index = 0
        """Of the next packet of the oldest request."""
        self._psn = 0

    def start(self) -> None:
        """Begins anew with the first PSN that the attributes give."""
        self._psn = self._pair.attributes.sq_psn
        self._index = 0

    @property
    def wake(self) -> int | None:
        """Nothing is waited for."""
        return None

    @property
    def waits_for_receiver(self) -> bool:
        """Nobody tells."""
        return False

    @property
    def posted(self) -> int:
        """Requests that have not ended."""
        return len(self._works)

    @property
    def psn(self) -> int:
        """PSN of the next packet."""
        return self._psn

    @property
    def sl(self) -> int:
        """SL of the next packet."""
        handle = self._works[0].handle if self._works else None
        return self._pair.attributes.path.sl if handle is None else handle.vector.sl

    @property
    def is_drained(self) -> bool:
        """True between messages."""
        return self._index == 0

    def post(self, request: SendRequest) -> None:
        """Adds a request."""
        self._works.append(request)

    def flush(self) -> None:
        """Ends all requests, as in an error state."""
        self._index = 0
        while self._works:
            self._pair.complete_send(self._works.popleft(), CompletionStatus.WR_FLUSH_ERR)

    def clear(self) -> None:
        """Forgets all requests."""
        self._index = 0
        self._works.clear()

    def expire(self, now: int) -> None:
        """Nothing depends on time."""

    def receive(self, packet: Arrived, now: int) -> None:
        """Nothing is answered."""

    def next_packet(self, now: int) -> Outgoing | None:
        """The next packet."""
        while self._works and self._may_go_on():
            request, status = self._works[0], CompletionStatus.SUCCESS
            packet, ends = None, True
            try:
                if request.refusal:
                    status = CompletionStatus(request.refusal)
                elif request.opcode.is_local:
                    status = self._pair.perform_local(request)
                else:
                    packet, ends = self._packet_of(self._pair, request, self._index, self._psn)
                    self._psn = psn_add(self._psn, 1)
            except (ProtectionError, MemoryFaultError):
                status = CompletionStatus.LOC_PROT_ERR
            self._index = 0 if ends else self._index + 1
            if ends:
                self._pair.complete_send(self._works.popleft(), status)
            if status:
                self._pair.fail(QpState.SQE)
            if packet is not None:
                return packet
        return None

    def _may_go_on(self) -> bool:
        state = self._pair.state
        return state is QpState.RTS or (state is QpState.SQD and self._index > 0)
