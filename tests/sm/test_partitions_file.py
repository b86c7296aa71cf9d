"""Partitions from OpenSM's partitions.conf; what OpenSM makes of such is in tests/ironband/test_serve_partitions.py."""

import pytest

from sm.partitions import DEFAULT_PARTITION, EndPorts, Membership, Partitions
from sm.partitions_file import PartitionsFileError, parse_partitions

ALL, SELF = EndPorts.ALL, EndPorts.SELF


def said(text: str) -> list[tuple[int, EndPorts | int, bool]]:
    """What a file says beyond that all are limited members of the default partition, and the manager a full one."""
    partitions = parse_partitions(text, "partitions.conf")
    default = (Membership(DEFAULT_PARTITION, ALL, False), Membership(DEFAULT_PARTITION, SELF, True))
    assert partitions.memberships[:2] == default
    return [(one.partition, one.who, one.is_full) for one in partitions.memberships[2:]]


def names(text: str) -> dict[int, str]:
    return dict(parse_partitions(text, "partitions.conf").names)


def test_a_partition_has_a_name_a_p_key_and_members_limited_unless_said_otherwise():
    text = "Storage=0x8010 : 0x1a=full, 0x1b=limited, 0x1c, 27=both, 033=nonsense ;"
    assert said(text) == [(16, 0x1A, True), (16, 0x1B, False), (16, 0x1C, False), (16, 27, True), (16, 0o33, False)]
    assert names(text) == {0x7FFF: "Default", 0x10: "Storage"}


def test_without_a_definition_all_are_full_members_of_the_default_partition():
    for text in ("", "# nothing\n", " \n ; \n"):
        found = parse_partitions(text, "partitions.conf")
        assert found == Partitions((Membership(DEFAULT_PARTITION, ALL, True),), groups=found.groups)


def test_a_partition_has_the_sl_that_its_last_definition_says_where_there_is_quality_of_service():
    text = "A=1, sl=3 : ALL; B=2, sl=5 : ALL; A, defmember=full : SELF; Default=0x7fff, sl=4, sl=16 : ALL; C=3 : ALL;"
    assert parse_partitions(text, "partitions.conf", has_qos=True).service_levels == {1: 0, 2: 5, 3: 0, 0x7FFF: 4}
    assert set(parse_partitions(text, "partitions.conf").service_levels.values()) == {0}


def test_what_is_said_of_the_default_partition_is_said_after_what_is_so_without():
    assert said("Default=0x7fff : ALL=full;") == [(0x7FFF, ALL, True)]
    assert said("Default : ALL, SELF=full;") == [(0x7FFF, ALL, False), (0x7FFF, SELF, True)]


def test_the_members_of_a_definition_may_be_limited_full_or_both_by_default():
    for word, is_full in (("full", True), ("both", True), ("limited", False), ("nonsense", False)):
        assert said(f"A=1, defmember={word} : 0x5, 0x6=limited;") == [(1, 5, is_full), (1, 6, False)]
    assert said("A=1, defmember : 0x5;") == [(1, 5, False)]


def test_a_definition_goes_on_over_lines_to_its_semicolon_and_a_line_may_have_several():
    text = """
    # P_Keys of storage
    Storage=0x10, ipoib :   # its line has the colon
        0x1=full, 0x2=full
        SELF ; Spare = 0x11 : ALL_CAS , ALL_SWITCHES,
        ALL_ROUTERS=full;
    Default=0x7fff:ALL=full
    """
    assert said(text) == [
        (16, 1, True),
        (16, 2, True),
        (16, SELF, False),
        (17, EndPorts.ALL_CAS, False),
        (17, EndPorts.ALL_SWITCHES, False),
        (17, EndPorts.ALL_ROUTERS, True),
        (0x7FFF, ALL, True),
    ]


def test_numbers_have_64_bits_of_which_a_p_key_is_the_lowest_15():
    assert said("A=18446744073709518854, defmember=full : 18446744073709551615, 0x00000000000000000000000001;") == [
        (6, (1 << 64) - 1, True),
        (6, 1, True),
    ]


def test_a_byte_order_mark_is_part_of_no_name():
    assert names("\ufeffStorage=5 : ALL; : SELF;") == {0x7FFF: "Default", 5: "Storage", 1: "0001"}
    assert said("\ufeff# mine\nDefault : ALL=full;") == [(0x7FFF, ALL, True)]


def test_flags_and_groups_of_ipoib_are_no_members():
    text = """
    Default=0x7fff,ipoib,rate=3,mtu=4,sl=1,scope=2,Q_Key=0x1,TClass=1,FlowLabel=2,whatever=5:
        mgid=ff12:401b::0707,sl=1 # a random IPv4 group
        mgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,rate=3,mtu=2
        ALL=full;
    """
    assert said(text) == [(0x7FFF, ALL, True)]


def test_words_may_be_cut_short_as_opensm_takes_them():
    assert said("A=1, d=f : AL=f, ALL_S=l, S=b, N, NONE;") == [
        (1, ALL, True),
        (1, EndPorts.ALL_SWITCHES, False),
        (1, SELF, True),
    ]
    assert said("A=1 : 0x5=;") == [(1, 5, True)], "nothing is full cut short"


def test_partitions_without_a_p_key_have_the_least_that_is_free_or_that_of_their_name():
    text = "One=1 : 0x5; New : 0x6; : 0x7; 0x300 : 0x8; New : 0x9; Zero=0x8000 : 0xa; Default : 0xb;"
    assert said(text) == [
        (1, 5, False),
        (2, 6, False),
        (3, 7, False),
        (0x300, 8, False),
        (2, 9, False),
        (4, 10, False),
        (0x7FFF, 11, False),
    ]
    assert names(text) == {0x7FFF: "Default", 1: "One", 2: "New", 3: "0003", 0x300: "0300", 4: "Zero"}


def test_the_first_name_of_a_p_key_stays():
    assert names("A=5 : 0x1; B=5 : 0x2;")[5] == "A"


def test_a_p_key_may_be_asked_to_have_index_0():
    partitions = parse_partitions("A=5, indx0 : 0x1; B=6 : 0x1;", "partitions.conf")
    assert [one.is_first for one in partitions.memberships[2:]] == [True, False]


NOT_TAKEN = [
    ("Storage=0x10", "Storage=0x10: expected [NAME][=PKEY][,FLAG...] and a colon"),
    ("Storage=0x1g : ALL;", "P_Key 0x1g: expected a number"),
    ("Storage= : ALL;", "P_Key : expected a number"),
    ("A=5 : H1;", "PortGUID H1: expected a number, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF"),
    ("A=5 : ALL_HOSTS;", "PortGUID ALL_HOSTS: expected a number, ALL, "),
    ("A=5 : all;", "PortGUID all: expected a number, ALL, "),
    ("A=5 : SELF, B=6 : SELF;", "B=6 : SELF: expected a PortGUID, or a semicolon before a definition"),
    ("A=5 : SELF, B : SELF;", "B : SELF: expected a PortGUID, or a semicolon before a definition"),
    ("A=5 : 0;", "PortGUID 0: expected 0x1..0xffffffffffffffff"),
    ("A=5 : defmember=full : 0x1;", "defmember=full : 0x1: expected a PortGUID, or a semicolon before"),
]


TOO_LARGE = [
    ("A=5 : 0x10000000000000000;", "PortGUID 0x10000000000000000: expected 0x1..0xffffffffffffffff"),
    ("A=5 : 18446744073709551616;", "PortGUID 18446744073709551616: expected 0x1..0xffffffffffffffff"),
    ("A=02000000000000000000000 : ALL;", "P_Key 02000000000000000000000: expected 0x0..0xffffffffffffffff"),
    *((f"A={digit}{'7' * 5000} : ALL;", f"P_Key {digit}{'7' * 39}...: expected 0x0..0xfff") for digit in "01"),
    (f"A=0x{'f' * 5000} : ALL;", f"P_Key 0x{'f' * 38}...: expected 0x0..0xffffffffffffffff"),
    (f"A=5 : 1{'0' * 5000};", f"PortGUID 1{'0' * 39}...: expected 0x1..0xffffffffffffffff"),
]
"""What OpenSM takes for the largest number, or not at all where the line is too long for it."""


@pytest.mark.parametrize(("line", "reason"), [*NOT_TAKEN, *TOO_LARGE])
def test_what_is_not_taken_is_told_with_its_line(line, reason):
    with pytest.raises(PartitionsFileError) as error:
        parse_partitions(f"# mine\n{line}\n", "my.conf")
    assert str(error.value).startswith(f"my.conf:2: {reason}")
    assert "\n" not in str(error.value)


def test_more_partitions_than_there_are_p_keys_are_refused():
    with pytest.raises(PartitionsFileError) as error:
        parse_partitions(": 0x1;\n" * 0x7FFF, "my.conf")
    assert str(error.value) == "my.conf:32767: there are P_Keys for 32767 partitions, expected no more"
