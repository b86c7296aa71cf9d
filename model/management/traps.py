"""Traps: what a node reports unasked, repeatedly (docs/management.md, section 5)."""

from collections.abc import Collection, Mapping
from typing import Final

from wire.codes import Q_KEY_SMI, QP_GSI, QP_SMI, VL15
from wire.congestion_control import CC_NOTICE, CcAttribute, cc_request
from wire.layout import Record
from wire.mad import MadMethod
from wire.notice import ProducerType, TrapNumber, notice
from wire.packet import build_ud_send
from wire.sma import SmaAttribute
from wire.smp import smp_request

__all__ = ["Traps", "cc_trap_packet", "transaction_id", "trap_packet"]

_TURN: Final = (
    TrapNumber.LINK_STATE_CHANGE,
    TrapNumber.LOCAL_CHANGES,
    TrapNumber.BAD_M_KEY,
    TrapNumber.BAD_P_KEY,
    TrapNumber.BAD_Q_KEY,
    TrapNumber.BAD_P_KEY_AT_SWITCH,
    TrapNumber.BAD_CC_KEY,
)
_NUMBER_SHIFT: Final = 32
_EVENTS_MASK: Final = 0xFFFF


def transaction_id(trap: TrapNumber, events: int) -> int:
    """Of the latest of so many events of a trap, which are counted in 16 bits."""
    return trap << _NUMBER_SHIFT | events & _EVENTS_MASK


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
        """The trap of the subnet management class pending under a TransactionID, if there is one, no longer is."""
        for trap, pending in list(self.pending.items()):
            if pending == transaction_id and trap != TrapNumber.BAD_CC_KEY:
                del self.pending[trap]

    def repress_cc(self, transaction_id: int) -> None:
        """Likewise that of the congestion control class."""
        if self.pending.get(TrapNumber.BAD_CC_KEY) == transaction_id:
            del self.pending[TrapNumber.BAD_CC_KEY]

    def next(self, due: Collection[TrapNumber]) -> TrapNumber:
        """The first in turn of the traps that are due, of which there is at least one. It will be sent."""
        while True:
            trap = _TURN[self._turn]
            self._turn = (self._turn + 1) % len(_TURN)
            if trap in due:
                return trap


def trap_packet(
    trap: TrapNumber, transaction_id: int, producer: ProducerType, port_info: Record, details: Mapping[str, int]
) -> bytes:
    """The packet of a trap to the Subnet Manager, LRH to ICRC. `port_info` is that of the managing port."""
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


def cc_trap_packet(
    transaction_id: int, producer: ProducerType, lid: int, class_port_info: Record, details: Mapping[str, int]
) -> bytes:
    """Likewise of the trap about a wrong CC_Key, to where ClassPortInfo says. `lid` is the node's own."""
    body = notice(TrapNumber.BAD_CC_KEY, producer, lid, **details)
    mad = cc_request(MadMethod.TRAP, CcAttribute.NOTICE, CC_NOTICE.pack(body), transaction_id=transaction_id)
    return build_ud_send(
        slid=lid,
        dlid=class_port_info.trap_lid,
        dest_qp=class_port_info.trap_qp,
        src_qp=QP_GSI,
        q_key=class_port_info.trap_q_key,
        payload=mad.pack(),
        sl=class_port_info.trap_sl,
        p_key=class_port_info.trap_p_key,
    ).data
