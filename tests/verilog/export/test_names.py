"""Names as the designer gave them, all of them plain."""

import re


def test_all_names_are_plain(pair):
    assert "\\" not in pair
    assert "$" not in pair


def test_a_net_that_a_submodule_drives_is_called_after_it(pair):
    assert "assign sum = { 1'h0, first_value } + { 1'h0, second_value };" in pair


def test_a_keyword_as_a_name_gets_an_underscore(pair):
    assert "input wire join_" in pair
    assert ".join_(1'h1)" in pair


def test_fields_have_names_of_their_own(pair):
    assert "assign fields_high = " in pair


def test_a_port_of_the_top_has_the_name_that_it_was_given(pair):
    assert re.search(r"output wire \[8:0\] sum\n\);", pair)
