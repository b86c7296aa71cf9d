"""VCRC, LPCRC and ICRC agree with captured packets and catch every single wrong bit."""

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import crc
from wire.headers import BTH, GRH, LRH
from wire.packet import build_ud_send

VECTORS = Path(__file__).parent / "vectors"
LINK_PACKETS = json.loads((VECTORS / "fcp_lpcrc.json").read_text())["vectors"]
DATA_PACKETS = json.loads((VECTORS / "ib_spec_samples.json").read_text())["vectors"]
LOCAL, GLOBAL = (bytes.fromhex(vector["packet_hex"]) for vector in DATA_PACKETS)

each_link_packet = pytest.mark.parametrize("vector", LINK_PACKETS, ids=lambda v: f"{v['dir']}{v['packet']}")
each_data_packet = pytest.mark.parametrize("vector", DATA_PACKETS, ids=["local", "global"])
packet_bytes = st.binary(min_size=1, max_size=300)


def flip(data: bytes, bit: int) -> bytes:
    return (int.from_bytes(data, "big") ^ 1 << bit).to_bytes(len(data), "big")


def register_of(data: bytes, poly_reflected: int, register: int) -> int:
    """The textbook's shift register, one bit at a time."""
    for byte in data:
        for bit in range(8):
            feedback = register & 1 ^ byte >> bit & 1
            register = register >> 1 ^ (poly_reflected if feedback else 0)
    return register


def reflect(value: int, width: int) -> int:
    return int(f"{value:0{width}b}"[::-1], 2)


@each_link_packet
def test_captured_link_packets_have_this_lpcrc(vector):
    assert crc.lpcrc(bytes.fromhex(vector["body_hex"])).hex() == vector["lpcrc_hex"]
    assert crc.lpcrc_good(bytes.fromhex(vector["wire_hex"]))


@each_data_packet
def test_sample_packets_have_this_vcrc(vector):
    packet = bytes.fromhex(vector["packet_hex"])
    assert crc.vcrc(packet[:-2]).hex() == vector["vcrc_wire"]
    assert crc.vcrc_good(packet)


@each_data_packet
def test_sample_packets_have_this_icrc(vector):
    packet = bytes.fromhex(vector["packet_hex"])
    assert crc.icrc(packet[:-6]).hex() == vector["icrc_wire"]
    assert crc.icrc_good(packet[:-2])


@each_data_packet
def test_the_icrc_sees_ones_in_the_fields_that_may_change_on_the_way(vector):
    packet = bytes.fromhex(vector["packet_hex"])
    assert crc.icrc_masked(packet[:-6]).hex() == vector["masked_hex"]


def test_the_check_value_of_the_vcrc_is_0x0a3d_low_byte_first():
    assert crc.vcrc(b"123456789") == bytes.fromhex("3d0a")


def test_reflected_polynomials_are_the_plain_ones_backwards():
    assert reflect(crc.VCRC_POLY, crc.VCRC_WIDTH) == crc.VCRC_POLY_REFLECTED
    assert reflect(crc.ICRC_POLY, crc.ICRC_WIDTH) == crc.ICRC_POLY_REFLECTED


@given(packet_bytes)
def test_the_vcrc_is_the_textbooks_shift_register(data):
    register = register_of(data, crc.VCRC_POLY_REFLECTED, crc.VCRC_INIT)
    assert crc.vcrc(data) == (register ^ 0xFFFF).to_bytes(2, "little")


@given(packet_bytes)
def test_a_good_packet_leaves_the_residue_in_a_receivers_vcrc_register(data):
    whole = data + crc.vcrc(data)
    assert register_of(whole, crc.VCRC_POLY_REFLECTED, crc.VCRC_INIT) == crc.VCRC_RESIDUE


@each_data_packet
def test_a_good_packet_leaves_the_residue_in_a_receivers_icrc_register(vector):
    whole = bytes.fromhex(vector["masked_hex"] + vector["icrc_wire"])
    assert register_of(whole, crc.ICRC_POLY_REFLECTED, crc.ICRC_INIT) == crc.ICRC_RESIDUE


@given(data=packet_bytes, draw=st.data())
def test_one_wrong_bit_anywhere_breaks_the_vcrc(data, draw):
    whole = data + crc.vcrc(data)
    bit = draw.draw(st.integers(0, len(whole) * 8 - 1))
    assert crc.vcrc_good(whole)
    assert not crc.vcrc_good(flip(whole, bit))


@pytest.mark.parametrize("bit", range(48))
def test_one_wrong_bit_anywhere_breaks_the_lpcrc(bit):
    whole = bytes.fromhex(LINK_PACKETS[0]["wire_hex"])
    assert not crc.lpcrc_good(flip(whole, bit))


@pytest.mark.parametrize("packet", [LOCAL, GLOBAL], ids=["local", "global"])
def test_one_wrong_bit_breaks_the_icrc_unless_it_is_masked(packet):
    covered = packet[:-2]
    global_route = packet is GLOBAL
    bth = 48 if global_route else 8
    masked = {(bth + 4) * 8 + bit for bit in range(8)}
    if global_route:
        masked |= set(range(64)) | set(range(64 + 4, 64 + 32)) | set(range(64 + 56, 64 + 64))
    else:
        masked |= set(range(4))
    lnh = {14, 15}  # says where the BTH is, and whether there is an ICRC at all
    for bit in set(range(len(covered) * 8)) - lnh:
        assert crc.icrc_good(flip(covered, len(covered) * 8 - 1 - bit)) == (bit in masked), f"bit {bit}"


@pytest.mark.parametrize(
    ("packet", "mask", "start"),
    [
        (LOCAL, LRH["vl"], 0),
        (LOCAL, BTH["fecn"], 8),
        (LOCAL, BTH["becn"], 8),
        (LOCAL, BTH["resv6a"], 8),
        (GLOBAL, LRH["vl"], 0),
        (GLOBAL, LRH["sl"], 0),
        (GLOBAL, LRH["dlid"], 0),
        (GLOBAL, LRH["pkt_len"], 0),
        (GLOBAL, LRH["slid"], 0),
        (GLOBAL, GRH["t_class"], 8),
        (GLOBAL, GRH["flow_label"], 8),
        (GLOBAL, GRH["hop_lmt"], 8),
        (GLOBAL, BTH["becn"], 48),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_dropping_any_one_mask_gives_a_wrong_icrc(packet, mask, start):
    body, right = packet[:-6], packet[-6:-2]
    masked = crc.icrc_masked(body)
    unmasked = mask.write(masked, mask.read(body, start), start)
    register = register_of(masked, crc.ICRC_POLY_REFLECTED, crc.ICRC_INIT) ^ 0xFFFFFFFF
    assert register.to_bytes(4, "little") == right
    assert unmasked != masked
    wrong = register_of(unmasked, crc.ICRC_POLY_REFLECTED, crc.ICRC_INIT) ^ 0xFFFFFFFF
    assert wrong.to_bytes(4, "little") != right


@pytest.mark.parametrize("data_bytes", [1, 2, 3, 4, 8])
@pytest.mark.parametrize(
    ("poly_reflected", "width"),
    [(crc.VCRC_POLY_REFLECTED, crc.VCRC_WIDTH), (crc.ICRC_POLY_REFLECTED, crc.ICRC_WIDTH)],
    ids=["VCRC", "ICRC"],
)
@given(draw=st.data())
def test_the_parallel_masks_step_like_the_shift_register(poly_reflected, width, data_bytes, draw):
    state = draw.draw(st.integers(0, (1 << width) - 1))
    chunk = draw.draw(st.binary(min_size=data_bytes, max_size=data_bytes))
    data = int.from_bytes(chunk, "little")
    masks = crc.crc_step_masks(poly_reflected, width, 8 * data_bytes)
    stepped = sum(
        ((state & state_mask).bit_count() + (data & data_mask).bit_count()) % 2 << bit
        for bit, (state_mask, data_mask) in enumerate(masks)
    )
    assert len(masks) == width
    assert stepped == register_of(chunk, poly_reflected, state)


vls = st.integers(0, 15)


@given(old=vls, new=vls, data=packet_bytes)
def test_rewriting_the_vl_moves_the_vcrc_by_a_constant(old, new, data):
    before = LRH["vl"].write(data + bytes(8), old)
    after = LRH["vl"].write(before, new)
    assert crc.vcrc_with_vl(crc.vcrc(before), old, new, len(before)) == crc.vcrc(after)


def test_rewriting_the_vl_holds_at_the_largest_packet():
    before, after = bytes([0x00]) + bytes(4219), bytes([0x70]) + bytes(4219)
    assert crc.vcrc_with_vl(crc.vcrc(before), 0, 7, 4220) == crc.vcrc(after)


@given(old=vls, new=vls)
def test_a_packet_marked_bad_stays_marked_bad_when_its_vl_is_rewritten(old, new):
    before = build_ud_send(slid=1, dlid=2, dest_qp=3, src_qp=4, q_key=5, payload=b"abcd", vl=old).data
    after = LRH["vl"].write(before, new)
    moved = crc.vcrc_with_vl(crc.invert_vcrc(crc.vcrc(before)), old, new, len(before))
    assert moved == crc.invert_vcrc(crc.vcrc(after))
    assert not crc.vcrc_good(after + moved)


def test_rewriting_the_vl_with_the_length_of_another_packet_gives_a_wrong_vcrc():
    before, after = b"\x00" + bytes(63), b"\x30" + bytes(63)
    assert crc.vcrc_with_vl(crc.vcrc(before), 0, 3, 60) != crc.vcrc(after)


def test_a_packet_of_nothing_but_a_crc_is_not_good():
    assert not crc.vcrc_good(b"")
    assert not crc.vcrc_good(b"\x00\x00")


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: crc.vcrc(b""), r"CRC of 0 bytes, allowed 1 and above"),
        (lambda: crc.vcrc_with_vl(b"ab", 16, 0, 64), r"LRH\.vl: value 0x10"),
        (lambda: crc.vcrc_with_vl(b"ab", 0, -1, 64), r"LRH\.vl: value -0x1"),
        (lambda: crc.vcrc_with_vl(b"ab", 0, 1, 0), r"covered_bytes 0, allowed 1 and above"),
        (lambda: crc.vcrc_with_vl(b"abc", 0, 1, 64), r"VCRC of 3 bytes, allowed 2"),
        (lambda: crc.icrc(bytes(24)), r"LRH\.lnh: value 0 is a raw packet, which has no ICRC, allowed 2\.\.3"),
        (lambda: crc.icrc(LRH.pack(lnh=1) + bytes(40)), r"LRH\.lnh: value 1 is a raw packet"),
        (lambda: crc.icrc(LRH.pack(lnh=2) + bytes(11)), r"ICRC: headers need 20 bytes, got 19"),
        (lambda: crc.icrc(LRH.pack(lnh=3) + bytes(51)), r"ICRC: headers need 60 bytes, got 59"),
        (lambda: crc.icrc(b"\x00"), r"lnh: ends at byte 2, only 1 bytes given"),
        (lambda: crc.crc_step_masks(0xD008, 0, 8), r"width 0, allowed 1 and above"),
        (lambda: crc.crc_step_masks(0xD008, 16, 0), r"data_bits 0, allowed 1 and above"),
        (lambda: crc.crc_step_masks(0xD008, 8, 8), r"poly_reflected 0xd008 does not fit 8 bits"),
    ],
)
def test_errors_name_the_value_and_what_is_allowed(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_the_fingerprint_sees_a_payload_that_the_icrc_hides() -> None:
    packets = [
        build_ud_send(slid=1, dlid=2, dest_qp=2, src_qp=3, q_key=4, payload=payload).data
        for payload in (bytes(64), bytes(63) + b"\1")
    ]
    assert crc.fingerprint(b"123456789") == 0xE3069283
    assert crc.fingerprint(packets[0]) != crc.fingerprint(packets[1])
    assert zlib.crc32(packets[0]) == zlib.crc32(packets[1]), "why it is not a CRC-32"


@given(st.binary(), st.binary())
def test_a_fingerprint_goes_on_from_that_of_the_bytes_before(head: bytes, tail: bytes) -> None:
    assert crc.fingerprint(tail, crc.fingerprint(head)) == crc.fingerprint(head + tail)
