"""Congestion control of a fabric that is served: by ours and OpenSM's Subnet Manager, ibccquery and ibccconfig."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.reading import read_packets
from tests.ironband.served import TELL, managed, needs_programs, scripted, served
from wire.codes import P_KEY_DEFAULT, Q_KEY_GSI, QP_GSI
from wire.congestion_control import CC_CLASS_PORT_INFO, CC_CLASS_VERSION, CC_DATA_BYTES, CC_MAD, CcAttribute
from wire.layout import Record
from wire.mad import MadMethod, MgmtClass
from wire.mad_packet import gmp_of
from wire.packet import Packet, parse

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


def captured_mads(path: Path, method: MadMethod) -> Iterator[tuple[Packet, Record]]:
    """MADs of the class, and their packets."""
    for captured in read_packets(path):
        if captured.is_link:
            continue
        packet = parse(captured.data)
        try:
            mad = CC_MAD.unpack(gmp_of(packet))
        except ValueError:
            continue
        if mad.mgmt_class == MgmtClass.CONGESTION_CONTROL and mad.method == method:
            yield packet, mad


def sets(path: Path) -> dict[int, list[tuple[CcAttribute, int, int, int]]]:
    """What was asked to be set, by LID and in order: attribute, modifier, CC_Key, data."""
    found = defaultdict(list)
    for packet, mad in captured_mads(path, MadMethod.SET):
        found[packet.lrh.dlid].append((CcAttribute(mad.attribute_id), mad.attribute_modifier, mad.cc_key, mad.data))
    return dict(found)


def traps_to(lid: int, cc_key: int) -> tuple[CcAttribute, int, int, int]:
    """The Set by which our Subnet Manager, at a LID, lets a node's traps come to it; OpenSM sets none."""
    where_to = {"trap_lid": lid, "trap_qp": QP_GSI, "trap_q_key": Q_KEY_GSI, "trap_p_key": P_KEY_DEFAULT}
    data = CC_CLASS_PORT_INFO.pack(where_to, class_version=CC_CLASS_VERSION).ljust(CC_DATA_BYTES, b"\0")
    return CcAttribute.CLASS_PORT_INFO, 0, cc_key, int.from_bytes(data, "big")


@pytest.mark.parametrize("topology", ["star", pytest.param("fat_tree", marks=pytest.mark.deep)])
def test_our_manager_sets_what_opensm_sets_from_the_same_options(tmp_path, topology):
    (tmp_path / "cc.conf").write_text(OPTIONS)
    at = ["--capture-at", "H1:out"]
    managed("--qos", "cc.conf", "--capture", "ours.pcapng", *at, topology, "--", "true", cwd=tmp_path)
    served("--capture", "theirs.pcapng", *at, topology, "--", "sh", "-c", _OPENSM, cwd=tmp_path)
    # They may give out LIDs in another order.
    ours, theirs = (sorted(sets(tmp_path / f"{whose}.pcapng").values()) for whose in ("ours", "theirs"))
    assert ours == [[traps_to(1, 0x17), *of_lid] for of_lid in theirs]
    kinds = [[(attribute, modifier) for attribute, modifier, _key, _data in of_lid] for of_lid in theirs]
    table = CcAttribute.CONGESTION_CONTROL_TABLE
    assert [(CcAttribute.SWITCH_CONGESTION_SETTING, 0)] in kinds
    assert [(CcAttribute.CA_CONGESTION_SETTING, 0), (table, 0), (table, 1)] in kinds


def query(*lines: str, key: int = 0x17) -> str:
    """Shell commands that ask with a CC_Key."""
    return "\n".join(f"ibccquery -c {key:#x} {line}" for line in lines)


SETTINGS = query(
    "SwitchCongestionSetting 2",
    "SwitchPortCongestionSetting 2",
    *(f"{operation} {lid}" for lid in (1, 3) for operation in ("CACongestionSetting", "CongestionControlTable")),
    *(f"{operation} {lid}" for lid in (1, 2, 3) for operation in ("CongestionInfo", "CongestionKeyInfo")),
)
"""Of the hosts and the switch of `star`; the first host is where the programs are."""


@pytest.mark.parametrize("rtl", ["none", pytest.param("all", marks=[pytest.mark.slow, pytest.mark.deep])])
def test_what_ibccquery_reads_after_our_manager_it_reads_after_opensm(tmp_path, rtl):
    (tmp_path / "cc.conf").write_text(OPTIONS)
    ours = managed("--rtl", rtl, "--qos", "cc.conf", "star", "--", "sh", "-c", SETTINGS, cwd=tmp_path)
    theirs = served("--rtl", rtl, "star", "--", "sh", "-c", f"{_OPENSM}\n{SETTINGS}", cwd=tmp_path)
    assert "ERR" not in (tmp_path / "opensm.log").read_text()
    assert "sets congestion control of 1 switch and 2 ports of adapters" in ours.stderr
    assert ours.stdout == theirs.stdout
    read = values(ours.stdout)
    assert read["Control_Map"][0] == "0x00000015"
    assert int(read["Victim_Mask"][0], 16) == 0x1FE
    assert (read["Threshold"][0], read["Packet_Size"][0], read["Marking_Rate"]) == ("0x0c", "2", ["300"])
    assert read["Port"] == [str(port) for port in range(9)]
    assert read["Port_Control"] == ["0x0001"] * 2
    assert read["CCTI_Increase"] == ["4", *["0"] * 15] * 2
    assert read["CCTI_Min"] == ["0", "1", *["0"] * 14] * 2
    assert read["CCTI_Limit"] == ["99"] * 2
    assert read["CCT_Multiplier"][:100] == list(map(str, range(100)))
    assert read["CongestionInfo"] == ["0x00c0", "0x000e", "0x00c0"]


def values(text: str) -> dict[str, list[str]]:
    """What lines `NAME:....VALUE` say, by their names."""
    found = defaultdict(list)
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip("."):
            found[name].append(value.lstrip("."))
    return dict(found)


def test_what_ibccconfig_sets_ibccquery_reads(tmp_path):
    entries = " ".join(f"{entry % 4}:{entry}" for entry in range(64))
    said = scripted(
        tmp_path,
        ["--bring-up", "sm"],
        "star",
        {
            "switch": f"ibccconfig SwitchCongestionSetting 2 0x15 0x6 0x0 0xA 3 0 0:0 77\n"
            f"{query('SwitchCongestionSetting 2', key=0)}",
            "port": f"ibccconfig SwitchPortCongestionSetting 2 2 1 0 5 6 7\n"
            f"{query('SwitchPortCongestionSetting 2 2', 'SwitchPortCongestionSetting 2 1', key=0)}",
            "adapter": f"ibccconfig CACongestionSetting 3 0 0x5 150 2 3 4\n{query('CACongestionSetting 3', key=0)}",
            "table": f"ibccconfig CongestionControlTable 3 63 0 {entries}\n{query('CongestionControlTable 3', key=0)}",
            "key": """
                for lid in 2 3; do
                    ibccconfig CongestionKeyInfo $lid 0x17 1 0 0
                    ibccquery CongestionKeyInfo $lid 2> /dev/null || echo no answer: refused
                    ibccconfig -c 0x18 CACongestionSetting $lid 0 1 1 1 1 1 2> /dev/null || echo no answer: refused
                    ibccquery -c 0x17 CongestionKeyInfo $lid
                done""",
            "log": query("CongestionLog 2", "CongestionLog 3", "Timestamp 2", "Timestamp 3"),
        },
    )
    switch = values(said["switch"])
    assert (switch["Control_Map"], switch["Threshold"]) == (["0x00000015"], ["0x0a"])
    assert int(switch["Victim_Mask"][0], 16) == 0x6
    assert (switch["Packet_Size"], switch["Marking_Rate"]) == (["3"], ["77"])
    port = values(said["port"])
    assert (port["Valid"], port["Threshold"]) == (["1", "0"], ["0x05", "0x00"])
    assert (port["Packet_Size"], port["Cong_Parm_Marking_Rate"]) == (["6", "0"], ["7", "0"])
    adapter = values(said["adapter"])
    assert adapter["CCTI_Timer"] == ["150", "0", "150", *["0"] * 13], "the SLs of the control map"
    assert (adapter["CCTI_Increase"][2], adapter["Trigger_Threshold"][2], adapter["CCTI_Min"][2]) == ("2", "3", "4")
    table = values(said["table"])
    assert table["CCTI_Limit"] == ["63"]
    assert (table["CCT_Shift"], table["CCT_Multiplier"]) == (
        [str(entry % 4) for entry in range(64)],
        [str(entry) for entry in range(64)],
    )
    assert said["key"].count("refused") == 4
    key = values(said["key"])
    assert (key["CC_Key"], key["CC_KeyViolations"]) == (["0x0000000000000017"] * 2, ["6"] * 2), "each asks three times"
    log = values(said["log"])
    assert (log["LogType"], log["LogEventsCounter"], log["ThresholdEventCounter"]) == (["1", "2"], ["0"], ["0"])
    assert all(int(stamp) > 0 for stamp in (*log["CurrentTimeStamp"], *log["Timestamp"]))


def test_a_port_that_two_hosts_crowd_is_in_the_log_of_its_switch(tmp_path):
    options = "cc_sw_cong_setting_control_map 0x14\ncc_sw_cong_setting_threshold 15\n"
    (tmp_path / "cc.conf").write_text(f"congestion_control TRUE\n{options}")
    crowd = f"{TELL} flow H2 H1 0.9 1024; {TELL} flow H3 H1 0.9 1024; {TELL} run 0.2"
    script = f"({crowd}) > told; ibccquery CongestionLog 2"
    read = values(managed("--qos", "cc.conf", "fat_tree", "--", "sh", "-c", script, cwd=tmp_path).stdout)
    assert int(read["LogEventsCounter"][0]) > 100
    assert int(read["PortMap"][0], 16) == 1 << 1
    assert len(read["SLID"]) == 15
    assert (set(read["SLID"]), set(read["DLID"])) == ({"3", "9"}, {"1"}), "both hosts' packets, and nobody else's"


@pytest.mark.parametrize(
    ("lid", "wrong_set", "told"),
    [
        pytest.param(3, "CACongestionSetting 3 0 1 1 1 1 1", "CACongestionSetting", id="adapter"),
        pytest.param(1, "CACongestionSetting 1 0 1 1 1 1 1", "CACongestionSetting", id="own adapter"),
        pytest.param(2, "SwitchCongestionSetting 2 0x4 0 0 10 3 0 0:0 7", "SwitchCongestionSetting", id="switch"),
    ],
)
def test_our_manager_tells_of_wrong_cc_keys_and_ends_the_traps(tmp_path, lid, wrong_set, told):
    """Five milliseconds pass at the end, in which a trap that is not repressed comes 75 times: SubnetTimeOut is 4."""
    (tmp_path / "cc.conf").write_text("congestion_control TRUE\ncc_key 0x17\n")
    said = scripted(
        tmp_path,
        ["--bring-up", "sm", "--qos", "cc.conf", "--capture", "traps.pcapng", "--capture-at", "H1"],
        "star",
        {
            "key": f"ibccconfig -c 0x17 CongestionKeyInfo {lid} 0x17 1 0 0",
            "get": f"ibccquery CongestionInfo {lid}",
            "set": f"ibccconfig -c 0x18 {wrong_set}",
            "passed": f"{TELL} run 5",
            "good": query(f"CongestionKeyInfo {lid}"),
        },
    )
    assert "status" not in said["key"]
    assert all("status" in said[refused] for refused in ("get", "set"))
    key = values(said["good"])
    assert (key["CC_Key"], key["CC_KeyViolations"]) == (["0x0000000000000017"], ["6"]), "each asks three times"
    heard = re.findall(
        rf"Ironband's own Subnet Manager hears by trap 0 from LID {lid}: (.*) from LID 1$", said["all"], re.M
    )
    assert set(heard) == {"CC_Key 0x0 in a Get(CongestionInfo)", f"CC_Key 0x18 in a Set({told})"}
    assert len(heard) <= 6
    if lid == 1:
        return
    # What a port has for itself is on no link.
    traps, represses = (
        Counter(mad.transaction_id for _packet, mad in captured_mads(tmp_path / "traps.pcapng", method))
        for method in (MadMethod.TRAP, MadMethod.TRAP_REPRESS)
    )
    assert traps == represses
    assert set(traps.values()) == {1}
    assert max(traps) == 6
    assert len(traps) == len(heard)
