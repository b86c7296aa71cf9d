"""Captures of any origin are read: either byte order, any clock, what writers may add; what is none is one line."""

import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from capture.chunk import PacketFlag
from capture.crc_check import check_crcs
from capture.fields import Fields
from capture.reader import capture_reader
from capture.records import CaptureError
from capture.wire_packet import WirePacket
from tests.capture.foreign import (
    ERF,
    ETHERNET,
    INFINIBAND,
    block,
    enhanced,
    erf,
    interface,
    obsolete,
    pcap,
    section,
    simple,
)
from tests.capture.reading import read_packets, read_with_directions
from tests.capture.samples import good_packets
from wire.trace import Delimiter

PACKET = next(packet.data for packet in good_packets(1, 10) if not packet.is_link)
LINK = next(packet.data for packet in good_packets(1, 10) if packet.is_link)
DATA_TYPE, LINK_TYPE, ETHERNET_TYPE, PROVENANCE_TYPE = 21, 25, 2, 27

both_orders = pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "foreign"


def times(path: Path) -> list[int]:
    return [packet.time_ns for packet in read_packets(path)]


def test_erf_records_follow_each_other_with_extensions_ports_and_flags(path):
    path.write_bytes(
        erf(DATA_TYPE, PACKET, seconds=1.5)
        + erf(DATA_TYPE, PACKET + bytes(6), seconds=2, flags=4 | 1, wlen=len(PACKET), extensions=(5, 3, 14))
        + erf(LINK_TYPE, LINK + bytes(2), seconds=3, flags=4 | 2)
        + erf(LINK_TYPE, LINK, seconds=3, flags=4 | 2)
        + erf(DATA_TYPE, PACKET[:7], flags=4 | 3 | 8 | 16)
    )
    assert read_with_directions(path) == (
        [
            WirePacket(0, 1_500_000_000, False, PACKET),
            WirePacket(1, 2_000_000_000, False, PACKET),
            WirePacket(2, 3_000_000_000, True, LINK),
            WirePacket(2, 3_000_000_000, True, LINK),
            WirePacket(3, 0, False, PACKET[:7], Delimiter.CUT),
        ],
        ["A", "B", "C", "D"],
    )


def test_what_was_not_captured_whole_says_so(path):
    path.write_bytes(erf(DATA_TYPE, PACKET[:20], wlen=len(PACKET)))
    with capture_reader(str(path)) as capture:
        (chunk,) = capture.chunks()
    assert chunk.flags.tolist() == [PacketFlag.SHORT]
    assert chunk.bytes_of(0) == PACKET[:20]


def test_other_records_are_left_out(path):
    path.write_bytes(
        erf(PROVENANCE_TYPE, bytes(40)) + erf(DATA_TYPE, PACKET) + erf(ETHERNET_TYPE, bytes(66)) + erf(LINK_TYPE, LINK)
    )
    with capture_reader(str(path)) as capture:
        assert [chunk.bytes_of(index) for chunk in capture.chunks() for index in range(len(chunk))] == [PACKET, LINK]
        assert capture.left_out == 2


@both_orders
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_of_either_order_and_resolution_holds_packets_from_the_lrh_on(order, nanoseconds, path):
    path.write_bytes(
        pcap(INFINIBAND, [(7, 25, None, PACKET), (1 << 31, 1, None, PACKET)], order=order, nanoseconds=nanoseconds)
    )
    unit = 1 if nanoseconds else 1_000
    assert read_packets(path) == [
        WirePacket(0, 7_000_000_000 + 25 * unit, False, PACKET),
        WirePacket(0, (1 << 31) * 1_000_000_000 + unit, False, PACKET),
    ]


@both_orders
def test_pcap_of_erf_records_goes_by_their_own_times(order, path):
    path.write_bytes(pcap(ERF, [(7, 0, None, erf(LINK_TYPE, LINK, seconds=0.25))], order=order))
    assert read_packets(path) == [WirePacket(0, 250_000_000, True, LINK)]


def test_pcap_of_erf_records_that_were_cut_by_who_captured_them(path):
    record = erf(DATA_TYPE, PACKET)
    path.write_bytes(pcap(ERF, [(0, 0, len(record), record[:40])]))
    with capture_reader(str(path)) as capture:
        (chunk,) = capture.chunks()
    assert (chunk.flags.tolist(), chunk.bytes_of(0)) == ([PacketFlag.SHORT], PACKET[:24])


@both_orders
def test_pcapng_has_sections_interfaces_and_three_kinds_of_packets(order, path):
    other = ">" if order == "<" else "<"
    microseconds_from_1000 = [(14, struct.pack(f"{order}q", 1_000))]
    named = [(2, b"up\0"), (9, b"\x09"), (1, b"a comment"), (8, struct.pack(f"{order}Q", 40_000_000_000))]
    path.write_bytes(
        section(order)
        + block(4, bytes(40), order)
        + interface(INFINIBAND, microseconds_from_1000, order)
        + enhanced(0, 25, PACKET, [(1, b"remarkable")], order=order)
        + interface(ERF, named, order)
        + enhanced(1, 77, erf(LINK_TYPE, LINK, flags=4 | 1), order=order)
        + block(0x0BAD, b"anything", order)
        + obsolete(0, 26, PACKET, order)
        + simple(PACKET, order)
        + section(other)
        + interface(INFINIBAND, [(9, bytes([0x80 | 10]))], other)
        + enhanced(0, 3 << 9, PACKET, order=other)
        + interface(ERF, [(2, b"up")], other)
        + enhanced(1, 5, erf(LINK_TYPE, LINK, flags=4 | 1), order=other)
    )
    packets, directions = read_with_directions(path)
    assert packets == [
        WirePacket(0, 1_000_000_025_000, False, PACKET),
        WirePacket(1, 77, True, LINK),
        WirePacket(0, 1_000_000_026_000, False, PACKET),
        WirePacket(0, 0, False, PACKET),
        WirePacket(2, 1_500_000_000, False, PACKET),
        WirePacket(1, 5_000, True, LINK),
    ]
    assert directions == ["interface 0", "up", "interface 2"]
    with capture_reader(str(path)) as capture:
        list(capture.chunks())
        assert capture.speeds == [0, 40_000_000_000, 0]


@pytest.mark.parametrize(
    ("resolution", "stamp", "time_ns"),
    [
        (0, 3, 3_000_000_000),
        (3, 1_234, 1_234_000_000),
        (9, 1_234, 1_234),
        (12, 1_234_567, 1_234),
        (19, 12_345_678_901, 1),
        (0x80 | 1, 3, 1_500_000_000),
        (0x80 | 32, 3 << 31, 1_500_000_000),
        (0x80 | 33, (1 << 33) - 1, 999_999_999),
        (0x80 | 63, 3 << 61, 750_000_000),
        (6, (1 << 64) - 1, 9_223_372_035_551_615_000),
    ],
)
def test_a_clock_of_any_resolution_is_read_in_nanoseconds(resolution, stamp, time_ns, path):
    path.write_bytes(section() + interface(INFINIBAND, [(9, bytes([resolution]))]) + enhanced(0, stamp, PACKET))
    assert times(path) == [time_ns]


def test_errors_that_the_file_says_of_a_packet_are_kept(path):
    crc_error = struct.pack("<I", 1 << 24 | 1)
    inbound = struct.pack("<I", 1)
    path.write_bytes(
        section()
        + interface(INFINIBAND)
        + enhanced(0, 0, PACKET, [(1, b"x"), (2, crc_error)])
        + enhanced(0, 0, PACKET, [(2, inbound)])
    )
    with capture_reader(str(path)) as capture:
        (chunk,) = capture.chunks()
    assert chunk.flags.tolist() == [PacketFlag.BAD, 0]


def test_packets_of_other_links_are_left_out_of_a_pcapng_file(path):
    path.write_bytes(
        section()
        + interface(ETHERNET)
        + interface(INFINIBAND)
        + enhanced(0, 1, bytes(60))
        + enhanced(1, 2, PACKET)
        + enhanced(0, 3, bytes(60))
    )
    assert times(path) == [2_000]


@both_orders
def test_statistics_of_an_interface_are_no_packets(order, path):
    counts = struct.pack(f"{order}IIIHHQHH", 0, 0, 9, 5, 8, 13, 0, 0)
    path.write_bytes(
        section(order)
        + interface(INFINIBAND, (), order)
        + block(5, counts, order)
        + enhanced(0, 9, PACKET, order=order)
    )
    assert times(path) == [9_000]


def test_a_file_of_no_packets_is_none(path):
    for content in (section(), section() + interface(ERF), pcap(ERF, [])):
        path.write_bytes(content)
        assert read_packets(path) == []
    empty = path.with_suffix(".erf")
    empty.touch()
    assert read_packets(empty) == []


def test_a_capture_longer_than_what_is_read_at_once_is_read_whole(path):
    record = erf(DATA_TYPE, PACKET)
    count = 5_000_000 // len(record)
    path.write_bytes(record * count)
    with capture_reader(str(path)) as capture:
        chunks = list(capture.chunks())
        assert len(chunks) > 1
        assert sum(map(len, chunks)) == count
        assert all(np.all(chunk.length == len(PACKET)) for chunk in chunks)


def test_a_long_capture_takes_no_more_memory_than_a_short_one(path):
    def most_memory(records: int) -> int:
        path.write_bytes((erf(DATA_TYPE, PACKET) + erf(LINK_TYPE, LINK)) * records)
        tracemalloc.start()
        with capture_reader(str(path)) as capture:
            for chunk in capture.chunks():
                check_crcs(chunk, Fields(chunk))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    count = 7_000_000 // len(erf(DATA_TYPE, PACKET))
    assert most_memory(3 * count) < 1.05 * most_memory(count)


def test_a_pipe_is_read_as_it_is_filled(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    handle = os.open(pipe, os.O_RDWR)
    os.write(handle, erf(DATA_TYPE, PACKET))
    with capture_reader(str(pipe)) as capture:
        chunks = capture.chunks()
        assert next(chunks).bytes_of(0) == PACKET
        record = erf(LINK_TYPE, LINK)
        os.write(handle, record[:10])
        os.write(handle, record[10:])
        assert next(chunks).bytes_of(0) == LINK
        os.close(handle)
        assert list(chunks) == []


GOOD = section() + interface(INFINIBAND)

WRONG = {
    "empty": (b"", "no capture: it is empty, expected a pcapng or pcap file, or ERF records"),
    "text": (b"Dear all", "no capture: it begins with 44 65 61 72, expected a pcapng or pcap file, or ERF records"),
    "ethernet": (
        pcap(ETHERNET, [(0, 0, None, bytes(60))]),
        "packets of link type 1 (Ethernet), allowed 197 (ERF) and 247 (InfiniBand); "
        "RoCE, in Ethernet frames, is not read",
    ),
    "ipoib": (
        pcap(242, [(0, 0, None, bytes(60))]),
        "packets of link type 242 (IP over InfiniBand, without LRH), allowed 197 (ERF) and 247 (InfiniBand); "
        "RoCE, in Ethernet frames, is not read",
    ),
    "pcapng of ethernet": (
        section() + interface(ETHERNET) + enhanced(0, 0, bytes(60)),
        "no InfiniBand packet among 1 records",
    ),
    "erf of ethernet": (erf(ETHERNET_TYPE, bytes(64)), "no InfiniBand packet among 1 records"),
    "cut erf": (
        erf(DATA_TYPE, PACKET) + erf(DATA_TYPE, PACKET)[:30],
        f"byte {16 + len(PACKET)}, after 1 packets: the file ends 30 bytes into a record",
    ),
    "cut pcap header": (pcap(ERF, [])[:20], "byte 0, after 0 packets: the file ends 20 bytes into a record"),
    "cut pcap": (
        pcap(INFINIBAND, [(0, 0, None, PACKET)])[:-1],
        f"byte 24, after 0 packets: the file ends {15 + len(PACKET)} bytes into a record",
    ),
    "cut pcapng": (
        GOOD + enhanced(0, 0, PACKET) + enhanced(0, 0, PACKET)[:8],
        f"byte {len(GOOD + enhanced(0, 0, PACKET))}, after 1 packets: the file ends 8 bytes into a record",
    ),
    "short erf record": (
        erf(DATA_TYPE, PACKET) + erf(DATA_TYPE, b"", rlen=12),
        f"byte {16 + len(PACKET)}, after 1 packets: an ERF record of 12 bytes, allowed 16 and above",
    ),
    "erf extension without end": (
        erf(DATA_TYPE, bytes(8), extensions=(0x80, 0x80), rlen=32),
        "byte 0, after 0 packets: 32 bytes, too few for an ERF record",
    ),
    "erf extension beyond the record": (
        erf(DATA_TYPE, b"", extensions=(0x83,)),
        "byte 0, after 0 packets: 24 bytes, too few for an ERF record",
    ),
    "erf record of few bytes": (
        pcap(ERF, [(0, 0, None, erf(LINK_TYPE, LINK)), (0, 0, None, bytes(15))]),
        f"byte {24 + 16 + 22 + 16}, after 1 packets: 15 bytes, too few for an ERF record",
    ),
    "long pcap record": (
        pcap(INFINIBAND, [(0, 0, None, PACKET)]) + struct.pack("<IIII", 0, 0, 1 << 30, 1 << 30),
        f"byte {40 + len(PACKET)}, after 1 packets: a record of 1073741824 bytes, allowed 0..16777216",
    ),
    "pcap of another version": (
        pcap(ERF, [], version=3),
        "byte 0, after 0 packets: pcap of version 3.4, allowed 2.*",
    ),
    "pcapng of another version": (
        section(version=2),
        "byte 0, after 0 packets: a section of version 2.0, allowed 1.*",
    ),
    "no byte order": (
        section().replace(bytes.fromhex("4d3c2b1a"), b"ABCD"),
        "byte 0, after 0 packets: a section whose byte order is 41424344, allowed 1a2b3c4d, 4d3c2b1a",
    ),
    "odd block": (
        GOOD + struct.pack("<III", 6, 13, 13),
        f"byte {len(GOOD)}, after 0 packets: a block of 13 bytes, allowed multiples of 4 from 12 to 16777216",
    ),
    "two lengths": (
        GOOD + struct.pack("<III", 6, 12, 16),
        f"byte {len(GOOD)}, after 0 packets: a block that says 12 bytes before it and 16 after it",
    ),
    "short section": (
        section()[:4] + struct.pack("<II", 20, 0x1A2B3C4D) + bytes(8),
        "byte 0, after 0 packets: a section's header of 20 bytes, allowed multiples of 4 from 28",
    ),
    "short interface": (
        section() + block(1, bytes(4)),
        "byte 28, after 0 packets: an interface's description of 16 bytes, allowed 20 and above",
    ),
    "clock": (
        section() + interface(ERF, [(9, b"\x14")]),
        "byte 28, after 0 packets: an interface whose clock counts 10^-20 s, allowed to -19",
    ),
    "no interface": (
        section() + enhanced(0, 0, PACKET),
        "byte 28, after 0 packets: a packet of interface 0, of which there is no description",
    ),
    "packet beyond its block": (
        GOOD + enhanced(0, 0, PACKET) + block(6, struct.pack("<IIIII", 0, 0, 0, 60, 60)),
        f"byte {len(GOOD + enhanced(0, 0, PACKET))}, after 1 packets: a packet of 60 bytes in a block with room for 0",
    ),
}


@pytest.mark.parametrize(("content", "said"), WRONG.values(), ids=WRONG)
def test_what_is_no_capture_or_a_damaged_one_is_said_in_one_line(content, said, path):
    path.write_bytes(content)
    with pytest.raises(CaptureError) as raised:
        read_packets(path)
    assert str(raised.value) == f"{path}: {said}"


def test_a_file_that_is_not_there_or_a_directory_is_said_in_one_line(tmp_path):
    with pytest.raises(CaptureError, match="no/where: cannot be read: No such file or directory"):
        read_packets("no/where")
    with pytest.raises(CaptureError, match="cannot be read: Is a directory"):
        read_packets(tmp_path)
