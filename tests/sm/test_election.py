"""Of two Subnet Managers one is the master; they hand over, and one takes over from another that is silent."""

from collections.abc import Callable
from typing import Any

import pytest

from sm.congestion_options import parse_congestion_options
from sm.events import Event
from sm.mad_client import MadAddress, MadClient
from sm.settings import SubnetSettings
from sm.subnet_manager import SubnetManager
from tests.sm.cc_agents import CcAgents
from tests.sm.managed import Managed
from tests.sm.subnets import star
from wire.mad import MadMethod, MadStatus, mad_data
from wire.sma import SM_INFO, SmaAttribute, SMControl, SMState
from wire.smp import smp_request, unpack_smp

POLLING = 1 << 18


class Two:
    """A star of two hosts with a Subnet Manager each; the first has brought the subnet up and has the lower GUID."""

    def __init__(
        self,
        first: int,
        second: int,
        *,
        prepare: Callable[[Managed], None] = lambda up: None,
        capabilities: int = 0,
        **more: Any,
    ) -> None:
        """Their priorities, what is done before the second one comes, and more settings of the first one."""
        settings = SubnetSettings(priority=first, polling_period=POLLING, **more)
        self.up = Managed(star(), settings, mft_cap=64, capabilities=capabilities)
        self.agents = CcAgents(self.up.fabric)
        self.up.bring_up()
        prepare(self.up)
        self.fabric = self.up.fabric
        self.told: list[Event] = []
        mads = MadClient()
        settings = SubnetSettings(priority=second, polling_period=POLLING)
        self.second = SubnetManager(mads, settings, listener=lambda cycle, event: self.told.append(event))
        self.at = next(end for end, _port in self.up.subnet.reachable_end_ports if end.port and end != self.up.origin)
        self.fabric.add_manager(self.at, mads)
        self.second.start()

    @property
    def states(self) -> tuple[SMState, SMState]:
        return self.up.manager.state, self.second.state

    def until(self, first: SMState, second: SMState) -> None:
        self.fabric.run(lambda: self.states == (first, second) and self.second.resting and self.up.manager.resting)

    @property
    def master_lid(self) -> int:
        """Where the second host's port says that the master is."""
        return self.fabric.nodes[self.at.guid].ports[self.at.port].master_sm_lid


def test_alone_it_is_the_master():
    assert Managed(star()).bring_up().manager.state == SMState.MASTER


def test_of_equal_priority_the_lower_guid_is_the_master():
    two = Two(3, 3)
    two.until(SMState.MASTER, SMState.STANDBY)
    before = two.fabric.now
    two.fabric.run(lambda: two.fabric.now > before + 20 * POLLING)
    assert two.states == (SMState.MASTER, SMState.STANDBY)


def test_one_that_stands_by_sets_nothing():
    two = Two(3, 3)
    two.until(SMState.MASTER, SMState.STANDBY)
    assert not any(
        method == MadMethod.SET and attribute != SmaAttribute.SWITCH_INFO for method, attribute in two.second.mads.sent
    )


def test_a_master_hands_over_to_one_of_higher_priority():
    two = Two(3, 4)
    two.until(SMState.STANDBY, SMState.MASTER)
    assert two.master_lid == two.fabric.nodes[two.at.guid].ports[two.at.port].lid
    assert two.up.mads.sent[MadMethod.SET, SmaAttribute.SM_INFO] == 1
    assert two.second.mads.sent[MadMethod.SET, SmaAttribute.SM_INFO] == 1, "the acknowledgement"


def test_lids_stay_when_the_master_changes():
    two = Two(3, 4)
    before = dict(two.up.manager.lids)
    two.until(SMState.STANDBY, SMState.MASTER)
    assert two.second.lids == before


def test_one_that_stands_by_takes_over_from_a_master_that_is_silent():
    two = Two(4, 3)
    two.until(SMState.MASTER, SMState.STANDBY)
    del two.fabric.managers[two.up.origin]
    two.fabric.run(lambda: two.second.state == SMState.MASTER and two.second.resting)
    assert two.master_lid == two.fabric.nodes[two.at.guid].ports[two.at.port].lid


def test_one_that_is_the_master_again_sets_what_another_may_have_set_otherwise():
    two = Two(3, 4, congestion_control=parse_congestion_options("congestion_control TRUE", "opensm.conf"))
    two.until(SMState.STANDBY, SMState.MASTER)
    before = {(held.end, held.attribute) for held in two.agents.sets}
    two.agents.sets.clear()
    del two.fabric.managers[two.at]
    two.fabric.run(lambda: two.up.manager.state == SMState.MASTER and two.up.manager.resting)
    assert {(held.end, held.attribute) for held in two.agents.sets} == before


class Asked:
    """A Subnet Manager that is asked by LID route."""

    def __init__(self, manager: SubnetManager) -> None:
        self.manager = manager

    def ask(self, method: MadMethod, control: int = 0, **info: int) -> tuple[int, SMState]:
        smp = smp_request(method, SmaAttribute.SM_INFO, control, SM_INFO.pack(info), transaction_id=77)
        mads = self.manager.mads
        mads.received(smp.pack(), mads.now, MadAddress(9, 1))
        (answer,) = (unpack_smp(out.mad) for out in mads.poll(mads.now) if out.dlid == 9)
        assert answer.method == MadMethod.GET_RESP
        return answer.status, SMState(SM_INFO.unpack(mad_data(answer)).sm_state)


def test_sm_info_tells_state_priority_guid_and_a_count_that_moves():
    up = Managed(star(), SubnetSettings(priority=5)).bring_up()
    mads, counts = up.mads, []
    for _time in range(2):
        mads.received(
            smp_request(MadMethod.GET, SmaAttribute.SM_INFO, transaction_id=1).pack(), mads.now, MadAddress(3, 1)
        )
        (out,) = mads.poll(mads.now)
        info = SM_INFO.unpack(mad_data(unpack_smp(out.mad)))
        assert (info.priority, info.sm_state) == (5, SMState.MASTER)
        assert info.guid == up.subnet.nodes[up.origin.guid].end_ports[up.origin.port].guid
        counts.append(info.act_count)
    assert counts[1] > counts[0] > 0


def test_a_master_takes_no_commands_but_a_handover():
    asked = Asked(Managed(star()).bring_up().manager)
    for control in (SMControl.DISABLE, SMControl.STANDBY, SMControl.DISCOVER, 9):
        status, state = asked.ask(MadMethod.SET, control, sm_state=SMState.MASTER)
        assert (status, state) == (MadStatus.INVALID_ATTRIBUTE_VALUE, SMState.MASTER)


@pytest.mark.parametrize("sender", [SMState.STANDBY, SMState.DISCOVERING, SMState.NOT_ACTIVE])
def test_only_a_master_commands(sender):
    two = Two(4, 3)
    two.until(SMState.MASTER, SMState.STANDBY)
    status, state = Asked(two.second).ask(MadMethod.SET, SMControl.HANDOVER, sm_state=sender)
    assert (status, state) == (MadStatus.INVALID_ATTRIBUTE_VALUE, SMState.STANDBY)


def test_one_that_was_disabled_waits_until_it_may_stand_by_again():
    two = Two(4, 3)
    two.until(SMState.MASTER, SMState.STANDBY)
    asked = Asked(two.second)
    assert asked.ask(MadMethod.SET, SMControl.DISABLE, sm_state=SMState.MASTER) == (0, SMState.NOT_ACTIVE)
    assert asked.ask(MadMethod.SET, SMControl.STANDBY, sm_state=SMState.MASTER) == (0, SMState.STANDBY)
