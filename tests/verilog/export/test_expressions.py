"""Expressions in the place of nets: only where they mean the same."""

import pytest

from verilog.export.expressions import Expressions

WIDTHS = {"a": 8, "b": 8, "c": 4, "f": 1, "g": 1, "_1": 8, "_2": 8, "_3": 1, "_4": 9, "_5": 12, "_6": 8}


def expressions(used_twice=(), **definitions):
    return Expressions(WIDTHS, definitions, lambda name: name not in used_twice)


@pytest.mark.parametrize(
    ("definition", "text", "width", "expected"),
    [
        ({"_1": "a & b"}, "_1 | a", 8, "(a & b) | a"),
        ({"_3": "a == b"}, "_3 & f", 1, "(a == b) & f"),
        ({"_3": "| a"}, "_3 ? a : b", 8, "(|a) ? a : b"),
        ({"_3": "~ f"}, "_3 & g", 1, "(!f) & g"),
        ({"_1": "f ? a : b"}, "_1", 8, "f ? a : b"),
        ({"_1": "a + b"}, "_1 == a", 1, "(a + b) == a"),
        ({"_5": "{ a, c }"}, "_5[7:4]", 4, "a[3:0]"),
        ({"_5": "{ a, c }"}, "{ _5[3:0], _5[11:4] }", 12, "{ c, a }"),
        ({"_1": "{ f, f, f, f, f, f, f, f }"}, "_1 & a", 8, "{ 8{f} } & a"),
        ({"_1": "8'hff"}, "_1 & a", 8, "8'hff & a"),
    ],
)
def test_an_expression_stands_for_a_net_used_once(definition, text, width, expected):
    assert expressions(**definition).whole(text, width) == expected


@pytest.mark.parametrize(
    ("definition", "text", "width", "expected"),
    [
        # ~a in a wider context would have ones above.
        ({"_1": "~ a"}, "_1 | _5", 12, "{ 4'h0, _1 } | _5"),
        # The sum's carry would show.
        ({"_1": "a + b"}, "_1 + _5", 12, "{ 4'h0, _1 } + _5"),
        # A net of nine bits holds the carry, which eight bits would lose.
        ({"_4": "a + b"}, "{ _4, c }", 13, "{ { 1'h0, a } + { 1'h0, b }, c }"),
        # No part can be taken of an operator.
        ({"_1": "a & b"}, "_1[3:0]", 4, "_1[3:0]"),
        ({"_1": "$signed(a) + b"}, "_1", 8, "_1"),
    ],
)
def test_a_net_stays_where_its_expression_would_mean_something_else(definition, text, width, expected):
    assert expressions(**definition).whole(text, width) == expected


def test_only_a_short_expression_is_written_twice():
    both = expressions(used_twice=("_1", "_3"), _1="f ? { a[7], b[6:3], c[2:1], f } : b", _3="a == b")
    assert both.whole("_1 | { 7'h0, _3 }", 8) == "_1 | { 7'h0, a == b }"


def test_operands_are_as_wide_as_what_they_are_combined_with():
    plain = expressions()
    assert plain.whole("a + 1'h1", 8) == "a + 8'h1"
    assert plain.whole("a == c", 1) == "a == { 4'h0, c }"
    assert plain.whole("a + c", 9) == "{ 1'h0, a } + { 5'h0, c }"
    assert plain.whole("! a", 1) == "a == 8'h0"
    assert plain.whole("a - b", 4) == "a[3:0] - b[3:0]"


def test_what_is_not_understood_is_left():
    assert expressions().whole("memory[a]", 8) == "memory[a]"
    assert expressions(_1="memory[a]").whole("_1 & b", 8) == "_1 & b"


def test_concatenations_in_one_another_are_one():
    nested = expressions(_5="{ a, c }", _1="{ f, g, _2[5:0] }", _6="f ? a : b")
    assert nested.whole("{ _5, _1, _6 }", 28) == "{ a, c, f, g, _2[5:0], f ? a : b }"
    assert nested.whole("{ b[7:4], b[3:2], _6 }", 14) == "{ b[7:2], f ? a : b }"
