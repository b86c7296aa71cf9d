"""Records' fields keep to their bits: what is packed is read, and nothing else moves."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.trace import RECORD, Delimiter, Kind, Verdict
from wire.trace_layout import LAYOUTS, RecordField, RecordLayout, RowPair, RxData, TxData

each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: layout.kind.name)


def test_every_kind_has_a_layout_of_its_own() -> None:
    assert {kind: layout.kind for kind, layout in LAYOUTS.items()} == {kind: kind for kind in Kind}


@each_layout
@given(data=st.data())
def test_packed_fields_come_back(layout: type[RecordLayout], data: st.DataObject) -> None:
    values = {field.name: data.draw(st.integers(0, field.mask)) for field in layout.fields}
    record = layout.record(7, 8, **values)
    assert record[:3] == (7, 8, layout.kind)
    assert {field.name: field.read(record) for field in layout.fields} == values
    assert RECORD.unpack(RECORD.pack(*record)) == record


@each_layout
def test_a_field_given_alone_leaves_the_others(layout: type[RecordLayout]) -> None:
    for given_field in layout.fields:
        record = layout.record(7, 8, **{given_field.name: given_field.mask})
        for field in layout.fields:
            assert field.read(record) == (field.mask if field is given_field else 0)


def test_fields_stand_where_the_trace_has_had_them_from_the_first() -> None:
    received = RxData.record(
        9, 0x103, verdict=Verdict.REMOTE, vl=15, delimiter=Delimiter.EBP, pkt_len=5, end_row=6, dlid=7, sl=8, blocks=9
    )
    assert received == (9, 0x103, Kind.RX_DATA, 2 | 15 << 8 | 2 << 16, 5 | 6 << 16, 7 << 16 | 8, 9, 0)
    sent = TxData.record(
        9, 0x103, slot=1, marked_bad=1, input=2, pkt_len=3, end_row=4, first_cycle=5, fingerprint=6, lrh=7
    )
    assert sent == (9, 0x103, Kind.TX_DATA, 1 | 1 << 8 | 2 << 16, 3 | 4 << 16, 5, 6, 7)
    rows = RowPair.record(9, 0x103, data=1, k=2, valid=1, offers=3, model_data=3, model_k=4)
    assert rows == (9, 0x103, Kind.ROW, 1, 2 | 1 << 4 | 3 << 5, 3, 4, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"vl": 256}, "vl: value 0x100 does not fit 8 bits, allowed 0..0xff"),
        ({"vl": -1}, "vl: value -0x1 does not fit 8 bits, allowed 0..0xff"),
        ({"slot": 1}, "RX_DATA has no field 'slot', it has verdict, vl, delimiter"),
    ],
)
def test_values_that_cannot_be_are_refused(values: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        RxData.record(0, 0, **values)


@pytest.mark.parametrize(("lsb", "width"), [(24, 16), (7, 8)])
def test_fields_share_no_bit_and_keep_to_their_word(lsb: int, width: int) -> None:
    with pytest.raises(ValueError, match=r"STATE\.second: not in its word, or on bits of the fields before it"):

        class _Overlapping(RecordLayout, kind=Kind.STATE):
            first = RecordField("a", 0, 8)
            second = RecordField("a", lsb, width)
