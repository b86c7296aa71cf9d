"""A host sees good data packets, and only as many as it can take."""

import pytest

from capture.host_view import HostView
from capture.wire_packet import Way, WirePacket
from tests.capture.samples import good_packets
from wire.crc import invert_vcrc
from wire.trace import Delimiter

DATA = next(packet.data for packet in good_packets(1, 10) if not packet.is_link)


@pytest.mark.parametrize("way", Way)
def test_a_good_packet_is_seen_whichever_way_it_goes(way: Way) -> None:
    seen = HostView(3, "A[1]").see(way, 10_000.0, DATA, Delimiter.EGP)
    assert seen is not None
    assert seen == WirePacket(3, seen.time_ns, False, DATA, Delimiter.EGP, way)
    assert 10_000 <= seen.time_ns < 20_000


@pytest.mark.parametrize(
    ("data", "ending"),
    [
        (DATA[:-2] + invert_vcrc(DATA[-2:]), Delimiter.EBP),
        (DATA[:-1] + bytes([DATA[-1] ^ 1]), Delimiter.EGP),
        (DATA[:7], Delimiter.CUT),
    ],
    ids=["marked bad", "VCRC wrong", "cut"],
)
def test_a_bad_packet_is_not(data: bytes, ending: Delimiter) -> None:
    host = HostView(0, "A[1]")
    assert host.see(Way.IN, 0.0, data, ending) is None
    assert (host.clock.captured, host.clock.lost) == (0, 0)


def test_the_packet_after_a_loss_says_how_many_are_missing() -> None:
    host = HostView(0, "A[1]")
    seen = [host.see(Way.IN, 0.0, DATA, Delimiter.EGP) for _ in range(5_000)]
    missing = seen.count(None)
    assert missing > 0
    last = host.see(Way.IN, 1e9, DATA, Delimiter.EGP)
    assert last is not None
    assert (last.lost, host.clock.lost, host.last_ns) == (missing, missing, last.time_ns)
    following = host.see(Way.IN, 2e9, DATA, Delimiter.EGP)
    assert following is not None
    assert following.lost == 0
