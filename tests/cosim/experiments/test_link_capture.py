"""Which directions of links a capture is of."""

from pathlib import Path

import pytest

from capture.reader import capture_reader
from cosim.experiments.link_capture import NoSuchLink, directions_at, link_capture
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
