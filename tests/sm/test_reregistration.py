"""A new master tells the clients of ports to register again, once; what they do then it knows."""

from collections import Counter

import pytest

from sm.events import ClientsToldToReregister, LinkLost, SetRefused, SweepEnded, Unsettled
from sm.settings import SubnetSettings
from sm.subnet import MANAGEMENT_PORT, End
from tests.sm.managed import Managed
from tests.sm.multicast.members import BROADCAST, gid_of, join, reached
from tests.sm.sa.test_subscriptions import ALL
from tests.sm.sa_client import SaClient, unpacked
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, star
from tests.sm.test_election import Asked, Two
from wire.mad import MadMethod, MadStatus, mad_data
from wire.notice import TrapNumber
from wire.port_info import NO_CHANGE, PORT_INFO, CapabilityMask
from wire.sa import SA_RECORDS, SaAttribute, SaMethod, SaStatus
from wire.sma import SmaAttribute, SMControl, SMState

ABLE = CapabilityMask.IS_CLIENT_REREGISTRATION_SUPPORTED
FIRST, SECOND, SWITCH = End(HOST_GUID, 1), End(HOST_GUID + 4, 1), End(SWITCH_GUID, MANAGEMENT_PORT)
GUIDS = HOST_GUID + 1, HOST_GUID + 5
SERVICE = {"service_id": 7, "service_gid": gid_of(GUIDS[1])}
SETTINGS = SubnetSettings(light_sweep_period=100_000)


def is_told(smp):
    """Whether this sets a port's ClientReregister; it sets nothing of its link."""
    if (smp.method, smp.attribute_id) != (MadMethod.SET, SmaAttribute.PORT_INFO):
        return False
    info = PORT_INFO.unpack(mad_data(smp))
    if info.client_reregister:
        assert (info.port_state, info.port_physical_state, info.link_width_enabled) == (NO_CHANGE,) * 3
    return bool(info.client_reregister)


class Told:
    """How often each port was set ClientReregister."""

    def __init__(self, fabric):
        self.ends = Counter()
        fabric.on_request = self.note

    def note(self, arrival, smp):
        if is_told(smp):
            self.ends[SWITCH if arrival.guid == SWITCH_GUID else arrival] += 1

    def taken(self):
        """What was noted; it is forgotten."""
        ends, self.ends = self.ends, Counter()
        return dict(ends)


def sweep(up):
    """Has it look at the whole subnet again."""
    up.story.clear()
    up.fabric.fall_back(FIRST)
    up.fabric.run(lambda: any(one.heavy for one in up.told(SweepEnded)) and up.manager.resting)


def test_ports_that_can_hear_it_are_told_once():
    up = Managed(star(3), SETTINGS)
    for end in (FIRST, SWITCH):
        up.fabric.nodes[end.guid].change(end.port, capability_mask=ABLE)
    told = Told(up.fabric)
    up.bring_up()
    assert told.taken() == {FIRST: 1, SWITCH: 1}
    assert up.told(ClientsToldToReregister) == [ClientsToldToReregister(2)]
    up.check()
    sweep(up)
    assert told.taken() == {}


def test_a_port_that_is_new_or_was_reset_is_told_and_no_other():
    up = Managed(star(), SETTINGS, capabilities=ABLE).bring_up()
    told = Told(up.fabric)
    at_second = up.subnet.peer(SECOND)
    up.fabric.cut(SECOND)
    up.after(LinkLost)
    assert told.taken() == {}
    up.fabric.join(SECOND, at_second)
    up.after(ClientsToldToReregister)
    assert told.taken() == {SECOND: 1}
    up.fabric.add(SECOND.guid)
    up.fabric.trained(SECOND)
    up.after(ClientsToldToReregister)
    assert told.taken() == {SECOND: 1}


def test_a_port_that_had_another_master_is_told():
    up = Managed(star(), SETTINGS, capabilities=ABLE).bring_up()
    told = Told(up.fabric)
    up.fabric.nodes[SECOND.guid].change(1, master_sm_lid=9)
    sweep(up)
    assert told.taken() == {SECOND: 1}


def test_one_that_is_handed_another_subnet_while_it_is_the_master_tells_all():
    up = Managed(star(), SETTINGS, capabilities=ABLE).bring_up()
    told = Told(up.fabric)
    asked = Asked(up.manager)
    assert asked.ask(MadMethod.SET, SMControl.HANDOVER, sm_state=SMState.MASTER) == (0, SMState.MASTER)
    up.after(ClientsToldToReregister)
    assert told.taken() == {FIRST: 1, SECOND: 1, SWITCH: 1}


def test_one_that_stands_by_tells_nobody():
    two = Two(4, 3, capabilities=ABLE)
    told = Told(two.fabric)
    two.until(SMState.MASTER, SMState.STANDBY)
    assert told.taken() == {}


def register(up):
    """Both hosts join a group; the second one offers a service, and wants to hear of the first one's port."""
    for guid in GUIDS:
        assert join(up, guid, BROADCAST).status == MadStatus.OK
    client = SaClient(up, up.manager.lids[GUIDS[1]].first)
    assert client.ask(SaMethod.SET, SaAttribute.SERVICE_RECORD, **SERVICE).status == MadStatus.OK
    assert client.ask(SaMethod.SET, SaAttribute.INFORM_INFO, subscribe=1, **ALL).status == MadStatus.OK
    return client


@pytest.mark.parametrize("dies", [False, True])
def test_who_registers_again_when_a_new_master_says_so_is_known_to_it(dies):
    two = Two(4 if dies else 3, 3 if dies else 4, prepare=register, capabilities=ABLE)
    assert reached(two.up, GUIDS[0]) == [GUIDS[1]]
    told = Told(two.fabric)
    if dies:
        two.until(SMState.MASTER, SMState.STANDBY)
        del two.fabric.managers[two.up.origin]
    two.fabric.run(lambda: two.second.state == SMState.MASTER and two.second.resting)
    assert told.taken() == {FIRST: 1, SECOND: 1, SWITCH: 1}
    client = SaClient(two.up, two.up.manager.lids[GUIDS[1]].first)
    assert client.ask(SaMethod.GET, SaAttribute.SERVICE_RECORD, service_id=7).status == SaStatus.NO_RECORDS
    client = register(two.up)
    two.fabric.run(lambda: two.second.resting)
    assert reached(two.up, GUIDS[0]) == [GUIDS[1]]
    assert client.ask(SaMethod.GET, SaAttribute.SERVICE_RECORD, service_id=7).records[0].service_id == 7
    two.fabric.cut(FIRST)
    two.fabric.run(lambda: len(client.reports) > 1 and two.second.resting)
    assert client.reports[-1].trap_number == TrapNumber.GID_OUT_OF_SERVICE


def test_one_that_is_the_master_again_tells_all_again():
    two = Two(3, 4, capabilities=ABLE)
    two.until(SMState.STANDBY, SMState.MASTER)
    told = Told(two.fabric)
    del two.fabric.managers[two.at]
    two.fabric.run(lambda: two.up.manager.state == SMState.MASTER and two.up.manager.resting)
    assert told.taken() == {FIRST: 1, SECOND: 1, SWITCH: 1}


def test_the_subnet_administrator_answers_who_was_just_told():
    up = Managed(star(), SETTINGS, capabilities=ABLE)
    clients = []

    def subscribe(arrival, smp):
        if is_told(smp) and arrival == SECOND:
            clients.append(SaClient(up, up.fabric.nodes[arrival.guid].ports[arrival.port].lid))
            clients[-1].request(SaMethod.SET, SaAttribute.INFORM_INFO, subscribe=1, **ALL)

    up.fabric.on_request = subscribe
    up.bring_up()
    (client,) = clients
    up.fabric.run(lambda: client.message is not None)
    assert unpacked(client.message, SA_RECORDS[SaAttribute.INFORM_INFO]).status == MadStatus.OK


@pytest.mark.parametrize(
    ("is_silent", "event", "complete"), [(True, Unsettled, [False] * 3), (False, SetRefused, [True])]
)
def test_a_port_that_does_not_take_it_is_told_in_a_later_sweep(is_silent, event, complete):
    up = Managed(star(), SETTINGS, capabilities=ABLE)
    node = up.fabric.nodes[SECOND.guid]

    def is_hindered(arrival, smp):
        return is_told(smp) and arrival == SECOND

    def hinder(arrival, smp):
        node.silent = is_silent and is_hindered(arrival, smp)

    up.fabric.on_request = hinder
    up.fabric.refuses = lambda arrival, smp: MadStatus.INVALID_ATTRIBUTE_VALUE * is_hindered(arrival, smp)
    up.bring_up()
    assert up.told(event)
    assert [sweep.complete for sweep in up.told(SweepEnded)] == complete
    assert up.told(ClientsToldToReregister) == [ClientsToldToReregister(2)]
    told = Told(up.fabric)
    node.silent, up.fabric.refuses = False, lambda arrival, smp: 0
    sweep(up)
    assert told.taken() == {SECOND: 1}
