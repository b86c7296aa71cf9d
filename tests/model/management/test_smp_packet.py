"""What an SMP's packet is (docs/management.md, section 1)."""

import pytest

from model.management.mad_in_packet import is_smp, smp_in, with_fields
from wire.codes import LNH
from wire.crc import icrc_good
from wire.headers import BTH, LRH
from wire.mad import MAD_HEADER, MgmtClass
from wire.mad_packet import smp_packet
from wire.opcodes import Opcode
from wire.packet import build_ud_send
from wire.sma import SmaAttribute
from wire.smp import smp_request

MAD_AT = 28
PACKET = smp_packet(smp_request(1, SmaAttribute.NODE_INFO, transaction_id=1, path=(1, 2))).data


@pytest.mark.parametrize("path", [None, (), (1, 2)])
def test_both_classes_are_smps(path):
    smp = smp_request(1, SmaAttribute.NODE_INFO, transaction_id=1, path=path)
    assert is_smp(smp_packet(smp).data)
    assert smp_in(smp_packet(smp).data) == smp


@pytest.mark.parametrize(
    "change",
    [
        lambda data: LRH["lnh"].write(data, LNH.IBA_GLOBAL),
        lambda data: LRH["lnh"].write(data, LNH.RAW),
        lambda data: BTH["opcode"].write(data, Opcode.UD_SEND_ONLY_IMM, LRH.size_bytes),
        lambda data: BTH["dest_qp"].write(data, 1, LRH.size_bytes),
        lambda data: BTH["dest_qp"].write(data, 1 << 23, LRH.size_bytes),
        lambda data: MAD_HEADER["base_version"].write(data, 2, MAD_AT),
        lambda data: MAD_HEADER["mgmt_class"].write(data, MgmtClass.PERF, MAD_AT),
        lambda data: data[:-4],
        lambda data: data + bytes(4),
    ],
)
def test_one_of_another_kind_is_none(change):
    assert not is_smp(change(PACKET))


def test_a_short_packet_is_none():
    assert not is_smp(build_ud_send(slid=1, dlid=2, dest_qp=0, src_qp=0, q_key=0, payload=b"").data)


def test_a_packet_that_is_passed_on_keeps_every_other_bit_and_has_a_right_icrc():
    ones = PACKET[:2] + b"\xff" * 4 + PACKET[6:8] + b"\xff" * (len(PACKET) - 8)
    mgmt_class = MAD_HEADER["mgmt_class"]
    before = mgmt_class.write(ones, MgmtClass.SUBN_DIRECTED_ROUTE, MAD_AT)
    after = with_fields(before, {"slid": 5}, {"hop_pointer": 3})
    assert icrc_good(after)
    assert smp_in(after) == smp_in(before).replace(hop_pointer=3)
    assert LRH.unpack(after) == LRH.unpack(before).replace(slid=5)
    changed = [i for i in range(len(after) - 4) if after[i] != before[i]]
    assert changed == [6, 7, MAD_AT + 6], "the bytes of SLID and HopPointer"
