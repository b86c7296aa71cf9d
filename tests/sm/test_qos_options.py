"""Quality of service from OpenSM's file of options."""

import pytest

from sm.options_file import OptionsError
from sm.qos_options import QosOptions, parse_qos_options, qos_policy_file
from wire.node_info import NodeType
from wire.vl_arbitration import VlArbitration, VlWeight

TEXT = """
# Written by opensm -c
qos TRUE
sm_priority 14
qos_max_vls 4
qos_high_limit 255
qos_vlarb_high 0:64,1:32  # two of them
qos_vlarb_low 2:1,3:(null)
qos_sl2vl (null)
qos_ca_max_vls 0
qos_swe_vlarb_high (null)
"""


def test_options_of_all_ports_are_taken_and_others_left_to_opensm():
    lists = VlArbitration((VlWeight(0, 64), VlWeight(1, 32)), (VlWeight(2, 1), VlWeight(3, 2)), 255)
    # The SL to VL is OpenSM's own, where the file says nothing.
    expected = QosOptions(4, (*range(15), 7), lists)
    assert parse_qos_options(TEXT.replace("3:(null)", "3:2"), "opensm.conf") == dict.fromkeys(NodeType, expected)


def test_options_of_the_ports_of_some_nodes_come_before_those_of_all_wherever_they_stand():
    kinds = "qos_ca_vlarb_low 3:3\nqos_swe_high_limit 9\nqos_rtr_max_vls 2\nqos_ca_sl2vl " + ",".join("1" * 16)
    text = f"{kinds}\nqos_sw0_high_limit 77\nqos_vlarb_low 1:1\nqos_high_limit 5\nqos_max_vls 8"
    found = parse_qos_options(text, "opensm.conf")
    said = {
        node_type: (one.max_vls, set(one.sl_to_vl), one.vl_arbitration.low, one.vl_arbitration.high_limit)
        for node_type, one in found.items()
    }
    assert said == {
        NodeType.CA: (8, {1}, (VlWeight(3, 3),), 5),
        NodeType.SWITCH: (8, set(range(15)), (VlWeight(1, 1),), 9),
        NodeType.ROUTER: (2, set(range(15)), (VlWeight(1, 1),), 5),
    }


def test_an_option_that_is_unset_again_is_that_of_all_ports():
    text = "qos_ca_high_limit 3\nqos_high_limit 5\nqos_ca_high_limit -1\n"
    assert parse_qos_options(text, "opensm.conf") == parse_qos_options("qos_high_limit 5", "opensm.conf")


def test_what_opensm_writes_of_options_that_nobody_has_set_is_its_defaults():
    unset = [
        f"qos_{ports}{option}"
        for ports in ("", "ca_", "sw0_", "swe_", "rtr_")
        for option in ("max_vls 0", "high_limit -1", "vlarb_high (null)", "vlarb_low (null)", "sl2vl (null)")
    ]
    assert parse_qos_options("\n".join(unset), "opensm.conf") == parse_qos_options("", "opensm.conf")


def test_a_policy_has_a_file_of_its_own():
    assert qos_policy_file("qos TRUE\nqos_policy_file a.conf\nqos_policy_file b.conf # mine") == "b.conf"
    assert qos_policy_file("qos_policy_file a.conf\nqos_policy_file (null)") is None
    assert qos_policy_file(TEXT) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("qos_max_vls 16", "qos_max_vls: 16: expected 1..15"),
        ("qos_high_limit -2", "qos_high_limit: -2: expected 0..255"),
        ("qos_max_vls\t16", "qos_max_vls: 16: expected 1..15"),
        (f"qos_vlarb_low {'0:1,' * 65}", "qos_vlarb_low: 65 entries, expected at most 64"),
        ("qos_sl2vl 0,1,2", "qos_sl2vl: 3 VLs, expected 16"),
        ("qos_vlarb_low 0:4,15:1", "qos_vlarb_low: 15:1: expected VL:WEIGHT"),
        ("qos_vlarb_high 0-4", "qos_vlarb_high: 0-4: expected VL:WEIGHT"),
        ("qos_ca_max_vls 16", "qos_ca_max_vls: 16: expected 1..15"),
        ("qos_sw0_sl2vl 1", "qos_sw0_sl2vl: 1 VLs, expected 16"),
    ],
)
def test_what_is_not_allowed_is_told_with_its_line(line, reason):
    with pytest.raises(OptionsError) as error:
        parse_qos_options(f"qos TRUE\n{line}\n", "my.conf")
    assert str(error.value).startswith(f"my.conf:2: {reason}")
