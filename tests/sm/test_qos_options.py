"""Quality of service from OpenSM's file of options."""

import pytest

from sm.options_file import OptionsError
from sm.qos_options import parse_qos_options
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
    options = parse_qos_options(TEXT.replace("3:(null)", "3:2"), "opensm.conf")
    assert options.max_vls == 4
    lists = VlArbitration((VlWeight(0, 64), VlWeight(1, 32)), (VlWeight(2, 1), VlWeight(3, 2)), 255)
    assert options.vl_arbitration == lists
    assert options.sl_to_vl == (*range(15), 7), "OpenSM's own, where the file says nothing"


def test_what_opensm_writes_of_options_that_nobody_has_set_is_its_defaults():
    unset = [
        f"qos_{ports}{option}"
        for ports in ("", "ca_", "sw0_", "swe_", "rtr_")
        for option in ("max_vls 0", "high_limit -1", "vlarb_high (null)", "vlarb_low (null)", "sl2vl (null)")
    ]
    assert parse_qos_options("\n".join(unset), "opensm.conf") == parse_qos_options("", "opensm.conf")


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
        ("qos_ca_max_vls 4", "qos_ca_max_vls 4: expected options of all ports alone"),
    ],
)
def test_what_is_not_allowed_is_told_with_its_line(line, reason):
    with pytest.raises(OptionsError) as error:
        parse_qos_options(f"qos TRUE\n{line}\n", "my.conf")
    assert str(error.value).startswith(f"my.conf:2: {reason}")
