"""MADs are shown with names, units and times that a person can use."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire.codes import LinkWidth, PortPhysicalState, PortState, life_text, timer_ns, timer_text
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE
from wire.mad import MAD_BYTES, Attribute, MadMethod
from wire.mad_text import CLASS_ATTRIBUTES, attribute_of, attribute_text, mad_text, mad_title, record_text, unpack_mad
from wire.meaning import label
from wire.node_info import NODE_DESCRIPTION, NODE_INFO, node_description
from wire.notice import ProducerType, TrapNumber, notice
from wire.pma import PORT_COUNTERS, PORT_SAMPLES_CONTROL, PmaAttribute, perf_request
from wire.port_info import PORT_INFO, CapabilityMask
from wire.port_tables import VL_ARBITRATION_ENTRY, VL_ARBITRATION_TABLE
from wire.sma import SmaAttribute
from wire.smp import smp_request, smp_response
from wire.switch_info import SWITCH_INFO


def line(text: str, name: str) -> str:
    """What is next to a field's name."""
    (found,) = [row.split(None, 1)[1] for row in text.splitlines() if row.split()[:1] == [name]]
    return found


def test_a_request_is_told_in_a_line():
    smp = smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 3, transaction_id=1, path=(1, 4))
    assert mad_title(smp) == "Set(PortInfo) port 3, directed route 1,4"
    assert mad_title(smp_response(smp, status=0x1C)).endswith("1,4, status InvalidAttributeValue")
    perf = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, transaction_id=1)
    assert mad_title(perf) == "Get(PortCounters)"
    assert mad_title(smp_request(MadMethod.GET, 0xFF00, transaction_id=1)) == "Get(0xff00)"


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("m_key", 0xA5, "0x00000000000000a5"),
        ("m_key_lease_period", 15, "15 s"),
        ("lid", 7, "7"),
        ("port_state", 3, "3 (Armed)"),
        ("port_state", 9, "9 (reserved)"),
        ("port_physical_state", 5, "5 (LinkUp)"),
        ("link_width_supported", 3, "0x03 (1X, 4X)"),
        ("link_width_enabled", 255, "0xff (all supported)"),
        ("link_speed_active", 4, "0x4 (QDR)"),
        ("link_speed_supported", 8, "0x8 (bit 3)"),
        ("neighbor_mtu", 4, "4 (2048 bytes)"),
        ("neighbor_mtu", 0, "0 (reserved)"),
        ("vl_cap", 4, "4 (VL0..VL7)"),
        ("operational_vls", 1, "1 (VL0)"),
        ("subnet_timeout", 18, "18 (1.07374 s)"),
        ("resp_time_value", 0, "0 (4.096 us)"),
        ("hoq_life", 20, "20 (infinite)"),
        ("vl_high_limit", 4, "4 x 4096 bytes"),
        ("capability_mask", 0x02000002, "0x02000002 (IsSM, IsClientReregistrationSupported)"),
    ],
)
def test_a_field_of_port_info_is_told_with_its_meaning(field, value, text):
    record = PORT_INFO.record({field: value})
    assert line(record_text(record), field) == text
    assert line(attribute_text(PORT_INFO, record.pack()), field) == text


def test_other_attributes_are_told_likewise():
    assert line(record_text(NODE_INFO.record(node_type=2)), "node_type") == "2 (Switch)"
    assert line(record_text(SWITCH_INFO.record(life_time_value=18)), "life_time_value") == "18 (1.07374 s)"
    assert line(record_text(PORT_COUNTERS.record(port_xmit_data=9)), "port_xmit_data") == "9 x 4 bytes"
    assert line(record_text(PORT_SAMPLES_CONTROL.record(tick=31)), "tick") == "31 (32 symbol times)"
    assert line(attribute_text(NODE_DESCRIPTION, node_description("sw 1")), "node_string") == "'sw 1'"


def test_tables_are_told_in_rows_and_entries_with_parts_one_by_one():
    rows = attribute_text(LINEAR_FORWARDING_TABLE, LINEAR_FORWARDING_TABLE.pack(range(64))).splitlines()
    assert len(rows) == 1 + 8
    assert rows[2].split() == ["port", "8..15", *map(str, range(8, 16))]
    entries = VL_ARBITRATION_TABLE.pack([VL_ARBITRATION_ENTRY.to_int(vl=2, weight=10)])
    assert (
        attribute_text(VL_ARBITRATION_TABLE, entries).splitlines()[1].split(None, 2)[2] == "vl 2, weight 10 x 64 bytes"
    )


def test_a_trap_tells_its_details_instead_of_their_bytes():
    told = notice(TrapNumber.EXCESSIVE_BUFFER_OVERRUN, ProducerType.SWITCH, 3, lid=4, port=5)
    text = mad_text(smp_request(MadMethod.TRAP, SmaAttribute.NOTICE, 0, told.pack(), transaction_id=1).pack())
    assert text.startswith("Trap(Notice)\n")
    assert line(text, "trap_number") == "130 (ExcessiveBufferOverrun)"
    assert (line(text, "lid"), line(text, "port")) == ("4", "5")
    assert "data_details" not in text


def test_an_attribute_that_is_not_known_is_told_by_its_bytes():
    smp = smp_request(MadMethod.GET, 0xFF00, 0, b"\xa5", transaction_id=1)
    assert line(mad_text(smp), "data") == "0xa5" + "00" * 63


def test_names_are_spelled_as_the_fields_own_tools_spell_them():
    assert [label(state) for state in PortState][:5] == ["NoChange", "Down", "Initialize", "Armed", "Active"]
    assert [label(state) for state in PortPhysicalState] == [
        "NoChange", "Sleep", "Polling", "Disabled",
        "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "PhyTest",
    ]  # fmt: skip
    assert [label(width) for width in LinkWidth] == ["1X", "4X", "8X", "12X", "2X"]
    assert label(CapabilityMask.IS_LED_INFO_SUPPORTED) == "IsLedInfoSupported"
    assert label(CapabilityMask.IS_MULTICAST_FDB_TOP_SUPPORTED) == "IsMulticastFDBTopSupported"


@pytest.mark.parametrize(("code", "text"), [(0, "4.096 us"), (8, "1.04858 ms"), (18, "1.07374 s"), (31, "8796.09 s")])
def test_a_timer_code_is_a_time(code, text):
    assert timer_text(code) == text
    assert timer_ns(code) == 4096 * 2**code
    assert life_text(code) == ("infinite" if code > 19 else text)
    with pytest.raises(ValueError, match=r"timer code 32, allowed 0\.\.31"):
        timer_ns(32)


@pytest.mark.parametrize(
    ("mgmt_class", "attribute"),
    [(code, attribute) for code, attributes in CLASS_ATTRIBUTES.items() for attribute in attributes.values()],
    ids=lambda value: value.name if isinstance(value, Attribute) else f"class {value:#x}",
)
@settings(max_examples=10)
@given(data=st.data())
def test_any_256_bytes_can_be_told(mgmt_class, attribute, data):
    mad = bytearray(data.draw(st.binary(min_size=MAD_BYTES, max_size=MAD_BYTES)))
    mad[1], mad[16:18] = mgmt_class, attribute.code.to_bytes(2, "big")
    record = unpack_mad(bytes(mad))
    assert attribute_of(record) is attribute
    text = mad_text(bytes(mad))
    assert attribute.name in text
    assert mad_text(record) == text


def test_a_mad_of_another_class_is_told_by_its_header():
    mad = bytes.fromhex("01030201") + bytes(252)
    assert mad_title(unpack_mad(mad)) == "Get(0x0000)"
    assert line(mad_text(mad), "mgmt_class") == "3 (SubnAdm)"
    with pytest.raises(ValueError, match=r"MAD of 255 bytes, allowed 256"):
        mad_text(mad[:255])
