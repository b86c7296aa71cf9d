"""Framing, checks and verdicts (docs/pipeline.md, sections 2.1 and 3)."""

import pytest

from wire.registers import Counter, PortRegister
from wire.stimulus import ROW_MAX, Injection, Trigger
from wire.trace import Kind, LinkResult, Verdict, link_source
from wire.trace_layout import RxData, RxFcp, TxData

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
        (
            RxData.verdict.read(record),
            RxData.delimiter.read(record),
            RxData.pkt_len.read(record),
            RxData.end_row.read(record),
        )
        for record in bench.of(Kind.RX_DATA, 0, 1)
    ]


GOOD = (Verdict.GOOD, 1, N, N)
PHYSICAL, REMOTE = Verdict.PHYSICAL, Verdict.REMOTE


def data(*, first=0, last=ROW_MAX, at_end=False, keep=ALL, flip=0):
    return Injection(Trigger.DATA, first, last, at_end, keep, flip)


@pytest.mark.parametrize(
    ("injection", "first", "counters"),
    [
        # A payload bit: the VCRC shows it.
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
    assert (TxData.marked_bad.read(sent), TxData.pkt_len.read(sent), TxData.end_row.read(sent)) == (1, n, n)


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
    assert [RxFcp.result.read(record) for record in bench.of(Kind.RX_FCP, 0, 1)] == [result]


def test_a_row_counts_as_symbol_error_three_cycles_later(star, ready):
    bench = star(2)
    bench.inject(ready, 0, 1, Injection(Trigger.IDLE, flip=K0))  # leaves the link at ready + 2
    bench.read_port(0, 1, Counter.SYMBOL_ERROR, ready + 2 + 2 - 2)
    bench.read_port(0, 1, Counter.SYMBOL_ERROR, ready + 2 + 3 - 2)
    bench.run(2000)
    assert bench.values() == [0, 1]


@pytest.mark.parametrize(
    ("injection", "kind"),
    [(data(first=5, last=5, flip=1), Kind.RX_DATA), (Injection(Trigger.LINK, first=1, last=1, flip=K0), Kind.RX_FCP)],
    ids=["data", "flow control"],
)
@pytest.mark.parametrize(("visible", "exceeded"), [(0, 1), (1, 0)])
def test_an_error_is_judged_by_the_threshold_that_is_visible_in_its_cycle(
    star, ready, injection, kind, visible, exceeded
):
    def judged(written):
        bench = star(2)
        bench.write_port(0, 1, PortRegister.LOCAL_PHY_ERRORS, 0, written)
        bench.write_port(1, 1, PortRegister.FCP_PERIOD, 100, ready)
        bench.inject(ready + 20, 0, 1, injection)
        bench.post(ready + 30, 1, 2, payload=12)
        bench.read_port(0, 1, Counter.LOCAL_LINK_INTEGRITY_ERRORS, 2900)
        bench.run(3000)
        return bench

    (wrong,) = (record for record in judged(2800).of(kind, 0, 1) if record.a & 0xFF)
    assert judged(wrong.cycle - 2 + visible).values() == [exceeded]
