"""QoS policies from OpenSM's qos-policy.conf; what OpenSM makes of such is in tests/ironband."""

import pytest

from sm.qos_policy import MatchRule, PortGroup, QosLevel, QosPolicy
from sm.qos_policy_file import QosPolicyError, parse_qos_policy
from wire.node_info import NodeType

ULPS = "qos-ulps\ndefault: 0\nend-qos-ulps\n"


def level(*entries: str) -> str:
    return "\n".join([f"{ULPS}qos-levels", "qos-level", *entries, "end-qos-level", "end-qos-levels", ""])


def group(*entries: str) -> str:
    return "\n".join([f"{ULPS}port-groups", "port-group", *entries, "end-port-group", "end-port-groups", ""])


def rule(*entries: str) -> str:
    lines = [f"{ULPS}qos-match-rules", "qos-match-rule", *entries, "end-qos-match-rule", "end-qos-match-rules", ""]
    return "\n".join(lines)


NOT_TAKEN = [
    ("", 1, "no default level, expected a qos-level of the name default, or default: SL in qos-ulps"),
    ("qos-levels\nend-qos-levels\n", 3, "no default level"),
    ("nothing\n", 1, "n: expected a section: qos-ulps, port-groups, qos-setup, qos-levels, qos-match-rules"),
    (f"{ULPS}# a comment ends with its line", 4, "#: expected a section"),
    ("qos-ulps\ndefault: 16\nend-qos-ulps\n", 2, "sl: 16: expected 0..15"),
    ("qos-ulps\nend-qos-ulps\n", 2, "end-qos-ulps: expected a ULP"),
    ("qos-ulps\ndefault: 1\nnfs: 3\nend-qos-ulps\n", 3, "n: expected a ULP, or end-qos-ulps"),
    ("qos-ulps\ndefault: 1\nsdp, port-num 65536: 3\nend-qos-ulps\n", 3, "port-num: expected ports 0..65535"),
    ("qos-ulps\ndefault: 1\nany, pkey: 3\nend-qos-ulps\n", 3, "pkey: :: expected a number"),
    ("qos-ulps\ndefault: 1\nany, pkey 3\nend-qos-ulps\n", 4, "end-qos-ulps: expected :"),
    ("qos-ulps\ndefault: 1\n", 3, "the end of the file: expected a ULP, or end-qos-ulps"),
    (f"{ULPS}port-groups\nend-port-groups\n", 5, "end-port-groups: expected port-group"),
    (group("port-guid: 1"), 7, "port-group: no name, expected one"),
    (group("name: a", "name: b"), 7, "name twice in a port-group, expected once"),
    (group("name: a", "port-guid: x"), 7, "port-guid: x: expected a number"),
    (group("name: a", "port-name: H1"), 7, "port-name H1: expected NODE/P and a port number"),
    (group("name: a", "port-name: H1/P0"), 7, "port-name H1/P0: 0: expected 1..254"),
    (group("name: a", "node-type: CA, HOST"), 7, "H: expected a type"),
    (group("name: a", "sl: 3"), 7, "sl: expected end-port-group, or one of name, use, port-guid"),
    (group("name: my-port-group"), 6, "port-group: expected end-port-group, or one of name"),
    (group("name:"), 7, "end-port-group: expected what name says"),
    (level("name: a"), 7, "qos-level: no sl, expected one"),
    (level("sl: 1"), 7, "qos-level: no name, expected one"),
    (level("name: a", "sl: 1", "sl: 1"), 8, "sl twice in a qos-level, expected once"),
    (level("name: a sl: 1"), 6, "sl: 1: expected a number"),
    (level("name: a", "sl: 1", "mtu-limit: 6"), 8, "mtu-limit: 6: expected 1..5"),
    (level("name: a", "sl: 1", "rate-limit: 1"), 8, "rate-limit: 1: expected 2..22"),
    (rule("use: nothing"), 7, "qos-match-rule: no qos-level-name, expected one"),
    (rule("qos-level-name: a"), 7, "qos-match-rule: qos-level a: expected one of the file"),
    (level("name: a", "sl: 1") + rule("qos-level-name: A", "source: b"), 17, "qos-match-rule: port-group b: expected"),
]
"""Text, line, reason. OpenSM then does as if there were no policy."""

FOR_NOTHING = [
    (level("name: a", "sl: 1", "path-bits: 2"), 8, "path-bits: OpenSM does nothing with them, expected none"),
    (f"{ULPS}qos-setup\nsl2vl-tables\nend-sl2vl-tables\nend-qos-setup\n", 4, "qos-setup: OpenSM does nothing with it"),
    (level("name: a", "sl: 16"), 7, "sl: 16: expected 0..15"),
    (level("name: a", "sl: 1", "packet-life: 64"), 8, "packet-life: 64: expected 0..63"),
    (level("name: a", "sl: 09"), 7, "sl: 09: expected 0..15"),
    (level("name: a", "sl: 1", f"pkey: {1 << 64}"), 8, "pkey: 18446744073709551616: expected 0x0..0xffffffffffffffff"),
]
"""What OpenSM takes, and does nothing with or cuts short."""


def policy(text: str) -> QosPolicy:
    return parse_qos_policy(text, "policy.conf")


@pytest.mark.parametrize(("text", "line", "reason"), [*NOT_TAKEN, *FOR_NOTHING])
def test_what_is_wrong_is_told_with_its_line(text, line, reason):
    with pytest.raises(QosPolicyError) as error:
        policy(text)
    assert str(error.value).startswith(f"policy.conf:{line}: {reason}")


def test_a_level_has_limits_and_p_keys_without_the_bit_of_full_members():
    entries = ["name: Default", "sl: 0xf", "mtu-limit: 3", "rate-limit: 010", "packet-life: 4", "pkey: 0x8002-1, 9"]
    assert policy(level(*entries)) == QosPolicy((), QosLevel(15, 3, 8, 4, ((1, 2), (9, 9))))


def test_the_level_of_a_name_that_is_there_twice_is_the_first():
    text = level("name: default", "sl: 5") + level("name: DEFAULT", "sl: 6")
    assert policy(text).default == QosLevel(5)


def test_a_group_has_ports_of_many_kinds_and_rules_may_name_it_before_it_comes():
    entries = [
        "name: a b",
        "port-guid: 5-3",
        "port-name: H1/P2, 'x'/p0x1",
        "pkey: 7",
        "partition: P, Q",
        "node-type: SELF",
    ]
    text = rule("qos-level-name: l", "source: A B", "destination: ab, ab") + level("name: l", "sl: 2") + group(*entries)
    found = PortGroup(((3, 5),), (("H1", 2), ("'x'", 1)), ((7, 7),), ("P", "Q"), frozenset(), has_own=True)
    assert policy(text).rules == (MatchRule(QosLevel(2), (found,), (found, found)),)


def test_types_of_nodes_may_be_listed_or_all():
    for types, expected in (("ca, Router", {NodeType.CA, NodeType.ROUTER}), ("ALL", set(NodeType))):
        text = (
            rule("qos-level-name: l", "source: a") + level("name: l", "sl: 2") + group("name: a", f"node-type: {types}")
        )
        assert policy(text).rules[0].sources[0].node_types == expected


def test_ulps_are_rules_behind_those_of_the_file_by_service_id_p_key_or_port():
    text = """
        qos-ulps
            iser: 1
            any, source-target-port-guid 5: 2
            srp, target-port-guid 6-7 : 3
            ipoib, pkey 0x8009: 4
            any, source-port-guid 8: 5
            default: 6
        end-qos-ulps
    """
    found = policy(text + level("name: l", "sl: 7") + rule("qos-level-name: l", "qos-class: 1-2", "qos-class: 9"))
    both = (PortGroup(((5, 5),)),)
    assert found.rules == (
        MatchRule(QosLevel(7), qos_classes=((1, 2), (9, 9))),
        MatchRule(QosLevel(1), service_ids=((0x1060CBC, 0x1060CBC),)),
        MatchRule(QosLevel(2), both, both),
        MatchRule(QosLevel(3), (), (PortGroup(((6, 7),)),)),
        MatchRule(QosLevel(4), p_keys=((9, 9),)),
        MatchRule(QosLevel(5), (PortGroup(((8, 8),)),)),
    )
    assert found.default == QosLevel(0), "of the two the last, in another section"


def test_a_text_is_what_stands_between_its_key_and_the_next_without_blanks_outside_of_quotes():
    for name in ('"l 1" x', '"l 1x"', "l 1\n x", "l 1x # a comment\n"):
        with pytest.raises(QosPolicyError, match="no sl"):
            policy(level(f"name: {name}"))
    text = rule('qos-level-name: l"  1"x', "use: sl: 3, # as it comes") + level('name: "l  1" x', "sl: 2")
    assert policy(text).rules == (MatchRule(QosLevel(2)),)
