"""SMPs: requests, answers, and the path of a directed route."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.mad import RESPONSES, MadMethod, MadStatus, mad_data, mad_response, status_text
from wire.pma import PERF_MAD, PmaAttribute, perf_request
from wire.port_info import PORT_INFO, PORT_INFO_MODIFIER
from wire.sma import SMA_ATTRIBUTES, SmaAttribute
from wire.smp import (
    SMP_DIRECTED_ROUTE,
    SMP_LID_ROUTED,
    initial_path,
    initial_port,
    is_directed,
    return_path,
    return_port,
    smp_request,
    smp_response,
    unpack_smp,
    with_return_port,
)


def get(path=None, **more):
    return smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=0x1234, path=path, **more)


def test_a_lid_routed_get_is_the_bytes_that_the_standard_draws():
    smp = smp_request(MadMethod.GET, 0x15, 3, transaction_id=0x1122334455667788, m_key=0xA5)
    assert smp.pack() == bytes.fromhex(
        "01010101 0000 0000 1122334455667788 0015 0000 00000003 00000000000000a5"
    ) + bytes(224)


def test_a_directed_get_on_its_first_link_is_the_bytes_that_a_capture_shows():
    # A captured discovery: HopPointer 1, HopCount 2, InitialPath 00 02 03, all else permissive or zero.
    mad = get(path=(2, 3)).replace(hop_pointer=1).pack()
    assert mad[:8] == bytes.fromhex("01810101 0000 0102")
    assert mad[32:36] == b"\xff\xff\xff\xff"
    assert mad[128:132] == bytes.fromhex("00020300")
    assert mad[192:] == bytes(64)


def test_its_answer_is_the_bytes_that_the_capture_shows():
    request = with_return_port(with_return_port(get(path=(2, 3)), 1, 6), 2, 1).replace(hop_pointer=1)
    mad = smp_response(request).pack()
    assert mad[3:8] == bytes.fromhex("81 8000 0102")
    assert mad[192:196] == bytes.fromhex("00060100")


@given(path=st.lists(st.integers(1, 255), max_size=63))
def test_a_directed_route_names_the_port_of_every_hop(path):
    smp = get(path)
    assert is_directed(smp)
    assert (smp.hop_pointer, smp.hop_count, smp.d) == (0, len(path), 0)
    assert initial_path(smp) == tuple(path)
    assert [initial_port(smp, hop) for hop in range(1, len(path) + 1)] == path
    assert initial_port(smp, 0) == 0
    for hop, port in enumerate(path, 1):
        smp = with_return_port(smp, hop, port)
        assert return_port(smp, hop) == port
    assert return_path(smp) == tuple(path)
    assert initial_path(smp) == tuple(path)
    assert unpack_smp(smp.pack()) == smp


def test_a_combined_route_names_the_lids_before_and_after_its_directed_part():
    smp = get(path=(1,), dr_slid=7, dr_dlid=9)
    assert (smp.dr_slid, smp.dr_dlid) == (7, 9)


@given(
    method=st.sampled_from([MadMethod.GET, MadMethod.SET]), data=st.binary(max_size=64), status=st.integers(0, 0x7FFF)
)
@pytest.mark.parametrize("path", [None, (), (1, 2)], ids=["LID-routed", "in the node", "directed"])
def test_an_answer_keeps_all_of_the_request_but_method_status_direction_and_data(path, method, data, status):
    request = smp_request(method, 0x15, 3, b"\xff" * 64, transaction_id=99, m_key=5, path=path)
    answer = smp_response(request, data, status)
    assert mad_data(answer) == data.ljust(64, b"\0")
    changed = {"method", "status", "d", "data"}
    assert {name for name in request if request[name] != answer[name]} <= changed
    assert (answer.method, answer.status) == (0x81, status)
    assert answer.get("d") == (None if path is None else 1)
    assert unpack_smp(answer.pack()) == answer


def test_an_smp_stays_what_it_is_in_another_process():
    back = pickle.loads(pickle.dumps(get(path=(1,))))
    assert is_directed(back)
    assert smp_response(back).d == 1


def test_traps_and_their_repression_are_not_answered():
    assert not {MadMethod.TRAP, MadMethod.TRAP_REPRESS, MadMethod.GET_RESP} & RESPONSES.keys()
    assert RESPONSES[MadMethod.GET] == RESPONSES[MadMethod.SET] == MadMethod.GET_RESP
    assert RESPONSES[MadMethod.REPORT] == MadMethod.REPORT_RESP


def test_a_port_of_a_modifier_stands_below_the_extended_speeds_bit():
    assert PORT_INFO_MODIFIER.to_int(port=36, extended_speeds=1) == 0x80000024
    assert PORT_INFO_MODIFIER.from_int(0x80000024).port == 36


@pytest.mark.parametrize(
    ("code", "fields", "modifier"),
    [
        (SmaAttribute.P_KEY_TABLE, {"port": 3, "block": 1}, 0x00030001),
        (SmaAttribute.SL_TO_VL_MAPPING_TABLE, {"input_port": 2, "output_port": 5}, 0x0205),
        (SmaAttribute.VL_ARBITRATION_TABLE, {"block": 3, "port": 7}, 0x00030007),
        (SmaAttribute.LINEAR_FORWARDING_TABLE, {"block": 767}, 767),
        (SmaAttribute.MULTICAST_FORWARDING_TABLE, {"position": 2, "block": 5}, 0x20000005),
        (SmaAttribute.GUID_INFO, {"block": 1}, 1),
        (SmaAttribute.SM_INFO, {"control": 4}, 4),
        (SmaAttribute.LED_INFO, {"port": 3}, 3),
        (SmaAttribute.NODE_INFO, {}, 0),
    ],
)
def test_a_modifier_says_which_part_of_an_attribute(code, fields, modifier):
    layout = SMA_ATTRIBUTES[code].modifier
    assert layout.to_int(fields) == modifier
    assert dict(layout.from_int(modifier)) == fields


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0x0000, "OK"),
        (0x8000, "OK"),
        (0x0001, "Busy"),
        (0x0004, "BadVersion"),
        (0x0008, "MethodNotSupported"),
        (0x000C, "MethodAttributeNotSupported"),
        (0x001C, "InvalidAttributeValue"),
        (0x001F, "Busy, RedirectRequired, InvalidAttributeValue"),
        (0x0010, "reserved code 4"),
        (0x0300, "class status 0x3"),
    ],
)
def test_a_status_is_told_in_words(status, text):
    assert status_text(status) == text


def test_a_performance_mad_is_asked_and_answered_too():
    request = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, b"\0\x01", transaction_id=3)
    assert request.pack()[:4] == bytes.fromhex("01040101")
    assert request.pack()[64:66] == b"\0\x01"
    answer = mad_response(request, b"\x07", MadStatus.BUSY)
    assert (answer.layout, answer.method, answer.status, answer.transaction_id) == (PERF_MAD, 0x81, 1, 3)
    assert mad_data(answer) == b"\x07" + bytes(191)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: get(path=[1] * 64), r"directed route of 64 hops, allowed up to 63"),
        (lambda: get(path=[256]), r"Path\.port: value 0x100 does not fit 8 bits"),
        (lambda: get(data=bytes(65)), r"SMP: attribute of 65 bytes, allowed up to 64"),
        (lambda: smp_response(get().replace(method=5)), r"SMP of method 0x05 has no answer"),
        (lambda: unpack_smp(bytes(255)), r"MAD of 255 bytes, allowed 256"),
        (lambda: unpack_smp(PERF_MAD.pack()), r"SMP of MgmtClass 0x04, allowed 0x01, 0x81"),
        (lambda: with_return_port(get(path=()), 64, 1), r"Path: entry 64, allowed 0\.\.63"),
        (lambda: get(m_key=1 << 64), r"SMP\.m_key: value"),
        (lambda: perf_request(MadMethod.GET, 1, bytes(193), transaction_id=0), r"PerfMAD: attribute of 193 bytes"),
    ],
)
def test_errors_name_the_field_the_value_and_what_is_allowed(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_an_attribute_travels_in_the_data_of_an_smp():
    data = PORT_INFO.pack(lid=7, port_state=3)
    smp = smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 1, data, transaction_id=1)
    assert unpack_smp(smp.pack()).layout is SMP_LID_ROUTED
    assert PORT_INFO.unpack(mad_data(smp)).lid == 7
    assert PORT_INFO.unpack(smp.pack(), SMP_DIRECTED_ROUTE["data"].byte).port_state == 3
