"""Packets are built with the right lengths and CRCs and parse back to what they were built from."""

import json
import pickle
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire import codes
from wire.headers import AETH, BTH, DETH, GRH, LRH, RETH, RWH
from wire.layout import Layout
from wire.opcodes import Opcode, extended_headers
from wire.packet import blocks, blocks_of_words, build, build_raw, build_ud_send, parse, rows_of_words
from wire.symbols import frame_data_packet

VECTORS = json.loads((Path(__file__).parent / "vectors" / "ib_spec_samples.json").read_text())["vectors"]
LOCAL, GLOBAL = (bytes.fromhex(vector["packet_hex"]) for vector in VECTORS)
KEYWORDS = {
    "RDETH": "rdeth", "DETH": "deth", "XRCETH": "xrceth", "RETH": "reth", "AtomicETH": "atomic_eth",
    "AETH": "aeth", "AtomicAckETH": "atomic_ack_eth", "ImmDt": "imm_dt", "IETH": "ieth",
}  # fmt: skip


@cache
def fields(layout: Layout) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({field.name: st.integers(0, field.max) for field in layout.fields})


def ud(payload: bytes = b"", **fields: int):
    return build_ud_send(**{"slid": 1, "dlid": 2, "dest_qp": 3, "src_qp": 4, "q_key": 5, "payload": payload, **fields})


def test_the_standards_sample_packet_is_an_rdma_write_with_two_pad_bytes():
    packet = parse(LOCAL)
    assert packet.icrc_good
    assert packet.vcrc_good
    assert packet.bth.opcode == Opcode.RC_RDMA_WRITE_ONLY
    assert (packet.lrh.vl, packet.lrh.sl, packet.lrh.dlid, packet.lrh.slid) == (7, 1, 0x375C, 0x17D2)
    assert (packet.bth.p_key, packet.bth.dest_qp, packet.bth.psn) == (0x2487, 0x87B1B3, 0x0DEC2A)
    assert packet.header(RETH).dma_len == len(packet.payload) == 14
    assert packet.bth.pad_cnt == 2
    assert packet.grh is None
    assert packet.wire == LOCAL


def test_the_sample_packet_with_a_grh_parses():
    packet = parse(GLOBAL)
    assert packet.icrc_good
    assert packet.vcrc_good
    assert (packet.grh.ip_ver, packet.grh.sgid & 0xFFFF, packet.grh.dgid & 0xFFFF) == (6, 0x26, 0x96)
    assert packet.payload == parse(LOCAL).payload
    assert packet.wire == GLOBAL


def test_the_sample_packet_is_rebuilt_from_its_fields_to_the_bit():
    sample = parse(LOCAL)
    rebuilt = build(lrh=sample.lrh, bth=sample.bth, reth=sample.header(RETH), payload=sample.payload)
    assert rebuilt == sample
    assert rebuilt.wire == LOCAL


@pytest.mark.parametrize("opcode", Opcode, ids=lambda opcode: opcode.name)
@pytest.mark.parametrize("routed", [False, True], ids=["local", "global"])
@settings(max_examples=10)
@given(draw=st.data())
def test_a_packet_of_any_opcode_parses_to_what_it_was_built_from(opcode, routed, draw):
    bth = draw.draw(fields(BTH)) | {"opcode": opcode}
    lrh = draw.draw(fields(LRH))
    grh = draw.draw(fields(GRH)) if routed else None
    extended = {KEYWORDS[layout.name]: draw.draw(fields(layout)) for layout in extended_headers(opcode)}
    payload = draw.draw(st.binary(max_size=64))

    packet = build(lrh=lrh, grh=grh, bth=bth, payload=payload, **extended)
    assert parse(packet.wire) == packet
    assert parse(packet.data).wire == packet.wire
    assert packet.icrc_good
    assert packet.vcrc_good
    assert len(packet.data) == packet.lrh.pkt_len * 4
    assert packet.lrh.lnh == (codes.LNH.IBA_GLOBAL if routed else codes.LNH.IBA_LOCAL)
    assert (len(payload) + packet.bth.pad_cnt) % 4 == 0
    assert packet.payload == payload
    assert packet.lrh == lrh | {"lnh": packet.lrh.lnh, "pkt_len": packet.lrh.pkt_len}
    assert packet.bth == bth | {"pad_cnt": packet.bth.pad_cnt}
    if grh is not None:
        assert packet.grh == grh | {"pay_len": packet.lrh.pkt_len * 4 - 48}
    for layout in extended_headers(opcode):
        assert packet.header(layout) == extended[KEYWORDS[layout.name]]


def test_a_mad_makes_a_packet_of_72_words():
    packet = ud(bytes(256), vl=codes.VL15, dest_qp=codes.QP_SMI, src_qp=codes.QP_SMI, q_key=codes.Q_KEY_SMI)
    assert packet.lrh.pkt_len == 72
    assert packet.bth.opcode == Opcode.UD_SEND_ONLY
    assert packet.blocks == 5


def test_a_grh_counts_its_payload_from_the_bth_through_the_icrc():
    # A captured multicast packet: 43 words, PayLen 124.
    packet = build_ud_send(
        slid=1, dlid=0xC000, dest_qp=codes.QP_MULTICAST, src_qp=2, q_key=3, payload=bytes(100), grh={"hop_lmt": 1}
    )
    assert (packet.lrh.pkt_len, packet.grh.pay_len) == (43, 124)
    assert (packet.grh.ip_ver, packet.grh.nxt_hdr, packet.grh.hop_lmt) == (6, 0x1B, 1)


@pytest.mark.parametrize(("size", "pad"), [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0)])
def test_padding_is_zero_and_fills_the_last_word(size, pad):
    packet = ud(b"\xff" * size)
    assert packet.bth.pad_cnt == pad
    assert packet.data[28:-4] == b"\xff" * size + bytes(pad)


@given(payload=st.binary(max_size=40).map(lambda data: data[: len(data) // 4 * 4]), lrh=fields(LRH))
def test_raw_packets_have_no_icrc_and_parse_to_what_they_were_built_from(payload, lrh):
    for header, lnh in ((RWH.record(ether_type=0x0806), 0), (GRH.record(nxt_hdr=59), 1)):
        packet = build_raw(lrh=lrh, header=header, payload=payload)
        assert parse(packet.wire) == packet
        assert packet.lrh.lnh == lnh
        assert packet.headers[1] == header
        assert packet.payload == payload
        assert packet.bth is None
        assert packet.data == packet.lrh.pack() + header.pack() + payload
        assert packet.icrc_good
        assert packet.vcrc_good


def test_a_switch_may_rewrite_the_vl_and_becn_without_touching_the_icrc():
    data = LRH["vl"].write(ud(b"data").data, 9)
    assert parse(BTH["becn"].write(data, 1, start=8)).icrc_good
    assert not parse(LRH["sl"].write(data, 9)).icrc_good


def test_a_packet_without_vcrc_has_none_to_be_good():
    packet = parse(ud(b"data").data)
    assert packet.vcrc is None
    assert not packet.vcrc_good


def test_a_damaged_packet_still_parses_and_its_crcs_tell():
    wire = bytearray(ud(b"data").wire)
    wire[28] ^= 1
    packet = parse(bytes(wire))
    assert not packet.icrc_good
    assert not packet.vcrc_good
    assert packet.wire == bytes(wire)


def test_a_packet_survives_a_trip_to_another_process():
    packet = pickle.loads(pickle.dumps(ud(b"data")))
    assert packet == ud(b"data")
    assert packet.header(DETH).q_key == 5


@pytest.mark.parametrize(("mtu", "need"), [(256, 5), (512, 9), (1024, 17), (2048, 33), (4096, 65)])
def test_a_full_packet_of_each_mtu_takes_these_blocks(mtu, need):
    packet = build(lrh={}, bth={"opcode": Opcode.RC_SEND_MIDDLE}, payload=bytes(mtu))
    assert packet.blocks == blocks(len(packet.wire)) == blocks_of_words(packet.lrh.pkt_len) == need


@given(st.integers(1, 2047))
def test_blocks_round_up_over_the_vcrc(words):
    assert (blocks_of_words(words) - 1) * 64 < words * 4 + 2 <= blocks_of_words(words) * 64


def test_the_vcrc_can_open_a_block_of_its_own():
    assert (blocks(64), blocks(66)) == (1, 2)
    assert (blocks_of_words(15), blocks_of_words(16)) == (1, 2)


@given(st.binary(max_size=200))
def test_a_packet_takes_one_row_more_than_its_words(payload):
    packet = ud(payload)
    assert len(frame_data_packet(packet.wire)) == rows_of_words(packet.lrh.pkt_len)


def short(lnh: int, words: int, **bth: int) -> bytes:
    data = LRH.pack(lnh=lnh, pkt_len=words)
    if lnh == codes.LNH.IBA_LOCAL:
        data += BTH.pack(bth)
    return (data + bytes(4 * words))[: 4 * words]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: parse(b"\x00" * 7), r"LRH: needs 8 bytes, got 7"),
        (lambda: parse(LOCAL[:-1]), r"LRH\.pkt_len 14 makes 56 bytes, 58 with VCRC, got 57"),
        (lambda: parse(short(2, 5)), r"BTH needs 12 bytes, 8 are left"),
        (lambda: parse(short(3, 12)), r"GRH needs 40 bytes, 36 are left"),
        (lambda: parse(short(0, 2)), r"RWH needs 4 bytes, 0 are left"),
        (lambda: parse(short(1, 5)), r"GRH needs 40 bytes, 12 are left"),
        (lambda: parse(short(2, 6, opcode=0x11)), r"AETH needs 4 bytes, 0 are left"),
        (lambda: parse(short(2, 6, opcode=0x1F)), r"BTH\.opcode 0x1f is reserved or vendor defined"),
        (lambda: parse(short(2, 6, pad_cnt=1)), r"BTH\.pad_cnt 1 exceeds the 0 bytes after the headers"),
        (lambda: build(lrh={}, bth={}), r"BTH\.opcode is not given"),
        (lambda: build(lrh={}, bth={"opcode": 0x64}), r"UD_SEND_ONLY takes headers DETH, got none"),
        (
            lambda: build(lrh={}, bth={"opcode": 0x04}, deth={}),
            r"RC_SEND_ONLY takes headers none, got DETH",
        ),
        (lambda: build(lrh={}, bth={"opcode": 4}, dett={}), r"extended header 'dett' is unknown, allowed rdeth"),
        (lambda: build(lrh={"dlid": 65536}, bth={"opcode": 4}), r"LRH\.dlid: value 0x10000"),
        (lambda: ud(bytes(8192)), r"LRH\.pkt_len: value 0x808 does not fit 11 bits"),
        (lambda: build_raw(lrh={}, header=RWH.record(), payload=b"abc"), r"raw payload of 3 bytes, allowed mult"),
        (lambda: build_raw(lrh={}, header=BTH.record()), r"raw packet with BTH, allowed RWH, GRH"),
        (lambda: ud().header(AETH), r"the packet has no AETH, it has LRH, BTH, DETH"),
    ],
)
def test_errors_name_the_header_and_what_is_wrong_with_it(act, message):
    with pytest.raises(ValueError, match=message):
        act()
