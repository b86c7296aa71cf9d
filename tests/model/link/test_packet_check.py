"""What packets are refused for (docs/pipeline.md, sections 3.2 and 3.3)."""

import pytest

from wire.stimulus import Post
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData

N = 11  # PktLen of the packets here


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


def test_a_wrong_icrc_is_found_at_the_last_hop_only(star, ready):
    bench = star(2)
    words = list(bench.words(1, 2, payload=12))
    words[-2] ^= 1
    bench.posts.append(Post.of_words(ready, 1, 0, tuple(words)))
    bench.run(2000)
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, 1)] == [Verdict.GOOD]
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 2)] == [Verdict.PHYSICAL]
    assert not bench.delivered


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
