"""UC: messages of many packets that nobody acknowledges (IBTA vol 1, 9.8.2)."""

from __future__ import annotations

from verbs.arrived import Arrived
from verbs.completions import CompletionStatus
from verbs.frame import Outgoing
from verbs.incoming import IncomingMessage, ReceiverNotReadyError, RefusedRequestError, begins_message
from verbs.pair_state import PairState
from verbs.psn import psn_add
from verbs.segments import packets_of, segment
from verbs.states import QpState
from verbs.work import SendRequest
from wire.opcodes import Service

__all__ = ["UcResponder", "uc_packet"]


def uc_packet(pair: PairState, request: SendRequest, index: int, psn: int) -> tuple[Outgoing, bool]:
    """Packet `index` of a request, and whether it is the last.

    Raises:
        ProtectionError: a key does not allow that the data is read.
        MemoryFaultError: it is not there any more.
    """
    mtu = pair.attributes.path_mtu
    count = packets_of(request.length, mtu)
    operation, extended, payload = segment(request, index, count, mtu, pair.keys, pair.pd)
    ends = index == count - 1
    solicited = ends and request.solicited
    return pair.envelope.packet(Service.UC << 5 | operation, psn, extended, payload, solicited=solicited), ends


class UcResponder:
    """Takes messages whose packets all come; of others nothing is completed."""

    def __init__(self, pair: PairState) -> None:
        self._pair = pair
        self._message = IncomingMessage(pair)
        self._expected = 0

    @property
    def expected(self) -> int:
        """PSN of the next packet."""
        return self._expected

    def start(self) -> None:
        """Begins anew with the first PSN that the attributes give."""
        self.clear()
        self._expected = self._pair.attributes.rq_psn

    def clear(self) -> None:
        """Forgets what it was doing."""
        self._message.clear()

    def flush(self) -> None:
        """Ends the receive request of a message that will not end."""
        self._message.end(CompletionStatus.WR_FLUSH_ERR)

    def next_packet(self, held: bool) -> Outgoing | None:
        """Nothing is answered."""
        return None

    def receive(self, packet: Arrived) -> None:
        """Takes a packet.

        After a gap what is left of a message is dropped, and the next one is taken from its first packet on, whatever
        its PSN (IBTA vol 1, 9.8.2.2.2). A message that is refused is dropped likewise, and nobody is told.
        """
        operation = packet.operation
        if packet.psn != self._expected or begins_message(operation):
            self._message.abandon()
        self._expected = psn_add(packet.psn, 1)
        if not (begins_message(operation) or self._message.in_progress):
            return
        try:
            self._message.accept(packet, operation, self._pair)
        except ReceiverNotReadyError:
            self._message.abandon()
        except RefusedRequestError as refused:
            self._message.abandon()
            if refused.status is CompletionStatus.LOC_PROT_ERR:
                self._message.end(refused.status)
                self._pair.fail(QpState.ERR)
