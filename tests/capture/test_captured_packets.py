"""Packets of captures made whole."""

from itertools import islice
from pathlib import Path
from random import Random

import pytest

from capture.captured_packets import captured_packets, chunk_of, whole_packets
from capture.wire_packet import WirePacket
from capture.writer import capture_writer
from tests.capture.foreign import ERF, INFINIBAND, erf, pcap
from tests.capture.samples import DIRECTIONS, FORMATS, damaged, good_packets
from wire.crc import icrc_good, invert_vcrc, vcrc
from wire.packet import build_ud_send
from wire.trace import Delimiter

DATA = build_ud_send(slid=1, dlid=2, dest_qp=5, src_qp=6, q_key=7, payload=b"payload of a packet").data
WHOLE = DATA + vcrc(DATA)


@pytest.mark.parametrize("suffix", FORMATS)
def test_packets_are_read_as_they_were_written(tmp_path: Path, suffix: str) -> None:
    random = Random(2)
    packets = [
        one if n % 3 else damaged(one, random.randrange(4), random) for n, one in enumerate(good_packets(1, 200))
    ]
    path = str(tmp_path / f"a{suffix}")
    with capture_writer(path, DIRECTIONS) as writer:
        for packet in packets:
            writer.write(packet)
    numbers: dict[int, int] = {}
    wanted = [packet._replace(direction=numbers.setdefault(packet.direction, len(numbers))) for packet in packets]
    assert list(captured_packets(path, 10_000)) == wanted
    assert list(captured_packets(path, 7)) == wanted[:7]
    assert list(whole_packets(chunk_of(packets))) == packets


def read(tmp_path: Path, content: bytes) -> WirePacket:
    path = tmp_path / "a"
    path.write_bytes(content)
    (packet,) = islice(captured_packets(str(path), 9), 9)
    return packet


def test_a_vcrc_that_was_not_captured_is_computed(tmp_path: Path) -> None:
    packet = read(tmp_path, pcap(INFINIBAND, [(1, 5, None, DATA)]))
    assert packet == WirePacket(0, 1_000_005_000, False, WHOLE, Delimiter.EGP)
    assert read(tmp_path, pcap(INFINIBAND, [(0, 0, None, WHOLE)])).data == WHOLE


@pytest.mark.parametrize("kept", [8, 30, len(DATA) - 1, len(DATA), len(DATA) + 1])
def test_what_was_not_captured_is_zeros_with_the_crcs_of_these(tmp_path: Path, kept: int) -> None:
    packet = read(tmp_path, pcap(INFINIBAND, [(0, 0, len(WHOLE), WHOLE[:kept])]))
    assert len(packet.data) == len(WHOLE)
    assert packet.data[: min(kept, len(DATA) - 4)] == WHOLE[: min(kept, len(DATA) - 4)]
    assert packet.data[kept : len(DATA) - 4] == bytes(max(0, len(DATA) - 4 - kept))
    assert packet.data[-2:] == vcrc(packet.data[:-2])
    # Too short for its headers it has no ICRC that could be right.
    assert kept < 20 or icrc_good(packet.data[:-2])


def test_what_is_marked_bad_stays_so_and_what_is_only_said_to_be_wrong_is_cut(tmp_path: Path) -> None:
    def one(flags: int, data: bytes = WHOLE) -> WirePacket:
        return read(tmp_path, pcap(ERF, [(0, 0, None, erf(21, data, flags=flags))]))

    assert one(0x04)[3:5] == (WHOLE, Delimiter.EGP)
    assert one(0x34, DATA)[3:5] == (DATA + invert_vcrc(vcrc(DATA)), Delimiter.EBP)
    assert one(0x1C, WHOLE[:31])[3:5] == (WHOLE[:31], Delimiter.CUT)
    wrong = DATA + b"\x00\x00"
    assert one(0x14, wrong)[3:5] == (wrong, Delimiter.EGP)
    # All its rows but the last.
    assert one(0x14)[3:5] == (WHOLE[:-3], Delimiter.CUT)
