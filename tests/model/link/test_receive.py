"""Framing, checks and verdicts (docs/pipeline.md, sections 2.1 and 3)."""

import pytest

from wire.codes import VL15, PortState
from wire.crc import lpcrc
from wire.registers import Counter, NodeRegister, PortRegister, node_address
from wire.stimulus import ROW_MAX, Injection, Post, Trigger
from wire.trace import Kind, LinkResult, Verdict, link_source

K0, K3 = 8 << 32, 1 << 32
ALL = (1 << 36) - 1
N = 11  # PktLen of the packets here
COUNTERS = (
    Counter.SYMBOL_ERROR,
    Counter.RCV_ERRORS,
    Counter.RCV_REMOTE_PHYSICAL_ERRORS,
    Counter.LOCAL_LINK_INTEGRITY_ERRORS,
    Counter.RCV_PKTS,
    Counter.RCV_DATA,
)


def damaged(star, ready, injection, packets=2):
    """Two packets towards the switch, the first of which meets an injection; read the counters."""
    bench = star(2)
    for i, counter in enumerate(COUNTERS):
        bench.write_port(0, 1, counter, 0, ready - 50 + i)
        bench.read_port(0, 1, counter, 2900 + i)
    bench.write_port(0, 1, PortRegister.LOCAL_PHY_ERRORS, 0, ready - 30)
    bench.inject(ready, 0, 1, injection)
    for i in range(packets):
        bench.post(ready + 10 + 500 * i, 1, 2, payload=12, seed=i)
    return bench.run(3000)


def received(bench):
    """(verdict, delimiter, PktLen, end row) of what the switch received."""
    return [
        (record.a & 0xFF, record.a >> 16, record.b & 0xFFFF, record.b >> 16) for record in bench.of(Kind.RX_DATA, 0, 1)
    ]


GOOD = (Verdict.GOOD, 1, N, N)
PHYSICAL, REMOTE = Verdict.PHYSICAL, Verdict.REMOTE


def data(*, first=0, last=ROW_MAX, at_end=False, keep=ALL, flip=0):
    return Injection(Trigger.DATA, first, last, at_end, keep, flip)


@pytest.mark.parametrize(
    ("injection", "first", "counters"),
    [
        # A payload bit: the VCRC tells.
        (data(first=5, last=5, flip=1), (PHYSICAL, 1, N, N), (0, 1, 0, 1, 2, 2 * N)),
        # A code violation in row 5: cut there, and row 6 on is discarded.
        (data(first=5, last=5, flip=K0), (PHYSICAL, 0, N, 5), (1, 1, 0, 1, 2, N + 5)),
        # EBP in place of EGP.
        (data(at_end=True, flip=0xFD ^ 0xFE), (REMOTE, 2, N, N), (0, 0, 1, 0, 2, 2 * N)),
        # No end delimiter: the next row, an idle one, finds... the end row itself too long.
        (data(at_end=True, keep=0, flip=0), (PHYSICAL, 0, N, N), (0, 1, 0, 1, 2, 2 * N)),
        # An end delimiter in row 6: short, and its VCRC is wrong.
        (data(first=6, last=6, keep=ALL ^ 0xFF, flip=K3 | 0xFD), (PHYSICAL, 1, N, 6), (1, 1, 0, 1, 2, N + 6)),
        # The same with EBP: remote, and the true end row is a stray one.
        (data(first=6, last=6, keep=ALL ^ 0xFF, flip=K3 | 0xFE), (REMOTE, 2, N, 6), (1, 0, 1, 0, 2, N + 6)),
        # Row 1 destroyed: no header.
        (data(first=1, last=1, flip=K0), (PHYSICAL, 0, 0, 1), (1, 1, 0, 1, 2, N + 1)),
        # EBP in row 1.
        (data(first=1, last=1, keep=0, flip=K3 | 0xFE), (REMOTE, 2, 0, 1), (1, 0, 1, 0, 2, N + 1)),
        # PktLen 0 in row 1: too long at once.
        (data(first=1, last=1, keep=ALL ^ 0x7FF00), (PHYSICAL, 0, 0, 1), (0, 1, 0, 1, 2, N + 1)),
        # PktLen 27: it ends short, with a VCRC that is wrong too.
        (data(first=1, last=1, flip=0x1000), (PHYSICAL, 1, N + 16, N), (0, 1, 0, 1, 2, 2 * N)),
        # A second SDP in row 4 cuts the packet.
        (data(first=4, last=4, keep=0, flip=K0 | 0xFB << 24), (PHYSICAL, 0, N, 4), (0, 1, 0, 1, 2, N + 4)),
        # LVer 1 (and a wrong VCRC, which comes first).
        (data(first=0, last=0, flip=1 << 16), (PHYSICAL, 1, N, N), (0, 1, 0, 1, 2, 2 * N)),
        # LVer 1, ended with EBP.
        (data(keep=ALL, first=0, last=ROW_MAX, flip=0), GOOD, (0, 0, 0, 0, 2, 2 * N)),
    ],
)  # fmt: skip
def test_each_damage_has_its_verdict_and_the_next_packet_is_good(star, ready, injection, first, counters):
    bench = damaged(star, ready, injection)
    assert received(bench) == [first, GOOD]
    assert tuple(bench.values()) == counters


def test_a_packet_without_sdp_is_no_packet_and_leaves_a_stray_end(star, ready):
    bench = damaged(star, ready, data(first=0, last=0, keep=0))
    assert received(bench) == [GOOD]
    assert bench.values() == [1, 0, 0, 0, 1, N]


def test_a_damaged_sdp_row_is_a_bad_packet_whose_rows_are_discarded(star, ready):
    bench = damaged(star, ready, data(first=0, last=0, flip=4 << 32))
    assert received(bench) == [GOOD]
    assert bench.values() == [1, 1, 0, 0, 1, N]


def test_a_packet_that_never_ends_runs_into_the_next_one(star, ready):
    """Rows 5 on are taken for a long packet's, whose PktLen says 11 + 1024: cut by the next SDP."""
    bench = star(2, mtu=4096, buffer_blocks=100, adapter={"mtu": 4096})
    bench.inject(ready, 0, 1, data(first=1, last=1, flip=0x40000))
    bench.inject(ready + 40, 0, 1, data(at_end=True))
    bench.post(ready + 10, 1, 2, payload=12)
    bench.run(ready + 60)
    assert received(bench) == [(Verdict.PHYSICAL, 1, N + 1024, N)]


def test_an_end_without_delimiter_makes_idle_rows_part_of_the_packet(star, ready):
    """Two injections cannot meet in one packet, so row 1 on is changed: longer, and no EGP."""
    bench = star(2)
    # K 0 everywhere from row 1 on, and PktLen + 16 through a bit that is idle data elsewhere.
    bench.inject(ready, 0, 1, data(first=1, keep=ALL ^ (0xF << 32), flip=0x1000))
    bench.post(ready + 10, 1, 2, payload=12)
    bench.run(3000)
    n = N + 16
    assert received(bench) == [(Verdict.PHYSICAL, 0, n, n)]
    (sent,) = bench.of(Kind.TX_DATA, 0, 2)
    assert (sent.a >> 8 & 1, sent.b) == (1, n | n << 16)


def test_an_idle_row_can_become_a_packet_that_the_next_idle_row_spoils(star, ready):
    bench = star(2)
    bench.inject(ready, 0, 1, Injection(Trigger.IDLE, keep=0, flip=K0 | 0x5C << 24))
    bench.read_port(0, 1, Counter.RCV_ERRORS, ready + 50)
    bench.run(2000)
    (injected,) = bench.of(Kind.INJECT)
    assert (injected.cycle, injected.source) == (ready + 1, link_source(0, 1))
    (link,) = bench.of(Kind.RX_FCP, 0, 1)
    assert (link.a, link.cycle) == (LinkResult.MALFORMED, ready + 1 + 1 + 1 + 2)
    assert bench.values() == [1]


@pytest.mark.parametrize(
    ("flip", "result"),
    [(1 << 24, LinkResult.LPCRC), (K0, LinkResult.MALFORMED), (0xFD ^ 0xFE, LinkResult.MALFORMED)],
)
def test_a_damaged_link_packet_changes_no_credits(star, ready, flip, result):
    bench = star(2)
    bench.write_port(1, 1, PortRegister.FCP_PERIOD, 100, ready)
    bench.inject(ready + 20, 0, 1, Injection(Trigger.LINK, first=1, last=1, flip=flip))
    bench.run(ready + 150)
    assert [record.a & 0xFF for record in bench.of(Kind.RX_FCP, 0, 1)] == [result]


def test_an_operation_replaces_one_that_waits_and_is_lost_to_one_at_work(star, ready):
    bench = star(2)
    bench.inject(ready, 0, 1, data(first=2, last=2, flip=1))
    bench.inject(ready + 1, 0, 1, data(first=4, last=4, flip=1))
    bench.post(ready + 10, 1, 2, payload=256)
    bench.run(ready + 100)  # the packet of 72 words is on the wire
    (injected,) = bench.of(Kind.INJECT)
    assert injected.a == Trigger.DATA | 4 << 8


def test_a_wrong_icrc_is_found_at_the_last_hop_only(star, ready):
    bench = star(2)
    words = list(bench.words(1, 2, payload=12))
    words[-2] ^= 1
    bench.posts.append(Post.of_words(ready, 1, 0, tuple(words)))
    bench.run(2000)
    assert [record.a & 0xFF for record in bench.of(Kind.RX_DATA, 0, 1)] == [Verdict.GOOD]
    assert [record.a & 0xFF for record in bench.of(Kind.RX_DATA, 2)] == [Verdict.PHYSICAL]
    assert not bench.delivered


def test_an_adapter_takes_its_lids_multicast_and_permissive_smps_only(star, ready):
    bench = star(2)
    bench.write(2, node_address(NodeRegister.LMC), 1, ready)
    bench.write(2, node_address(NodeRegister.LID), 3, ready + 1)
    bench.write(0, 0x80 << 16 | 3, 2, ready + 2)
    bench.write(0, 0x80 << 16 | 4, 2, ready + 3)
    for i, lid in enumerate((2, 3, 4)):
        bench.post(ready + 100 + 100 * i, 1, lid, payload=12)
    bench.run(2000)
    verdicts = [record.a & 0xFF for record in bench.of(Kind.RX_DATA, 2)]
    assert verdicts == [Verdict.GOOD, Verdict.GOOD, Verdict.DLID]


def test_a_permissive_packet_on_vl15_is_for_the_switch_itself_and_no_other_is(star, ready):
    bench = star(2)
    bench.post(ready, 1, 0xFFFF, slot=1, vl=VL15, payload=256)
    bench.post(ready, 1, 0xC001, slot=1, vl=VL15, payload=256)
    bench.post(ready + 300, 1, 0xFFFF, payload=256)
    bench.run(2000)
    verdicts = [record.a & 0xFF for record in bench.of(Kind.RX_DATA, 0, 1)]
    assert verdicts == [Verdict.GOOD, Verdict.VL, Verdict.NO_ROUTE]
    assert len(bench.of(Kind.DELIVER, 0, port=0)) == 1


def test_data_before_armed_is_dropped_without_a_counter(star, ready):
    """The switch's port is sent back to Initialize in the cycle in which a header comes."""
    bench = star(2)
    bench.post(ready, 1, 2, payload=256)
    row_1 = ready + 1 + 72 + 2 + 1 + 4 + 1 + 1
    bench.write_port(0, 1, PortRegister.STATE, PortState.DOWN, row_1 + 1 - 2)
    bench.run(2000)
    # Down in the cycle after row 1: the packet is cut there, and was not active.
    (packet,) = bench.of(Kind.RX_DATA, 0, 1)
    assert (packet.a & 0xFF, packet.b >> 16, packet.d) == (Verdict.PHYSICAL, 2, 0)


def test_a_row_counts_as_symbol_error_three_cycles_later(star, ready):
    bench = star(2)
    bench.inject(ready, 0, 1, Injection(Trigger.IDLE, flip=K0))  # leaves the link at ready + 2
    bench.read_port(0, 1, Counter.SYMBOL_ERROR, ready + 2 + 2 - 2)
    bench.read_port(0, 1, Counter.SYMBOL_ERROR, ready + 2 + 3 - 2)
    bench.run(2000)
    assert bench.values() == [0, 1]


def test_overruns_in_consecutive_periods_are_excessive(star, ready):
    """Forged credits (FCCL 7 becomes 71, with the right LPCRC) let a sender overrun a full buffer."""
    bench = star(2, mtu=256, adapter={"mtu": 256, "receive_blocks": 7})
    bench.write_port(2, 1, PortRegister.OVERRUN_ERRORS, 2, ready)
    bench.write_port(2, 1, PortRegister.FCP_PERIOD, 1000, ready + 1)  # periods begin at 1003 + 1000 i
    bench.stall(ready + 2, 2, 0b11)
    forged = 64
    lpcrc_change = int.from_bytes(lpcrc(bytes(4)), "big") ^ int.from_bytes(lpcrc(bytes([0, 0, 0, forged])), "big")
    flip = forged << 24 | lpcrc_change << 8
    for i in range(4):
        bench.inject(ready + 900 + 1000 * i, 1, 1, Injection(Trigger.LINK, first=1, last=1, flip=flip))
        bench.post(ready + 100 + 1000 * i, 1, 2, payload=252)
    for i in range(4):
        bench.read_port(2, 1, Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS, ready + 900 + 1000 * i + 50)
    bench.read_port(2, 1, Counter.RCV_ERRORS, 6000)
    bench.run(6100)
    verdicts = [(record.cycle // 1000, record.a & 0xFF) for record in bench.of(Kind.RX_DATA, 2)]
    assert verdicts == [(1, Verdict.GOOD), (2, Verdict.OVERRUN), (3, Verdict.OVERRUN), (4, Verdict.OVERRUN)]
    # Periods 2 and 3 had overruns: counted at the end of period 3. Then it takes two more.
    assert bench.values() == [0, 0, 0, 1, 3]


@pytest.mark.parametrize(
    ("pkt_len", "verdict", "k"),
    [(N - 3, Verdict.PHYSICAL, N - 3), (N + 2, Verdict.LENGTH, N), (1, Verdict.PHYSICAL, 1)],
)
def test_a_packet_of_another_length_than_its_pktlen_is_refused(star, ready, pkt_len, verdict, k):
    bench = star(2)
    words = list(bench.words(1, 2, payload=12))
    words[1] = words[1] & ~0x07FF_0000 | pkt_len << 16
    bench.posts.append(Post.of_words(ready, 1, 0, tuple(words)))
    bench.post(ready + 300, 1, 2, payload=12)
    bench.run(2000)
    first, second = received(bench)
    assert (first[0], first[3]) == (verdict, k)
    assert second == GOOD
    assert len(bench.delivered) == 1


def test_packets_of_one_and_two_words_are_no_packets(star, ready):
    bench = star(2)
    for n in (1, 2):
        bench.posts.append(Post.of_words(ready + 100 * n, 1, 0, bench.words(1, 2, payload=12)[:n]))
    bench.run(2000)
    # PktLen 11: row 1 is the end row, or row 2 is; neither has the length that it says.
    assert received(bench) == [(Verdict.LENGTH, 1, 0, 1), (Verdict.LENGTH, 1, N, 2)]
