"""Which directions of links a capture is of, and which hosts."""

import struct
from pathlib import Path

import pytest

from capture.reader import capture_reader
from cosim.experiments.link_capture import NoSuchLink, directions_at, hosts_at, link_capture
from tests.capture.reading import read_packets, read_with_directions
from tests.capture.samples import good_packets
from wire.codes import LinkWidth
from wire.framing import FramedPacket
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.trace import Delimiter

FABRIC = FabricParameters(
    {"S": SwitchParameters(ports=4), "A": AdapterParameters(), "B.1": AdapterParameters(), "B.2": AdapterParameters()},
    (LinkParameters("S", 1, "A", 1), LinkParameters("B.2", 1, "S", 3)),
)

WIDTHS = (LinkWidth.X4, LinkWidth.X1)


@pytest.mark.parametrize(
    ("places", "directions"),
    [
        ([], [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (["A"], [(0, 0), (0, 1)]),
        (["A:out"], [(0, 1)]),
        (["A:in"], [(0, 0)]),
        (["S[1]:out"], [(0, 0)]),
        (["B[2]:out", "A:in"], [(1, 0), (0, 0)]),
        (["S[3]", "B[2]", "S[3]:in"], [(1, 0), (1, 1)]),
        (["A:host"], []),
        (["A:host", "S[3]:in"], [(1, 0)]),
    ],
)
def test_a_port_names_the_directions_of_its_link(places: list[str], directions: list[tuple[int, int]]) -> None:
    assert directions_at(FABRIC, places) == directions


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("C", "C: no such node; there are S, A, B[1], B[2]"),
        ("S", "S: is a switch, expected S[PORT]"),
        ("S[5]", "S[5]: expected port 1..4"),
        ("S[2]:in", "S[2]: has no link"),
        ("B", "B: has no link"),
        ("A:up", "A:up: expected PORT, PORT:out, PORT:in or PORT:host"),
        ("A:", "A:: expected PORT, PORT:out, PORT:in or PORT:host"),
        ("A:in:out", "A:in:out: expected PORT, PORT:out, PORT:in or PORT:host"),
        ("[1]", "'[1]': expected NODE or NODE[PORT]"),
        ("S[1]:host", "S[1]:host: S[1] is a switch's port, expected an adapter's"),
        ("B:host", "B: has no link"),
    ],
)
def test_where_there_is_no_link_none_is_captured(place: str, message: str) -> None:
    with pytest.raises(NoSuchLink) as caught, link_capture(FABRIC, WIDTHS, "a.pcapng", [place]):
        pass
    assert str(caught.value) == message


def test_without_a_file_nobody_looks() -> None:
    with link_capture(FABRIC, WIDTHS, None) as taps:
        assert taps.directions == ()


def test_a_capture_names_both_ends_of_a_link_and_its_rate(tmp_path: Path) -> None:
    path = str(tmp_path / "a.pcapng")
    with link_capture(FABRIC, WIDTHS, path, ["A", "B[2]:out"]) as taps:
        assert taps.directions == ((0, 0), (0, 1), (1, 0))
        taps.take(2, FramedPacket(25, True, bytes(6), Delimiter.EBP))
    with capture_reader(path) as capture:
        (chunk,) = capture.chunks()
    assert (chunk.time_ns[0], capture.directions) == (100, ["B[2] -> S[3]"])
    assert capture.speeds == [25 * 10**8]


DATA = next(packet.data for packet in good_packets(1, 10) if not packet.is_link)


def test_hosts_capture_at_their_ports() -> None:
    assert hosts_at(FABRIC, ["B[2]:host", "A", "A:host", "B[2]:host"]) == {("B.2", 1): (1, 0), ("A", 1): (0, 1)}
    assert hosts_at(FABRIC, []) == {}


def test_a_link_is_tapped_once_for_its_cable_and_its_host(tmp_path: Path) -> None:
    with link_capture(FABRIC, WIDTHS, str(tmp_path / "a.pcapng"), ["A", "A:host"]) as taps:
        assert taps.directions == ((0, 0), (0, 1))
    with link_capture(FABRIC, WIDTHS, str(tmp_path / "b.pcapng"), ["S[1]:in", "A:host"]) as taps:
        assert taps.directions == ((0, 1), (0, 0))


def test_cable_and_host_tell_of_a_packet_each_in_its_way_and_by_their_times(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with link_capture(FABRIC, WIDTHS, str(path), ["A:out", "A:host"]) as taps:
        for cycle in (1_000, 3_000):
            taps.take(0, FramedPacket(cycle, False, DATA, Delimiter.EGP))
        taps.take(0, FramedPacket(9_000, True, bytes(6), Delimiter.EGP))
        taps.take(1, FramedPacket(9_001, False, DATA, Delimiter.EGP))
    packets, directions = read_with_directions(path)
    assert directions == ["A[1] -> S[1]", "A[1] host"]
    cable, host = ([packet for packet in packets if packet.direction == number] for number in range(2))
    assert [(packet.time_ns, packet.is_link) for packet in cable] == [(4_000, False), (12_000, False), (36_000, True)]
    assert [packet.is_link for packet in host] == [False] * 3
    for packet, passed_ns in zip(host, (4_000, 12_000, 36_004), strict=True):
        assert packet.time_ns % 1_000 == 0
        assert passed_ns - 1_000 < packet.time_ns < passed_ns + 20_000
    times = [packet.time_ns for packet in packets]
    assert times == sorted(times)


def test_two_hosts_on_one_link_both_see_its_packets(tmp_path: Path) -> None:
    fabric = FabricParameters({"A": AdapterParameters(), "C": AdapterParameters()}, (LinkParameters("A", 1, "C", 1),))
    path = tmp_path / "a.pcapng"
    with link_capture(fabric, WIDTHS, str(path), ["A:host", "C:host"]) as taps:
        taps.take(0, FramedPacket(0, False, DATA, Delimiter.EGP))
    packets, directions = read_with_directions(path)
    assert {directions[packet.direction] for packet in packets} == {"A[1] host", "C[1] host"}
    assert [packet.data for packet in packets] == [DATA] * 2


def test_a_host_that_cannot_keep_up_counts_what_it_lost_and_repeats_itself_to_the_byte(tmp_path: Path) -> None:
    count = 6_000

    def captured(name: str) -> bytes:
        with link_capture(FABRIC, WIDTHS, str(tmp_path / name), ["A:host"]) as taps:
            for number in range(count):
                taps.take(0, FramedPacket(73 * number, False, DATA, Delimiter.EGP))
        return (tmp_path / name).read_bytes()

    content = captured("a.pcapng")
    there = len(read_packets(tmp_path / "a.pcapng"))
    # The last block: what came, and what of that was dropped.
    assert struct.unpack_from("<4xQ4xQ", content, len(content) - 32) == (count, count - there)
    assert there < count
    assert captured("again.pcapng") == content


def test_of_an_interrupted_run_a_host_has_all_packets_that_it_captured_and_their_number(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"

    def run() -> None:
        with link_capture(FABRIC, WIDTHS, str(path), ["A:host"]) as taps:
            for number in range(100):
                taps.take(1, FramedPacket(number, False, DATA, Delimiter.EGP))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert [packet.data for packet in read_packets(path)] == [DATA] * 100
    content = path.read_bytes()
    assert struct.unpack_from("<4xQ4xQ", content, len(content) - 32) == (100, 0)
