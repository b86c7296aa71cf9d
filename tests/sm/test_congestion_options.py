"""Congestion control from OpenSM's file of options."""

import pytest

from sm.congestion_options import parse_congestion_options
from sm.options_file import OptionsError
from wire.congestion_control import CA_CONGESTION_ENTRY, CCT_ENTRY, SwitchControl

TEXT = """
congestion_control TRUE
cc_key 0x0123456789abcdef
cc_max_outstanding_mads 500
cc_sw_cong_setting_control_map 0x15
cc_sw_cong_setting_victim_mask 0x2 # port 1
cc_sw_cong_setting_credit_mask F0
cc_sw_cong_setting_threshold 0x0F
cc_sw_cong_setting_packet_size 010
cc_sw_cong_setting_credit_starvation_threshold 7
cc_sw_cong_setting_credit_starvation_return_delay 1:2
cc_sw_cong_setting_marking_rate 65535
cc_ca_cong_setting_port_control 0x1
cc_ca_cong_setting_control_map 0x8001
cc_ca_cong_setting_ccti_timer 0 150
cc_ca_cong_setting_ccti_increase 0 1
cc_ca_cong_setting_trigger_threshold\t15\t2
cc_ca_cong_setting_ccti_min 15 3
cc_cct 0:0,1:2, 3:16383
"""

UNSAID = """
congestion_control TRUE
cc_key 0x0000000000000000
cc_sw_cong_setting_control_map 0x0
cc_sw_cong_setting_credit_starvation_return_delay 0:0
cc_ca_cong_setting_ccti_timer 0 0
cc_cct (null)
"""
"""As `opensm -c` writes it."""


def parsed(text):
    return parse_congestion_options(text, "opensm.conf")


def test_options_are_the_attributes_that_opensm_makes_of_them():
    options = parsed(TEXT)
    assert options.cc_key == 0x0123456789ABCDEF
    assert dict(options.switch) == {
        "control_map": SwitchControl.VICTIM_MASK | SwitchControl.THRESHOLD | SwitchControl.MARKING_RATE,
        "victim_mask": 1 << 1,
        "credit_mask": 0xF0,
        "threshold": 15,
        "packet_size": 8,
        "cs_threshold": 7,
        "cs_return_delay": CCT_ENTRY.to_int(shift=1, multiplier=2),
        "marking_rate": 65535,
    }
    adapter = options.adapter
    assert (adapter.port_control, adapter.control_map) == (1, 0x8001)
    assert adapter.entry0 == CA_CONGESTION_ENTRY.to_int(ccti_timer=150, ccti_increase=1)
    assert adapter.entry15 == CA_CONGESTION_ENTRY.to_int(trigger_threshold=2, ccti_min=3)
    (block,) = options.table
    assert block.ccti_limit == 2
    assert [block.entry0, block.entry1, block.entry2, block.entry3] == [0, 1 << 14 | 2, 0xFFFF, 0]


def test_a_long_table_is_in_blocks_of_64_entries_with_the_limit_of_all():
    first, second = parsed(f"congestion_control TRUE\ncc_cct {','.join(f'0:{entry}' for entry in range(1, 71))}").table
    assert (first.ccti_limit, second.ccti_limit) == (69, 69)
    assert (first.entry63, second.entry0, second.entry5, second.entry6) == (64, 65, 70, 0)
    assert len(parsed(f"congestion_control TRUE\ncc_cct {','.join(['0:1'] * 64)}").table) == 1


@pytest.mark.parametrize("line", ["", "cc_cct (null)", "cc_cct 1:5"])
def test_a_table_of_less_than_two_entries_is_one_block_of_zeros_as_opensm_sends_it(line):
    (block,) = parsed(f"congestion_control TRUE\n{line}").table
    assert not any(block.values())


def test_what_is_not_said_is_zero():
    options = parsed(UNSAID)
    assert options == parsed("congestion_control TRUE")
    assert not any((options.cc_key, *options.switch.values(), *options.adapter.values()))


@pytest.mark.parametrize("line", ["", "congestion_control FALSE", "congestion_control TRUE\ncongestion_control FALSE"])
def test_nothing_is_configured_unless_the_file_says_so(line):
    assert parsed(f"cc_sw_cong_setting_threshold 15\n{line}") is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("congestion_control yes", "yes: expected TRUE or FALSE"),
        ("cc_key 0x10000000000000000", "0x10000000000000000: expected 0x0..0xffffffffffffffff"),
        ("cc_sw_cong_setting_control_map 32767 8", "32767 8: expected 0x0..0xffffffff"),
        (f"cc_sw_cong_setting_victim_mask {'f' * 65}", f"{'f' * 65}: expected up to 64 hexadecimal digits"),
        ("cc_sw_cong_setting_threshold 16", "16: expected 0..15"),
        ("cc_sw_cong_setting_packet_size 256", "256: expected 0..255"),
        ("cc_sw_cong_setting_marking_rate -1", "-1: expected 0..65535"),
        ("cc_sw_cong_setting_credit_starvation_return_delay 4:0", "4: expected 0..3"),
        ("cc_ca_cong_setting_ccti_timer 150", "150: expected an SL and a value"),
        ("cc_ca_cong_setting_ccti_min 16 0", "16: expected 0..15"),
        ("cc_ca_cong_setting_ccti_increase 0 256", "256: expected 0..255"),
        ("cc_cct 0:1,2", "2: expected SHIFT:MULTIPLIER"),
        ("cc_cct 0:16384", "16384: expected 0..16383"),
        (f"cc_cct {','.join(['0:1'] * 129)}", "129 entries, expected at most 128"),
    ],
)
def test_what_is_not_allowed_is_told_with_its_line(line, reason):
    with pytest.raises(OptionsError) as error:
        parse_congestion_options(f"congestion_control TRUE\n{line}\n", "my.conf")
    assert str(error.value) == f"my.conf:2: {line.split()[0]}: {reason}"
