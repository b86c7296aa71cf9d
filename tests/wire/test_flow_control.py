"""Flow control packets and credits: absolute counters that wrap at 4096 blocks."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.crc import lpcrc
from wire.flow_control import (
    CREDIT_MODULUS,
    CREDIT_WINDOW,
    FlowControlError,
    FlowControlFault,
    FlowControlOp,
    FlowControlPacket,
    credit_limit,
    credit_ok,
)

VECTORS = json.loads((Path(__file__).parent / "vectors" / "fcp_lpcrc.json").read_text())["vectors"]
counts = st.integers(0, CREDIT_MODULUS - 1)
packets = st.builds(FlowControlPacket, st.sampled_from(FlowControlOp), counts, st.integers(0, 14), counts)


def sealed(body: bytes) -> bytes:
    return body + lpcrc(body)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['dir']}{v['packet']}")
def test_captured_flow_control_packets_decode_and_encode(vector):
    packet = FlowControlPacket.decode(bytes.fromhex(vector["wire_hex"]))
    assert packet == FlowControlPacket(FlowControlOp(vector["op"]), vector["fctbs"], vector["vl"], vector["fccl"])
    assert packet.encode().hex() == vector["wire_hex"]


@given(packets)
def test_what_is_encoded_is_decoded(packet):
    assert FlowControlPacket.decode(packet.encode()) == packet


def test_each_field_stands_in_its_nibbles():
    packet = FlowControlPacket(FlowControlOp.INIT, 0x234, 5, 0x678)
    assert packet.encode()[:4].hex() == "12345678"


@given(packets, st.integers(0, 47))
def test_one_wrong_bit_is_reported_as_lpcrc_whatever_else_it_breaks(packet, bit):
    wire = (int.from_bytes(packet.encode(), "big") ^ 1 << bit).to_bytes(6, "big")
    with pytest.raises(FlowControlError, match="LPCRC is wrong") as caught:
        FlowControlPacket.decode(wire)
    assert caught.value.fault is FlowControlFault.LPCRC


# Op 2, VL 15: bytes 2f ff ff ff; each case leaves out one more fault.
@pytest.mark.parametrize(
    ("wire", "fault", "message"),
    [
        (b"\x2f\xff\xff\xff\x00\x00\x00\x00", FlowControlFault.LPCRC, "LPCRC is wrong"),
        (sealed(b"\x2f\xff\xff\xff\x00\x00"), FlowControlFault.OP, "link packet Op 2, allowed 0, 1"),
        (sealed(b"\x0f\xff\xff\xff\x00\x00"), FlowControlFault.LENGTH, "link packet of 8 bytes, allowed 6"),
        (sealed(b"\x0f\xff\xff\xff"), FlowControlFault.VL, r"vl: value 15, allowed 0\.\.14"),
        (b"", FlowControlFault.LPCRC, "LPCRC is wrong"),
    ],
    ids=["lpcrc", "op", "length", "vl", "nothing"],
)
def test_of_several_faults_the_first_in_the_standards_order_is_reported(wire, fault, message):
    with pytest.raises(FlowControlError, match=message) as caught:
        FlowControlPacket.decode(wire)
    assert caught.value.fault is fault


def test_faults_are_listed_in_the_order_of_reporting():
    assert list(FlowControlFault) == [
        FlowControlFault.LPCRC,
        FlowControlFault.OP,
        FlowControlFault.LENGTH,
        FlowControlFault.VL,
    ]


def test_an_unsupported_vl_is_a_fault_only_to_a_port_that_knows_its_vls():
    wire = FlowControlPacket(FlowControlOp.INIT, 0, 4, 100).encode()
    assert FlowControlPacket.decode(wire).vl == 4
    assert FlowControlPacket.decode(wire, data_vls=8).vl == 4
    with pytest.raises(FlowControlError, match=r"vl: value 4, allowed 0\.\.3"):
        FlowControlPacket.decode(wire, data_vls=4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((2, 0, 0, 0), r"flow control op: value 2, allowed 0 \(normal\), 1 \(init\)"),
        ((0, 4096, 0, 0), r"FlowControl\.fctbs: value 0x1000 does not fit 12 bits"),
        ((0, 0, 15, 0), r"flow control vl: value 15, allowed 0\.\.14"),
        ((0, 0, 0, -1), r"FlowControl\.fccl: value -0x1 does not fit 12 bits"),
    ],
)
def test_vl15_other_ops_and_wide_counters_have_no_flow_control_packet(fields, message):
    with pytest.raises(ValueError, match=message):
        FlowControlPacket(*fields)


@given(sent=counts, credits=st.integers(0, CREDIT_WINDOW), need=st.integers(1, 66))
def test_a_packet_starts_only_if_all_its_blocks_have_credit(sent, credits, need):
    limit = (sent + credits) % CREDIT_MODULUS
    assert credit_ok(limit, sent, need) == (need <= credits)


def test_credits_hold_across_the_wrap_at_4096():
    assert credit_ok(fccl=10, fctbs=4090, need=16)
    assert not credit_ok(fccl=10, fctbs=4090, need=17)
    assert credit_ok(fccl=0, fctbs=4095, need=1)
    assert not credit_ok(fccl=4095, fctbs=4095, need=1)


def test_a_full_window_of_credits_is_usable_and_one_more_would_be_ambiguous():
    assert credit_ok(fccl=2048, fctbs=0, need=1)
    assert credit_ok(fccl=2048, fctbs=0, need=2048)
    assert not credit_ok(fccl=2048, fctbs=0, need=2049)
    assert credit_ok(fccl=2049, fctbs=0, need=1)
    assert not credit_ok(fccl=2050, fctbs=0, need=1)


@given(received=counts, free=st.integers(0, 10_000), need=st.integers(1, 66))
def test_a_receiver_grants_its_room_but_never_more_than_the_window(received, free, need):
    limit = credit_limit(received, free)
    assert (limit - received) % CREDIT_MODULUS == min(free, CREDIT_WINDOW)
    assert credit_ok(limit, received, need) == (need <= free)


def test_the_grant_wraps_at_4096():
    assert credit_limit(4000, 100) == 4
    assert credit_limit(4000, 5000) == 1952


def test_26_captured_packets_of_2_kib_move_the_counter_by_33_blocks_each():
    assert (1404 + 26 * 33) % CREDIT_MODULUS == 2262
    assert credit_ok(fccl=3206, fctbs=1404, need=1802)
    assert not credit_ok(fccl=3206, fctbs=1404, need=1803)
