"""Subscribers hear of traps, and of ports that come and go, until they end it."""

from tests.sm.managed import Managed
from tests.sm.sa_client import SaClient
from tests.sm.subnets import star
from wire.codes import LID_PERMISSIVE
from wire.mad import MadStatus
from wire.notice import TrapNumber, details_of
from wire.sa import SaAttribute, SaMethod, SaStatus

INFORM = SaAttribute.INFORM_INFO
ALL = {
    "lid_range_begin": LID_PERMISSIVE,
    "is_generic": 1,
    "notice_type": 0xFFFF,
    "trap_number": 0xFFFF,
    "producer_type": 0xFFFFFF,
}


def subscriber(lid: int = 1, **terms: int) -> tuple[Managed, SaClient]:
    """At LID 1, with the Subnet Manager, or at LID 3."""
    up = Managed(star()).bring_up()
    client = SaClient(up, lid)
    assert client.ask(SaMethod.SET, INFORM, subscribe=1, **(ALL | terms)).status == MadStatus.OK
    return up, client


def cut_second_host(up: Managed) -> None:
    up.fabric.cut(next(end for link in up.subnet.links for end in (link.a, link.b) if end.port == 2))
    up.until_quiet()


def test_a_trap_and_the_gid_that_is_gone_are_reported():
    up, client = subscriber()
    gone = next(guid for guid, lids in up.manager.lids.items() if lids.first == 3)
    switch = next(guid for guid, lids in up.manager.lids.items() if lids.first == 2)
    cut_second_host(up)
    numbers = [one.trap_number for one in client.reports]
    assert numbers.count(TrapNumber.LINK_STATE_CHANGE) >= 1
    assert client.reports[0].issuer_gid == 0xFE80 << 112 | switch
    (out,) = [one for one in client.reports if one.trap_number == TrapNumber.GID_OUT_OF_SERVICE]
    assert details_of(out).gid == 0xFE80 << 112 | gone


def test_only_what_was_subscribed_to_is_reported():
    up, client = subscriber(trap_number=TrapNumber.GID_OUT_OF_SERVICE)
    cut_second_host(up)
    assert [one.trap_number for one in client.reports] == [TrapNumber.GID_OUT_OF_SERVICE]


def test_of_lids_in_a_range_alone():
    up, client = subscriber(lid_range_begin=3, lid_range_end=9)
    cut_second_host(up)
    assert client.reports == []


def test_of_one_gid_alone():
    prefix = 0xFE80 << 112
    lids = {lids.first: guid for guid, lids in Managed(star()).bring_up().manager.lids.items()}
    for lid, traps in ((2, {TrapNumber.LINK_STATE_CHANGE}), (3, set())):
        up, client = subscriber(gid=prefix | lids[lid])
        cut_second_host(up)
        assert {one.trap_number for one in client.reports} == traps


def test_a_subscriber_that_is_gone_is_sent_nothing_more():
    up, client = subscriber(3, trap_number=TrapNumber.GID_OUT_OF_SERVICE)
    cut_second_host(up)
    assert client.reports == []


def test_a_subscription_is_told_and_ends():
    up, client = subscriber()
    (record,) = client.ask(SaMethod.GET_TABLE, SaAttribute.INFORM_INFO_RECORD).records
    assert (record.subscribe, record.trap_number) == (1, 0xFFFF)
    assert client.ask(SaMethod.SET, INFORM, subscribe=0, **ALL).status == MadStatus.OK
    assert client.ask(SaMethod.SET, INFORM, subscribe=0, **ALL).status == SaStatus.REQ_INVALID
    cut_second_host(up)
    assert client.reports == []


def test_a_report_that_is_not_answered_is_repeated_and_given_up():
    up, client = subscriber(trap_number=TrapNumber.GID_OUT_OF_SERVICE)
    client.acknowledges = False
    cut_second_host(up)
    assert len(client.reports) == 4
