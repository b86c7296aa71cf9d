"""The Subnet Management Interface (docs/management.md, section 3), row by row."""

import pytest

from model.management.smi import FROM_HOST, TO_AGENT, TO_HOST, TO_LINK, Toward, Way, pass_on, port, route
from wire.codes import LID_PERMISSIVE
from wire.headers import LRH
from wire.mad import MadMethod
from wire.sma import SmaAttribute
from wire.smp import initial_port, return_port, smp_request

LID = 40
PATH = (3, 1, 2)
NOWHERE = Way(Toward.NOWHERE)
LOCAL = {"dlid": LID_PERMISSIVE, "slid": LID_PERMISSIVE}
ROUTED = {"dlid": 20, "slid": 30}
METHOD = {0: MadMethod.GET, 1: MadMethod.GET_RESP}


def directed(d, hop, hops=3, **fields):
    smp = smp_request(METHOD[d], SmaAttribute.NODE_INFO, transaction_id=1, path=PATH)
    back = int.from_bytes(bytes([0, 4, 5, 6]) + bytes(60), "big")
    return smp.replace(d=d, hop_pointer=hop, hop_count=hops, return_path=back, **fields)


def send(smp, arrival=2, *, is_switch=True, lid=LID, lmc=0, **lrh):
    return pass_on(smp, LRH.record(**{**LOCAL, **lrh}), arrival, is_switch=is_switch, lid=lid, lmc=lmc)


def at_switch(smp, **lrh):
    return send(smp, 2, **lrh)


def at_adapter(smp, **lrh):
    return send(smp, 1, is_switch=False, **lrh)


def from_host(smp, **lrh):
    return send(smp, FROM_HOST, is_switch=False, **lrh)


ANYWHERE = pytest.mark.parametrize("came", [at_switch, at_adapter, from_host])
BY_LINK = pytest.mark.parametrize("came", [at_switch, at_adapter])


# Outgoing, D = 0.


@ANYWHERE
@pytest.mark.parametrize("d", [0, 1])
def test_more_than_63_hops_are_too_many(came, d):
    assert came(directed(d, 0, 64)).way == NOWHERE


def test_63_hops_are_not_too_many():
    passage = at_switch(smp := directed(0, 63, 63))
    assert passage.way == TO_AGENT
    assert return_port(smp.replace(**passage.smp), 63) == 2


@ANYWHERE
def test_no_hops_lead_to_the_agent_at_once(came):
    assert came(directed(0, 0, 0)) == (TO_AGENT, {"hop_pointer": 1}, {})


def test_a_host_s_smp_leaves_by_the_first_port_of_its_path():
    smp = directed(0, 0)
    assert from_host(smp, **ROUTED) == (port(3), {"hop_pointer": 1}, LOCAL)


def test_a_host_s_smp_with_a_lid_routed_part_first_leaves_as_it_is():
    assert from_host(directed(0, 0, dr_slid=30), **ROUTED) == (TO_LINK, {}, {})


@pytest.mark.parametrize("hop", [1, 2, 3, 4, 5])
def test_a_host_sends_nothing_that_is_under_way(hop):
    assert from_host(directed(0, hop)).way == NOWHERE


def test_the_directed_part_begins_at_the_switch_that_the_lid_led_to():
    assert at_switch(directed(0, 0), **ROUTED) == (port(3), {"hop_pointer": 1}, LOCAL)


def test_an_smp_that_no_lid_led_to_a_switch_does_not_begin_there():
    assert at_switch(directed(0, 0)).way == NOWHERE


def test_the_directed_part_does_not_begin_at_an_adapter():
    assert at_adapter(directed(0, 0), **ROUTED).way == NOWHERE


@pytest.mark.parametrize("hop", [1, 2])
def test_a_switch_on_the_path_writes_down_the_arrival_and_sends_on(hop):
    passage = at_switch(smp := directed(0, hop))
    assert passage.way == port(PATH[hop])
    assert passage.smp["hop_pointer"] == hop + 1
    assert passage.lrh == LOCAL
    after = smp.replace(**passage.smp)
    assert return_port(after, hop) == 2
    assert [return_port(after, i) for i in (1, 2, 3) if i != hop] == [3 + i for i in (1, 2, 3) if i != hop]


@pytest.mark.parametrize("hop", [1, 2])
def test_an_adapter_is_not_on_a_path_but_at_its_end(hop):
    assert at_adapter(directed(0, hop)).way == NOWHERE


@pytest.mark.parametrize(("came", "arrival"), [(at_switch, 2), (at_adapter, 1)])
def test_the_last_hop_leads_to_the_agent(came, arrival):
    passage = came(smp := directed(0, 3))
    assert passage.way == TO_AGENT
    assert passage.lrh == {}
    after = smp.replace(**passage.smp)
    assert after.hop_pointer == 4
    assert return_port(after, 3) == arrival


def test_where_a_lid_routed_part_follows_the_last_switch_routes():
    passage = at_switch(smp := directed(0, 3, dr_dlid=50))
    assert passage.way == route(50)
    assert passage.lrh == {"dlid": 50, "slid": LID}
    assert return_port(smp.replace(**passage.smp), 3) == 2
    assert passage.smp["hop_pointer"] == 4


def test_a_lid_routed_part_does_not_follow_an_adapter():
    assert at_adapter(directed(0, 3, dr_dlid=50)).way == NOWHERE


@BY_LINK
def test_an_smp_at_the_end_of_its_lid_routed_part_leads_to_the_agent(came):
    assert came(directed(0, 4, dr_dlid=50), **ROUTED) == (TO_AGENT, {}, {})


@ANYWHERE
@pytest.mark.parametrize("hop", [5, 255])
def test_a_hop_pointer_beyond_the_path_leads_nowhere(came, hop):
    assert came(directed(0, hop)).way == NOWHERE


# Returning, D = 1.


def test_a_host_s_answer_leaves_by_the_return_path():
    assert from_host(directed(1, 4)) == (port(6), {"hop_pointer": 3}, LOCAL)


def test_a_host_s_answer_with_a_lid_routed_part_first_leaves_as_it_is():
    assert from_host(directed(1, 4, dr_dlid=50)) == (TO_LINK, {}, {})


@pytest.mark.parametrize("dr_dlid", [50, LID_PERMISSIVE])
@pytest.mark.parametrize(("hop", "hops"), [(0, 0), (1, 0), (0, 3), (1, 3), (3, 3), (5, 3)])
def test_a_host_sends_no_answer_that_is_under_way(hop, hops, dr_dlid):
    assert from_host(directed(1, hop, hops, dr_dlid=dr_dlid)).way == NOWHERE


def test_the_answer_of_one_hop():
    assert from_host(directed(1, 2, 1)) == (port(4), {"hop_pointer": 1}, LOCAL)
    assert from_host(directed(1, 2, 1, dr_dlid=50)) == (TO_LINK, {}, {})
    assert at_switch(directed(1, 2, 1), **ROUTED) == (port(4), {"hop_pointer": 1}, LOCAL)


def test_the_answer_of_no_hop_does_not_begin_a_directed_part():
    assert at_switch(directed(1, 1, 0, dr_slid=60), **ROUTED).way == route(60)


def test_an_answer_s_directed_part_begins_at_the_switch_that_the_lid_led_to():
    assert at_switch(directed(1, 4), **ROUTED) == (port(6), {"hop_pointer": 3}, LOCAL)


def test_an_answer_that_no_lid_led_to_a_switch_does_not_begin_there():
    assert at_switch(directed(1, 4)).way == NOWHERE


def test_an_answer_does_not_begin_at_an_adapter_s_link():
    assert at_adapter(directed(1, 4), **ROUTED).way == NOWHERE


@pytest.mark.parametrize("hop", [2, 3])
def test_an_answer_goes_back_hop_by_hop(hop):
    assert at_switch(directed(1, hop)) == (port(hop + 2), {"hop_pointer": hop - 1}, LOCAL)
    assert at_adapter(directed(1, hop)).way == NOWHERE


def test_an_answer_is_back_at_its_host():
    assert at_adapter(directed(1, 1)) == (TO_HOST, {"hop_pointer": 0}, {})


def test_a_switch_has_no_host_to_take_an_answer():
    assert at_switch(directed(1, 1)).way == NOWHERE
    assert at_switch(directed(1, 0)).way == NOWHERE


def test_an_answer_whose_way_back_ends_in_a_lid_routed_part_is_routed():
    passage = at_switch(directed(1, 1, dr_slid=60))
    assert passage == (route(60), {"hop_pointer": 0}, {"dlid": 60, "slid": LID})


def test_an_adapter_does_not_route_an_answer():
    assert at_adapter(directed(1, 1, dr_slid=60)).way == NOWHERE


def test_an_answer_at_the_end_of_its_lid_routed_part_is_its_host_s():
    assert at_adapter(directed(1, 0, dr_slid=60), **ROUTED) == (TO_HOST, {}, {})


@BY_LINK
def test_an_answer_beyond_its_path_leads_nowhere(came):
    assert came(directed(1, 5)).way == NOWHERE


# LID-routed.


def lid_routed(method=MadMethod.GET, attribute=SmaAttribute.NODE_INFO):
    return smp_request(method, attribute, transaction_id=1)


@BY_LINK
def test_a_lid_routed_smp_from_a_link_leads_to_the_agent(came):
    assert came(lid_routed(), **ROUTED) == (TO_AGENT, {}, {})


@pytest.mark.parametrize(
    ("dlid", "lid", "lmc", "is_own"), [(40, 40, 0, 1), (41, 40, 0, 0), (41, 40, 1, 1), (0, 0, 0, 0)]
)
def test_a_host_s_lid_routed_smp_stays_if_it_is_for_its_own_port(dlid, lid, lmc, is_own):
    way = TO_AGENT if is_own else TO_LINK
    assert from_host(lid_routed(), dlid=dlid, lid=lid, lmc=lmc) == (way, {}, {})


# What the agent does not work on.


@pytest.mark.parametrize("method", list(MadMethod))
def test_the_agent_works_on_get_set_and_trap_repress(method):
    is_agent_s = method in (MadMethod.GET, MadMethod.SET, MadMethod.TRAP_REPRESS)
    assert at_switch(lid_routed(method)).way == (TO_AGENT if is_agent_s else NOWHERE)
    assert at_adapter(lid_routed(method)).way == (TO_AGENT if is_agent_s else TO_HOST)


def test_sm_info_is_an_adapter_s_host_s():
    assert at_adapter(lid_routed(attribute=SmaAttribute.SM_INFO)).way == TO_HOST
    assert at_switch(lid_routed(attribute=SmaAttribute.SM_INFO)).way == TO_AGENT


def test_what_goes_to_the_host_has_made_its_last_hop():
    smp = directed(0, 3, attribute_id=SmaAttribute.SM_INFO)
    passage = at_adapter(smp)
    assert passage.way == TO_HOST
    assert passage.smp["hop_pointer"] == 4


# Whole routes.


class Line:
    """An adapter, switches with LIDs 11, 12, ... from their port 1 to the next one's port 2, an adapter."""

    def __init__(self, switches):
        self.switches = switches

    def travel(self, smp, lrh, node, arrival):
        """Go on until an agent or host takes it; returns the SMP, its LRH and the node, 0 being the first adapter."""
        end = self.switches + 1
        while True:
            is_switch = 0 < node < end
            passage = pass_on(smp, lrh, arrival, is_switch=is_switch, lid=10 + node, lmc=0)
            smp, lrh = smp.replace(**passage.smp), lrh.replace(**passage.lrh)
            way = passage.way
            if way.toward not in (Toward.PORT, Toward.ROUTE, Toward.LINK):
                return smp, lrh, node, way
            if way.toward == Toward.PORT:
                node, arrival = self.cross(node, way.number)
            elif way.toward == Toward.LINK:
                node, arrival = self.cross(node, 1)
            else:
                node, arrival = self.routed(node, lrh.dlid)
            while lrh.dlid != LID_PERMISSIVE and lrh.dlid != 10 + node:
                node, arrival = self.routed(node, lrh.dlid)

    def cross(self, node, out):
        forward = node == 0 or (node <= self.switches and out == 1)
        node += 1 if forward else -1
        return node, 2 if forward and node <= self.switches else 1

    def routed(self, node, dlid):
        return self.cross(node, 1 if dlid > 10 + node else 2)


@pytest.mark.parametrize("switches", [1, 2, 5])
def test_an_smp_finds_its_way_to_the_other_end_and_back(switches):
    line = Line(switches)
    path = (1,) * (switches + 1)
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=path)
    smp, lrh, node, way = line.travel(smp, LRH.record(**LOCAL), 0, FROM_HOST)
    assert (node, way) == (switches + 1, TO_AGENT)
    assert [return_port(smp, hop) for hop in range(1, switches + 2)] == [2] * switches + [1]
    answer = smp.replace(d=1, method=MadMethod.GET_RESP)
    smp, _, node, way = line.travel(answer, lrh, node, FROM_HOST)
    assert (node, way, smp.hop_pointer) == (0, TO_HOST, 0)


def test_an_smp_may_begin_and_end_its_way_by_lids():
    line = Line(4)
    smp = smp_request(MadMethod.GET, SmaAttribute.SM_INFO, transaction_id=1, path=(1, 1), dr_slid=10, dr_dlid=15)
    smp, lrh, node, way = line.travel(smp, LRH.record(dlid=12, slid=10), 0, FROM_HOST)
    assert (node, way) == (5, TO_HOST)
    assert (smp.hop_pointer, lrh.slid) == (3, 14), "the directed part was from switch 2 to switch 4"
    assert [return_port(smp, hop) for hop in (1, 2)] == [2, 2]
    assert initial_port(smp, 1) == 1
    answer = smp.replace(d=1, method=MadMethod.GET_RESP)
    smp, lrh, node, way = line.travel(answer, LRH.record(dlid=lrh.slid, slid=15), 5, FROM_HOST)
    assert (node, way, smp.hop_pointer) == (0, TO_HOST, 0)
    assert lrh == LRH.record(dlid=10, slid=12)
