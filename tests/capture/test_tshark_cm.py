"""Wireshark's dissection of connections' messages, and of paths, in our captures: each of its fields is ours."""

import shutil
import subprocess
import xml.etree.ElementTree
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from random import Random

import pytest

from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
from wire.cm import CM_ATTRIBUTES, CmMessage, cm_mad, private_data_bytes
from wire.ip_cm import PortSpace, ip_cm_header, service_id
from wire.mad import MAD_HEADER, MgmtClass
from wire.mad_packet import gmp_packet
from wire.path_record import PATH_RECORD

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="NOT TESTED against Wireshark: apt-get install tshark"
)

NAMES = {
    # Wireshark's words for the standard's.
    "localcommid": "local_comm_id", "remotecommid": "remote_comm_id", "serviceid": "service_id",
    "localcaguid": "local_ca_guid", "localqkey": "local_q_key", "localqpn": "local_qpn", "localeecn": "local_eecn",
    "responderres": "responder_resources", "respres": "responder_resources", "initdepth": "initiator_depth",
    "remoteeecn": "remote_eecn", "remoteresptout": "remote_cm_response_timeout",
    "transpsvctype": "transport_service_type", "e2eflowctrl": "end_to_end_flow_control",
    "startpsn": "starting_psn", "localresptout": "local_cm_response_timeout", "retrcount": "retry_count",
    "pkey": "partition_key", "pppmtu": "path_packet_payload_mtu", "rdcexist": "rdc_exists",
    "rnrretrcount": "rnr_retry_count", "maxcmretr": "max_cm_retries", "srq": "srq",
    "ext_transport": "extended_transport_type", "tgtackdelay": "target_ack_delay",
    "failoveracc": "failover_accepted", "msgrej": "message_rejected", "rejinfolen": "reject_info_length",
    "reason": "reason", "ari": "additional_reject_info", "private": "private_data",
    "remoteqpneecn": "remote_qpn_eecn", "req": "local_comm_id", "rep": "local_comm_id",
}  # fmt: skip
PATH_NAMES = {
    "locallid": "local_port_lid", "remotelid": "remote_port_lid", "localgid": "local_port_gid",
    "remotegid": "remote_port_gid", "tfcclass": "traffic_class", "hoplim": "hop_limit", "sl": "sl",
    "subnetlocal": "subnet_local", "localacktout": "local_ack_timeout",
}  # fmt: skip
PATHS = {"prim": "primary", "alt": "alternate"}

WRONG = {f"{path}_{name}" for path in PATHS.values() for name in ("flow_label", "packet_rate")}
"""Wireshark 4.0 reads all of a path's flow label and rate from the first of their four bytes on."""

DISSECTED = (CmMessage.REQ, CmMessage.REJ, CmMessage.REP, CmMessage.RTU, CmMessage.DREQ, CmMessage.DREP)
"""What Wireshark 4.0 knows of the class."""


def dissected(place: Path, mads: list[bytes], group: str = "cm") -> list[dict[str, str]]:
    """Wireshark's fields of a kind in a capture of these MADs, and what it shows as their values."""
    with capture_writer(str(place), [Direction("H1[1] -> H2[1]")]) as capture:
        for number, mad in enumerate(mads):
            capture.write(WirePacket(0, number * 1_000, False, gmp_packet(mad, 1, 2).wire))
    pdml = subprocess.run(["tshark", "-n", "-r", place, "-T", "pdml"], capture_output=True, check=True, timeout=60)
    return [
        {
            field.get("name", "").removeprefix(f"infiniband.{group}."): field.get("show", "")
            for field in packet.iter("field")
            if field.get("name", "").startswith(f"infiniband.{group}.")
        }
        for packet in xml.etree.ElementTree.fromstring(pdml.stdout).iter("packet")
    ]


def value_of(shown: str) -> int:
    if shown.startswith("0x") or shown.isdecimal():
        return int(shown, 0)
    if all(len(part) == 2 for part in shown.split(":")):
        return int(shown.replace(":", ""), 16)
    return int(IPv6Address(shown))


def our_name(name: str) -> str | None:
    """The standard's name for one of Wireshark's; None for those of reserved bits, and those that are wrong."""
    last = name.rpartition(".")[2]
    path, _, part = last.partition("_")
    if path in PATHS:
        return f"{PATHS[path]}_{PATH_NAMES[part]}" if part in PATH_NAMES else None
    return NAMES.get(last)


@pytest.mark.parametrize("message", DISSECTED, ids=lambda message: message.name)
def test_every_field_of_a_message_is_where_wireshark_finds_it(message, tmp_path):
    random = Random(message)
    layout = CM_ATTRIBUTES[message].format
    drawn = [{field.name: random.randrange(field.max + 1) for field in layout.fields} for _ in range(20)]
    mads = []
    for number, values in enumerate(drawn):
        fields = dict(values)
        private = fields.pop("private_data").to_bytes(private_data_bytes(message), "big")
        mads.append(cm_mad(message, number, private, **fields))
    for values, theirs in zip(drawn, dissected(tmp_path / "cm.pcapng", mads), strict=True):
        found = {ours: value_of(shown) for name, shown in theirs.items() if (ours := our_name(name)) is not None}
        assert found == {name: value for name, value in values.items() if name not in WRONG}


def test_wireshark_reads_ip_addresses_and_ports_as_the_ip_service_writes_them(tmp_path):
    source, destination = IPv4Address("10.87.0.1"), IPv4Address("10.87.0.2")
    private = ip_cm_header(source, 40_000, destination) + b"hello"
    service = service_id(PortSpace.TCP, 7471)
    (theirs,) = dissected(tmp_path / "cm.pcapng", [cm_mad(CmMessage.REQ, 1, private, service_id=service)])
    assert theirs["req.serviceid.prefix"] == "00:00:00:00:01"
    assert int(theirs["req.serviceid.protocol"], 0) == 6
    assert int(theirs["req.serviceid.dport"], 0) == 7471
    header = {name.rpartition(".")[2]: shown for name, shown in theirs.items() if ".ip_cm." in name}
    assert {name: value_of(header[name]) for name in ("majv", "minv", "ipv")} == {"majv": 0, "minv": 0, "ipv": 4}
    assert value_of(header["sport"]) == 40_000
    assert (header["sip4"], header["dip4"]) == ("10.87.0.1", "10.87.0.2")
    assert bytes.fromhex(header["private"].replace(":", "")).rstrip(b"\0") == b"hello"


def test_every_field_of_a_path_record_is_where_wireshark_finds_it(tmp_path):
    random = Random(1)
    drawn = [{field.name: random.randrange(field.max + 1) for field in PATH_RECORD.fields} for _ in range(20)]
    # GetResp(PathRecord), whose attribute begins after the headers of RMPP and of the class.
    head = MAD_HEADER.pack(mgmt_class=MgmtClass.SUBN_ADM, class_version=2, method=0x81, attribute_id=0x35)
    mads = [head + bytes(32) + PATH_RECORD.pack(values).ljust(200, b"\0") for values in drawn]
    for values, theirs in zip(drawn, dissected(tmp_path / "path.pcapng", mads, "pathrecord"), strict=True):
        found = {name: value_of(shown) for name, shown in theirs.items()}
        known = {name.replace("_", "") if name != "p_key" else name: value for name, value in values.items()}
        # It does not know these.
        for name in ("serviceid", "qosclass"):
            del known[name]
        assert found == known
