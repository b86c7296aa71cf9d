"""Fields in 32-bit words."""

import pytest
from amaranth.hdl import Const

from rtl.management.place import fields_in_words, masks, place, word_of
from wire.layout import Field
from wire.notice import NOTICE
from wire.port_info import PORT_INFO


def test_a_field_has_a_word_and_a_place_in_it() -> None:
    assert place(PORT_INFO["port_physical_state"]) == (8, 20, 4)
    assert place(Field("at_the_end", 24, 8), start=3) == (1, 8, 8)
    assert place(PORT_INFO["lid"]).mask == 0xFFFF_0000


def test_a_field_may_take_several_words() -> None:
    assert masks(PORT_INFO["gid_prefix"]) == {2: 0xFFFF_FFFF, 3: 0xFFFF_FFFF}
    details = masks(NOTICE["data_details"])
    assert details == {2: 0xFFFF} | dict.fromkeys(range(3, 16), 0xFFFF_FFFF)
    assert masks(Field("across", 28, 8), start=4) == {1: 0xF, 2: 0xF000_0000}
    assert word_of(NOTICE["data_details"], start=64) == 18


def test_a_field_across_words_has_no_single_place() -> None:
    with pytest.raises(ValueError, match="field across of 8 bits does not lie in one word"):
        place(Field("across", 28, 8))


def test_words_are_made_of_fields() -> None:
    across, beside = Field("across", 28, 8), Field("beside", 36, 4)
    words = fields_in_words({across: Const(0x5A, 8), beside: Const(0x7, 4)}, start=4)
    assert sorted(words) == [1, 2]
