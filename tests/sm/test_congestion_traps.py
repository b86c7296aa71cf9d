"""Traps about wrong CC_Keys: they are told, and end by TrapRepress."""

import pytest

from sm.congestion_options import parse_congestion_options
from sm.events import SweepStarted
from sm.mad_client import MadAddress
from sm.settings import SubnetSettings
from sm.trap_events import WrongKeyReported
from tests.sm.cc_agents import CcAgents
from tests.sm.managed import Managed
from tests.sm.subnets import star
from wire.codes import QP_GSI
from wire.congestion_control import CC_DATA_BYTES, CC_NOTICE, CcAttribute, cc_request
from wire.mad import MadMethod, MgmtClass
from wire.notice import ProducerType, TrapNumber, details_of, notice

OWN, ISSUER, GUILTY = 1, 3, 2
WITH_KEY = parse_congestion_options("congestion_control TRUE\ncc_key 0x17\n", "opensm.conf")
WRONG_SET = notice(
    TrapNumber.BAD_CC_KEY,
    ProducerType.CA,
    ISSUER,
    slid=GUILTY,
    method=MadMethod.SET,
    attribute_id=CcAttribute.CONGESTION_CONTROL_TABLE,
    attribute_modifier=1,
    cc_key=0x18,
)
FROM_ISSUER = MadAddress(ISSUER, OWN, QP_GSI, 2)


def heard(said, options=WITH_KEY):
    """A Subnet Manager that has got a trap, and what has left by its QP1."""
    up = Managed(star(), SubnetSettings(light_sweep_period=None, congestion_control=options))
    agents = CcAgents(up.fabric)
    up.bring_up()
    up.story.clear()
    trap = cc_request(MadMethod.TRAP, CcAttribute.NOTICE, CC_NOTICE.pack(said), transaction_id=77).pack()
    up.fabric.at(10, lambda: up.mads.received(trap, up.fabric.now, FROM_ISSUER))
    up.fabric.at(1000, lambda: agents.represses.append(None))
    up.fabric.run(lambda: None in agents.represses)
    agents.represses.remove(None)
    assert up.told(SweepStarted) == []
    return up, agents


@pytest.mark.parametrize(("options", "key"), [(WITH_KEY, 0x17), (None, 0)])
def test_a_trap_is_told_and_repressed(options, key):
    up, agents = heard(WRONG_SET, options)
    (told,) = up.told(WrongKeyReported)
    assert (told.number, told.lid, told.details) == (0, ISSUER, details_of(WRONG_SET))
    assert str(told) == ("hears by trap 0 from LID 3: CC_Key 0x18 in a Set(CongestionControlTable) block 1 from LID 2")
    ((out, repress),) = agents.represses
    assert (out.slid, out.dlid, out.qpn, out.sl) == (OWN, ISSUER, QP_GSI, 2)
    assert (repress.mgmt_class, repress.class_version) == (MgmtClass.CONGESTION_CONTROL, 2)
    assert (repress.method, repress.attribute_id, repress.transaction_id) == (
        MadMethod.TRAP_REPRESS,
        CcAttribute.NOTICE,
        77,
    )
    assert repress.cc_key == key
    assert repress.data.to_bytes(CC_DATA_BYTES, "big").startswith(CC_NOTICE.pack(WRONG_SET))


def test_a_trap_about_the_managers_own_repress_is_not_repressed_for_ever():
    said = notice(
        TrapNumber.BAD_CC_KEY,
        ProducerType.CA,
        ISSUER,
        slid=OWN,
        method=MadMethod.TRAP_REPRESS,
        attribute_id=CcAttribute.NOTICE,
        cc_key=0x17,
    )
    up, agents = heard(said)
    assert (up.told(WrongKeyReported), agents.represses) == ([], [])
