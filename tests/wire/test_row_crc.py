"""The CRC of rows says of each cycle whether there is a row, and which."""

import pytest

from wire.row_crc import NO_ROW, ROW, VALID, row_crc
from wire.symbols import idle_row


def test_no_row_is_not_a_row_of_nothing() -> None:
    assert row_crc(NO_ROW * 4) != row_crc(NO_ROW * 3 + ROW.pack(VALID, 0))


@pytest.mark.parametrize("bit", range(8 * ROW.size - 3))
def test_each_bit_counts(bit: int) -> None:
    rows = [ROW.pack(VALID, idle_row(cycle).data) for cycle in range(8)]
    other = (int.from_bytes(rows[3], "big") ^ 1 << bit).to_bytes(ROW.size, "big")
    assert row_crc(b"".join(rows)) != row_crc(b"".join([*rows[:3], other, *rows[4:]]))
