"""A node's name is UTF-8 in 64 bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.node_info import node_description, node_description_text


@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=16))
def test_a_node_description_comes_back(text):
    assert len(node_description(text)) == 64
    assert node_description_text(node_description(text)) == text


def test_a_node_description_may_fill_its_64_bytes_and_no_more():
    assert node_description_text(node_description("x" * 64)) == "x" * 64
    with pytest.raises(ValueError, match=r"NodeDescription 'ü+': 66 bytes, allowed up to 64"):
        node_description("ü" * 33)


def test_bytes_that_are_no_utf8_do_not_stop_a_reader():
    assert node_description_text(b"sw\xff1" + bytes(60)) == "sw\ufffd1"
