"""Multicast groups as partitions.conf has them; tests/ironband/test_serve_multicast.py compares them with OpenSM's."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest

from sm.partitions_file import PartitionsFileError, parse_partitions
from wire.layout import Record
from wire.path_record import EXACTLY


def groups(text: str, *, has_qos: bool = False) -> dict[str, Record]:
    """By MGID in words."""
    found = parse_partitions(text, "partitions.conf", has_qos=has_qos).groups
    return {str(IPv6Address(group.mgid)): group for group in found}


def test_a_partition_with_ipoib_has_a_broadcast_group_and_others_have_none():
    found = groups("Default=0x7fff, ipoib : ALL=full; A=5, ipoib : ALL; B=6 : ALL; C=7, i : ALL;")
    assert {mgid: (one.p_key, one.q_key) for mgid, one in found.items()} == {
        "ff12:401b:ffff::ffff:ffff": (0xFFFF, 0xB1B),
        "ff12:401b:8005::ffff:ffff": (0x8005, 0xB1B),
        "ff12:401b:8007::ffff:ffff": (0x8007, 0xB1B),
    }
    first = next(iter(found.values()))
    assert (first.mtu, first.mtu_selector, first.rate, first.rate_selector) == (4, EXACTLY, 3, EXACTLY)


def test_without_a_definition_the_default_partition_has_one():
    assert list(groups("# nothing")) == ["ff12:401b:ffff::ffff:ffff"]
    assert groups("Default=0x7fff : ALL=full;") == {}


def test_flags_say_what_the_broadcast_group_is_like():
    text = "A=5, ipoib, mtu=5, rate=0x6, sl=3, Q_Key=0xAA, TClass=0x1ff, FlowLabel=07 : ALL;"
    (one,) = groups(text, has_qos=True).values()
    assert (one.mtu, one.rate, one.sl, one.q_key, one.t_class, one.flow_label) == (5, 6, 3, 0xAA, 0xFF, 7)


def test_a_partition_has_sl_0_without_quality_of_service_and_a_group_what_it_says():
    found = groups("A=5, ipoib, sl=3 : \n mgid=ff12:401b::16,sl=2\n mgid=ff12::2\n ALL;")
    assert [one.sl for one in found.values()] == [0, 2, 0]


def test_words_may_be_cut_short_and_what_opensm_skips_says_nothing():
    (one,) = groups("A=5, ipoib, m=3, r=2, T, sl=16, FlowLabel=0x100000, scope=16, whatever=1, : ALL;").values()
    assert (one.mtu, one.rate, one.sl, one.flow_label, one.scope) == (3, 2, 0, 0, 2)


def test_a_group_of_an_mgid_is_made_for_each_scope_and_beyond_the_link_packets_have_hops():
    found = groups("A=5, ipoib, scope=5 : \n mgid=ff12::1, scope=0xe\n mgid=ff15:401b::ffff:ffff\n ALL;")
    assert {mgid: (one.scope, one.hop_limit) for mgid, one in found.items()} == {
        "ff12:401b:8005::ffff:ffff": (2, 0),
        "ff15::1": (5, 255),
        "ff1e::1": (14, 255),
        "ff15:401b:8005::ffff:ffff": (5, 255),
    }


def test_groups_of_mgids_are_like_their_partitions_unless_they_say_otherwise():
    text = """
    Default=0x7fff, ipoib, Q_Key=7, TClass=3, FlowLabel=4 :
        mgid=ff12:401b::707,sl=1  # an IPv4 group
        mgid=ff15::1,Q_Key=0xDEADBEEF,rate=2,mtu=2 # a group of another kind, whose scope is another
        ALL=full ;
    """
    broadcast, of_ip, other = groups(text).values()
    assert (broadcast.t_class, broadcast.q_key) == (3, 7)
    assert str(IPv6Address(of_ip.mgid)) == "ff12:401b:ffff::707"
    assert (of_ip.sl, of_ip.q_key, of_ip.t_class, of_ip.flow_label) == (1, 7, 0, 4)
    assert str(IPv6Address(other.mgid)) == "ff12::1"
    assert (other.q_key, other.rate, other.mtu, other.p_key) == (0xDEADBEEF, 2, 2, 0xFFFF)


def test_what_is_said_first_of_a_group_counts_whatever_its_scope():
    assert len(groups("A=5, ipoib : \n mgid=ff12:401b::ffff:ffff,scope=5\n mgid=ff12::1\n mgid=ff12::1,scope=5\n")) == 2
    (one,) = groups("A=5, ipoib, mtu=2 : ALL; A=5, ipoib, mtu=3 : ALL;").values()
    assert one.mtu == 2


NOT_MADE = [
    ("A=5, ipoib, mtu=6 : ALL;", "mtu 6 of a multicast group: expected 1..5"),
    ("A=5, ipoib, mtu= : ALL;", "mtu 0 of a multicast group: expected 1..5"),
    ("A=5, ipoib, rate=1 : ALL;", "rate 1 of a multicast group: expected 2..22"),
    ("A=5, ipoib : mgid=fe80::1", "mgid fe80::1: expected a multicast GID, ff.."),
    ("A=5, ipoib : mgid=ff12:g", "mgid ff12:g: expected a multicast GID, ff.."),
    (
        "A=5, ipoib : mgid=ff12:401b:8006::1",
        "mgid ff12:401b:8006::1: P_Key 0x8006 of a group of IPoIB, expected",
    ),
    (
        "A=5, ipoib : mgid=ff12:401b::1, mtu=3",
        "mgid ff12:401b::1: mtu 3 of a group of IPoIB, expected the",
    ),
    (
        "A=5, ipoib : mgid=ff12:601b::1, rate=2",
        "mgid ff12:601b::1: rate 2 of a group of IPoIB, expected",
    ),
    (
        "A=5 : mgid=ff12:401b::1",
        "mgid ff12:401b::1: a group of IPoIB, expected the broadcast group ff12:",
    ),
    (
        "A=5, ipoib : mgid=ff12:401b::1,scope=5",
        "mgid ff12:401b::1: a group of IPoIB, expected the broadcast group ff15:",
    ),
]
"""What OpenSM leaves out, which its log alone tells."""


@pytest.mark.parametrize(("line", "reason"), NOT_MADE)
def test_a_group_that_opensm_would_not_make_is_told_with_its_line(line, reason):
    with pytest.raises(PartitionsFileError) as error:
        parse_partitions(f"# mine\n{line}\n", "my.conf")
    assert str(error.value).startswith(f"my.conf:2: {reason}")


def test_a_broadcast_group_may_be_said_by_its_mgid_alone():
    assert list(groups("A=5 : mgid=ff12:401b:ffff::ffff:ffff\n ALL;")) == ["ff12:401b:8005::ffff:ffff"]
