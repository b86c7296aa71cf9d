"""Communication management messages: their MADs, private data and service IDs."""

from ipaddress import ip_address

import pytest

from wire.cm import CM_ATTRIBUTES, CmMessage, cm_mad, cm_message, private_data_bytes, private_data_of
from wire.ip_cm import PortSpace, ip_cm_ends, ip_cm_header, service_id, service_port
from wire.mad import MAD_BYTES
from wire.mad_text import mad_text, mad_title, unpack_mad


def test_each_message_has_as_much_room_for_private_data_as_the_standard_gives():
    assert {message.name: private_data_bytes(message) for message in CmMessage} == {
        "REQ": 92, "MRA": 222, "REJ": 148, "REP": 196, "RTU": 224, "DREQ": 220, "DREP": 224, "SIDR_REQ": 216,
        "SIDR_REP": 136, "LAP": 168, "APR": 148,
    }  # fmt: skip


@pytest.mark.parametrize("message", CmMessage)
def test_a_message_comes_back_from_its_mad(message):
    mad = cm_mad(message, 0x77, b"private")
    assert mad[:4] == bytes([1, 7, 2, 3])
    assert len(mad) == MAD_BYTES
    found = cm_message(mad)
    assert found is not None
    kind, record = found
    assert kind is message
    assert private_data_of(record) == b"private".ljust(private_data_bytes(message), b"\0")


def test_private_data_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="REQ: 93 bytes of private data, allowed up to 92"):
        cm_mad(CmMessage.REQ, 1, bytes(93))


@pytest.mark.parametrize(("byte", "value"), [(1, 4), (2, 1), (3, 1), (17, 0x0F)])
def test_a_mad_of_another_class_version_method_or_attribute_is_no_message(byte, value):
    mad = bytearray(cm_mad(CmMessage.REQ, 1))
    mad[byte] = value
    assert cm_message(bytes(mad)) is None


def test_a_mad_of_another_length_is_no_message():
    assert cm_message(cm_mad(CmMessage.REQ, 1)[:-1]) is None


def test_a_message_is_told_to_people_by_its_name():
    mad = cm_mad(CmMessage.REJ, 1, reason=28, local_comm_id=5)
    assert mad_title(unpack_mad(mad)) == "Send(REJ)"
    lines = [line.split(None, 1) for line in mad_text(mad).splitlines()]
    assert ["reason", "28 (ConsumerReject)"] in lines
    assert ["message_rejected", "0 (Req)"] in lines
    assert set(CM_ATTRIBUTES) == set(CmMessage)


def test_a_port_is_a_service_id_of_its_port_space():
    assert service_id(PortSpace.TCP, 7471) == 0x0000_0000_0106_1D2F
    assert service_id(PortSpace.UDP, 1) == 0x0000_0000_0111_0001
    assert service_port(0x0000_0000_0106_1D2F) == 7471


@pytest.mark.parametrize(("source", "destination"), [("10.87.0.1", "10.87.0.2"), ("fe80::1", "fe80::2")])
def test_the_ip_addresses_of_a_request_come_back(source, destination):
    header = ip_cm_header(ip_address(source), 40_000, ip_address(destination))
    assert len(header) == 36
    assert ip_cm_ends(header + b"more") == (ip_address(source), 40_000, ip_address(destination))


def test_an_ipv4_address_is_in_the_last_bytes_of_its_field():
    header = ip_cm_header(ip_address("10.87.0.1"), 0x1234, ip_address("10.87.0.2"))
    assert header == bytes.fromhex("0040 1234" + "00" * 12 + "0a570001" + "00" * 12 + "0a570002")


@pytest.mark.parametrize(
    "data", [bytes(36), b"\x10\x40" + bytes(34), b"\0\x40" + bytes(20), b"\0\x40\0\0\1" + bytes(31)]
)
def test_other_private_data_say_no_ip_addresses(data):
    assert ip_cm_ends(data) is None


@pytest.mark.parametrize(
    ("message", "field", "where"),
    [
        # byte of the message, bytes, least significant bit in them; by hand from the standard's tables
        (CmMessage.REQ, "primary_flow_label", (88, 3, 4)),
        (CmMessage.REQ, "primary_packet_rate", (91, 1, 0)),
        (CmMessage.REQ, "alternate_flow_label", (132, 3, 4)),
        (CmMessage.REQ, "alternate_packet_rate", (135, 1, 0)),
        (CmMessage.MRA, "message_mraed", (8, 1, 6)),
        (CmMessage.MRA, "service_timeout", (9, 1, 3)),
        (CmMessage.SIDR_REQ, "request_id", (0, 4, 0)),
        (CmMessage.SIDR_REQ, "partition_key", (4, 2, 0)),
        (CmMessage.SIDR_REQ, "service_id", (8, 8, 0)),
        (CmMessage.SIDR_REP, "status", (4, 1, 0)),
        (CmMessage.SIDR_REP, "qpn", (8, 3, 0)),
        (CmMessage.SIDR_REP, "service_id", (12, 8, 0)),
        (CmMessage.SIDR_REP, "q_key", (20, 4, 0)),
        (CmMessage.SIDR_REP, "additional_info", (24, 72, 0)),
        (CmMessage.LAP, "remote_qpn_eecn", (12, 3, 0)),
        (CmMessage.LAP, "remote_cm_response_timeout", (15, 1, 3)),
        (CmMessage.LAP, "alternate_local_port_lid", (20, 2, 0)),
        (CmMessage.LAP, "alternate_remote_port_gid", (40, 16, 0)),
        (CmMessage.LAP, "alternate_flow_label", (56, 3, 4)),
        (CmMessage.LAP, "alternate_traffic_class", (59, 1, 0)),
        (CmMessage.LAP, "alternate_packet_rate", (61, 1, 0)),
        (CmMessage.LAP, "alternate_local_ack_timeout", (63, 1, 3)),
        (CmMessage.APR, "ap_status", (9, 1, 0)),
        (CmMessage.APR, "additional_info", (12, 72, 0)),
    ],
)
def test_fields_that_wireshark_does_not_know_are_where_the_standard_has_them(message, field, where):
    found = CM_ATTRIBUTES[message].format[field]
    assert (found.byte, found.byte_span, found.lsb_in_span) == where
