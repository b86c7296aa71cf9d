"""Traffic patterns: who sends to whom."""

import re

import pytest

from cosim.scenario.pattern import PERMUTATIONS, check_pattern, partners, turns


@pytest.mark.parametrize("pattern", sorted(PERMUTATIONS))
@pytest.mark.parametrize("hosts", [4, 16, 64])
def test_in_a_permutation_no_two_hosts_send_to_the_same(pattern, hosts):
    assert sorted(partners(pattern, hosts, "1")) == list(range(hosts))


@pytest.mark.parametrize("bits", [2, 4, 6])
def test_transpose_turns_the_number_by_half_of_its_bits(bits):
    half = bits // 2
    turned = [(host << half | host >> half) & (1 << bits) - 1 for host in range(1 << bits)]
    assert partners("transpose", 1 << bits, "") == turned


def test_transpose_is_of_any_square_and_leaves_its_diagonal_alone():
    assert partners("transpose", 9, "") == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_bit_complement_inverts_every_bit():
    assert partners("bit_complement", 8, "") == [host ^ 0b111 for host in range(8)]


@pytest.mark.parametrize("hosts", [2, 3, 5, 20])
def test_in_a_random_permutation_no_host_is_its_own_partner_and_the_seed_says_which(hosts):
    seeds = [f"{number}" for number in range(20)]
    drawn = [partners("permutation", hosts, seed) for seed in seeds]
    assert drawn == [partners("permutation", hosts, seed) for seed in seeds]
    assert not any(host == partner for one in drawn for host, partner in enumerate(one))
    assert len(set(map(tuple, drawn))) == 1 if hosts == 2 else len(set(map(tuple, drawn))) > 1


def test_all_to_all_has_all_others_in_turn_and_in_step_no_two_the_same():
    order = [turns(host, 6) for host in range(6)]
    assert all(sorted([host, *turn]) == list(range(6)) for host, turn in enumerate(order))
    assert all(len(set(step)) == 6 for step in zip(*order, strict=True))


@pytest.mark.parametrize(
    ("pattern", "hosts", "message"),
    [
        ("transpose", 8, "'transpose' of 8 hosts: expected a square number of them, 4, 9, 16, ..."),
        ("transpose", 1, "'transpose' of 1 hosts: expected a square number of them, 4, 9, 16, ..."),
        ("bit_complement", 6, "'bit_complement' of 6 hosts: expected a power of two, 2, 4, 8, ..."),
        ("hotspot", 2, "'hotspot' of 2 hosts: expected three or more"),
    ],
)
def test_a_pattern_of_a_number_of_hosts_for_which_it_is_not_defined_is_refused(pattern, hosts, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_pattern(pattern, hosts)
