"""What a PMA request's packet is (docs/management.md, section 1)."""

import pytest

from model.management.mad_in_packet import answer_packet, gmp_in, is_perf_request, request_class
from wire.codes import LNH
from wire.congestion_control import CcAttribute, cc_request
from wire.crc import icrc_good
from wire.headers import BTH, DETH, GRH, LRH
from wire.mad import MAD_HEADER, MadMethod, MgmtClass
from wire.mad_packet import gmp_packet
from wire.opcodes import Opcode
from wire.packet import build_ud_send
from wire.pma import PERF_MAD, PmaAttribute, perf_request

DETH_AT, MAD_AT = 20, 28
MULTICAST_ENDS = (0xBFFF, 0xC000, 0xFFFE, 0xFFFF)
GET = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, bytes([0, 3]), transaction_id=5)
PACKET = gmp_packet(GET, 8, 9, sl=3, src_qp=0xABCDEF).data


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("vl", [0, 7])
def test_gets_and_sets_are_requests_whatever_they_ask(method, vl):
    mad = perf_request(method, 0xFF00, transaction_id=1).replace(class_version=9, attribute_modifier=7)
    packet = gmp_packet(mad, 8, 9, vl=vl).data
    assert is_perf_request(packet)
    assert gmp_in(packet) == mad


@pytest.mark.parametrize(
    "change",
    [
        lambda data: LRH["lnh"].write(data, LNH.IBA_GLOBAL),
        lambda data: LRH["lnh"].write(data, LNH.RAW),
        lambda data: BTH["opcode"].write(data, Opcode.UD_SEND_ONLY_IMM, LRH.size_bytes),
        lambda data: BTH["dest_qp"].write(data, 0, LRH.size_bytes),
        lambda data: BTH["dest_qp"].write(data, 1 << 23 | 1, LRH.size_bytes),
        lambda data: DETH["q_key"].write(data, 0x8001_0001, DETH_AT),
        lambda data: DETH["q_key"].write(data, 0, DETH_AT),
        lambda data: MAD_HEADER["base_version"].write(data, 2, MAD_AT),
        lambda data: MAD_HEADER["mgmt_class"].write(data, MgmtClass.SUBN_ADM, MAD_AT),
        lambda data: MAD_HEADER["mgmt_class"].write(data, MgmtClass.SUBN_LID_ROUTED, MAD_AT),
        lambda data: MAD_HEADER["method"].write(data, MadMethod.GET_RESP, MAD_AT),
        lambda data: MAD_HEADER["method"].write(data, MadMethod.TRAP, MAD_AT),
        lambda data: data[:-4],
        lambda data: data + bytes(4),
    ],
)
def test_one_of_another_kind_is_none(change):
    assert not is_perf_request(change(PACKET))


GRH_FIELDS = {"sgid": 5 << 64 | 6, "dgid": 7 << 64 | 8, "t_class": 0xA5, "flow_label": 0x54321, "hop_lmt": 3}


def test_a_request_may_have_a_grh_and_its_answer_goes_back_by_it():
    packet = gmp_packet(GET, 8, 9, sl=3, src_qp=0xABCDEF, grh=GRH_FIELDS).data
    assert is_perf_request(packet)
    assert gmp_in(packet) == GET
    after = answer_packet(packet, GET.replace(status=0x1C))
    assert icrc_good(after)
    back = {"sgid": GRH_FIELDS["dgid"], "dgid": GRH_FIELDS["sgid"], "hop_lmt": 255}
    assert GRH.unpack(after, 8) == GRH.unpack(packet, 8).replace(**back)
    local = answer_packet(PACKET, GET.replace(status=0x1C))
    assert (LRH.unpack(after).dlid, after[48:-4]) == (8, local[8:-4])
    for wrong in ({"ip_ver": 4}, {"nxt_hdr": 0}):
        assert not is_perf_request(gmp_packet(GET, 8, 9, grh=GRH_FIELDS | wrong).data)


@pytest.mark.parametrize("mad", [GET, cc_request(MadMethod.GET, CcAttribute.TIME_STAMP, transaction_id=5)])
def test_one_to_a_multicast_lid_is_none(mad):
    """Its answer would have that as SLID."""
    for grh in (None, GRH_FIELDS):
        is_request = {dlid: request_class(gmp_packet(mad, 8, dlid, grh=grh).data) for dlid in MULTICAST_ENDS}
        assert is_request == dict.fromkeys(MULTICAST_ENDS, 0) | {0xBFFF: mad.mgmt_class, 0xFFFF: mad.mgmt_class}


@pytest.mark.parametrize("grh", [None, GRH_FIELDS])
def test_only_congestion_control_is_asked_to_repress_a_trap(grh):
    repress = cc_request(MadMethod.TRAP_REPRESS, CcAttribute.NOTICE, transaction_id=5)
    of_perf = GET.replace(method=MadMethod.TRAP_REPRESS)
    found = [request_class(gmp_packet(mad, 8, 9, grh=grh).data) for mad in (repress, of_perf)]
    assert found == [MgmtClass.CONGESTION_CONTROL, 0]


def test_a_short_packet_is_none():
    assert not is_perf_request(build_ud_send(slid=1, dlid=2, dest_qp=1, src_qp=1, q_key=0x80010000, payload=b"").data)


def test_an_answer_goes_back_and_keeps_every_other_bit():
    ones = b"\xff" * 4 + PACKET[4:6] + PACKET[6:8] + b"\xff" * (len(PACKET) - 8)
    ones = MAD_HEADER["mgmt_class"].write(ones, MgmtClass.PERF, MAD_AT)
    before = DETH["src_qp"].write(LRH["slid"].write(ones, 0x1234), 0x56789A, DETH_AT)
    answer = gmp_in(before).replace(status=0x1C, method=MadMethod.GET_RESP)
    after = answer_packet(before, answer)
    assert icrc_good(after)
    assert LRH.unpack(after) == LRH.unpack(before).replace(dlid=0x1234, slid=0xFFFF)
    assert BTH.unpack(after, 8) == BTH.unpack(before, 8).replace(dest_qp=0x56789A)
    assert DETH.unpack(after, DETH_AT) == DETH.unpack(before, DETH_AT).replace(src_qp=1)
    assert PERF_MAD.unpack(after[MAD_AT:-4]) == answer
    named = {2, 3, 6, 7, *range(13, 16), *range(25, 28), MAD_AT + 3, MAD_AT + 4, MAD_AT + 5}
    assert {i for i in range(len(after) - 4) if after[i] != before[i]} <= named
