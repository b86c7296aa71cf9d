"""Attributes of congestion control are where libibmad reads and writes them."""

import pytest

from wire.congestion_control import (
    CA_CONGESTION_LOG,
    CA_CONGESTION_SETTING,
    CC_ATTRIBUTES,
    CC_DATA_BYTES,
    CC_MAD,
    CC_NOTICE,
    CONGESTION_CONTROL_TABLE,
    CONGESTION_KEY_INFO,
    CONGESTION_LOG,
    SWITCH_CONGESTION_SETTING,
    SWITCH_PORT_CONGESTION_SETTING,
    CcAttribute,
    cc_request,
)
from wire.mad import MadMethod
from wire.mad_text import mad_text, unpack_mad
from wire.notice import ProducerType, TrapNumber, notice
from wire.registers import congestion_address


@pytest.mark.parametrize(
    ("layout", "field", "bit", "width"),
    [
        (CONGESTION_KEY_INFO, "violations", 96, 16),
        (SWITCH_CONGESTION_SETTING, "victim_mask", 32, 256),
        (SWITCH_CONGESTION_SETTING, "threshold", 544, 4),
        (SWITCH_CONGESTION_SETTING, "packet_size", 552, 8),
        (SWITCH_CONGESTION_SETTING, "marking_rate", 592, 16),
        (SWITCH_PORT_CONGESTION_SETTING, "element3", 96, 32),
        (CA_CONGESTION_SETTING, "control_map", 16, 16),
        (CA_CONGESTION_SETTING, "entry15", 32 + 15 * 64, 64),
        (CONGESTION_CONTROL_TABLE, "entry63", 32 + 63 * 16, 16),
    ],
)
def test_management_data_begin_at_byte_64(layout, field, bit, width):
    number = int.from_bytes(CC_MAD.pack(data=int.from_bytes(layout.pack({field: 1}).ljust(224, b"\0"), "big")), "big")
    assert number & ((1 << 8 * 192) - 1) == 1 << 8 * 192 - bit - width


def test_the_log_begins_at_byte_32_and_ends_within_its_mad():
    assert CONGESTION_LOG["port_map"].offset_bits == 64
    assert CONGESTION_LOG["event0"].offset_bits == 8 * 40
    assert CA_CONGESTION_LOG["event0"].offset_bits == 8 * 12
    assert all(attribute.format.size_bytes <= CC_DATA_BYTES for attribute in CC_ATTRIBUTES.values())


def test_a_request_is_told_with_the_parts_of_its_elements():
    data = SWITCH_PORT_CONGESTION_SETTING.pack(element2=0x8F_04_0010)
    mad = cc_request(MadMethod.SET, CcAttribute.SWITCH_PORT_CONGESTION_SETTING, data, transaction_id=1, modifier=1)
    text = mad_text(mad)
    assert text.startswith("Set(SwitchPortCongestionSetting) block 1")
    assert "threshold 15, packet_size 4 x 64 bytes, marking_rate 16" in text
    assert unpack_mad(mad.pack()) == mad
    assert mad.class_version == 2


def test_a_trap_tells_who_had_which_wrong_cc_key():
    said = notice(
        TrapNumber.BAD_CC_KEY, ProducerType.SWITCH, 7, slid=3, method=2, attribute_id=0x15, qp=1, cc_key=0x1234
    )
    trap = cc_request(MadMethod.TRAP, CcAttribute.NOTICE, CC_NOTICE.pack(said), transaction_id=1).pack()
    assert trap[64:].rstrip(b"\0") == bytes.fromhex(
        "82 000002 0000 0007 0000 0003 02 00 0015 0000 00000000 00000001 0000000000001234"
    )
    text = mad_text(trap)
    assert text.startswith("Trap(Notice)\n")
    assert "0 (BadCcKey)" in text
    assert "0x0000000000001234" in text


def test_a_word_beyond_the_mad_has_no_address():
    with pytest.raises(ValueError, match=r"word 56: expected 0\.\.55"):
        congestion_address(CcAttribute.CONGESTION_LOG, 56)
