"""An independent dissector finds in MADs the fields and values that the layouts here do."""

import json
from pathlib import Path

import pytest

from wire.forwarding_tables import RANDOM_ENTRY
from wire.layout import Record
from wire.mad import mad_data
from wire.mad_text import attribute_of, unpack_mad
from wire.meaning import label
from wire.node_info import node_description_text
from wire.notice import NOTICE, details_of
from wire.packet import parse
from wire.port_info import CapabilityMask
from wire.port_tables import VL_ARBITRATION_ENTRY

VECTORS = json.loads((Path(__file__).parent / "vectors" / "mad_dissections.json").read_text())["packets"]

NAMES = {
    # Where the dissector's name is not the standard's.
    "smpdirected": {"smpstatus": "status"},
    "notice": {"type": "noticetype", "producertypevendorid": "producertype", "trapnumberdeviceid": "trapnumber"},
    "trap": {
        "lidaddr": "lid", "lidaddr1": "lid1", "lidaddr2": "lid2", "gidaddr1": "gid1", "gidaddr2": "gid2",
        "portno": "port", "linkspeecenabledchange": "linkspeedenabledchange",
    },
    "portinfo": {"guid": "gidprefix"},
    "switchinfo": {"enhancedportzero": "enhancedport0"},
}  # fmt: skip
WRONG = {
    # The dissector begins DiagData two bytes early and reads only the first of a byte's eight width bits.
    "vendordiag.diagdata",
    "linkspeedwidthpairstable.speedtwofive",
    "linkspeedwidthpairstable.speedfive",
    "linkspeedwidthpairstable.speedten",
    # It shifts the D bit by 48 too many.
    "smpdirected.d",
}
UNKNOWN = {
    # Fields that the dissector does not know, by attribute.
    "SwitchInfo": {"multicast_fdb_top"},
    "PortInfo": {
        "capability_mask2", "multicast_p_key_trap_suppression_enabled", "link_speed_ext_active",
        "link_speed_ext_supported", "link_speed_ext_enabled",
    },
    "VendorDiag": {"diag_data"},
    "LinkSpeedWidthPairsTable": {"speed_2_5_gbps", "speed_5_gbps", "speed_10_gbps"},
    "ClassPortInfo": {"trap_hl"},
    "PortCounters": {"counter_select2", "port_xmit_wait"},
    "trap 144": {"sm_priority_change", "capability_mask2"},
}  # fmt: skip

each_mad = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
TABLES = {
    "GUIDInfo", "P_KeyTable", "SLtoVLMappingTable", "VLArbitrationTable", "LinearForwardingTable",
    "RandomForwardingTable", "MulticastForwardingTable",
}  # fmt: skip
NOT_DISSECTED = {"PortSamplesControl", "trap 259"}
each_record = pytest.mark.parametrize(
    "vector",
    [vector for vector in VECTORS if vector["name"] not in {"NodeDescription"} | TABLES | NOT_DISSECTED],
    ids=lambda vector: vector["name"],
)


def plain(name: str) -> str:
    return name.replace("_", "").lower()


def mad_of(vector: dict) -> Record:
    packet = parse(bytes.fromhex(vector["packet_hex"]))
    assert packet.icrc_good
    assert packet.vcrc_good
    return unpack_mad(packet.payload)


def attribute_values(mad: Record) -> dict[str, int]:
    form = attribute_of(mad).format
    record = form.unpack(mad_data(mad))
    return dict(record) | dict((form == NOTICE and details_of(record)) or {})


def dissected(vector: dict, *groups: str) -> dict[str, int]:
    """The dissector's values by the standard's names."""
    found = {}
    for name, value in vector["dissection"].items():
        group, leaf = name.split(".", 1)
        if (group in groups) and name not in WRONG and "." not in leaf:
            found[NAMES.get(group, {}).get(plain(leaf), plain(leaf))] = value
    return found


@each_mad
def test_headers_agree(vector):
    mad = mad_of(vector)
    values = {plain(name): value for name, value in mad.items()}
    header = dissected(vector, "mad")
    header.pop("status")
    if "classspecific" not in values:
        header.pop("classspecific")
    assert header.items() <= values.items()
    assert len(header) >= 7
    smp = dissected(vector, "smpdirected", "smplid")
    if "d" in values:
        assert smp.pop("status") == mad.d << 15 | mad.status
        assert len(smp) >= 7
    assert smp.items() <= values.items()


@each_record
def test_every_field_of_an_attribute_agrees(vector):
    mad = mad_of(vector)
    groups = {name.split(".")[0] for name in vector["dissection"]} - {"mad", "smpdirected", "smplid"}
    theirs = dissected(vector, *groups)
    ours = attribute_values(mad)
    unknown = UNKNOWN.get(vector["name"], set())
    assert theirs == {plain(name): value for name, value in ours.items() if name not in unknown}


def test_every_flag_of_the_capability_mask_agrees():
    checked = set()
    for vector in [vector for vector in VECTORS if vector["name"] == "PortInfo"]:
        mask = attribute_values(mad_of(vector))["capability_mask"]
        flags = {plain(label(flag)).removesuffix("supported"): bool(mask & flag) for flag in CapabilityMask}
        for name, value in vector["dissection"].items():
            if name.startswith("portinfo.capabilitymask."):
                flag = name.rsplit(".", 1)[1].removesuffix("supported")
                flag = flag.replace("clientregistration", "clientreregistration")
                assert flags[flag if flag.startswith("is") else f"is{flag}"] == bool(value), name
                checked.add(name)
    assert len(checked) == 24


def table(name: str) -> tuple[tuple[int, ...], dict]:
    (vector,) = [vector for vector in VECTORS if vector["name"] == name]
    mad = mad_of(vector)
    group = plain(name) if name != "P_KeyTable" else "p_keytable"
    parts = {key.split(".")[1]: value for key, value in vector["dissection"].items() if key.startswith(f"{group}.")}
    return attribute_of(mad).format.unpack(mad_data(mad)), parts or vector["dissection"]


def test_every_entry_of_the_tables_agrees():
    entries, theirs = table("LinearForwardingTable")
    assert list(entries) == theirs["port"]
    entries, theirs = table("GUIDInfo")
    assert list(entries) == theirs["switchinfo.guid"]
    entries, theirs = table("P_KeyTable")
    assert list(entries) == [
        full << 15 | base for full, base in zip(theirs["membershiptype"], theirs["p_keybase"], strict=True)
    ]
    entries, theirs = table("SLtoVLMappingTable")
    assert list(entries[0::2]) == theirs["sltovlhighbits"]
    assert list(entries[1::2]) == theirs["sltovllowbits"]
    entries, theirs = table("MulticastForwardingTable")
    assert list(entries[:16]) == theirs["portmask"]
    entries, theirs = table("VLArbitrationTable")
    for name in ("vl", "weight"):
        assert [VL_ARBITRATION_ENTRY.from_int(entry)[name] for entry in entries] == theirs[name]
    entries, theirs = table("RandomForwardingTable")
    for name in RANDOM_ENTRY.record():
        assert [RANDOM_ENTRY.from_int(entry)[name] for entry in entries] == theirs[name]


def test_the_name_of_a_node_agrees():
    (vector,) = [vector for vector in VECTORS if vector["name"] == "NodeDescription"]
    text = vector["dissection"]["nodedescription.nodestring"]
    assert node_description_text(mad_data(mad_of(vector))) == text
