"""Traps of congestion control agents: each is told and repressed (IBTA vol 1, 13.4.9)."""

from __future__ import annotations

from sm.events import Tell
from sm.mad_client import MadAddress, MadClient
from sm.settings import SubnetSettings
from sm.trap_events import trap_event
from wire.congestion_control import CC_NOTICE, CcAttribute, cc_request
from wire.layout import Record
from wire.mad import MadMethod, mad_data
from wire.notice import TrapNumber, details_of

__all__ = ["CongestionTraps"]


class CongestionTraps:
    """Takes those that come to a Subnet Manager."""

    def __init__(self, mads: MadClient, settings: SubnetSettings, tell: Tell) -> None:
        options = settings.congestion_control
        self._mads = mads
        self._cc_key = 0 if options is None else options.cc_key
        self._tell = tell
        mads.on_congestion_trap = self._received

    def _received(self, trap: Record, source: MadAddress) -> None:
        notice = CC_NOTICE.unpack(mad_data(trap))
        if _is_about_repress(notice, source.own_lid):
            # The node has another CC_Key: to repress this one would only be the next violation.
            return
        self._tell(trap_event(notice))
        repress = cc_request(
            MadMethod.TRAP_REPRESS,
            CcAttribute.NOTICE,
            mad_data(trap),
            transaction_id=trap.transaction_id,
            cc_key=self._cc_key,
        )
        self._mads.send(repress.pack(), source)


def _is_about_repress(notice: Record, own_lid: int) -> bool:
    """Whether what had a wrong CC_Key was a TrapRepress from this Subnet Manager."""
    details = details_of(notice)
    if details is None or notice.trap_number != TrapNumber.BAD_CC_KEY:
        return False
    return (details.method, details.slid) == (MadMethod.TRAP_REPRESS, own_lid)
