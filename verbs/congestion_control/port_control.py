"""The congestion control of a port: what its transport asks and tells (IBTA vol 1, annex A10)."""

from __future__ import annotations

from typing import Final

from verbs.arrived import Arrived
from verbs.congestion_control.agent import CongestionAgent
from verbs.congestion_control.flows import Flows
from verbs.congestion_control.log import CongestionLog, time_stamp
from verbs.congestion_control.settings import AdapterSettings
from verbs.frame import Outgoing
from verbs.pair_state import PairState
from verbs.queue_pair import QueuePair
from verbs.states import QpType
from wire.codes import LNH
from wire.headers import BTH, GRH, LRH
from wire.opcodes import Operation, Service
from wire.packet import WORD_BYTES, rows_of_words

__all__ = ["PortCongestionControl"]

_SERVICE_TYPES: Final = {QpType.UC: Service.UC, QpType.EEC: Service.RD, QpType.UD: Service.UD}
"""In the log; all others are RC's, XRC too."""

_OPERATION_BITS: Final = 0x1F
_LNH_BITS: Final = 3
_UNDELAYED: Final = (Operation.ACKNOWLEDGE, Operation.ATOMIC_ACKNOWLEDGE)


class PortCongestionControl:
    """One port's.

    Attributes:
        agent: answers management.
    """

    def __init__(self, cycle_ns: int) -> None:
        self._cycle_ns = cycle_ns
        self._log = CongestionLog()
        self._flows = Flows(cycle_ns)
        self.agent = CongestionAgent(self._flows, self._log, cycle_ns)

    @property
    def is_on(self) -> bool:
        """Whether a packet may ever be delayed; where not, nothing else has to be asked."""
        return self._flows.settings.ccti_limit > 0

    def set(self, settings: AdapterSettings, now: int) -> None:
        """Goes by these settings, as if management had set them."""
        self._flows.change(settings, now)

    def ccti(self, number: int, sl: int, now: int) -> int:
        """The place in the table of a queue pair's packets of an SL."""
        return self._flows.ccti(number, sl, now)

    def notified(self, pair: PairState, packet: Arrived, now: int) -> None:
        """A packet with BECN has come for a queue pair."""
        attributes = pair.attributes
        is_datagram = pair.kind is QpType.UD
        sl = packet.sl if is_datagram else attributes.path.sl
        if self.slow_down(pair.number, sl, now):
            self._log.add(
                sl,
                local_qp=pair.number,
                service_type=_SERVICE_TYPES.get(pair.kind, Service.RC),
                remote_qp=0 if is_datagram else attributes.dest_qp,
                local_lid=packet.dlid,
                remote_lid=packet.slid,
                time_stamp=time_stamp(now, self._cycle_ns),
            )

    def slow_down(self, number: int, sl: int, now: int) -> bool:
        """A notice has come for packets of an SL, by their number; true if a log is to tell of it."""
        return self.is_on and self._flows.slow_down(number, sl, now)

    def free(self, number: int, sl: int) -> int:
        """The cycle from which on packets of an SL may be sent, by their number."""
        return self._flows.free(number, sl)

    def hold(self, queue_pair: QueuePair, now: int) -> None:
        """Lets a queue pair, whose turn it is, send nothing but acknowledges if it has to wait."""
        pair = queue_pair.pair
        sl = queue_pair.sl if pair.kind is QpType.UD else pair.attributes.path.sl
        free = self._flows.free(pair.number, sl)
        queue_pair.held_until = free if free > now else None

    def sent(self, number: int, packet: Outgoing, now: int) -> None:
        """A queue pair has sent a packet, whose rows are its cycles on a 4X link."""
        data = packet.data
        bth = LRH.size_bytes + (GRH.size_bytes if data[1] & _LNH_BITS == LNH.IBA_GLOBAL else 0)
        if BTH["opcode"].read(data, bth) & _OPERATION_BITS not in _UNDELAYED:
            self._flows.sent(number, packet.sl, rows_of_words(len(data) // WORD_BYTES), now)

    def forget(self, number: int) -> None:
        """A queue pair has ended."""
        self._flows.forget(number)
