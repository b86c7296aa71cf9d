"""ServiceRecords: registered, found, ended by their keys or with their leases."""

import pytest

from tests.sm.managed import Managed
from tests.sm.sa_client import SaClient
from tests.sm.subnets import star
from wire.mad import MadStatus
from wire.sa import LEASE_INDEFINITE, SaAttribute, SaMethod, SaStatus

SERVICE = SaAttribute.SERVICE_RECORD
SECOND = 250_000_000
ONE = {"service_id": 7, "service_gid": 0xFE80 << 112 | 3}


@pytest.fixture
def client() -> SaClient:
    return SaClient(Managed(star()).bring_up(), 3)


def test_what_was_registered_is_found_until_it_is_deleted(client):
    client.ask(SaMethod.SET, SERVICE, **ONE, service_name=5, service_data8_3=9)
    (found,) = client.ask(SaMethod.GET, SERVICE, service_name=5).records
    assert (found.service_id, found.service_data8_3, found.service_lease) == (7, 9, LEASE_INDEFINITE)
    assert found.service_p_key == 0xFFFF
    assert client.ask(SaMethod.DELETE, SERVICE, **ONE).method == SaMethod.DELETE_RESP
    assert client.ask(SaMethod.GET, SERVICE, service_name=5).status == SaStatus.NO_RECORDS
    assert client.ask(SaMethod.DELETE, SERVICE, **ONE).status == SaStatus.NO_RECORDS


def test_a_lease_runs_out(client):
    client.ask(SaMethod.SET, SERVICE, **ONE, service_lease=2)
    client.managed.fabric.now += SECOND
    assert client.ask(SaMethod.GET, SERVICE, service_id=7).records[0].service_lease in (1, 2)
    client.managed.fabric.now += SECOND
    assert client.ask(SaMethod.GET, SERVICE, service_id=7).status == SaStatus.NO_RECORDS


def test_a_lease_is_renewed(client):
    for _time in range(3):
        client.ask(SaMethod.SET, SERVICE, **ONE, service_lease=2)
        client.managed.fabric.now += SECOND
    assert len(client.ask(SaMethod.GET_TABLE, SERVICE).records) == 1


def test_only_who_has_the_key_changes_or_ends_a_service_and_nobody_is_told_it(client):
    assert client.ask(SaMethod.SET, SERVICE, **ONE, service_key=11).records[0].service_key == 0
    assert client.ask(SaMethod.SET, SERVICE, **ONE, service_key=12).status == SaStatus.REQ_DENIED
    assert client.ask(SaMethod.DELETE, SERVICE, **ONE).status == SaStatus.REQ_DENIED
    assert client.ask(SaMethod.GET, SERVICE, service_id=7).records[0].service_key == 0
    assert client.ask(SaMethod.DELETE, SERVICE, **ONE, service_key=11).status == MadStatus.OK


def test_a_service_has_an_id_and_a_gid(client):
    assert client.ask(SaMethod.SET, SERVICE, service_id=7).status == SaStatus.REQ_INSUFFICIENT_COMPONENTS
