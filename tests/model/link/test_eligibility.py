"""Heads go by what was visible of the output's port two cycles before (docs/pipeline.md, section 7)."""

import pytest

from wire.codes import LinkWidth, PortState
from wire.registers import PortRegister
from wire.stimulus import Post
from wire.trace import Discard, Kind
from wire.trace_layout import TxDiscard

GRANT_TO_WIRE = 4
PAYLOAD = 252
WORDS = (8 + 12 + 8 + PAYLOAD + 4) // 4
"""Of a packet with LRH, BTH, DETH, payload and ICRC."""


def last_row_on_wire(granted, n):
    """Of a packet granted to a 4X output."""
    return granted + GRANT_TO_WIRE + n


def arrived(shown):
    """The first cycle in which a packet can be swallowed that is a visible head in this one, as it begins to arrive."""
    return shown - 1 + WORDS


@pytest.fixture
def bench(star, ready):
    """A packet for port 2 of an idle switch."""
    bench = star(2)
    bench.post(ready + 100, 1, 2, payload=PAYLOAD)
    return bench


@pytest.fixture
def shown(star, ready):
    """The cycle in which the packet is a visible head, and granted if nothing blocks it."""
    undisturbed = star(2)
    undisturbed.post(ready + 100, 1, 2, payload=PAYLOAD)
    (sent,) = undisturbed.run(2000).of(Kind.TX_DATA, 0, 2)
    return sent.c - GRANT_TO_WIRE


def test_in_the_first_cycle_of_activedefer_a_head_is_still_granted_and_refused(bench, shown):
    deferred = shown - 1
    bench.link(deferred - 2, 1, False)
    bench.link(deferred + 500, 1, True)
    (refused,) = bench.run(3000).of(Kind.TX_DISCARD, 0, 2)
    assert TxDiscard.reason.read(refused) == Discard.INACTIVE
    assert refused.cycle == last_row_on_wire(shown, TxDiscard.pkt_len.read(refused))


def test_the_second_one_keeps_it_waiting_until_two_cycles_after_the_return_to_active(bench, shown):
    deferred, active = shown - 2, shown + 500
    bench.link(deferred - 2, 1, False)
    bench.link(active - 2, 1, True)
    (sent,) = bench.run(3000).of(Kind.TX_DATA, 0, 2)
    assert sent.c == active + 2 + GRANT_TO_WIRE


@pytest.mark.parametrize("entered", [PortState.DOWN, PortState.INITIALIZE])
def test_a_head_goes_by_its_credits_even_in_the_cycle_that_sets_them_to_0(bench, shown, entered):
    """Two cycles before Initialize the port was Active. The head is granted, and refused."""
    down = shown if entered == PortState.DOWN else shown - 1
    bench.write_port(0, 2, PortRegister.STATE, PortState.DOWN, down - 2)
    (refused,) = bench.run(2000).of(Kind.TX_DISCARD, 0, 2)
    assert refused.cycle == last_row_on_wire(shown, TxDiscard.pkt_len.read(refused))


def test_a_vl_that_is_operational_no_more_swallows_two_cycles_later(star, ready):
    """Behind a packet that fills the stalled host's buffer waits another."""
    bench = star(2, vls=2, mtu=256, adapter={"mtu": 256, "receive_blocks": 7})
    bench.stall(ready, 2, 0b10)
    for _ in range(2):
        bench.post(ready + 10, 1, 2, slot=1, sl=1, payload=PAYLOAD)
    visible = bench.write_port(0, 2, PortRegister.OPERATIONAL_VLS, 1, ready + 1000) + 2
    bench.run(3000)
    (swallowed,) = bench.of(Kind.TX_DISCARD, 0, 2)
    assert swallowed.cycle == visible + 2 + GRANT_TO_WIRE


@pytest.mark.parametrize(("after", "swallowed"), [(1, True), (2, False)])
def test_a_head_that_has_arrived_needs_credits_from_two_cycles_after_active_on(star, ready, shown, after, swallowed):
    """The host stalls, with room for one packet, and has one; the port is brought up again."""
    latency = arrived(shown) - (ready + 100)
    bench = star(2, mtu=256, adapter={"mtu": 256, "receive_blocks": 7})
    bench.stall(ready, 2, 1)
    bench.post(ready + 10, 1, 2, payload=PAYLOAD)
    bench.write_port(0, 2, PortRegister.STATE, PortState.DOWN, ready + 400)
    bench.write_port(2, 1, PortRegister.STATE, PortState.ARMED, ready + 500)
    bench.write_port(0, 2, PortRegister.STATE, PortState.ARMED, ready + 501)
    active = bench.write_port(0, 2, PortRegister.STATE, PortState.ACTIVE, ready + 600) + 2
    bench.post(active + after - latency, 1, 2, payload=PAYLOAD)
    bench.run(3000)
    assert bench.of(Kind.TX_DATA, 0, 2, since=active) == []
    discards = [record.cycle for record in bench.of(Kind.TX_DISCARD, 0, 2)]
    assert discards == ([active + after + GRANT_TO_WIRE] if swallowed else [])


def test_a_head_is_swallowed_when_its_packet_has_arrived_however_slow_its_output_is(bench, shown):
    bench.write_port(0, 2, PortRegister.WIDTH, LinkWidth.X1, shown - 900)
    bench.write_port(0, 2, PortRegister.STATE, PortState.DOWN, shown - 800)
    bench.write_port(2, 1, PortRegister.STATE, PortState.DOWN, shown - 798)
    (swallowed,) = bench.run(3000).of(Kind.TX_DISCARD, 0, 2)
    # A 1X output is available in every fourth cycle.
    assert swallowed.cycle == -(-arrived(shown) // 4) * 4 + GRANT_TO_WIRE


def test_the_blocks_of_the_shortest_packet_count_for_the_next_grant(star, ready):
    """A host posts one-block packets, too short for the switch to take: none of its seven blocks is used."""
    bench = star(2, mtu=256, buffer_blocks=7, adapter={"mtu": 256})
    words = 2 << 16 | 2, 5 << 16 | 1, 0, 0, 0
    bench.posts = [Post.of_words(ready, 1, 0, words) for _ in range(12)]
    bench.run(ready + 300)
    assert len(bench.of(Kind.TX_DATA, 1)) == 7
