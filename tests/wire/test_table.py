"""Blocks of entries of one width: entry 0 comes first, and each entry keeps to its bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.forwarding_tables import (
    LINEAR_FORWARDING_TABLE,
    MULTICAST_FORWARDING_TABLE,
    RANDOM_FORWARDING_TABLE,
    lft_block,
    mft_block,
    mft_ports,
)
from wire.layout import Field, Layout
from wire.notice import NOTICE_RETURN_PATH
from wire.port_tables import GUID_INFO, P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE, VL_ARBITRATION_TABLE
from wire.smp import SMP_PATH
from wire.table import Table

TABLES = [
    LINEAR_FORWARDING_TABLE, RANDOM_FORWARDING_TABLE, MULTICAST_FORWARDING_TABLE, GUID_INFO, P_KEY_TABLE,
    SL_TO_VL_MAPPING_TABLE, VL_ARBITRATION_TABLE, SMP_PATH, NOTICE_RETURN_PATH,
]  # fmt: skip

each_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


@each_table
@given(data=st.data())
def test_packed_entries_come_back_and_stand_where_their_fields_say(table, data):
    entry = st.integers(0, table.entry.max)
    values = tuple(data.draw(st.lists(entry, min_size=table.count, max_size=table.count)))
    packed = table.pack(values)
    assert len(packed) == table.size_bytes
    assert table.unpack(b"\xff" + packed, 1) == values
    assert tuple(table.field(index).read(packed) for index in range(table.count)) == values


@each_table
def test_entries_follow_one_another_without_gaps(table):
    fields = [table.field(index) for index in range(table.count)]
    assert Layout(table.name, table.size_bytes, fields).fields == tuple(fields)
    assert fields[-1].end_bits == table.size_bytes * 8


def test_lids_of_an_lft_block_that_are_not_named_have_no_route():
    assert LINEAR_FORWARDING_TABLE.pack([1, 2]) == b"\x01\x02" + b"\xff" * 62


def test_the_even_sl_stands_in_the_high_half_of_a_byte():
    assert SL_TO_VL_MAPPING_TABLE.pack(range(16)) == bytes.fromhex("0123456789abcdef")


@pytest.mark.parametrize(("lid", "where"), [(0, (0, 0)), (63, (0, 63)), (64, (1, 0)), (0xBFFF, (767, 63))])
def test_a_unicast_lid_stands_in_a_block_of_64(lid, where):
    assert lft_block(lid) == where


@pytest.mark.parametrize(
    ("mlid", "where"), [(0xC000, (0, 0)), (0xC01F, (0, 31)), (0xC020, (1, 0)), (0xFFFE, (511, 30))]
)
def test_a_multicast_lid_stands_in_a_block_of_32(mlid, where):
    assert mft_block(mlid) == where


def test_a_multicast_mask_names_16_ports_of_its_position():
    assert mft_ports(0, 0b11) == (0, 1)
    assert mft_ports(2, 0x8001) == (32, 47)
    assert mft_ports(1, 0) == ()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: SMP_PATH.pack([0] * 65), r"Path: 65 entries given, allowed up to 64"),
        (lambda: SMP_PATH.pack([256]), r"Path\.port: value 0x100 does not fit 8 bits"),
        (lambda: SMP_PATH.unpack(bytes(63)), r"Path: needs 64 bytes, got 63"),
        (lambda: SMP_PATH.field(64), r"Path: entry 64, allowed 0\.\.63"),
        (lambda: Table("X", 3, Field("a", 0, 4)), r"table X: 3 entries of 4 bits are not whole bytes"),
        (lambda: Table("X", 2, Field("a", 4, 4)), r"table X: entry 0 at bit 4, allowed 0"),
        (lambda: Table("X", 2, Field("a", 0, 8), Layout("Y", 2, [])), r"table X: .* in an entry of 8 bits"),
        (lambda: lft_block(0xC000), r"LID 0xc000, allowed 0\.\.0xbfff"),
        (lambda: mft_block(0xFFFF), r"MLID 0xffff, allowed 0xc000\.\.0xfffe"),
    ],
)
def test_errors_name_the_table_the_value_and_what_is_allowed(act, message):
    with pytest.raises(ValueError, match=message):
        act()
