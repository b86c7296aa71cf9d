"""MADs travel as UD SEND Only: SMPs on VL15 to QP0, all others to QP1."""

import pytest

from wire import codes
from wire.headers import DETH
from wire.mad import MadMethod
from wire.mad_packet import gmp_of, gmp_packet, is_mad, smp_of, smp_packet
from wire.packet import Packet, build_ud_send, parse
from wire.pma import PmaAttribute, perf_request
from wire.sma import SmaAttribute
from wire.smp import smp_request

SMP = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(1,))
PERF = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, b"\0\x01", transaction_id=2)


def ud(payload: bytes, **fields: int) -> Packet:
    base = {"slid": 1, "dlid": 2, "dest_qp": 0, "src_qp": 0, "q_key": 0, "vl": 15}
    return build_ud_send(**{**base, **fields}, payload=payload)


def test_a_directed_smp_has_permissive_lids_and_72_words_on_vl15():
    packet = smp_packet(SMP)
    assert (packet.lrh.vl, packet.lrh.slid, packet.lrh.dlid, packet.lrh.pkt_len) == (15, 0xFFFF, 0xFFFF, 72)
    assert (packet.bth.dest_qp, packet.bth.p_key, packet.bth.mig_req) == (codes.QP_SMI, 0xFFFF, 0)
    assert packet.header(DETH) == {"q_key": 0, "resv8": 0, "src_qp": 0}
    assert packet.icrc_good
    assert packet.vcrc_good


def test_a_performance_mad_travels_on_a_data_vl_under_the_well_known_q_key():
    packet = gmp_packet(PERF, 5, 1, sl=3, vl=2)
    assert (packet.lrh.vl, packet.lrh.sl, packet.lrh.slid, packet.lrh.dlid) == (2, 3, 5, 1)
    assert packet.bth.dest_qp == codes.QP_GSI
    assert packet.header(DETH).q_key == 0x80010000
    assert gmp_of(parse(packet.wire)) == PERF.pack()


@pytest.mark.parametrize("path", [None, (), (1, 2, 3)])
def test_an_smp_comes_out_of_its_packet(path):
    smp = smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 1, b"\x05", transaction_id=7, path=path)
    assert smp_of(parse(smp_packet(smp, 3, 4).wire)) == smp.pack()


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (ud(SMP.pack(), vl=0), r"SMP on VL 0, allowed 15"),
        (ud(SMP.pack(), dest_qp=1), r"MAD to QP 0x1, allowed 0x0"),
        (ud(SMP.pack()[:252]), r"MAD of 252 bytes, allowed 256"),
        (ud(SMP.replace(base_version=2).pack()), r"MAD of BaseVersion 2, allowed 1"),
        (ud(SMP.replace(mgmt_class=4).pack()), r"SMP of MgmtClass 0x04, allowed 0x01, 0x81"),
    ],
)
def test_what_an_smi_must_discard_is_refused(packet, reason):
    with pytest.raises(ValueError, match=reason):
        smp_of(packet)


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (ud(PERF.pack(), dest_qp=1), r"MAD to QP1 on VL 15, allowed data VLs"),
        (ud(PERF.pack(), vl=0), r"MAD to QP 0x0, allowed 0x1"),
        (ud(PERF.pack(), vl=0, dest_qp=1, q_key=5), r"MAD with Q_Key 0x00000005, allowed 0x80010000"),
    ],
)
def test_what_a_gsi_must_discard_is_refused(packet, reason):
    with pytest.raises(ValueError, match=reason):
        gmp_of(packet)


def test_what_goes_to_qp0_is_a_mad_if_it_is_an_smp():
    assert is_mad(smp_packet(SMP).data)
    assert is_mad(gmp_packet(PERF, 1, 2).data)
    assert not is_mad(ud(bytes(256)).data)
    assert not is_mad(ud(PERF.pack()).data)
    assert not is_mad(ud(SMP.pack()[:-4]).data)
    assert not is_mad(ud(SMP.pack(), dest_qp=2).data)
