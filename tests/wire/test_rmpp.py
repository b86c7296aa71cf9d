"""RMPP headers: where their fields are, and which classes have one."""

from wire.mad import MgmtClass
from wire.rmpp import RMPP_HEADER, RmppFlags, RmppType, has_rmpp, rmpp_flags


def test_fields_follow_the_common_header():
    packed = RMPP_HEADER.pack(
        rmpp_version=1,
        rmpp_type=RmppType.DATA,
        resp_time=2,
        rmpp_flags=RmppFlags.ACTIVE | RmppFlags.LAST,
        rmpp_status=0,
        segment_number=7,
        payload_length=220,
    )
    assert packed == bytes(24) + bytes([1, 1, 0x15, 0, 0, 0, 0, 7, 0, 0, 0, 220])


def test_the_sa_and_vendors_with_an_oui_have_it():
    assert [mgmt_class for mgmt_class in range(256) if has_rmpp(mgmt_class)] == [3, 6, 0x10, 0x12, *range(0x30, 0x50)]
    mad = bytes([1, MgmtClass.SUBN_ADM]) + bytes(24) + bytes([RmppFlags.ACTIVE]) + bytes(229)
    assert rmpp_flags(mad) == RmppFlags.ACTIVE
    assert rmpp_flags(bytes([1, MgmtClass.PERF]) + mad[2:]) == 0
