"""RC, RD and XRC: whatever is lost, repeated or late, each operation is carried out once and in order."""

import random
import secrets

import pytest

from tests.verbs.random_traffic import Conversation, fate_of

RC_PAIRINGS = [(one, other) for one in ("engine", "naive") for other in ("engine", "naive")]
RD_PAIRINGS = [(one, other) for one in ("rd", "naive rd") for other in ("rd", "naive rd")]
XRC_PAIRINGS = [(one, other) for one in ("xrc", "naive xrc") for other in ("xrc", "naive xrc")]
PAIRINGS = RC_PAIRINGS + RD_PAIRINGS + XRC_PAIRINGS


def converse(kinds: tuple[str, str], seed: int, packets: int) -> None:
    print(f"seed {seed}")
    draw = random.Random(seed)
    sent = 0
    while sent < packets:
        lost, repeated = draw.choice([0, 0.01, 0.05]), draw.choice([0, 0.02])
        fate = fate_of(draw, lost, repeated, draw.choice([1, 1, 300]))
        talk = Conversation(kinds, draw, fate, receives=draw.choice([1, 3, 12]))
        for _ in range(3):
            talk.go_on(draw.randrange(1, 40))
            assert not talk.differences(), f"seed {seed} after {sent} packets: {talk.differences()}"
        sent += talk.packets


@pytest.mark.parametrize("kinds", PAIRINGS, ids="-".join)
def test_memory_and_completions_are_those_of_the_operations_in_order(kinds: tuple[str, str]) -> None:
    converse(kinds, 14, 2_000)


def refuse(kinds: tuple[str, str], seed: int, times: int) -> None:
    print(f"seed {seed}")
    draw = random.Random(seed)
    for _ in range(times):
        talk = Conversation(kinds, draw, fate_of(draw, 0, 0, 1), receives=3)
        talk.go_on(draw.randrange(4))
        talk.end_badly(draw.randrange(2))
        assert not talk.differences(), f"seed {seed}: {talk.differences()}"


@pytest.mark.parametrize("kinds", RC_PAIRINGS, ids="-".join)
def test_what_cannot_be_carried_out_ends_as_the_standard_says_and_the_rest_is_flushed(kinds: tuple[str, str]) -> None:
    refuse(kinds, 41, 40)


def fail_and_go_on(kinds: tuple[str, str], seed: int, packets: int) -> None:
    print(f"seed {seed}")
    draw = random.Random(seed)
    sent = 0
    while sent < packets:
        talk = Conversation(kinds, draw, fate_of(draw, 0, 0, 1), receives=3)
        for _ in range(6):
            talk.go_on(draw.randrange(6))
            talk.fail_and_recover(draw.randrange(2))
            assert not talk.differences(), f"seed {seed}: {talk.differences()}"
        sent += talk.packets


@pytest.mark.parametrize("kinds", RD_PAIRINGS, ids="-".join)
def test_contexts_go_on_after_a_message_that_cannot_be_carried_out(kinds: tuple[str, str]) -> None:
    fail_and_go_on(kinds, 15, 1_500)


@pytest.mark.deep
@pytest.mark.parametrize("kinds", RD_PAIRINGS, ids="-".join)
def test_contexts_go_on_for_a_hundred_thousand_packets(kinds: tuple[str, str]) -> None:
    fail_and_go_on(kinds, secrets.randbits(32), 100_000)


@pytest.mark.deep
@pytest.mark.parametrize("kinds", PAIRINGS, ids="-".join)
def test_a_hundred_thousand_packets_make_no_difference(kinds: tuple[str, str]) -> None:
    converse(kinds, secrets.randbits(32), 100_000)
