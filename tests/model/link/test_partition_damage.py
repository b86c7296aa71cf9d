"""Damaged packets whose partition is checked (docs/pipeline.md, sections 3.2, 3.5 and 3.6)."""

import pytest

from tests.model.link.partitions import BLOCKS, announced, arrival, checking, iba, post, raw, verdicts
from wire.codes import PortState
from wire.registers import PartitionCheck, PortRegister
from wire.stimulus import Injection, Trigger
from wire.trace import Kind, Verdict
from wire.trace_layout import TxData

IN, OUT, RAW_IN, _ = PartitionCheck
FULL = 0x8000


@pytest.mark.parametrize("forwarding", ["cut-through", "store-and-forward"])
@pytest.mark.parametrize(("p_key", "sent"), [(4, 1), (5, 0)])
def test_the_p_key_of_a_damaged_packet_is_what_came(star, ready, p_key, sent, forwarding):
    """A bit of the key is wrong. That shows at the end: bad all the same, and no constraint error."""
    bench = checking(star, (IN, OUT), [FULL | 5], [FULL | 5], forwarding=forwarding)
    bench.inject(ready - 1, 0, 1, Injection(Trigger.DATA, 3, 3, flip=1 << 24))
    post(bench, ready, iba(1, 2, p_key))
    bench.run(2000)
    assert verdicts(bench) == [Verdict.PHYSICAL]
    sent = sent if forwarding == "cut-through" else 0
    assert [TxData.marked_bad.read(record) for record in bench.of(Kind.TX_DATA, 0, 2)] == [1] * sent
    assert announced(bench) == BLOCKS


@pytest.mark.parametrize("row", range(2, 9))
def test_a_checked_packet_that_is_cut_before_it_joins_is_cancelled(star, ready, row):
    """It joins if row 6 was clean."""
    bench = checking(star, (IN, 0))
    bench.inject(ready - 1, 0, 1, Injection(Trigger.DATA, row, row, flip=8 << 32))
    post(bench, ready, iba(1, 2, 0xFFFF))
    bench.run(2000)
    assert verdicts(bench) == [Verdict.PHYSICAL]
    assert len(bench.of(Kind.TX_DATA, 0, 2)) + len(bench.of(Kind.SCRAP, 0, 2)) == (row > 6)
    assert announced(bench) == BLOCKS


@pytest.mark.parametrize("end", range(3, 10))
def test_a_checked_packet_that_ends_short_is_cancelled_if_it_has_not_joined(star, ready, end):
    bench = checking(star, (IN, 0))
    bench.inject(ready - 1, 0, 1, Injection(Trigger.DATA, end, end, keep=(1 << 36) - 0x100, flip=1 << 32 | 0xFE))
    post(bench, ready, iba(1, 2, 0xFFFF))
    bench.run(2000)
    assert verdicts(bench) == [Verdict.REMOTE]
    assert len(bench.of(Kind.TX_DATA, 0, 2)) + len(bench.of(Kind.SCRAP, 0, 2)) == (end > 6)
    assert announced(bench) == BLOCKS


@pytest.mark.parametrize("at", range(12))
def test_a_link_that_goes_down_in_a_checked_packet_leaves_nothing_behind(star, ready, at):
    """And the next packet passes."""
    bench = checking(star, (IN, 0))
    first = arrival(len(iba(1, 2, 0xFFFF)), ready)
    bench.link(first + at - 2, 0, False)
    bench.link(first + 30, 0, True)
    post(bench, ready, iba(1, 2, 0xFFFF))
    post(bench, ready + 500, iba(1, 2, 0xFFFF))
    bench.run(3000)
    assert verdicts(bench)[-1] == Verdict.GOOD
    assert len(bench.delivered) == 1
    assert announced(bench) == BLOCKS


def test_the_smallest_packet_with_a_wrong_vcrc_is_cancelled(star, ready):
    bench = checking(star, (IN, 0))
    bench.inject(ready - 1, 0, 1, Injection(Trigger.DATA, at_end=True, flip=1 << 8))
    post(bench, ready, iba(1, 2, 0xFFFF, payload=0))
    bench.run(2000)
    assert verdicts(bench) == [Verdict.PHYSICAL]
    assert not bench.of(Kind.TX_DATA, 0, 2)
    assert not bench.of(Kind.SCRAP)
    assert announced(bench) == BLOCKS


@pytest.mark.parametrize("words", [iba(1, 2, 6), raw(1, 2)])
def test_a_packet_of_another_length_than_its_pktlen_is_malformed_whatever_its_partition(star, ready, words):
    bench = checking(star, (IN | RAW_IN, 0), [FULL | 5])
    post(bench, ready, (words[0], words[1] + (1 << 16), *words[2:]))
    bench.run(2000)
    assert verdicts(bench) == [Verdict.LENGTH]
    assert announced(bench) == BLOCKS


def test_a_packet_for_a_port_that_is_not_armed_does_not_join_when_its_key_is_found(star, ready):
    """The port has just come back to Initialize."""
    words = iba(1, 2, 0xFFFF, payload=4)
    bench = checking(star, (IN, 0))
    bench.write_port(0, 1, PortRegister.STATE, PortState.DOWN, arrival(len(words), ready) - 1 - 2)
    post(bench, ready, words)
    bench.run(2000)
    assert verdicts(bench) == [Verdict.NOT_ACTIVE]
    assert not bench.of(Kind.TX_DATA, 0, 2)
    assert not bench.of(Kind.SCRAP)
