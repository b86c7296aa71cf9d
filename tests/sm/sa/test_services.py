"""ServiceRecords: registered, found, ended by their keys or with their leases."""

import pytest

from sm.partitions import DEFAULT_PARTITION, EndPorts, Membership, Partitions
from sm.settings import SubnetSettings
from tests.sm.managed import Managed
from tests.sm.sa_client import SaClient
from tests.sm.subnets import HOST_GUID, star
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


A = 5
OF_A = {"service_id": 7, "service_p_key": 0x8000 | A}


@pytest.fixture
def parted() -> Managed:
    """Those at LIDs 3 and 4 are members of A."""
    memberships = Membership(DEFAULT_PARTITION, EndPorts.ALL, True), Membership(A, HOST_GUID + 5, True)
    settings = SubnetSettings(partitions=Partitions((*memberships, Membership(A, HOST_GUID + 9, False))))
    return Managed(star(4), settings).bring_up()


def gid(host: int) -> int:
    return 0xFE80 << 112 | HOST_GUID + 4 * host + 1


def test_a_service_of_a_partition_is_found_by_its_members(parted):
    assert SaClient(parted, 3).ask(SaMethod.SET, SERVICE, **OF_A, service_gid=gid(1)).status == MadStatus.OK
    SaClient(parted, 5).ask(SaMethod.SET, SERVICE, service_id=8, service_gid=gid(3))
    found = {
        lid: [one.service_id for one in SaClient(parted, lid).ask(SaMethod.GET_TABLE, SERVICE).records]
        for lid in (1, 3, 4, 5)
    }
    assert found == {1: [8], 3: [7, 8], 4: [7, 8], 5: [8]}


def test_a_service_of_no_partition_is_found_by_all(parted):
    SaClient(parted, 3).ask(SaMethod.SET, SERVICE, service_id=7, service_gid=gid(1), service_p_key=0)
    assert len(SaClient(parted, 5).ask(SaMethod.GET_TABLE, SERVICE).records) == 1


def test_only_a_member_registers_or_ends_a_service_of_a_partition_and_only_at_a_member(parted):
    refused = SaStatus.REQ_INVALID
    assert SaClient(parted, 5).ask(SaMethod.SET, SERVICE, **OF_A, service_gid=gid(1)).status == refused
    assert SaClient(parted, 3).ask(SaMethod.SET, SERVICE, **OF_A, service_gid=gid(3)).status == refused
    assert SaClient(parted, 3).ask(SaMethod.SET, SERVICE, **OF_A, service_gid=gid(2)).status == MadStatus.OK
    assert SaClient(parted, 5).ask(SaMethod.DELETE, SERVICE, **OF_A, service_gid=gid(2)).status == refused
    assert SaClient(parted, 4).ask(SaMethod.DELETE, SERVICE, **OF_A, service_gid=gid(2)).status == MadStatus.OK
