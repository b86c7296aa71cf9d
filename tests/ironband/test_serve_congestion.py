"""Congestion control of a fabric that is served: by ours and OpenSM's Subnet Manager, ibccquery and ibccconfig."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.capture.reading import read_packets
from tests.ironband.served import managed, needs_programs, scripted, served
from wire.congestion_control import CC_MAD, CcAttribute
from wire.mad import MadMethod, MgmtClass
from wire.mad_packet import gmp_of
from wire.packet import parse

pytestmark = needs_programs

OPTIONS = f"""
congestion_control TRUE
cc_key 0x17
cc_sw_cong_setting_control_map 0x15
cc_sw_cong_setting_victim_mask 0x1FE
cc_sw_cong_setting_threshold 0xC
cc_sw_cong_setting_packet_size 2
cc_sw_cong_setting_marking_rate 300
cc_ca_cong_setting_port_control 0x1
cc_ca_cong_setting_control_map 0x0003
cc_ca_cong_setting_ccti_timer 0 150
cc_ca_cong_setting_ccti_increase 0 4
cc_ca_cong_setting_trigger_threshold 0 8
cc_ca_cong_setting_ccti_min 1 1
cc_cct {",".join(f"{entry % 3}:{entry}" for entry in range(100))}
"""

_OPENSM = "opensm -o -F cc.conf -f opensm.log > opensm.txt"


def sets(path: Path) -> dict[int, list[tuple[CcAttribute, int, int, int]]]:
    """What was asked to be set, by LID and in order: attribute, modifier, CC_Key, data."""
    found = defaultdict(list)
    for captured in read_packets(path):
        if captured.is_link:
            continue
        packet = parse(captured.data)
        try:
            mad = CC_MAD.unpack(gmp_of(packet))
        except ValueError:
            continue
        if mad.mgmt_class == MgmtClass.CONGESTION_CONTROL and mad.method == MadMethod.SET:
            found[packet.lrh.dlid].append((CcAttribute(mad.attribute_id), mad.attribute_modifier, mad.cc_key, mad.data))
    return dict(found)


@pytest.mark.parametrize("topology", ["star", pytest.param("fat_tree", marks=pytest.mark.deep)])
def test_our_manager_sets_what_opensm_sets_from_the_same_options(tmp_path, topology):
    (tmp_path / "cc.conf").write_text(OPTIONS)
    at = ["--capture-at", "H1:out"]
    managed("--qos", "cc.conf", "--capture", "ours.pcapng", *at, topology, "--", "true", cwd=tmp_path)
    served("--capture", "theirs.pcapng", *at, topology, "--", "sh", "-c", _OPENSM, cwd=tmp_path)
    ours = sets(tmp_path / "ours.pcapng")
    assert ours == sets(tmp_path / "theirs.pcapng")
    kinds = [[(attribute, modifier) for attribute, modifier, _key, _data in of_lid] for of_lid in ours.values()]
    table = CcAttribute.CONGESTION_CONTROL_TABLE
    assert [(CcAttribute.SWITCH_CONGESTION_SETTING, 0)] in kinds
    assert [(CcAttribute.CA_CONGESTION_SETTING, 0), (table, 0), (table, 1)] in kinds
