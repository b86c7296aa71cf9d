"""What an adapter reads of a packet is what the wire says of it."""

import random

import pytest

from verbs import fields
from verbs.arrived import read_packet
from wire.headers import AETH, ATOMIC_ACK_ETH, ATOMIC_ETH, BTH, DETH, GRH, IETH, IMM_DT, LRH, RDETH, RETH, XRCETH
from wire.layout import Layout
from wire.opcodes import Opcode, extended_headers, is_request, payload_rule
from wire.packet import build

NAMES = {
    "rdeth": RDETH,
    "deth": DETH,
    "xrceth": XRCETH,
    "reth": RETH,
    "atomic_eth": ATOMIC_ETH,
    "aeth": AETH,
    "atomic_ack_eth": ATOMIC_ACK_ETH,
    "imm_dt": IMM_DT,
    "ieth": IETH,
}


def drawn(draw: random.Random, layout: Layout) -> dict[str, int]:
    return {field.name: draw.randint(0, field.max) for field in layout.fields}


@pytest.mark.parametrize("opcode", Opcode, ids=lambda opcode: opcode.name)
@pytest.mark.parametrize("is_global", [False, True])
def test_every_field_is_read_as_the_wire_has_it(opcode: Opcode, is_global: bool) -> None:
    draw = random.Random(opcode)
    for _ in range(20):
        names = {name: drawn(draw, layout) for name, layout in NAMES.items() if layout in extended_headers(opcode)}
        lrh = drawn(draw, LRH) | {"resv5": 0}
        bth = drawn(draw, BTH) | {"opcode": opcode}
        payload = draw.randbytes(draw.randrange(70))
        packet = build(lrh=lrh, bth=bth, grh=drawn(draw, GRH) if is_global else None, payload=payload, **names)
        for data in (packet.data, packet.wire):
            read = read_packet(data)
            assert read is not None
            assert (read.sl, read.dlid, read.slid) == (lrh["sl"], lrh["dlid"], lrh["slid"])
            assert read.grh == packet.grh
            assert (read.opcode, read.p_key, read.dest_qp, read.psn) == (
                *(opcode, bth["p_key"]),
                *(bth["dest_qp"], bth["psn"]),
            )
            assert (read.solicited, read.fecn, read.ack_req) == (bth["se"], bth["fecn"], bth["ack_req"])
            assert (read.t_ver, read.payload) == (bth["t_ver"], payload)
            assert (read.service, read.operation) == (opcode.service, opcode.operation)
            assert (read.is_request, read.payload_rule) == (is_request(opcode), payload_rule(opcode))
            assert (read.has_aeth, read.has_imm) == ("aeth" in names, "imm_dt" in names)
            for name, values in names.items():
                assert told(name, read) == tuple(value for key, value in values.items() if key != "resv8"), name


def told(name: str, read: object) -> tuple[int, ...]:
    values = {
        "rdeth": lambda: (read.eec,),
        "deth": lambda: read.deth(),
        "xrceth": lambda: (read.xrc_srq,),
        "reth": lambda: tuple(read.reth()),
        "atomic_eth": lambda: tuple(read.atomic()),
        "aeth": lambda: (read.aeth >> 24, read.aeth & 0xFFFFFF),
        "atomic_ack_eth": lambda: (read.original,),
        "imm_dt": lambda: (read.imm,),
        "ieth": lambda: (read.invalidated_key,),
    }
    return values[name]()


def test_every_header_is_written_as_the_wire_has_it() -> None:
    draw = random.Random(7)
    for _ in range(200):
        lrh = drawn(draw, LRH) | {"vl": 0, "lver": 0, "resv2": 0, "resv5": 0}
        order = ("sl", "lnh", "dlid", "pkt_len", "slid")
        assert fields.lrh_bytes(*(lrh[name] for name in order)) == LRH.pack(lrh)
        bth = drawn(draw, BTH) | {"resv6a": 0, "resv7": 0, "fecn": 0}
        flags = bth["se"] << 7 | bth["mig_req"] << 6 | bth["pad_cnt"] << 4 | bth["t_ver"]
        marks = {"becn": bool(bth["becn"]), "ack_req": bool(bth["ack_req"])}
        written = fields.bth_bytes(bth["opcode"], flags, bth["p_key"], bth["dest_qp"], bth["psn"], **marks)
        assert written == BTH.pack(bth)
        for write, layout in (
            (fields.reth_bytes, RETH),
            (fields.atomic_bytes, ATOMIC_ETH),
            (fields.deth_bytes, DETH),
            (fields.aeth_bytes, AETH),
            (fields.atomic_ack_bytes, ATOMIC_ACK_ETH),
            (fields.number32_bytes, IMM_DT),
            (fields.number32_bytes, IETH),
            (fields.number32_bytes, RDETH),
            (fields.number32_bytes, XRCETH),
        ):
            values = drawn(draw, layout) | ({"resv8": 0} if "resv8" in layout else {})
            assert write(*(value for name, value in values.items() if name != "resv8")) == layout.pack(values)


def test_an_undefined_opcode_is_told_of_rc_alone() -> None:
    good = build(lrh={"dlid": 1}, bth={"opcode": Opcode.RC_SEND_ONLY}, payload=b"abcd").data
    for opcode in set(range(256)) - set(Opcode):
        read = read_packet(BTH["opcode"].write(good, opcode, LRH.size_bytes))
        if opcode < 0x20:
            assert read is not None
            assert (read.operation, read.is_request, read.payload) == (None, True, b"")
        else:
            assert read is None


def test_a_packet_cut_short_or_with_another_length_is_none() -> None:
    draw = random.Random(3)
    for opcode in Opcode:
        names = {name: drawn(draw, layout) for name, layout in NAMES.items() if layout in extended_headers(opcode)}
        data = build(lrh={"dlid": 1}, bth={"opcode": opcode}, **names).data
        for size in range(len(data)):
            assert read_packet(data[:size]) is None
            words = LRH["pkt_len"].write(data, size // 4)[: size // 4 * 4]
            assert read_packet(words) is None
        assert read_packet(BTH["pad_cnt"].write(data, 3, LRH.size_bytes)) is None


def test_an_undefined_opcode_of_rc_without_an_icrc_is_none() -> None:
    good = build(lrh={"dlid": 1}, bth={"opcode": Opcode.RC_SEND_ONLY}).data
    short = LRH["pkt_len"].write(BTH["opcode"].write(good, 0x1F, LRH.size_bytes), 5)[:20]
    assert read_packet(short) is None
