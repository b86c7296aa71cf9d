"""ServiceRecords: what ports offer, for as long as their leases run (IBTA vol 1, 15.2.5.14)."""

from __future__ import annotations

from typing import Final, NamedTuple

from sm.sa.records import named
from sm.sa.view import SubnetView
from sm.subnet import End
from wire.codes import P_KEY_DEFAULT
from wire.layout import Record
from wire.mad import MadStatus
from wire.sa import LEASE_INDEFINITE, SERVICE_RECORD, SaStatus

__all__ = ["Services", "may_serve"]

_MOST: Final = 4096
_NEEDED: Final = {"service_id", "service_gid"}


class _Service(NamedTuple):
    record: Record
    until: int | None
    """The cycle in which its lease ends; None if it does not."""


class Services:
    """Those that were registered, and have not ended."""

    def __init__(self, second: int) -> None:
        """A second has so many cycles."""
        self._second = second
        self._services: dict[tuple[int, int, int], _Service] = {}
        """By ServiceID, ServiceGID and ServiceP_Key, which identify one."""

    def records(self, now: int) -> list[Record]:
        """All of them, with what is left of their leases; their keys are not told."""
        self._end(now)
        return [_told(service, now, self._second) for service in self._services.values()]

    def set(self, wanted: Record, mask: int, now: int) -> tuple[Record, int]:
        """Registers a service, or changes one; the answer's record and status."""
        names = named(SERVICE_RECORD, mask)
        if not names >= _NEEDED:
            return wanted, SaStatus.REQ_INSUFFICIENT_COMPONENTS
        self._end(now)
        record = SERVICE_RECORD.record({name: wanted[name] for name in names})
        if "service_p_key" not in names:
            record = record.replace(service_p_key=P_KEY_DEFAULT)
        if "service_lease" not in names:
            record = record.replace(service_lease=LEASE_INDEFINITE)
        key = _key(record)
        before = self._services.get(key)
        if before is not None and before.record.service_key != record.service_key:
            return wanted, SaStatus.REQ_DENIED
        if before is None and len(self._services) >= _MOST:
            return wanted, SaStatus.NO_RESOURCES
        lease = record.service_lease
        until = None if lease == LEASE_INDEFINITE else now + lease * self._second
        self._services[key] = _Service(record, until)
        return _told(self._services[key], now, self._second), MadStatus.OK

    def delete(self, wanted: Record, mask: int, now: int) -> tuple[Record, int]:
        """Ends a service; the answer's record and status."""
        names = named(SERVICE_RECORD, mask)
        if not names >= _NEEDED:
            return wanted, SaStatus.REQ_INSUFFICIENT_COMPONENTS
        self._end(now)
        key = _key(wanted if "service_p_key" in names else wanted.replace(service_p_key=P_KEY_DEFAULT))
        service = self._services.get(key)
        if service is None:
            return wanted, SaStatus.NO_RECORDS
        if service.record.service_key != (wanted.service_key if "service_key" in names else 0):
            return wanted, SaStatus.REQ_DENIED
        del self._services[key]
        return _told(service, now, self._second), MadStatus.OK

    def _end(self, now: int) -> None:
        """Forgets those whose leases are over: nobody sees them before somebody asks."""
        self._services = {
            key: service for key, service in self._services.items() if service.until is None or service.until > now
        }


def may_serve(wanted: Record, mask: int, view: SubnetView, asker: End | None) -> bool:
    """Whether who asks and the port of the ServiceGID are members of the ServiceP_Key's partition, if it is given."""
    names = named(SERVICE_RECORD, mask)
    if "service_p_key" not in names:
        return True
    ends = [asker, view.of_gid(wanted.service_gid)] if "service_gid" in names else [asker]
    return all(view.is_member(end, wanted.service_p_key) for end in ends)


def _key(record: Record) -> tuple[int, int, int]:
    return record.service_id, record.service_gid, record.service_p_key


def _told(service: _Service, now: int, second: int) -> Record:
    left = LEASE_INDEFINITE if service.until is None else -((now - service.until) // second)
    return service.record.replace(service_lease=left, service_key=0)
