"""Subscriptions to notices, and the Reports that they bring (IBTA vol 1, 13.4.11 and 15.2.5.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sm.mad_client import MadAddress, MadClient, SmpError
from sm.sa.view import SubnetView
from sm.subnet import End
from sm.tasks import start
from wire.codes import LID_PERMISSIVE
from wire.layout import Record
from wire.mad import MadStatus
from wire.notice import NOTICE_WITH_ISSUER
from wire.sa import INFORM_INFO_RECORD, SA_MAD, SaAttribute, SaMethod, SaStatus

__all__ = ["Subscriptions"]

_MOST: Final = 4096
_ANY: Final = {"notice_type": 0xFFFF, "trap_number": 0xFFFF, "producer_type": 0xFFFFFF}
"""What means any, of each field that a notice has too."""

_TERMS: Final = ("gid", "lid_range_begin", "lid_range_end", "is_generic", *_ANY)
"""What makes a subscription another one of the same subscriber."""


@dataclass(frozen=True)
class _Subscription:
    """What somebody wants to hear of, and where to."""

    to: MadAddress
    info: Record

    @property
    def terms(self) -> tuple[int, ...]:
        """What is subscribed to."""
        return tuple(self.info[name] for name in _TERMS)


class Subscriptions:
    """Who wants to hear of what."""

    def __init__(self, mads: MadClient) -> None:
        self._mads = mads
        self._all: list[_Subscription] = []

    def set(self, info: Record, source: MadAddress) -> int:
        """Subscribes, or ends a subscription; the answer's status."""
        asked = _Subscription(source, info)
        same = [one for one in self._all if one.to.lid == source.lid and one.terms == asked.terms]
        if info.subscribe > 1 or (not info.subscribe and not same):
            return SaStatus.REQ_INVALID
        self._all = [one for one in self._all if one not in same]
        if len(self._all) >= _MOST:
            return SaStatus.NO_RESOURCES
        if info.subscribe:
            self._all.append(asked)
        return MadStatus.OK

    def keep(self, view: SubnetView) -> None:
        """Forgets subscribers that are gone."""
        self._all = [one for one in self._all if one.to.lid in view.by_lid]

    def records(self, view: SubnetView, asker: End | None) -> list[Record]:
        """Subscriptions of ports that a port may hear of as InformInfoRecords, numbered."""
        return [
            INFORM_INFO_RECORD.record(
                one.info, subscriber_gid=view.gid(view.by_lid[one.to.lid]), subscriber_enum=number
            )
            for number, one in enumerate(self._all)
            if one.to.lid in view.by_lid and view.is_told(asker, view.by_lid[one.to.lid])
        ]

    def report(self, notice: Record, view: SubnetView) -> None:
        """Sends a notice on to all who want to hear of it, by requests that they answer."""
        issuer = view.by_lid.get(notice.issuer_lid)
        gid = 0 if issuer is None else view.gid(issuer)
        told = NOTICE_WITH_ISSUER.record(notice, issuer_gid=gid)
        data = int.from_bytes(told.pack().ljust(SA_MAD["data"].width // 8, b"\0"), "big")
        mad = SA_MAD.record(method=SaMethod.REPORT, attribute_id=SaAttribute.NOTICE, data=data)
        for one in self._all:
            if _wants(one.info, notice, gid):
                start(self._send(mad, one.to))

    async def _send(self, mad: Record, to: MadAddress) -> None:
        try:
            await self._mads.ask(mad, to)
        except SmpError:
            # A subscriber that does not answer may be gone, which the next sweep finds.
            return


def _wants(info: Record, notice: Record, gid: int) -> bool:
    if info.gid:
        if info.gid != gid:
            return False
    elif info.lid_range_begin != LID_PERMISSIVE and not (
        info.lid_range_begin <= notice.issuer_lid <= max(info.lid_range_begin, info.lid_range_end)
    ):
        return False
    if info.is_generic != notice.is_generic:
        return False
    return all(info[name] in (everything, notice[name]) for name, everything in _ANY.items())
