"""Traps: what a node reports to its Subnet Manager unasked, repeatedly (docs/management.md, section 5)."""

from collections.abc import Mapping
from typing import Final

from wire.codes import Q_KEY_SMI, QP_SMI, VL15
from wire.layout import Record
from wire.mad import MadMethod
from wire.notice import ProducerType, TrapNumber, notice
from wire.packet import build_ud_send
from wire.sma import SmaAttribute
from wire.smp import smp_request

__all__ = ["Traps", "transaction_id", "trap_packet"]

_TURN: Final = (
    TrapNumber.LINK_STATE_CHANGE,
    TrapNumber.LOCAL_CHANGES,
    TrapNumber.BAD_M_KEY,
    TrapNumber.BAD_P_KEY,
    TrapNumber.BAD_Q_KEY,
    TrapNumber.BAD_P_KEY_AT_SWITCH,
)
_EVENTS_BITS: Final = 32
_EVENTS_MASK: Final = (1 << _EVENTS_BITS) - 1


def transaction_id(trap: TrapNumber, events: int) -> int:
    """Of the latest of so many events of a trap, which are counted in 32 bits."""
    return trap << _EVENTS_BITS | events & _EVENTS_MASK


class Traps:
    """Which traps are pending, under which TransactionID, and whose turn it is.

    Attributes:
        pending: TransactionIDs of the traps that are pending.
        details: what the latest event of a trap says, also if that did not make it pending.
    """

    def __init__(self) -> None:
        self.pending: dict[TrapNumber, int] = {}
        self.details: dict[TrapNumber, Mapping[str, int]] = {}
        self._events = dict.fromkeys(_TURN, 0)
        self._turn = 0

    def event(self, trap: TrapNumber) -> None:
        """A new event of a trap: it is pending, under a new TransactionID, from the current cycle on."""
        self._events[trap] += 1
        self.pending[trap] = transaction_id(trap, self._events[trap])

    def repress(self, transaction_id: int) -> None:
        """The trap pending under a TransactionID, if there is one, is no longer pending."""
        for trap, pending in list(self.pending.items()):
            if pending == transaction_id:
                del self.pending[trap]

    def next(self) -> TrapNumber:
        """The first in turn of the pending traps, of which there is at least one. It will be sent."""
        while True:
            trap = _TURN[self._turn]
            self._turn = (self._turn + 1) % len(_TURN)
            if trap in self.pending:
                return trap


def trap_packet(
    trap: TrapNumber, transaction_id: int, producer: ProducerType, port_info: Record, details: Mapping[str, int]
) -> bytes:
    """A trap's packet, LRH to ICRC. `port_info` is that of the port that manages the node."""
    body = notice(trap, producer, port_info.lid, **details)
    smp = smp_request(MadMethod.TRAP, SmaAttribute.NOTICE, data=body.pack(), transaction_id=transaction_id)
    return build_ud_send(
        slid=port_info.lid,
        dlid=port_info.master_sm_lid,
        dest_qp=QP_SMI,
        src_qp=QP_SMI,
        q_key=Q_KEY_SMI,
        payload=smp.pack(),
        vl=VL15,
        sl=port_info.master_sm_sl,
    ).data
