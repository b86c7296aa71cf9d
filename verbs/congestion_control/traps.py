"""Trap 0 of a port: somebody has not had its CC_Key (IBTA vol 1, A10.4; docs/management.md, sections 5 and 7)."""

from __future__ import annotations

from typing import Final, NamedTuple

from verbs.port import Port
from wire.codes import QP_GSI
from wire.congestion_control import (
    CC_CAPABILITIES,
    CC_CLASS_PORT_INFO,
    CC_CLASS_VERSION,
    CC_NOTICE,
    CC_RESP_TIME,
    CcAttribute,
    cc_request,
)
from wire.layout import Record
from wire.mad import MadMethod
from wire.notice import NOTICE_WITH_ISSUER, ProducerType, TrapNumber, notice
from wire.packet import Packet, build_ud_send

__all__ = ["CongestionTraps", "Trap"]

_UNIT_NS: Final = 4096
"""SubnetTimeOut t: 4.096 us x 2^t."""

_NUMBER_SHIFT: Final = 32
_EVENTS_MASK: Final = 0xFFFF
"""Of a TransactionID."""

_WHERE_TO: Final = ("trap_sl", "trap_lid", "trap_p_key", "trap_qp", "trap_q_key")
"""What may be set of ClassPortInfo."""


class Trap(NamedTuple):
    """A trap to be sent, and where to."""

    mad: bytes
    sl: int
    dlid: int
    p_key: int
    dest_qp: int
    q_key: int

    def packet(self, slid: int, vl: int = 0) -> Packet:
        """The packet that it goes in, without a GRH."""
        return build_ud_send(
            slid=slid,
            dlid=self.dlid,
            dest_qp=self.dest_qp,
            src_qp=QP_GSI,
            q_key=self.q_key,
            payload=self.mad,
            vl=vl,
            sl=self.sl,
            p_key=self.p_key,
        )


class CongestionTraps:
    """Where the trap of a port goes, and whether it is pending: each violation makes it so, with TrapLID not 0."""

    def __init__(self, cycle_ns: int) -> None:
        self._cycle_ns = cycle_ns
        self._info = CC_CLASS_PORT_INFO.record(
            class_version=CC_CLASS_VERSION, capability_mask=CC_CAPABILITIES, resp_time_value=CC_RESP_TIME
        )
        self._events = 0
        self._is_pending = False
        self._details: dict[str, int] = {}
        """Of the latest violation."""
        self._free = 0
        """The cycle from which the next trap may be sent."""

    def class_port_info(self) -> bytes:
        """ClassPortInfo."""
        return self._info.pack()

    def set(self, data: bytes) -> None:
        """Takes from ClassPortInfo where traps go."""
        given = CC_CLASS_PORT_INFO.unpack(data)
        self._info = self._info.replace(**{name: given[name] for name in _WHERE_TO})

    def violated(self, request: Record, slid: int, sgid: int) -> None:
        """A request had a wrong CC_Key; SGID is 0 of one without a GRH."""
        self._details = {
            "slid": slid,
            "method": request.method,
            "attribute_id": request.attribute_id,
            "attribute_modifier": request.attribute_modifier,
            "qp": QP_GSI,
            "cc_key": request.cc_key,
            "source_gid": sgid,
        }
        if self._info.trap_lid:
            self._events += 1
            self._is_pending = True

    def repress(self, transaction_id: int) -> None:
        """TrapRepress has come with a good CC_Key."""
        if transaction_id == self._transaction_id:
            self._is_pending = False

    @property
    def due(self) -> int | None:
        """The cycle from which a trap is to be sent; None if there is none."""
        return self._free if self._is_pending and self._info.trap_lid else None

    def take(self, port: Port, now: int) -> Trap | None:
        """The trap that a port is to send in cycle `now`, if there is one; the next is due SubnetTimeOut later.

        So it is where the port has no LID yet and sends none.
        """
        if self.due is None or self.due > now:
            return None
        self._free = now + max(1, (_UNIT_NS << port.subnet_timeout) // self._cycle_ns)
        if not port.lid:
            return None
        said = notice(TrapNumber.BAD_CC_KEY, ProducerType.CA, port.lid, **self._details)
        data = CC_NOTICE.pack(NOTICE_WITH_ISSUER.record(said, issuer_gid=port.gid(0)))
        mad = cc_request(MadMethod.TRAP, CcAttribute.NOTICE, data, transaction_id=self._transaction_id)
        info = self._info
        return Trap(mad.pack(), info.trap_sl, info.trap_lid, info.trap_p_key, info.trap_qp, info.trap_q_key)

    @property
    def _transaction_id(self) -> int:
        return TrapNumber.BAD_CC_KEY << _NUMBER_SHIFT | self._events & _EVENTS_MASK
