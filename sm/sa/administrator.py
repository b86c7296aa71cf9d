"""The Subnet Administrator: requests of clients, and their answers (IBTA vol 1, 15.2 and 15.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sm.mad_client import MadAddress, MadClient
from sm.multicast.groups import MulticastGroups
from sm.sa.capacity import RequestError
from sm.sa.mc_members import group_paths, is_multicast_gid, join, leave, member_records
from sm.sa.paths import PathFinder
from sm.sa.records import link_records, matching, named, node_records, p_key_table_records, port_info_records
from sm.sa.replies import Replies
from sm.sa.services import Services, may_serve
from sm.sa.subscriptions import Subscriptions
from sm.sa.view import SubnetView
from sm.settings import SubnetSettings
from sm.subnet import End
from wire.layout import Record
from wire.mad import CLASS_PORT_INFO, CLASS_VERSION, MadStatus, pack_data
from wire.notice import NoticeType, ProducerType, TrapNumber, notice
from wire.rmpp import RmppFlags, RmppType
from wire.sa import (
    INFORM_INFO,
    SA_CLASS_VERSION,
    SA_HEADER_BYTES,
    SA_MAD,
    SA_RECORDS,
    SA_RESPONSES,
    SERVICE_RECORD,
    SM_INFO_RECORD,
    SaAttribute,
    SaCapability,
    SaCapability2,
    SaMethod,
    SaStatus,
)

__all__ = ["SubnetAdministrator"]

_RESP_TIME: Final = 8
"""ClassPortInfo.RespTimeValue: 4.096 us x 2^8, about a millisecond."""

_CAPABILITIES: Final = {
    "capability_mask": SaCapability.IS_UD_MULTICAST_SUPPORTED
    | SaCapability.IS_PORT_INFO_CAPABILITY_MASK_MATCH_SUPPORTED,
    "capability_mask2": SaCapability2.IS_MULTICAST_FDB_TOP_SUPPORTED | SaCapability2.IS_SEND_ONLY_FULL_MEMBER_SUPPORTED,
}

_UNIT: Final = 8
"""Bytes in which AttributeOffset counts."""

_QUERIES: Final = frozenset({SaMethod.GET, SaMethod.GET_TABLE})
_METHODS: Final[dict[int, frozenset[SaMethod]]] = {
    SaAttribute.CLASS_PORT_INFO: frozenset({SaMethod.GET}),
    SaAttribute.INFORM_INFO: frozenset({SaMethod.SET}),
    SaAttribute.NODE_RECORD: _QUERIES,
    SaAttribute.PORT_INFO_RECORD: _QUERIES,
    SaAttribute.SM_INFO_RECORD: _QUERIES,
    SaAttribute.LINK_RECORD: _QUERIES,
    SaAttribute.SERVICE_RECORD: _QUERIES | {SaMethod.SET, SaMethod.DELETE},
    SaAttribute.P_KEY_TABLE_RECORD: _QUERIES,
    SaAttribute.PATH_RECORD: _QUERIES,
    SaAttribute.MC_MEMBER_RECORD: _QUERIES | {SaMethod.SET, SaMethod.DELETE},
    SaAttribute.INFORM_INFO_RECORD: _QUERIES,
}
"""The requests that there are of each attribute."""


class SubnetAdministrator:
    """Answers requests about the subnet that it was shown last, and tells subscribers what happens there."""

    def __init__(
        self, mads: MadClient, settings: SubnetSettings, groups: MulticastGroups, sm_info: Callable[[], Record]
    ) -> None:
        """`sm_info` is the Subnet Manager's own SMInfo."""
        self._mads = mads
        self._settings = settings
        self._groups = groups
        self._sm_info = sm_info
        self._view: SubnetView | None = None
        self._paths: PathFinder | None = None
        self._replies = Replies(mads, settings.rmpp_timeout)
        self._services = Services(settings.second)
        self._subscriptions = Subscriptions(mads)
        self.is_open = False
        """Whether requests are answered: those of a master are."""
        mads.on_administration = self._received
        groups.on_notice = self._report_own

    def show(self, view: SubnetView) -> None:
        """Takes what there is to tell of from now on; subscribers hear which GIDs have come and gone."""
        before, self._view, self._paths = self._view, view, PathFinder(view)
        self._subscriptions.keep(view)
        if before is None:
            return
        for trap, guids, where in (
            (TrapNumber.GID_OUT_OF_SERVICE, before.by_guid.keys() - view.by_guid.keys(), before),
            (TrapNumber.GID_IN_SERVICE, view.by_guid.keys() - before.by_guid.keys(), view),
        ):
            for guid in sorted(guids):
                self._report_own(trap, where.gid(where.by_guid[guid]))

    def report(self, heard: Record) -> None:
        """Sends a notice of a trap on to those who want to hear of it."""
        if self._view is not None and self.is_open and heard.notice_type != NoticeType.EMPTY:
            self._subscriptions.report(heard, self._view)

    def _report_own(self, trap: TrapNumber, gid: int) -> None:
        """Tells subscribers what became of a GID."""
        if self._view is not None:
            own_lid = self._view.lid_range(self._view.found.origin).first
            self._subscriptions.report(notice(trap, ProducerType.CLASS_MANAGER, own_lid, gid=gid), self._view)

    def _received(self, mad: bytes, source: MadAddress) -> None:
        if not self.is_open:
            return
        request = SA_MAD.unpack(mad)
        if request.rmpp_flags & RmppFlags.ACTIVE and request.rmpp_type != RmppType.DATA:
            self._replies.received(mad, source)
        elif request.method in SA_RESPONSES:
            self._answer(request, source)

    def _answer(self, request: Record, source: MadAddress) -> None:
        allowed = _METHODS.get(request.attribute_id, frozenset())
        status = int(MadStatus.OK)
        records: list[Record] = []
        if request.class_version != SA_CLASS_VERSION:
            status = MadStatus.BAD_VERSION
        elif request.method not in allowed:
            status = MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED
        elif self._view is None:
            status = MadStatus.BUSY
        else:
            records, status = self._done(request, source, self._view)
        if request.method == SaMethod.GET_TABLE and not status:
            self._replies.send(_table(request, records), source)
            return
        if request.method == SaMethod.GET and not status and len(records) != 1:
            status = SaStatus.TOO_MANY_RECORDS if records else SaStatus.NO_RECORDS
        answer = request.replace(method=SA_RESPONSES[request.method], status=status, sm_key=0)
        if not status:
            answer = answer.replace(data=pack_data(SA_MAD, records[0].pack()), attribute_offset=_offset(records))
        self._mads.send(answer.pack(), source)

    def _done(self, request: Record, source: MadAddress, view: SubnetView) -> tuple[list[Record], int]:
        """Does what is asked; the records of the answer, and its status."""
        try:
            return self._asked(request, source, view)
        except RequestError as error:
            return [], error.status

    def _asked(self, request: Record, source: MadAddress, view: SubnetView) -> tuple[list[Record], int]:
        """The same, where a request that cannot be done is an error."""
        query = SA_RECORDS[request.attribute_id].unpack(request.pack(), SA_HEADER_BYTES)
        mask, now, asker = request.component_mask, self._mads.now, view.by_lid.get(source.lid)
        match request.attribute_id, request.method:
            case SaAttribute.CLASS_PORT_INFO, _:
                versions = {"base_version": CLASS_VERSION, "class_version": SA_CLASS_VERSION}
                return [CLASS_PORT_INFO.record(versions | _CAPABILITIES, resp_time_value=_RESP_TIME)], MadStatus.OK
            case SaAttribute.INFORM_INFO, _:
                asked = INFORM_INFO.record(query)
                return [asked], self._subscriptions.set(asked, source)
            case SaAttribute.SERVICE_RECORD, SaMethod.SET | SaMethod.DELETE if not may_serve(query, mask, view, asker):
                return [], SaStatus.REQ_INVALID
            case SaAttribute.SERVICE_RECORD, SaMethod.SET:
                record, status = self._services.set(SERVICE_RECORD.record(query), mask, now)
                return [record], status
            case SaAttribute.SERVICE_RECORD, SaMethod.DELETE:
                record, status = self._services.delete(SERVICE_RECORD.record(query), mask, now)
                return [record], status
            case SaAttribute.MC_MEMBER_RECORD, SaMethod.SET:
                return [join(query, mask, self._groups, view, asker)], MadStatus.OK
            case SaAttribute.MC_MEMBER_RECORD, SaMethod.DELETE:
                return [leave(query, mask, self._groups, view, asker)], MadStatus.OK
            case SaAttribute.MC_MEMBER_RECORD, _:
                is_trusted = request.sm_key == self._settings.sm_key
                return member_records(query, mask, self._groups, view, asker, is_trusted=is_trusted), MadStatus.OK
            case SaAttribute.PATH_RECORD, _ if "dgid" in named(query.layout, mask) and is_multicast_gid(query.dgid):
                return group_paths(query, mask, self._groups, view, asker), MadStatus.OK
            case SaAttribute.PATH_RECORD, method:
                most = {"most": 1} if method == SaMethod.GET else {}
                return self._paths.find(query, mask, asker, **most) if self._paths else [], MadStatus.OK
            case SaAttribute.P_KEY_TABLE_RECORD, _ if request.sm_key != self._settings.sm_key:
                # It is for who is trusted (IBTA vol 1, 15.2.5.11).
                return [], SaStatus.REQ_INVALID
        found = self._records(request.attribute_id, view, asker)
        return matching(found, query, mask, request.attribute_modifier, view), MadStatus.OK

    def _records(self, attribute_id: int, view: SubnetView, asker: End | None) -> Iterable[Record]:
        """All records of an attribute that a port may hear of."""
        match attribute_id:
            case SaAttribute.NODE_RECORD:
                return node_records(view, asker)
            case SaAttribute.PORT_INFO_RECORD:
                return port_info_records(view, asker)
            case SaAttribute.LINK_RECORD:
                return link_records(view, asker)
            case SaAttribute.P_KEY_TABLE_RECORD:
                return p_key_table_records(view, asker)
            case SaAttribute.SERVICE_RECORD:
                services = self._services.records(self._mads.now)
                return [service for service in services if view.is_member(asker, service.service_p_key)]
            case SaAttribute.INFORM_INFO_RECORD:
                return self._subscriptions.records(view, asker)
            case _ if not view.is_told(asker, view.found.origin):
                return []
            case _:
                own = view.lid_range(view.found.origin).first
                return [SM_INFO_RECORD.record({**self._sm_info(), "sm_key": 0}, endport_lid=own)]


def _table(request: Record, records: list[Record]) -> bytes:
    """The message of an answer with any number of records."""
    answer = request.replace(
        method=SaMethod.GET_TABLE_RESP, status=MadStatus.OK, sm_key=0, attribute_offset=_offset(records)
    )
    size = _UNIT * answer.attribute_offset
    return answer.pack()[:SA_HEADER_BYTES] + b"".join(record.pack().ljust(size, b"\0") for record in records)


def _offset(records: list[Record]) -> int:
    """AttributeOffset: from one record to the next, 0 if there is none."""
    return -(-records[0].layout.size_bytes // _UNIT) if records else 0
