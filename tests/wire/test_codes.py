"""Codes of port attributes and of the LRH mean what the standard says."""

import pytest

from wire import codes


@pytest.mark.parametrize(
    ("code", "size", "words"), [(1, 256, 95), (2, 512, 159), (3, 1024, 287), (4, 2048, 543), (5, 4096, 1055)]
)
def test_an_mtu_code_is_a_payload_size_and_a_longest_packet(code, size, words):
    assert codes.mtu_bytes(code) == size
    assert codes.mtu_code(size) is codes.MTU(code)
    assert codes.max_pkt_len(code) == words


@pytest.mark.parametrize(("code", "count"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 15)])
def test_an_operational_vls_code_is_a_number_of_data_vls(code, count):
    assert codes.data_vls(code) == count
    assert codes.operational_vls(count) == code


@pytest.mark.parametrize(
    ("lid", "unicast", "multicast"),
    [
        (codes.LID_RESERVED, False, False),
        (0x0001, True, False),
        (0xBFFF, True, False),
        (0xC000, False, True),
        (0xFFFE, False, True),
        (codes.LID_PERMISSIVE, False, False),
    ],
)
def test_lids_are_unicast_multicast_or_neither(lid, unicast, multicast):
    assert (codes.is_unicast_lid(lid), codes.is_multicast_lid(lid)) == (unicast, multicast)


def test_lnh_says_iba_transport_in_bit_1_and_ip_header_in_bit_0():
    assert [code.name for code in codes.LNH] == ["RAW", "RAW_IPV6", "IBA_LOCAL", "IBA_GLOBAL"]
    assert [(code >> 1, code & 1) for code in codes.LNH] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_port_states_have_the_standards_values():
    assert [state.name for state in codes.PortState] == [
        "NO_CHANGE", "DOWN", "INITIALIZE", "ARMED", "ACTIVE", "ACTIVE_DEFER"
    ]  # fmt: skip
    assert list(codes.PortState) == list(range(6))
    assert list(codes.PortPhysicalState) == list(range(8))
    assert codes.PortPhysicalState.LINK_UP == 5


def test_widths_and_speeds_are_bits():
    assert [width.value for width in codes.LinkWidth] == [1, 2, 4, 8, 16]
    assert codes.LinkWidth.X1 | codes.LinkWidth.X4 == 3
    assert [speed.value for speed in codes.LinkSpeed] == [1, 2, 4]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: codes.mtu_bytes(0), r"MTU code 0, allowed 1\.\.5"),
        (lambda: codes.max_pkt_len(6), r"MTU code 6, allowed 1\.\.5"),
        (lambda: codes.mtu_code(1500), r"MTU of 1500 bytes, allowed 256, 512, 1024, 2048, 4096"),
        (lambda: codes.data_vls(0), r"OperationalVLs code 0, allowed 1\.\.5"),
        (lambda: codes.operational_vls(3), r"3 data VLs, allowed 1, 2, 4, 8, 15"),
    ],
)
def test_other_codes_are_refused(act, message):
    with pytest.raises(ValueError, match=message):
        act()
