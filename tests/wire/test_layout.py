"""Headers keep their bits: what is packed is unpacked, and nothing else moves."""

import pickle
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire import flow_control, headers
from wire.layout import Field, Layout, Record

LAYOUTS = [
    *(value for name in headers.__all__ if isinstance(value := getattr(headers, name), Layout)),
    flow_control.FLOW_CONTROL,
]
SIZES = {
    "LRH": 8, "GRH": 40, "BTH": 12, "RDETH": 4, "DETH": 8, "RETH": 16, "AtomicETH": 28, "AETH": 4,
    "AtomicAckETH": 8, "ImmDt": 4, "IETH": 4, "XRCETH": 4, "RWH": 4, "FlowControl": 4,
}  # fmt: skip

each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
few = settings(max_examples=40)
"""For each of the layouts."""


@cache
def values_of(layout: Layout) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({field.name: st.integers(0, field.max) for field in layout.fields})


def test_every_header_has_the_standards_size():
    assert {layout.name: layout.size_bytes for layout in LAYOUTS} == SIZES


@each_layout
def test_every_bit_of_a_header_belongs_to_one_field(layout):
    covered = [bit for field in layout.fields for bit in range(field.offset_bits, field.end_bits)]
    assert covered == list(range(layout.size_bytes * 8))


@each_layout
@few
@given(data=st.data())
def test_packed_fields_come_back(layout, data):
    values = data.draw(values_of(layout))
    packed = layout.pack(values)
    assert len(packed) == layout.size_bytes
    assert dict(layout.unpack(packed)) == values
    assert all(field.read(packed) == values[field.name] for field in layout.fields)


@each_layout
@few
@given(data=st.data())
def test_unpacked_bytes_come_back(layout, data):
    wire = data.draw(st.binary(min_size=layout.size_bytes, max_size=layout.size_bytes))
    assert layout.unpack(wire).pack() == wire


@each_layout
@few
@given(data=st.data())
def test_a_field_read_by_slicing_its_span_is_the_same(layout, data):
    wire = data.draw(st.binary(min_size=layout.size_bytes, max_size=layout.size_bytes))
    bits = "".join(f"{byte:08b}" for byte in wire)
    for field in layout.fields:
        span = int.from_bytes(wire[field.byte : field.byte + field.byte_span], "big")
        by_bits = int(bits[field.offset_bits : field.end_bits], 2)
        assert span >> field.lsb_in_span & field.max == by_bits == layout.unpack(wire)[field.name]
        assert field.byte_span * 8 - field.lsb_in_span - field.width < 8


@each_layout
@few
@given(data=st.data())
def test_writing_one_field_leaves_the_others(layout, data):
    wire = data.draw(st.binary(min_size=layout.size_bytes, max_size=layout.size_bytes))
    field = data.draw(st.sampled_from(layout.fields))
    value = data.draw(st.integers(0, field.max))
    before = dict(layout.unpack(wire))
    assert dict(layout.unpack(field.write(wire, value))) == before | {field.name: value}


@pytest.mark.parametrize(
    ("layout", "field", "where"),
    [
        # byte, bytes, least significant bit in them; computed by hand from the standard's figures
        (headers.LRH, "vl", (0, 1, 4)),
        (headers.LRH, "lnh", (1, 1, 0)),
        (headers.LRH, "dlid", (2, 2, 0)),
        (headers.LRH, "pkt_len", (4, 2, 0)),
        (headers.LRH, "slid", (6, 2, 0)),
        (headers.GRH, "t_class", (0, 2, 4)),
        (headers.GRH, "flow_label", (1, 3, 0)),
        (headers.GRH, "dgid", (24, 16, 0)),
        (headers.BTH, "pad_cnt", (1, 1, 4)),
        (headers.BTH, "fecn", (4, 1, 7)),
        (headers.BTH, "becn", (4, 1, 6)),
        (headers.BTH, "dest_qp", (5, 3, 0)),
        (headers.BTH, "psn", (9, 3, 0)),
        (headers.DETH, "src_qp", (5, 3, 0)),
        (flow_control.FLOW_CONTROL, "fccl", (2, 2, 0)),
    ],
)
def test_fields_stand_where_the_standard_draws_them(layout, field, where):
    assert (layout[field].byte, layout[field].byte_span, layout[field].lsb_in_span) == where


def test_a_field_is_found_behind_other_headers():
    packet = headers.LRH.pack(lnh=2) + headers.BTH.pack(psn=0xABCDEF)
    assert headers.BTH["psn"].read(packet, start=8) == 0xABCDEF
    assert headers.BTH["psn"].write(packet, 5, start=8) == headers.LRH.pack(lnh=2) + headers.BTH.pack(psn=5)
    assert headers.BTH.unpack(packet, 8).psn == 0xABCDEF


def test_the_grh_is_an_ipv6_header_before_a_bth_unless_told_otherwise():
    assert headers.GRH.unpack(headers.GRH.pack()).ip_ver == 6
    assert headers.GRH.unpack(headers.GRH.pack()).nxt_hdr == 0x1B
    assert headers.GRH.unpack(headers.GRH.pack(nxt_hdr=0x3B)).nxt_hdr == 0x3B


def test_reserved_bits_pack_as_zero_and_do_not_disturb():
    gap = Layout("Gap", 2, [Field("high", 0, 4), Field("low", 12, 4)])
    assert gap.pack(high=0xF, low=0xF) == b"\xf0\x0f"
    assert dict(gap.unpack(b"\xff\xff")) == {"high": 15, "low": 15}


def test_a_record_is_read_by_name_and_never_changed_in_place():
    lrh = headers.LRH.record(dlid=7, slid=9)
    assert (lrh.dlid, lrh["slid"], len(lrh)) == (7, 9, 9)
    assert lrh.replace(dlid=8).dlid == 8
    assert lrh.dlid == 7
    with pytest.raises(AttributeError, match=r"LRH records are read-only, use replace\(dlid=...\)"):
        lrh.dlid = 8
    with pytest.raises(AttributeError, match="LRH has no field 'lid'"):
        _ = lrh.lid


def test_records_compare_by_header_and_values():
    deth, same = headers.DETH.record(q_key=1), headers.DETH.record(q_key=1)
    assert deth == same
    assert hash(deth) == hash(same)
    assert deth == {"q_key": 1, "resv8": 0, "src_qp": 0}
    assert deth != headers.DETH.record(q_key=2)
    assert headers.RDETH.record() != headers.XRCETH.record()
    assert repr(deth) == "DETH(q_key=0x1, resv8=0x0, src_qp=0x0)"
    assert repr(headers.DETH) == "Layout('DETH', 8 bytes)"


def test_records_survive_a_trip_to_another_process():
    lrh = headers.LRH.record(vl=3, dlid=0x1234)
    back = pickle.loads(pickle.dumps(lrh))
    assert back == lrh
    assert isinstance(back, Record)
    assert hash(back.layout) == hash(headers.LRH)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: headers.LRH.pack(vl=16), r"LRH\.vl: value 0x10 does not fit 4 bits, allowed 0\.\.0xf"),
        (lambda: headers.LRH.pack(slid=-1), r"LRH\.slid: value -0x1 does not fit 16 bits, allowed 0\.\.0xffff"),
        (lambda: headers.BTH.pack({"qp": 1}), r"BTH has no field 'qp', it has opcode, se, mig_req"),
        (lambda: headers.BTH["qp"], r"BTH has no field 'qp'"),
        (lambda: headers.GRH.unpack(bytes(39)), r"GRH: needs 40 bytes, got 39"),
        (lambda: headers.LRH.unpack(bytes(9), 2), r"LRH: needs 8 bytes, got 7"),
        (lambda: headers.LRH["slid"].read(bytes(7)), r"slid: ends at byte 8, only 7 bytes given"),
        (lambda: headers.LRH["slid"].write(bytes(7), 1), r"slid: ends at byte 8, only 7 bytes given"),
        (lambda: headers.LRH["vl"].write(bytes(8), 16), r"vl: value 0x10 does not fit 4 bits"),
        (lambda: headers.LRH.record().replace(vl=99), r"LRH\.vl: value 0x63"),
        (lambda: Field("class", 0, 8), r"field name 'class' is not a Python identifier"),
        (lambda: Field("a", -1, 8), r"field a: offset_bits -1, allowed 0 and above"),
        (lambda: Field("a", 0, 0), r"field a: width 0, allowed 1 and above"),
        (lambda: Field("a", 0, 2, 4), r"a: value 0x4 does not fit 2 bits"),
        (lambda: Layout("X", 1, [Field("a", 0, 4), Field("b", 3, 2)]), r"layout X: field b overlaps"),
        (lambda: Layout("X", 1, [Field("a", 0, 9)]), r"layout X: field a ends at bit 9, allowed up to 8"),
        (lambda: Layout("X", 1, [Field("a", 0, 1), Field("a", 1, 1)]), r"layout X: a field name stands twice"),
        (lambda: Layout("X", 1, [Field("keys", 0, 8)]), r"layout X: field name keys is taken by Record"),
    ],
)
def test_errors_name_the_field_the_value_and_what_is_allowed(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_a_header_knows_its_own_field_names():
    assert "dlid" in headers.LRH
    assert "dest_qp" not in headers.LRH
