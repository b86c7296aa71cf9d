"""Wireshark's own dissection of our captures, and our reading of what its programs make of them."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from capture.chunk import PacketFlag
from capture.crc_check import Crc, check_crcs
from capture.fields import Fields
from capture.reader import capture_reader
from capture.wire_packet import Direction, Way, WirePacket
from capture.writer import capture_writer
from tests.capture.reading import read_packets, read_with_directions
from tests.capture.samples import DIRECTIONS, FORMATS, good_packets

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("tshark", "editcap", "mergecap")),
    reason="NOT TESTED against Wireshark: apt-get install tshark",
)

EOIB = "infiniband.eoib"
"""Wireshark 4.0 takes a UD packet without payload for a malformed one of Ethernet over InfiniBand."""

COLUMNS = {
    "frame.time_epoch": lambda chunk, fields: chunk.time_ns,
    "erf.flags.rxe": lambda chunk, fields: chunk.has(PacketFlag.BAD),
    "erf.flags.dse": lambda chunk, fields: chunk.has(PacketFlag.MARKED),
    "erf.flags.trunc": lambda chunk, fields: chunk.has(PacketFlag.CUT),
    "infiniband.lrh.vl": lambda chunk, fields: np.where(fields.has_lrh, fields.lrh("vl"), -1),
    "infiniband.lrh.sl": lambda chunk, fields: np.where(fields.has_lrh, fields.lrh("sl"), -1),
    "infiniband.lrh.lnh": lambda chunk, fields: np.where(fields.has_lrh, fields.lrh("lnh"), -1),
    "infiniband.lrh.dlid": lambda chunk, fields: np.where(fields.has_lrh, fields.lrh("dlid"), -1),
    "infiniband.lrh.slid": lambda chunk, fields: np.where(fields.has_lrh, fields.lrh("slid"), -1),
    "infiniband.lrh.pktlen": lambda chunk, fields: np.where(fields.has_lrh, fields.lrh("pkt_len"), -1),
    "infiniband.bth.opcode": lambda chunk, fields: np.where(fields.has_bth, fields.bth("opcode"), -1),
    "infiniband.bth.destqp": lambda chunk, fields: np.where(fields.has_bth, fields.bth("dest_qp"), -1),
    "infiniband.bth.psn": lambda chunk, fields: np.where(fields.has_bth, fields.bth("psn"), -1),
    "infiniband_link.op": lambda chunk, fields: np.where(fields.has_flow_control, fields.flow_control("op"), -1),
    "infiniband_link.fctbs": lambda chunk, fields: np.where(fields.has_flow_control, fields.flow_control("fctbs"), -1),
    "infiniband_link.vl": lambda chunk, fields: np.where(fields.has_flow_control, fields.flow_control("vl"), -1),
    "infiniband_link.fccl": lambda chunk, fields: np.where(fields.has_flow_control, fields.flow_control("fccl"), -1),
}


def run(*command: object) -> str:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=True, timeout=60).stdout


def tshark(*arguments: object) -> str:
    return run("tshark", "-n", "--disable-protocol", EOIB, *arguments)


def write(place: Path, packets: list[WirePacket]) -> list[WirePacket]:
    """The packets, with the numbers that directions have when they are read."""
    packets[0] = packets[0]._replace(direction=0)
    with capture_writer(str(place), DIRECTIONS) as capture:
        for packet in packets:
            capture.write(packet)
    return packets


def ours(place: Path) -> list[list[int]]:
    rows = []
    with capture_reader(str(place)) as capture:
        for chunk in capture.chunks():
            fields = Fields(chunk)
            columns = [column(chunk, fields).astype(np.int64).tolist() for column in COLUMNS.values()]
            rows += [list(row) for row in zip(*columns, strict=True)]
    return rows


def number(text: str) -> int:
    """A field as tshark prints it; -1 for one that is not there."""
    if not text:
        return -1
    seconds, point, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction) if point else int(text, 0)


@pytest.mark.parametrize("suffix", FORMATS)
def test_tshark_dissects_every_good_packet_and_its_fields_are_ours(suffix, tmp_path):
    place = tmp_path / f"good{suffix}"
    given = write(place, good_packets(11, 400))
    wanted = [part for name in ("_ws.malformed", "frame.interface_name", *COLUMNS) for part in ("-e", name)]
    rows = [line.split("\t") for line in tshark("-r", place, "-T", "fields", *wanted).splitlines()]
    assert len(rows) == len(given)
    assert [row[0] for row in rows if row[0]] == []
    assert [[*map(number, row[2:])] for row in rows] == ours(place)
    if suffix == ".pcapng":
        assert [row[1] for row in rows] == [DIRECTIONS[packet.direction].name for packet in given]


def test_the_crcs_that_tshark_finds_are_where_ours_are_and_right(tmp_path):
    place = tmp_path / "good.erf"
    given = write(place, good_packets(12, 200))
    names = ("infiniband.invariant.crc", "infiniband.variant.crc", "infiniband_link.lpcrc")
    found = tshark("-r", place, "-T", "fields", *(part for name in names for part in ("-e", name)))
    with capture_reader(str(place)) as capture:
        (chunk,) = capture.chunks()
    crcs = check_crcs(chunk, Fields(chunk))
    assert set(crcs.link.tolist()) == {Crc.RIGHT}
    assert set(crcs.icrc.tolist()) == {Crc.RIGHT, Crc.ABSENT}
    seen = 0
    for packet, line in zip(given, found.splitlines(), strict=True):
        icrc, vcrc, lpcrc = (int(text.partition(",")[0], 16) if text else None for text in line.split("\t"))
        last = int.from_bytes(packet.data[-2:], "big")
        if packet.is_link:
            assert lpcrc == last
        elif vcrc is not None:
            # Not of raw packets, nor, or not both, of those whose headers Wireshark does not know, as XRC's.
            assert (vcrc, icrc) in ((last, int.from_bytes(packet.data[-6:-2], "big")), (last, None))
            seen += icrc is not None
    assert seen > len(given) // 4


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("to", ["pcapng", "nsecpcap", "pcap"])
def test_what_editcap_rewrites_is_read_the_same(suffix, to, tmp_path):
    place, other = tmp_path / f"ours{suffix}", tmp_path / "theirs"
    given = write(place, good_packets(13, 100))
    run("editcap", "-F", to, place, other)
    assert read_packets(other) == given


def test_what_tshark_rewrites_is_read_the_same_under_the_same_names(tmp_path):
    place, other = tmp_path / "ours.pcapng", tmp_path / "theirs"
    given = write(place, good_packets(14, 100))
    run("tshark", "-r", place, "-F", "pcapng", "-w", other)
    assert read_with_directions(other) == (given, [direction.name for direction in DIRECTIONS])


def test_what_mergecap_puts_together_is_read_as_both(tmp_path):
    first, second, other = tmp_path / "first.pcapng", tmp_path / "second.erf", tmp_path / "both"
    given = write(first, good_packets(15, 60)) + write(second, good_packets(16, 60))
    run("mergecap", "-w", other, first, second)
    merged, directions = read_with_directions(other)

    def bare(packets: list[WirePacket]) -> list[WirePacket]:
        return sorted(packet._replace(direction=0) for packet in packets)

    assert bare(merged) == bare(given)
    assert len(directions) == 2 * len(DIRECTIONS)


@pytest.fixture
def host_and_link(tmp_path) -> tuple[Path, list[WirePacket]]:
    """What is seen on a link, and what the host at one of its ends captures of it, which loses some."""
    place = tmp_path / "host.pcapng"
    host = len(DIRECTIONS)
    given = []
    for number, packet in enumerate(good_packets(18, 120)):
        given.append(packet)
        if not packet.is_link:
            way, lost = Way(1 + number % 2), number % 5
            stamp = packet._replace(direction=host, time_ns=packet.time_ns // 1_000 * 1_000)
            given.append(stamp._replace(way=way, lost=lost))
    with capture_writer(str(place), [*DIRECTIONS, Direction("H2[1] host", is_host=True)]) as capture:
        for packet in given:
            capture.write(packet)
        capture.end_host(host, 0, 80, 20)
    return place, given


def test_tshark_dissects_what_a_host_captured_and_tells_sent_from_received_and_what_was_lost(host_and_link):
    place, given = host_and_link
    names = ("_ws.malformed", "frame.interface_name", "frame.packet_flags_direction", "erf.lctr", "frame.time_epoch")
    rows = tshark("-r", place, "-T", "fields", *(part for name in names for part in ("-e", name))).splitlines()
    for row, packet in zip(rows, given, strict=True):
        malformed, interface, way, lost, time = row.split("\t")
        assert malformed == ""
        assert (interface == "H2[1] host") == (packet.way is not None)
        assert int(way or "0", 0) == (packet.way or 0)
        assert int(lost) == packet.lost
        assert round(float(time) * 10**9) == packet.time_ns


@pytest.mark.parametrize(
    "command", ["editcap {ours} {theirs}", "mergecap -a -w {theirs} {ours}", "tshark -r {ours} -F pcapng -w {theirs}"]
)
def test_what_a_host_captured_is_the_same_in_the_files_of_wiresharks_programs(command, host_and_link, tmp_path):
    place, given = host_and_link
    other = tmp_path / "theirs.pcapng"
    run(*(word.format(ours=place, theirs=other) for word in command.split()))
    theirs, ours = read_with_directions(other), read_with_directions(place)
    assert theirs == ours
    assert len(theirs[0]) == len(given)


def test_tshark_follows_a_pipe(tmp_path):
    script = (
        "import sys\n"
        "from tests.capture.samples import DIRECTIONS, good_packets\n"
        "from capture.writer import capture_writer\n"
        "with capture_writer('-', DIRECTIONS) as capture:\n"
        "    for packet in good_packets(17, 20):\n"
        "        capture.write(packet)\n"
        "        capture.flush()\n"
        "    sys.stdin.read()\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdin is not None
        command = ["tshark", "-n", "-l", "-i", "-", "-c", "20", "-T", "fields", "-e", "frame.interface_name"]
        seen = subprocess.run(command, stdin=writer.stdout, capture_output=True, text=True, timeout=60).stdout
        writer.stdin.close()
    assert len(seen.splitlines()) == 20
